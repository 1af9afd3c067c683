"""Attempts that wait for their acknowledgement.  A node has custody of an item until the next node acknowledges it."""

from __future__ import annotations

from dataclasses import dataclass, field

from leeward.policies.agiledart.forwarding.messages import Name, Packet, Return


@dataclass(slots=True, kw_only=True)
class Attempts:
    """At one hop."""

    hop: int = -1
    count: int = 0
    first_s: float = 0.0  #: when the first was sent
    due_s: float = 0.0  #: when the next is

    def begin(self, hop: int, now: float) -> None:
        """None so far."""
        self.hop, self.count, self.first_s = hop, 0, now

    def sent(self, now: float, timeout_s: float) -> None:
        """One more."""
        self.count, self.due_s = self.count + 1, now + timeout_s


@dataclass(slots=True, kw_only=True)
class Held:
    """A packet in custody of a node."""

    name: Name
    path: tuple[int, ...]  #: nodes before this one
    body: bytes
    since_s: float
    left_s: float  #: of its lifetime, at `since_s`
    silent: set[int] = field(default_factory=set)  #: hops that did not acknowledge it, since all were tried
    closed: set[int] = field(default_factory=set)  #: hops that know no way onward for it
    attempts: Attempts = field(default_factory=Attempts)

    def left_at(self, now: float) -> float:
        """Of its lifetime, s; below 0 once it is over."""
        return self.left_s - (now - self.since_s)

    def packet(self, me: int, now: float) -> Packet:
        """An attempt."""
        return Packet(
            name=self.name, path=(*self.path, me), left_s=max(0.0, self.left_at(now)), stamp_s=now, body=self.body
        )


@dataclass(slots=True, kw_only=True)
class Returning:
    """The end of a packet, in custody of a node."""

    name: Name
    why: str
    path: tuple[int, ...]  #: behind the next node
    attempts: Attempts

    def message(self, now: float) -> Return:
        """An attempt."""
        return Return(name=self.name, why=self.why, path=self.path, stamp_s=now)
