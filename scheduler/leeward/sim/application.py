"""The computation of the simulated topologies, and its expected results.

Two sources `a` and `b` emit the numbers 1 to LIMIT. Those of `a` go through a stateless bolt. A keyed bolt keeps each
number under its key and passes it to a sink, which keeps what it has seen and writes it to a store outside. With
`pulses` there is one source; each third number is followed by a pulse, at which the keyed bolt passes on all that it
has, and the sink writes the result under the number of the pulse.

A tuple is (source, number, the task that sent it last but for the keyed bolt). Without pulses some tuples of `b` have
no key: Storm gives them to any replica of the keyed bolt, which must have all of its groups then, and in them every
number that the same task sent before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from leeward.core.instructions import DeliverPulse, Kind, Marker, Send
from leeward.core.keys import GROUPS, key_group
from leeward.sim.parts import AProcess

#: Keys of the keyed bolt.
KEYS = 7
#: Numbers between two pulses.
EVERY = 3
#: Each so many numbers of `b` one has no key.
UNKEYED = 4

Item = tuple[str, int, int]


def key_of(number: int) -> str:
    """The key of a number."""
    return f"k{number % KEYS}"


def has_key(item: Item) -> bool:
    """It goes to the keyed bolt by key."""
    return item[0] != "b" or item[1] % UNKEYED != 0


def a_key_in_each_group(prefix: str) -> tuple[str, ...]:
    """Group -> the first of the keys `prefix0`, `prefix1`, ... that belongs to it."""
    found: dict[int, str] = {}
    number = 0
    while len(found) < GROUPS:
        found.setdefault(key_group(f"{prefix}{number}"), f"{prefix}{number}")
        number += 1
    return tuple(found[group] for group in range(GROUPS))


#: Group -> the key under which the keyed bolt keeps numbers that came without one.
KEY_IN = a_key_in_each_group("u")


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

    def next_tuple(self, process: AProcess) -> bool:
        """A source emits its next number; False at the end."""
        number, name = process.state.get("at", 0) + 1, process.component_name
        if number > self.limit:
            return False
        assert number > self.outside.trimmed.get(name, 0), f"{name} reads {number}, which is trimmed"
        process.state["at"] = number
        item = (name, number, process.task_id)
        for target in self.shape.targets[name]:
            process.emit(target, item, key_of(number) if has_key(item) else None)
        if self.shape.pulses and number % EVERY == 0:
            process.send(Send(Marker(kind=Kind.PULSE, number=number // EVERY, body=number)))
        return True

    def key(self, component: str, item: tuple[Any, ...]) -> str | None:
        """The key of a tuple for a component that keeps state."""
        if component == "count":
            return key_of(item[1]) if has_key(item) else None
        return "all" if self.shape.pulses else f"{item[0]}{item[1] % KEYS}"

    def process(self, process: AProcess, item: tuple[Any, ...]) -> None:
        """A data tuple at a bolt."""
        match process.component_name:
            case "pass":
                process.emit("count", (item[0], item[1], process.task_id), key_of(item[1]))
            case "count":
                self._count(process, item)
            case "sink":
                self._collect(process, item)

    def pulse(self, process: AProcess, instruction: DeliverPulse) -> None:
        """A pulse at a bolt."""
        assert len(set(instruction.bodies)) == 1
        if process.component_name == "count":
            for key in sorted(process.state):
                process.emit("sink", (key, tuple(sorted(n for _, n, _ in process.state[key]))), "all")
        elif process.component_name == "sink":
            seen = process.state.get("all", [])
            process.state["all"] = []
            numbers = sorted(n for _, values in seen for n in values)
            assert numbers == list(range(1, instruction.number * EVERY + 1)), f"pulse {instruction.number}: {numbers}"
            self.outside.write(process.task.fencing_token.base, instruction.number, tuple(numbers))

    def durable(self, process: AProcess, state: dict[Any, Any] | None) -> None:
        """A source may forget its input up to here."""
        if state is not None:
            name = process.component_name
            self.outside.trimmed[name] = max(self.outside.trimmed.get(name, 0), state.get("at", 0))

    def _count(self, process: AProcess, item: Item) -> None:
        if has_key(item):
            key = key_of(item[1])
        else:
            self._check_all_before(process, item)
            key = KEY_IN[process.state.groups[0]]
        self._keep(process, key, item)
        if not self.shape.pulses:
            process.emit("sink", item, self.key("sink", item))

    def _collect(self, process: AProcess, item: tuple[Any, ...]) -> None:
        if self.shape.pulses:
            process.state["all"] = [*process.state.get("all", []), [item[0], list(item[1])]]
            return
        self._keep(process, str(self.key("sink", item)), item)
        self.outside.write(process.task.fencing_token.base, item[:2], item[1] * 7)

    def _keep(self, process: AProcess, key: str, item: Item) -> None:
        """Under one key, tuples of one task come in their order, for every series of owners of the key."""
        values = process.state.get(key, [])
        source, number, sender = item
        if has_key(item):
            last = next((n for s, n, t in reversed(values) if (s, t) == (source, sender) and has_key((s, n, t))), 0)
            assert last < number, f"{process.component_name}: {source}{number} of task {sender} came after {last}"
        process.state[key] = [*values, list(item)]

    def _check_all_before(self, process: AProcess, item: Item) -> None:
        """A tuple without a key waits for all groups, and comes after all that its sender sent before.

        Not where Storm has lost some of them: the next marker shows that, and a restore follows.
        """
        groups, pair = process.state.groups, process.pair
        assert groups == process.task.groups(process.protocol.tables), f"{item} does not see every group"
        if item[2] in pair.network.holes or process.protocol.base != pair.history[-1].base:
            return
        for key in {key_of(n) for n in range(1, KEYS + 1)}:
            if key_group(key) in groups:
                there = {n for s, n, t in process.state.get(key, []) if s == item[0]}
                want = {n for n in range(1, item[1]) if key_of(n) == key and has_key((item[0], n, 0))}
                assert want <= there, f"{item} without a key came before {sorted(want - there)}"

    def check_cut(self, states: Mapping[str, Iterable[Mapping[str, Any]]]) -> None:
        """A consistent snapshot holds of each source exactly the numbers up to where that source was."""
        merged: dict[str, dict[str, Any]] = {}
        for name, parts in states.items():
            for part in parts:
                assert not merged.setdefault(name, {}).keys() & part.keys(), f"{name}: a key is there twice"
                merged[name] |= part
        at = {name: merged.get(name, {}).get("at", 0) for name, kind in self.shape.kinds.items() if kind == "source"}
        want = sorted((name, number) for name in at if name in states for number in range(1, at[name] + 1))
        counted = sorted((entry[0], entry[1]) for values in merged.get("count", {}).values() for entry in values)
        assert counted == want, f"the cut has {counted}, the sources were at {at}"
        if not self.shape.pulses:
            seen = sorted((entry[0], entry[1]) for values in merged.get("sink", {}).values() for entry in values)
            assert seen == want, f"the sink has {seen}, the sources were at {at}"

    def finished(self) -> bool:
        """Every result is outside."""
        if self.shape.pulses:
            return len(self.outside.written) == self.limit // EVERY
        sources = sum(kind == "source" for name, kind in self.shape.kinds.items() if name in self.shape.targets)
        return len(self.outside.written) == sources * self.limit
