"""What the simulated topologies compute, and what must come of it.

Two sources `a` and `b` emit the numbers 1 to LIMIT. Those of `a` go through a stateless bolt. A keyed bolt keeps each
number under its key and passes it to a sink, which keeps what it has seen and writes it to a store outside. With
`pulses` there is one source; each third number is followed by a pulse, at which the keyed bolt passes on all that it
has, and the sink writes the result under the number of the pulse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from leeward.core.instructions import DeliverPulse, Kind, Marker, Send

if TYPE_CHECKING:
    from leeward.sim.process import Process

#: Keys of the keyed bolt.
KEYS = 7
#: Numbers between two pulses.
EVERY = 3


def key_of(number: int) -> str:
    """The key of a number."""
    return f"k{number % KEYS}"


@dataclass(frozen=True, slots=True)
class Shape:
    """A topology of the simulator."""

    tasks: Mapping[int, str]
    targets: Mapping[str, tuple[str, ...]]
    keyed: frozenset[tuple[str, str]]
    kinds: Mapping[str, str]
    single: tuple[str, ...]  #: components that may have one replica only
    pulses: bool


_KEYED = frozenset({("pass", "count"), ("b", "count"), ("count", "sink")})
_KINDS = {"a": "source", "b": "source", "pass": "stateless", "count": "stateful", "sink": "stateful"}
TWO = Shape(
    tasks={1: "a", 2: "b", 3: "pass", 4: "pass", 5: "count", 6: "count", 7: "count", 8: "sink", 9: "sink"},
    targets={"a": ("pass",), "b": ("count",), "pass": ("count",), "count": ("sink",), "sink": ()},
    keyed=_KEYED, kinds=_KINDS, single=("a", "b", "sink"), pulses=False,
)  # fmt: skip
#: With a spare for the source.
ONE = Shape(
    tasks={1: "a", 2: "a", 3: "pass", 4: "pass", 5: "count", 6: "count", 7: "count", 8: "sink", 9: "sink"},
    targets={"a": ("pass",), "pass": ("count",), "count": ("sink",), "sink": ()},
    keyed=_KEYED, kinds=_KINDS, single=("a", "sink"), pulses=True,
)  # fmt: skip


@dataclass(slots=True)
class Outside:
    """The store that the sink writes to, and the inputs that the sources read."""

    written: dict[object, object] = field(default_factory=dict)
    writes: int = 0
    refused: int = 0  #: writes of processes that were replaced
    base: int = 0  #: newest base that the store has seen: fencing
    trimmed: dict[str, int] = field(default_factory=dict)  #: source -> numbers up to here cannot be read again

    def write(self, token_base: int, key: object, value: object) -> None:
        """Under the key, once or again with the same value, unless the writer is outdated."""
        if token_base < self.base:
            self.refused += 1
            return
        self.writes += 1
        assert self.written.setdefault(key, value) == value, f"{key}: {value} differs from {self.written[key]}"


class Application:
    """The user's code of every component."""

    def __init__(self, shape: Shape, outside: Outside, limit: int) -> None:
        self.shape, self.outside, self.limit = shape, outside, limit

    def next_tuple(self, process: Process) -> bool:
        """A source emits its next number; False at the end."""
        number, name = process.state.get("at", 0) + 1, process.component_name
        if number > self.limit:
            return False
        assert number > self.outside.trimmed.get(name, 0), f"{name} reads {number}, which is trimmed"
        process.state["at"] = number
        for target in self.shape.targets[name]:
            process.emit(target, (name, number), key_of(number))
        if self.shape.pulses and number % EVERY == 0:
            process.send(Send(Marker(kind=Kind.PULSE, number=number // EVERY, body=number)))
        return True

    def key(self, component: str, item: tuple) -> str | None:
        """What a tuple is routed by to a component that keeps state."""
        if component == "count":
            return key_of(item[1])
        return "all" if self.shape.pulses else f"{item[0]}{item[1] % 5}"

    def process(self, process: Process, item: tuple[str, int]) -> None:
        """A data tuple at a bolt."""
        match process.component_name:
            case "pass":
                process.emit("count", item, key_of(item[1]))
            case "count":
                self._count(process, *item)
            case "sink":
                self._collect(process, item)

    def pulse(self, process: Process, instruction: DeliverPulse) -> None:
        """A pulse at a bolt."""
        assert len(set(instruction.bodies)) == 1
        if process.component_name == "count":
            for key in sorted(process.state):
                process.emit("sink", (key, tuple(sorted(n for _, n in process.state[key]))), "all")
        elif process.component_name == "sink":
            seen = process.state.get("all", [])
            process.state["all"] = []
            numbers = sorted(n for _, values in seen for n in values)
            assert numbers == list(range(1, instruction.number * EVERY + 1)), f"pulse {instruction.number}: {numbers}"
            self.outside.write(process.task.fencing_token.base, instruction.number, tuple(numbers))

    def durable(self, process: Process, state: dict | None) -> None:
        """A source may forget its input up to here."""
        if state is not None:
            name = process.component_name
            self.outside.trimmed[name] = max(self.outside.trimmed.get(name, 0), state.get("at", 0))

    def _count(self, process: Process, source: str, number: int) -> None:
        key = key_of(number)
        values = process.state.get(key, [])
        process.state[key] = [*values, [source, number]]
        if not self.shape.pulses:
            process.emit("sink", (source, number), f"{source}{number % 5}")

    def _collect(self, process: Process, item: tuple) -> None:
        if self.shape.pulses:
            process.state["all"] = [*process.state.get("all", []), [item[0], list(item[1])]]
            return
        source, number = item
        key = f"{source}{number % 5}"
        process.state[key] = [*process.state.get(key, []), number]
        self.outside.write(process.task.fencing_token.base, item, number * 7)

    def check_cut(self, states: Mapping[str, Iterable[Mapping[str, Any]]]) -> None:
        """A consistent snapshot holds of each source exactly the numbers up to where that source was."""
        merged: dict[str, dict[str, Any]] = {}
        for name, parts in states.items():
            for part in parts:
                assert not merged.setdefault(name, {}).keys() & part.keys(), f"{name}: a key is there twice"
                merged[name] |= part
        at = {name: merged.get(name, {}).get("at", 0) for name, kind in self.shape.kinds.items() if kind == "source"}
        want = sorted((name, number) for name in at if name in states for number in range(1, at[name] + 1))
        counted = sorted(tuple(entry) for values in merged.get("count", {}).values() for entry in values)
        assert counted == want, f"the cut has {counted}, the sources were at {at}"
        if not self.shape.pulses:
            seen = sorted((key[0], number) for key, values in merged.get("sink", {}).items() for number in values)
            assert seen == want, f"the sink has {seen}, the sources were at {at}"

    def finished(self) -> bool:
        """Every result is outside."""
        if self.shape.pulses:
            return len(self.outside.written) == self.limit // EVERY
        sources = sum(kind == "source" for name, kind in self.shape.kinds.items() if name in self.shape.targets)
        return len(self.outside.written) == sources * self.limit
