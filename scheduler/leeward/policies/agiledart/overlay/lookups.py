"""Messages of an application to the root of a key, on the side of their origin: sent again until the root answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from leeward.policies.agiledart.overlay.ids import to_bytes
from leeward.policies.agiledart.overlay.messages import Arrived, Carry, Contact
from leeward.policies.agiledart.overlay.neighbours import Times

#: Heartbeats between two attempts, and attempts.
AGAIN, ATTEMPTS = 0.5, 20


@dataclass(slots=True)
class Lookup:
    """One. It is over if it is answered or `given_up`; the application takes it out of `Lookups.all` then."""

    key: int
    subject: str
    body: bytes
    attempts: int = 0
    due: float = 0.0
    answer: Arrived | None = None
    given_up: bool = False


class Lookups:
    """See the module. `numbers`: of all messages of this node."""

    def __init__(self, me: Contact, times: Times, numbers: Iterator[int]) -> None:
        self.all: dict[int, Lookup] = {}
        self._me, self._times, self._numbers = me, times, numbers
        self._open: dict[int, Lookup] = {}

    def begin(self, key: int, subject: str, body: bytes, now: float) -> tuple[int, Carry]:
        """A new one: its number, and the message. Raises LeewardError if the body is too large."""
        number = next(self._numbers)
        lookup = Lookup(key, subject, body)
        carry = self._attempt(number, number, lookup, now)
        self.all[number] = self._open[number] = lookup
        return number, carry

    def arrived(self, message: Arrived) -> None:
        """The root has answered."""
        lookup = self._open.pop(message.lookup, None)
        if lookup is not None:
            lookup.answer = message

    def tick(self, now: float) -> list[Carry]:
        """Time has passed: the messages that are sent again."""
        again = []
        for number, lookup in [(number, one) for number, one in self._open.items() if now >= one.due]:
            if lookup.attempts >= ATTEMPTS:
                lookup.given_up = True
                del self._open[number]
            else:
                again.append(self._attempt(number, next(self._numbers), lookup, now))
        return again

    def _attempt(self, first: int, number: int, lookup: Lookup, now: float) -> Carry:
        lookup.attempts, lookup.due = lookup.attempts + 1, now + AGAIN * self._times.heartbeat
        return Carry(
            key=to_bytes(lookup.key), origin=self._me, number=number, lookup=first, subject=lookup.subject,
            body=lookup.body,
        )  # fmt: skip
