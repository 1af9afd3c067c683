"""Messages on their way to the root of a key: each hop acknowledges, and a hop that does not is passed by.

A message that a node has acknowledged is lost if that node dies before the next hop has it; the origin sends it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from leeward.policies.agiledart.overlay.ids import from_bytes
from leeward.policies.agiledart.overlay.messages import Contact, Got, Routed
from leeward.policies.agiledart.overlay.neighbours import Neighbours, Outbox, Times

#: Hops after which a message is dropped: tables as wrong as that are being repaired, and the origin sends it again.
MOST_HOPS = 32
#: Times that one hop is tried, and heartbeats for which a message that comes once more is known.
TRIES, REMEMBERED = 2, 5


@dataclass(slots=True)
class _Waiting:
    """A message that its next hop has not acknowledged yet."""

    message: Routed
    hop: Contact
    sent: float
    due: float
    tries: int = 1


class Forwarding:
    """See the module."""

    def __init__(self, neighbours: Neighbours, times: Times, outbox: Outbox) -> None:
        self._neighbours, self._times, self._outbox = neighbours, times, outbox
        self._waiting: dict[tuple[int, int], _Waiting] = {}  #: by origin's address and number
        self._seen: dict[tuple[int, int], float] = {}
        self._tidy_at = 0.0
        self.dropped = 0  #: messages that took too many hops

    def take(self, sender: int, message: Routed, now: float) -> bool:
        """Acknowledge a message; whether it is here for the first time."""
        name = (message.origin.at, message.number)
        if sender != self._neighbours.me.at:
            self._outbox.send(sender, Got(origin=name[0], number=name[1]))
            self._neighbours.consider(message.path, now)
        if name in self._seen:
            return False
        self._seen[name] = now
        return True

    def onward(self, message: Routed, now: float) -> bool:
        """Send a message to its next hop; False: to none, as this node is the root of the key."""
        me = self._neighbours.me
        passed = {contact.id for contact in message.path}
        hop = self._neighbours.tables.next_hop(from_bytes(message.key), passed | self._neighbours.suspects)
        if hop is None:
            return False
        if len(message.path) >= MOST_HOPS:
            self.dropped += 1
            return True
        contact = self._neighbours.contacts[hop]
        sent = replace(message, path=(*message.path, me))
        name = (message.origin.at, message.number)
        self._waiting[name] = _Waiting(message, contact, now, now + self._times.ack)
        self._outbox.send(contact.at, sent)
        return True

    def got(self, sender: int, message: Got) -> None:
        """The next hop has it."""
        waiting = self._waiting.get((message.origin, message.number))
        if waiting is not None and waiting.hop.at == sender:
            del self._waiting[message.origin, message.number]

    def tick(self, now: float) -> Sequence[Routed]:
        """Time has passed: hops are tried again or passed by. The messages whose root turns out to be this node."""
        mine: list[Routed] = []
        if self._waiting:
            for name, waiting in [(name, one) for name, one in self._waiting.items() if now >= one.due]:
                if waiting.tries < TRIES:
                    waiting.tries, waiting.due = waiting.tries + 1, now + self._times.ack
                    self._outbox.send(
                        waiting.hop.at, replace(waiting.message, path=(*waiting.message.path, self._neighbours.me))
                    )
                    continue
                del self._waiting[name]
                self._neighbours.suspects.add(waiting.hop.id)
                self._neighbours.probe(waiting.hop, now)
                if not self.onward(waiting.message, now):
                    mine.append(waiting.message)
        if now >= self._tidy_at:
            kept = REMEMBERED * self._times.heartbeat
            self._tidy_at = now + kept
            self._seen = {name: when for name, when in self._seen.items() if now - when < kept}
        return mine
