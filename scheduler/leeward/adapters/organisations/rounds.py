"""The same messages to the same peers, again and again: sent in turns of a few peers each.

A round goes over all peers as long as messages come.  At its turn a peer gets all messages since its last one, in one
frame, so a message waits for one round at most.  Were each frame written to all peers before the next is begun, a
message would wait for what is left of one round, and then go out anywhere in the next.  Between two turns the event
loop does other work.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

#: Peers of a turn: few, so that other work is not kept for long (0.3 ms); many, as each turn packs a frame of its own.
TURN = 50


@dataclass(slots=True)
class Turn:
    """The peers of one turn, and the messages that wait for all of them."""

    names: tuple[str, ...]
    waiting: list[bytes] = field(default_factory=list)  #: packed messages

    def take(self) -> list[bytes]:
        """The waiting messages; none waits from now on."""
        taken, self.waiting = self.waiting, []
        return taken


class Round:
    """See the module. `names`: all peers, in the order of their turns."""

    def __init__(self, names: tuple[str, ...], turn: int) -> None:
        self._turns = deque(Turn(names[first : first + turn]) for first in range(0, len(names), turn))

    def put(self, packed: bytes) -> None:
        """One more message for all."""
        for turn in self._turns:
            turn.waiting.append(packed)

    def next(self) -> Turn | None:
        """Whose turn it is; None if nothing waits for anybody."""
        for _ in range(len(self._turns)):
            turn = self._turns[0]
            self._turns.rotate(-1)
            if turn.waiting:
                return turn
        return None

    def waiting(self) -> dict[str, int]:
        """Peer -> messages that wait for it."""
        return {name: len(turn.waiting) for turn in self._turns if turn.waiting for name in turn.names}

    def of(self, name: str) -> Turn | None:
        """The turn of a peer for which something waits."""
        return next((turn for turn in self._turns if turn.waiting and name in turn.names), None)
