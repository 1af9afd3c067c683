"""Packets from source sites to a sink over several hops, each hop chosen by a router.  A pure peer (`core.peers.Peer`).

At each node the router chooses the next hop of a packet.  The receiver acknowledges each attempt, and its J comes in
the acknowledgement: that is all the feedback there is.  An attempt that is not acknowledged is repeated when the round
trip of its link is over (`timing.py`), and after some of them another hop is chosen.  The sink sends the end of each
packet back along its path, and so does a node that cannot forward one; that way is acknowledged hop by hop, too.

No packet circles: it carries the nodes that it was at, and a node offers its router none of them, so no copy is at a
node twice, whatever routers and J say.  Copies of one packet arise where acknowledgements are lost; each node takes one
of a name, and drops the others.  So the sink delivers a packet once at most.

The source keeps the name of each packet until its end is known: delivered, or reported with the reason.  If a node dies
with a packet or with its end, the source hears nothing, and reports the packet as not confirmed.  So a reported packet
may have been delivered, but none that was not is left without report.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, runtime_checkable

from leeward.core.errors import ConfigError
from leeward.core.peers import Send
from leeward.core.policy import Router
from leeward.policies.agiledart.forwarding.custody import Attempts, Held, Returning
from leeward.policies.agiledart.forwarding.messages import Ack, Name, Packet, Return
from leeward.policies.agiledart.forwarding.timing import RoundTrip

NO_HOP, TOO_OLD, FULL, UNCONFIRMED = "no way leads onward", "its lifetime is over", "the queue is full", "not confirmed"


@runtime_checkable
class Planning(Protocol):
    """A router that knows the way beyond the next hop."""

    def hear(self, hop: int, ahead_s: float) -> None:
        """J of a hop."""

    def ahead_s(self, hops: Sequence[int], *, now: float, rng: Random) -> float:
        """J of this node over these hops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of a node."""

    attempts: int = 10  #: at one hop, before another is chosen
    hops: int = 32  #: of a packet
    queue: int = 1000  #: packets, and ends, in custody; beyond, it acknowledges none, so senders try again or elsewhere
    lifetime_s: float = 30.0  #: of a packet; its source waits twice as long for its end

    def __post_init__(self) -> None:
        if min(self.attempts, self.hops, self.queue) < 1 or not 0 < self.lifetime_s < math.inf:
            raise ConfigError(f"These are no limits: {self}.", remedy="Give 1 or more, and a lifetime above 0 s.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A packet at the sink."""

    name: Name
    path: tuple[int, ...]  #: all nodes before the sink
    body: bytes
    at_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The end of a packet, at its source.  `why`: empty if it was delivered."""

    name: Name
    why: str
    at_s: float


class Forwarder:
    """One node's part.  `hops`: its next nodes; `birth`: another number for each start of the process.

    A shell takes deliveries and outcomes out of the two queues of these names.
    """

    def __init__(
        self, me: int, sink: int, hops: Sequence[int], router: Router, *, birth: int = 0, limits: Limits | None = None
    ) -> None:
        if me in hops:
            raise ConfigError(f"Node {me} is its own next hop.", remedy="Leave it out.")
        self.me, self._sink, self._hops, self._router = me, sink, tuple(hops), router
        self._birth, self._number, self.limits = birth, 0, limits or Limits()
        self.deliveries: deque[Delivery] = deque()
        self.outcomes: deque[Outcome] = deque()
        self.counts: Counter[str] = Counter()  #: attempts, duplicates, refused, ...
        self._held: dict[Name, Held] = {}
        self._returning: dict[tuple[Name, str], Returning] = {}
        self._waiting: dict[Name, float] = {}  #: packets of this source -> until when it waits for their end
        self._seen: dict[tuple[Name, str | None], float] = {}  #: (packet, its end or None) -> when, oldest first
        self._trips: dict[int, RoundTrip] = {}

    @property
    def in_custody(self) -> int:
        """Packets that wait for the acknowledgement of the next hop."""
        return len(self._held)

    def submit(self, body: bytes, now: float, rng: Random) -> tuple[Name, list[Send]]:
        """Takes a packet in at its source.  Its outcome comes at once if it cannot be forwarded."""
        name = Name(self.me, self._birth, self._number)
        self._number += 1
        self._waiting[name] = now + 2 * self.limits.lifetime_s
        if len(self._held) >= self.limits.queue:
            self._settle(name, FULL, now)
            return name, []
        if self.me == self._sink:
            self.deliveries.append(Delivery(name=name, path=(), body=body, at_s=now))
            self._settle(name, "", now)
            return name, []
        held = Held(name=name, path=(), body=body, since_s=now, left_s=self.limits.lifetime_s)
        self._seen[name, None] = now
        return name, self._forward(held, now, rng)

    def receive(self, sender: int, message: Any, now: float, rng: Random) -> list[Send]:
        """See Peer.  Messages that this node did not ask for, and that no sender would send, are dropped."""
        match message:
            case Packet() if message.path[-1] == sender and self.me not in message.path:
                return self._arrived(message, now, rng)
            case Return():
                return self._returned(sender, message, now)
            case Ack():
                return self._acknowledged(sender, message, now, rng)
        self.counts["strange"] += 1
        return []

    def tick(self, now: float, rng: Random) -> list[Send]:
        """See Peer."""
        sends: list[Send] = []
        for held in [held for held in self._held.values() if held.attempts.due_s <= now]:
            if held.left_at(now) <= 0:
                sends += self._fail(held, TOO_OLD, now)
            elif held.attempts.count < self.limits.attempts:
                sends += self._attempt(held, now)
            else:  # its delay is at least as long
                self._router.learn(held.attempts.hop, now - held.attempts.first_s)
                held.silent.add(held.attempts.hop)
                sends += self._forward(held, now, rng)
        sends += self._repeat_returns(now)
        for name in [name for name, until in self._waiting.items() if until <= now]:
            self._settle(name, UNCONFIRMED, now)
        while self._seen and (oldest := next(iter(self._seen.items())))[1] + 3 * self.limits.lifetime_s < now:
            del self._seen[oldest[0]]
        return sends

    # --- packets

    def _arrived(self, packet: Packet, now: float, rng: Random) -> list[Send]:
        sender = packet.path[-1]
        onward = self._onward(packet.path)
        if (packet.name, None) in self._seen:
            self.counts["duplicates"] += 1
            return [self._ack(sender, packet, self._ahead_s(onward or self._hops, now, rng))]
        if self.me != self._sink and not onward:
            self.counts["refused"] += 1
            return [self._ack(sender, packet, None)]
        if len(self._returning if self.me == self._sink else self._held) >= self.limits.queue:
            self.counts["full"] += 1
            return []
        self._seen[packet.name, None] = now
        ack = self._ack(sender, packet, self._ahead_s(onward, now, rng))
        if self.me == self._sink:
            self.deliveries.append(Delivery(name=packet.name, path=packet.path, body=packet.body, at_s=now))
            return [ack, *self._give_back(packet.name, "", packet.path, now)]
        held = Held(name=packet.name, path=packet.path, body=packet.body, since_s=now, left_s=packet.left_s)
        return [ack, *self._forward(held, now, rng)]

    def _onward(self, path: tuple[int, ...], closed: Iterable[int] = ()) -> list[int]:
        """Hops that a packet with this path may take from here."""
        if len(path) >= self.limits.hops:
            return []
        return [hop for hop in self._hops if hop not in path and hop not in closed]

    def _ahead_s(self, onward: Sequence[int], now: float, rng: Random) -> float:
        if self.me == self._sink or not isinstance(self._router, Planning):
            return 0.0
        return min(self._router.ahead_s(onward, now=now, rng=rng), self.limits.lifetime_s)

    def _forward(self, held: Held, now: float, rng: Random) -> list[Send]:
        """Choose a hop for it, and send the first attempt."""
        onward = self._onward(held.path, held.closed)
        if not onward:
            return self._fail(held, NO_HOP, now)
        if held.silent.issuperset(onward):
            held.silent.clear()
        hops = [hop for hop in onward if hop not in held.silent]
        held.attempts.begin(self._router.next_hop(hops, now=now, rng=rng), now)
        self._held[held.name] = held
        return self._attempt(held, now)

    def _attempt(self, held: Held, now: float) -> list[Send]:
        held.attempts.sent(now, self._trip(held.attempts.hop).timeout_s)
        self.counts["attempts"] += 1
        return [Send(held.attempts.hop, held.packet(self.me, now))]

    def _fail(self, held: Held, why: str, now: float) -> list[Send]:
        self._held.pop(held.name, None)
        self.counts["failed"] += 1
        return self._give_back(held.name, why, held.path, now)

    # --- acknowledgements

    def _ack(self, sender: int, message: Packet | Return, ahead_s: float | None) -> Send:
        end = message.why if isinstance(message, Return) else None
        return Send(sender, Ack(name=message.name, end=end, stamp_s=message.stamp_s, ahead_s=ahead_s))

    def _acknowledged(self, sender: int, ack: Ack, now: float, rng: Random) -> list[Send]:
        if 0 <= now - ack.stamp_s <= self.limits.lifetime_s:  # else of a process with another clock
            self._trip(sender).measured(now - ack.stamp_s)
        if ack.end is not None:
            one = self._returning.get((ack.name, ack.end))
            if one is not None and one.attempts.hop == sender:
                del self._returning[ack.name, ack.end]
            return []
        held = self._held.get(ack.name)
        if held is None or held.attempts.hop != sender:
            return []  # a late one
        if ack.ahead_s is None:
            held.closed.add(sender)
            return self._forward(held, now, rng)
        del self._held[ack.name]
        self._router.learn(sender, max(0.0, now - held.attempts.first_s))
        if isinstance(self._router, Planning):
            self._router.hear(sender, ack.ahead_s)
        return []

    def _trip(self, hop: int) -> RoundTrip:
        return self._trips.setdefault(hop, RoundTrip())

    # --- the way back

    def _give_back(self, name: Name, why: str, path: tuple[int, ...], now: float) -> list[Send]:
        """Send the end of a packet to the node before; its source settles it."""
        if not path:
            self._settle(name, why, now)
            return []
        one = Returning(name=name, why=why, path=path[:-1], attempts=Attempts())
        one.attempts.begin(path[-1], now)
        self._returning[name, why] = one
        return self._attempt_return(one, now)

    def _attempt_return(self, one: Returning, now: float) -> list[Send]:
        one.attempts.sent(now, self._trip(one.attempts.hop).timeout_s)
        return [Send(one.attempts.hop, one.message(now))]

    def _repeat_returns(self, now: float) -> list[Send]:
        sends: list[Send] = []
        for key, one in [(key, one) for key, one in self._returning.items() if one.attempts.due_s <= now]:
            if one.attempts.count < self.limits.attempts:
                sends += self._attempt_return(one, now)
            else:  # the source will report it as not confirmed
                self.counts["ends lost"] += 1
                del self._returning[key]
        return sends

    def _returned(self, sender: int, message: Return, now: float) -> list[Send]:
        key = (message.name, message.why)
        if key not in self._seen:
            if len(self._returning) >= self.limits.queue:
                return []
            self._seen[key] = now
            ack = self._ack(sender, message, 0.0)
            return [ack, *self._give_back(message.name, message.why, message.path, now)]
        return [self._ack(sender, message, 0.0)]

    def _settle(self, name: Name, why: str, now: float) -> None:
        """Once for each packet."""
        if self._waiting.pop(name, None) is not None:
            self.outcomes.append(Outcome(name=name, why=why, at_s=now))
