"""Questions to other nodes: sent again until they are answered, or given up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from leeward.policies.agiledart.overlay.messages import Contact
from leeward.policies.agiledart.overlay.neighbours import Outbox, Times

#: Times that a question is sent.
TRIES = 4
#: Takes the answer, or None if the node has not answered, and the time.
Then = Callable[[Any, float], None]


@dataclass(slots=True)
class _Open:
    to: Contact
    message: Any
    then: Then
    due: float
    tries: int = 1


class Questions:
    """See the module. `numbers`: of this node's messages."""

    def __init__(self, times: Times, outbox: Outbox, numbers: Iterator[int]) -> None:
        self._times, self._outbox, self._numbers = times, outbox, numbers
        self._open: dict[int, _Open] = {}

    def ask(self, to: Contact, make: Callable[[int], Any], then: Then, now: float) -> None:
        """Send a question, made of its number; `then` is called once."""
        number = next(self._numbers)
        message = make(number)
        self._open[number] = _Open(to, message, then, now + self._times.ack)
        self._outbox.send(to.at, message)

    def answered(self, sender: int, number: int, answer: Any, now: float) -> None:
        """An answer, of the node that was asked or not."""
        one = self._open.get(number)
        if one is not None and one.to.at == sender:
            del self._open[number]
            one.then(answer, now)

    def patience(self, sender: int, number: int, now: float) -> None:
        """The node lives, and needs more time."""
        one = self._open.get(number)
        if one is not None and one.to.at == sender:
            one.tries, one.due = 0, now + self._times.ack

    def tick(self, now: float) -> None:
        """Time has passed."""
        for number, one in [(number, one) for number, one in self._open.items() if now >= one.due]:
            if one.tries < TRIES:
                one.tries, one.due = one.tries + 1, now + self._times.ack
                self._outbox.send(one.to.at, one.message)
            elif self._open.pop(number, None) is not None:
                one.then(None, now)
