"""Tuples that wait in front of a bolt, and the one among them that is next. Pure: time is an argument.

A discipline chooses (`core.policy.Discipline`), but only among the tuples that may be next: of tuples whose order is
promised it is offered the oldest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from pystorm.component import Tuple

from leeward.core.errors import ConfigError
from leeward.core.instructions import Deliver, Instruction
from leeward.core.policy import Discipline
from leeward.runtime.dsl.queues import unfit

#: A tuple without a deadline is due so many seconds after it came: behind all others, first in first out. Finite, as
#: disciplines calculate with it.
FAR_S = 1e9

#: Lines of tuples besides key groups. In no line: it may overtake all, and be overtaken.
FREE = -1
#: No other passes it, and it passes none: it may touch any key.
ALONE = -2


class Waiting:
    """A tuple that waits, with the facts that disciplines order by; `runtime.ordered_by` has their meaning.

    `tup` is the tuple itself, for a discipline that looks at more.
    """

    __slots__ = (
        "arrived",
        "due",
        "fault",
        "given_s",
        "group",
        "line",
        "mean_s",
        "rank",
        "stages",
        "tup",
        "unloaded",
        "weight",
    )

    def __init__(self, tup: Tuple, group: int | None, line: int, now: float, mean_s: Callable[[], float]) -> None:
        """`mean_s`: the task's mean time for a tuple, where its fields tell no other."""
        self.tup, self.group, self.line, self.mean_s = tup, group, line, mean_s
        self.arrived: float = now
        self.rank: float = 0
        self.due: float | None = None
        self.unloaded: float = 0.0
        self.given_s: float | None = None
        self.stages, self.weight = 1, 1.0
        self.fault: Exception | None = None  #: that keeps it from having a place in the order

    @property
    def execution(self) -> float:
        """Mean time for one tuple, s."""
        return self.mean_s() if self.given_s is None else self.given_s

    @execution.setter
    def execution(self, seconds: float) -> None:
        self.given_s = seconds

    def checked(self) -> Tuple:
        """The tuple, to be processed. Raises what is wrong with its facts, now that the protocol has counted it."""
        if self.fault is not None:
            raise self.fault
        return self.tup


class Queue:
    """The waiting tuples of one task, oldest first."""

    def __init__(
        self, discipline: Discipline, facts: Mapping[str, str | float], *, component: str, most: int,
        line: Callable[[int | None], int], mean_s: Callable[[], float],
    ) -> None:  # fmt: skip
        """`facts`, `most`: as `runtime.ordered_by` has them. `line`: from a tuple's key group to its line."""
        self._discipline, self._component, self._line, self._mean_s = discipline, component, line, mean_s
        self._values = {fact: value for fact, value in facts.items() if not isinstance(value, str)}
        self._fields = {fact: value for fact, value in facts.items() if isinstance(value, str)}
        self._places: dict[type, list[tuple[str, int | None]]] = {}  # class of values -> position of each field
        self._waiting: list[Waiting] = []
        self._most = most

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """No more are to be read ahead."""
        return len(self._waiting) >= self._most

    def add(self, tup: Tuple, group: int | None, now: float) -> None:
        """A tuple has come. One whose facts are no numbers takes its turn, and then raises an error."""
        waiting = Waiting(tup, group, self._line(group), now, self._mean_s)
        try:
            self._describe(waiting)
        except ConfigError as error:
            waiting.fault = error
        self._waiting.append(waiting)

    def take(self, now: float) -> Waiting:
        """The next one, which waits no longer; there is one."""
        return self._waiting.pop(self._next(self._waiting, now))

    def in_turn(self, instructions: Iterable[Instruction], clock: Callable[[], float]) -> Iterator[Instruction]:
        """The same instructions, but of tuples that follow each other, as the protocol held them back, the next one is
        chosen whenever it is asked for."""
        run: list[Deliver] = []
        for instruction in instructions:
            if isinstance(instruction, Deliver):
                run.append(instruction)
                continue
            yield from self._ordered(run, clock)
            yield instruction
        yield from self._ordered(run, clock)

    def _ordered(self, run: list[Deliver], clock: Callable[[], float]) -> Iterator[Deliver]:
        while run:
            yield run.pop(self._next([deliver.item[1] for deliver in run], clock()) if len(run) > 1 else 0)

    def _next(self, waiting: Sequence[Waiting], now: float) -> int:
        """Its position. Where the discipline fails, the oldest is next, and raises the error."""
        offered = list(_offered(waiting))
        for position in offered:
            if waiting[position].fault is not None:
                return position
        try:
            return offered[self._choice([waiting[position] for position in offered], now)]
        except Exception as error:
            waiting[0].fault = error
            return 0

    def _choice(self, offered: list[Waiting], now: float) -> int:
        choice = self._discipline.next_item(offered, now=now)
        if not isinstance(choice, int) or not 0 <= choice < len(offered):
            name = type(self._discipline).__name__
            raise ConfigError(
                f"{self._component}: {name}.next_item chose {choice!r} of {len(offered)} waiting tuples.",
                remedy=f"Return a position in `waiting`, from 0 to {len(offered) - 1} here.",
            )
        return choice

    # --- facts

    def _describe(self, waiting: Waiting) -> None:
        for fact, value in self._values.items():
            setattr(waiting, fact, value)
        values = waiting.tup.values
        places = self._places.get(type(values))
        if places is None:
            names = list(getattr(values, "_fields", ()))
            places = [(fact, names.index(name) if name in names else None) for fact, name in self._fields.items()]
            self._places[type(values)] = places
        for fact, place in places:
            if place is None:
                raise self._missing(waiting.tup, fact)
            value = values[place]
            if need := unfit(fact, value):
                raise self._unfit(waiting.tup, fact, value, need)
            setattr(waiting, fact, value)
        if waiting.due is None:
            waiting.due = waiting.arrived + FAR_S

    def _missing(self, tup: Tuple, fact: str) -> ConfigError:
        field = self._fields[fact]
        return ConfigError(
            f"{self._component}: its queue is ordered by the field {field!r} ({fact}), which a tuple of "
            f"{tup.component} on the stream {tup.stream!r} does not have.",
            remedy=f"Add {field!r} to the outputs of {tup.component}, or leave {fact} out of ordered_by.",
        )

    def _unfit(self, tup: Tuple, fact: str, value: object, need: str) -> ConfigError:
        field = self._fields[fact]
        return ConfigError(
            f"{self._component}: its queue is ordered by the field {field!r} ({fact}), which is {value!r:.60} in a "
            f"tuple of {tup.component} on the stream {tup.stream!r}.",
            remedy=f"Emit {need} there, or leave {fact} out of ordered_by.",
        )


def _offered(waiting: Sequence[Waiting]) -> Iterator[int]:
    """Positions of those that may be next: of each line the oldest."""
    lines: set[int] = set()
    for position, one in enumerate(waiting):
        line = one.line
        if line == ALONE:
            if position == 0:
                yield position
            return
        if line not in lines:
            yield position
            if line != FREE:
                lines.add(line)


def line_of(*, stateful: bool, keyed: bool, told: bool) -> Callable[[int | None], int]:
    """From a tuple's key group to its line.

    `keyed`: some input is routed by key; `told`: the worker tells the groups of keyed input, as it does in frames.
    A tuple without a group is in none where it has no key for sure.
    """
    other = ALONE if stateful or (keyed and not told) else FREE
    return lambda group: other if group is None else group
