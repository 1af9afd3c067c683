"""One node of the overlay: messages and time in, messages out (`leeward.core.peers.Peer`).

A node joins by a JOIN to its own id: the nodes that it passes send the rows of their routing tables, the root its leaf
set; the new node pings them all, enters those that answer, and tells them that it is there (Pastry, section 2.4).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import count
from random import Random
from typing import Any, Literal

from leeward.core.errors import LeewardError
from leeward.core.peers import Send
from leeward.policies.agiledart.overlay.forwarding import Forwarding
from leeward.policies.agiledart.overlay.ids import common_prefix
from leeward.policies.agiledart.overlay.lookups import Lookups
from leeward.policies.agiledart.overlay.messages import (
    LONGEST_NAME,
    Appoint,
    Arrived,
    AskLeaves,
    AskRow,
    AskState,
    Carry,
    Contact,
    Dismiss,
    Found,
    Got,
    Heartbeat,
    Join,
    Known,
    Leave,
    Members,
    Ping,
    Pong,
    Refused,
    Register,
    Registered,
    Routed,
    StateIs,
    Welcome,
    Withdraw,
)
from leeward.policies.agiledart.overlay.neighbours import Neighbours, Outbox, Times
from leeward.policies.agiledart.overlay.schedulers import Schedulers

State = Literal["joining", "joined", "refused", "left"]
#: Messages that wait for the application of their root.
KEPT = 10_000
#: Acknowledgement times for which a new node waits for answers to its pings.
SETTLING = 4


class Peer:
    """See the module. `seeds`: addresses of nodes that may be in the overlay; without any it begins one.

    `born`: grows with each process of this address, so that numbers of its messages are not used twice.  `zone` and
    `capacity`: see `Schedulers`.
    """

    def __init__(
        self, me: Contact, *, times: Times | None = None, seeds: Sequence[int] = (), born: int = 0, zone: str = "",
        capacity: float = 1.0,
    ) -> None:  # fmt: skip
        self.me, self.contact, self.times = me.at, me, times or Times()
        self.state: State = "joining"
        self.taken_by: int | None = None  #: address of the node that has this id already
        self.join_hops = 0
        #: Messages whose root is this node, for its application to take; the oldest go if it does not.
        self.delivered: deque[Carry] = deque(maxlen=KEPT)
        self._seeds = tuple(seed for seed in seeds if seed != me.at)
        self._outbox = Outbox()
        self._numbers = count(born + 1)
        self.lookups = Lookups(me, self.times, self._numbers)
        self._join_at: float | None = None
        self._settle_at: float | None = None
        self.neighbours = Neighbours(me, self.times, self._outbox, self._seeds)
        self.forwarding = Forwarding(self.neighbours, self.times, self._outbox)
        self.schedulers = Schedulers(
            zone, capacity, self.neighbours, self.times, self._outbox, self._route, self._numbers
        )

    # --- the application's side

    def lookup(self, key: int, now: float, *, subject: str = "", body: bytes = b"") -> tuple[int, list[Send]]:
        """Send a message to the root of a key: its number in `lookups.all`, and the messages that follow.

        Raises LeewardError if the node has not joined, or the body is too large.
        """
        self._must_have_joined()
        number, carry = self.lookups.begin(key, subject, body, now)
        self._route(carry, now)
        return number, self._flush(now)

    def launch(self, application: str, zone: str, now: float) -> list[Send]:
        """Own an application from now on, and find it a scheduler: see `schedulers.owned`.

        Raises LeewardError if the node has not joined, or the name of application or zone is empty or too long.
        """
        self._must_have_joined()
        for field, name in (("application", application), ("zone", zone)):
            if not 0 < len(name) <= LONGEST_NAME:
                raise LeewardError(
                    f"{field}: its name has {len(name)} characters.", remedy=f"Give it 1 to {LONGEST_NAME}."
                )
        self.schedulers.launch(application, zone, now)
        return self._flush(now)

    def end(self, application: str, now: float) -> list[Send]:
        """An application is over."""
        self.schedulers.end(application)
        return self._flush(now)

    def leave(self, now: float) -> list[Send]:
        """Leave the overlay: the nodes that know this one are told, and of each other; its applications are over."""
        for application in list(self.schedulers.owned):
            self.schedulers.end(application)
        self.schedulers.retire(now)
        others = self.neighbours.leaves()
        for contact in self.neighbours.contacts.values():
            self._outbox.send(contact.at, Leave(me=self.contact, others=others))
        self.state, self.neighbours.joined = "left", False
        return self._flush(now)

    def _must_have_joined(self) -> None:
        if self.state != "joined":
            raise LeewardError(f"node {self.me}: it is {self.state}.", remedy="Wait until it has joined the overlay.")

    # --- the shell's side

    def tick(self, now: float, rng: Random) -> list[Send]:
        """Time has passed."""
        if self.state in ("refused", "left"):
            return []
        if self.state == "joining":
            self._joining(now, rng)
        beaten = self.neighbours.tick(now, rng)
        for message in self.forwarding.tick(now):
            self._deliver(message, now)
        for carry in self.lookups.tick(now):
            self._route(carry, now)
        if self.state == "joined":
            self.schedulers.tick(now)
        if beaten:
            self.schedulers.beat(now)
            self._beaten(now, rng)
        return self._flush(now)

    def receive(self, sender: int, message: Any, now: float, rng: Random) -> list[Send]:
        """Take one message in; the messages that follow from it. `sender`: its address."""
        if isinstance(message, AskState):
            self._outbox.send(sender, self._told())
        elif self.state not in ("refused", "left"):
            self._take(sender, message, now)
        return self._flush(now)

    def _take(self, sender: int, message: Any, now: float) -> None:
        """The tables' messages; those of applications and joining are below."""
        neighbours = self.neighbours
        neighbours.hear(sender, now)
        match message:
            case Heartbeat():
                neighbours.beaten(message, now)
            case Ping() | Pong():
                self._pinged(sender, message, now)
            case Got():
                self.forwarding.got(sender, message)
            case AskLeaves():
                if neighbours.joined:
                    self._outbox.send(sender, Known(contacts=(self.contact, *neighbours.leaves())))
            case AskRow():
                self._outbox.send(sender, Known(contacts=neighbours.row(message.row)))
            case Known():
                neighbours.consider(message.contacts, now, compare=not neighbours.joined)
            case Leave():
                neighbours.leave(message, now)
            case Routed():
                self._routed(sender, message, now)
            case Welcome() | Refused() | Arrived():
                self._answered(message, now)
            case _:
                self._of_schedulers(sender, message, now)

    def _pinged(self, sender: int, message: Ping | Pong, now: float) -> None:
        twin = self._twin(message.me)
        if isinstance(message, Pong):
            if not twin:
                self.neighbours.pong(message, now)
            return
        me = self.contact if self.neighbours.joined else None
        self._outbox.send(sender, Pong(number=message.number, me=me))
        if message.me is not None:
            self.neighbours.meet(message.me, now)

    def _answered(self, message: Any, now: float) -> None:
        match message:
            case Welcome():
                if self.state == "joining":
                    self.join_hops = message.hops
                    self._settle_at = now + SETTLING * self.times.ack
                self.neighbours.consider(message.contacts, now, compare=True)
            case Refused():
                self._refused(message)
            case Arrived():
                self.lookups.arrived(message)

    def _told(self) -> StateIs:
        schedulers = self.schedulers
        return StateIs(
            me=self.contact, state=self.state, leaves=self.neighbours.leaves(), zone=schedulers.zone,
            schedules=schedulers.active, served=len(schedulers.served), keeping=self.neighbours.keeping(),
        )  # fmt: skip

    def _of_schedulers(self, sender: int, message: Any, now: float) -> None:
        match message:
            case Members():
                self.schedulers.members(sender, message, now)
            case Found():
                self.schedulers.found(message, now)
            case Register():
                self.schedulers.register(sender, message, now)
            case Registered():
                self.schedulers.registered(sender, message, now)
            case Withdraw():
                self.schedulers.withdraw(sender, message)
            case Appoint():
                self.schedulers.appoint(message)
            case Dismiss():
                self.schedulers.retire(now)
            case _:
                self._of_others(sender, message, now)

    def _of_others(self, sender: int, message: Any, now: float) -> None:
        """A message of a protocol that is built upon this one; see `deployment/agent.py`."""

    def refusal(self) -> LeewardError | None:
        """For people, if the overlay has refused this node."""
        if self.state != "refused":
            return None
        return LeewardError(
            f"node id {self.contact.id:032x}: a node at address {self.taken_by} has it already.",
            remedy="Give this node a name of its own, or end the other one.",
        )

    # --- joining

    def _joining(self, now: float, rng: Random) -> None:
        if not self._seeds:
            self._joined(now)
        elif self._settle_at is not None and (now >= self._settle_at or not self.neighbours.probing):
            self._settle_at = None
            if len(self.neighbours.tables.leaves):
                self._joined(now)
        elif self._settle_at is None and (self._join_at is None or now >= self._join_at):
            self._send_join(now, rng)

    def _send_join(self, now: float, rng: Random) -> None:
        self._join_at = now + self.times.heartbeat
        me = self.contact
        join = Join(key=me.node, origin=me, number=next(self._numbers), path=(me,))
        self._outbox.send(rng.choice(self._seeds), join)

    def _joined(self, now: float) -> None:
        self.state, self.neighbours.joined = "joined", True
        self.neighbours.announce()

    def _beaten(self, now: float, rng: Random) -> None:
        """A node that has lost all others joins again by the addresses that it was given."""
        if self._seeds and not len(self.neighbours.tables.leaves):
            self._send_join(now, rng)

    def _refused(self, message: Refused) -> None:
        """Two that joined at once under one id learn it from a third, and ping each other; see `_twin`."""
        if self.state == "joining":
            self._retire(message.taken_by)
        else:
            self._outbox.send(message.taken_by, Ping(number=0, me=self.contact))

    def _twin(self, other: Contact | None) -> bool:
        """Whether another node that lives has this id. The one of the greater address retires."""
        if other is None or other.id != self.contact.id or other.at == self.me:
            return False
        if other.at < self.me:
            self._retire(other.at)
        return True

    def _retire(self, taken_by: int) -> None:
        self.state, self.taken_by, self.neighbours.joined = "refused", taken_by, False

    def _admit(self, join: Join, now: float) -> None:
        """This node is the root of a new node's id."""
        origin = join.origin
        holder = self.contact if origin.id == self.contact.id else self.neighbours.contacts.get(origin.id)
        taken = holder is not None and holder.at != origin.at
        if taken and holder is not None and (holder is self.contact or self.neighbours.lives(origin.id, now)):
            self._outbox.send(origin.at, Refused(taken_by=holder.at))
            return
        contacts = (self.contact, *self.neighbours.leaves())
        self._outbox.send(origin.at, Welcome(contacts=contacts, hops=len(join.path)))

    def _send_rows(self, join: Join) -> None:
        """A new node that shares so many digits can use these rows."""
        for row in range(common_prefix(self.contact.id, join.origin.id) + 1):
            contacts = self.neighbours.row(row)
            if contacts:
                self._outbox.send(join.origin.at, Known(contacts=contacts))

    # --- routing

    def _routed(self, sender: int, message: Routed, now: float) -> None:
        if not self.neighbours.joined or not self.forwarding.take(sender, message, now):
            return
        if isinstance(message, Join):
            self._send_rows(message)
        self._route(message, now)

    def _route(self, message: Routed, now: float) -> None:
        if self.schedulers.pass_by(message, now):
            return
        if not self.forwarding.onward(message, now):
            self._deliver(message, now)

    def _deliver(self, message: Routed, now: float) -> None:
        """This node is the root of the message's key."""
        match message:
            case Join():
                self._admit(message, now)
            case Carry():
                self.delivered.append(message)
                path = (*message.path, self.contact)
                self._outbox.send(message.origin.at, Arrived(lookup=message.lookup, path=path))
            case _:
                self.schedulers.at_root(message, now)

    def _flush(self, now: float) -> list[Send]:
        """The messages to others; those to itself are taken in at once, and all that follows."""
        sends = self._outbox.empty()
        while any(send.to == self.me for send in sends):
            mine = [send for send in sends if send.to == self.me]
            sends = [send for send in sends if send.to != self.me]
            for send in mine:
                self._take(self.me, send.message, now)
            sends += self._outbox.empty()
        return sends
