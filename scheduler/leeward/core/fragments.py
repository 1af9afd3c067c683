"""State in fragments at agents: the part of a published system that says how. Standard library only, and pure.

A scheme turns the bytes of a checkpoint into fragments, and plans the way back: which bytes of which fragment are to
be asked for next. The shell that sends, asks and waits is `runtime/state/scattered.py`. Classes are found by name in
the entry points `leeward.stores`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

Buffer = bytes | bytearray | memoryview


class Ask(NamedTuple):
    """Bytes of a fragment that are wanted from its holder."""

    holder: str
    fragment: int
    begin: int
    length: int


class Spread(Protocol):
    """A state in fragments."""

    @property
    def fragments(self) -> Sequence[Sequence[Buffer]]:
        """Each as buffers that follow each other; views of the state, where that can be."""

    @property
    def least(self) -> int:
        """Fragments that have to be stored for the state to be there at all."""

    @property
    def period_s(self) -> float:
        """Longest time until the next checkpoint that keeps the promise in the settings, s; 0: they promise none."""

    def record(self, holders: Sequence[str]) -> bytes:
        """All that `Scheme.rebuild` needs beside the fragments. `holders`: of each; "" where nobody has it."""


class Rebuilding(Protocol):
    """A rebuild in progress. Each event is told with the time, in s, and gives the asks that follow.

    Raises SnapshotError when the state cannot be rebuilt any more; it gives no bytes that were not stored.
    """

    @property
    def over(self) -> bool:
        """All that is wanted is here."""

    def begin(self, now: float) -> Sequence[Ask]:
        """The first asks."""

    def received(self, ask: Ask, data: Buffer, now: float) -> Sequence[Ask]:
        """The holder's answer, which nobody has checked; `data` does not change any more."""

    def gone(self, holder: str, now: float) -> Sequence[Ask]:
        """This holder is not there, or has no such fragment."""

    def tick(self, now: float) -> Sequence[Ask]:
        """Time has passed."""

    def state(self) -> memoryview:
        """The state, when it is over; of its bytes those of the wanted ranges alone are right."""


class Scheme(Protocol):
    """A class of schemes takes one argument, an object of its attribute `Settings` (a class of `core/options.py`)."""

    def spread(self, state: Buffer, *, neighbours: int) -> Spread:
        """For at most so many holders. `state` must not change as long as the result is used.

        Raises ConfigError if there are too few neighbours for the settings.
        """

    def rebuild(self, record: bytes, ranges: Sequence[tuple[int, int]]) -> Rebuilding:
        """Rebuild these (begin, length) of the state. Raises SnapshotError for a record that cannot be read."""
