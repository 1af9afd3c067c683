"""Schedulers of zones: members tell of themselves, owners find one by anycast, roots elect (section VI of the paper).

Each application has an owner, the node that launched it.  The owner registers it with a scheduler of the zone, again
twice a heartbeat, and looks for another one as soon as there is no answer.  So the state of an application is lost
neither with its scheduler nor with the topic's root nor with both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from leeward.policies.agiledart.overlay.directory import MOST, Directory, topic
from leeward.policies.agiledart.overlay.ids import from_bytes, to_bytes
from leeward.policies.agiledart.overlay.messages import (
    Anycast,
    Appoint,
    Candidate,
    Contact,
    Dismiss,
    Found,
    Members,
    Register,
    Registered,
    Report,
    Retire,
    Routed,
    Withdraw,
)
from leeward.policies.agiledart.overlay.neighbours import Neighbours, Outbox, Times

#: Heartbeats between two registrations of an application, reports of a scheduler, and looks of a root.
RENEWAL, REPORT, LOOK = 0.5, 0.5, 0.25
#: Heartbeats for which an owner avoids a scheduler that refused or was silent, and until an anycast is repeated.
AVOIDED, SEARCH = 3.0, 0.5
#: Heartbeats after which a scheduler forgets an application that is not renewed.
LASTS = 2.5
#: Registrations without an answer, and schedulers in vain, after which an owner looks elsewhere or serves itself.
TRIES, URGENT = 3, 2


@dataclass(slots=True)
class Owned:
    """An application that this node has launched."""

    zone: str
    scheduler: Contact | None = None  #: with which it is, or is being, registered
    served: bool = False  #: the scheduler has said so
    hops: int = 0  #: of the anycast that found it
    elected: bool = False
    due: float = 0.0  #: of the next registration, or repetition
    tries: int = 0  #: registrations without an answer
    number: int = 0  #: of the anycast under way
    avoid: dict[int, float] = field(default_factory=dict)  #: node -> until when


class Schedulers:
    """The part of one node. `zone`: of this node; "": it belongs to none, and serves no applications.

    `route`: sends a message towards the root of its key; `numbers`: of this node's messages.
    """

    def __init__(
        self, zone: str, capacity: float, neighbours: Neighbours, times: Times, outbox: Outbox,
        route: Callable[[Routed, float], None], numbers: Iterator[int],
    ) -> None:  # fmt: skip
        self.zone = zone
        self.active = False  #: this node is a scheduler
        self.served: dict[str, tuple[int, float]] = {}  #: application -> its owner's address, last registration
        self.owned: dict[str, Owned] = {}
        self.directories: dict[str, Directory] = {}
        self._me = neighbours.me
        self._candidate = Candidate(contact=neighbours.me, capacity=capacity)
        self._neighbours, self._times, self._outbox = neighbours, times, outbox
        self._route, self._numbers = route, numbers
        self._report_at = self._look_at = 0.0

    # --- applications

    def launch(self, application: str, zone: str, now: float) -> None:
        """This node owns an application from now on, and finds it a scheduler of the zone."""
        owned = self.owned[application] = Owned(zone)
        self._search(application, owned, now)

    def end(self, application: str) -> None:
        """It is over."""
        owned = self.owned.pop(application, None)
        if owned is not None and owned.scheduler is not None:
            self._outbox.send(owned.scheduler.at, Withdraw(zone=owned.zone, application=application))

    def _search(self, application: str, owned: Owned, now: float) -> None:
        owned.scheduler, owned.served, owned.tries = None, False, 0
        owned.avoid = {node: until for node, until in owned.avoid.items() if until > now}
        owned.number, owned.due = next(self._numbers), now + SEARCH * self._times.heartbeat
        anycast = Anycast(
            key=to_bytes(topic(owned.zone)), origin=self._me, number=owned.number, zone=owned.zone,
            application=application, avoid=tuple(to_bytes(node) for node in sorted(owned.avoid)),
        )  # fmt: skip
        self._route(anycast, now)

    def _register(self, application: str, owned: Owned, now: float) -> None:
        assert owned.scheduler is not None
        owned.tries, owned.due = owned.tries + 1, now + self._times.ack
        register = Register(zone=owned.zone, application=application, elected=owned.elected)
        self._outbox.send(owned.scheduler.at, register)

    def _give_up(self, application: str, owned: Owned, now: float) -> None:
        """The scheduler refuses or is silent."""
        assert owned.scheduler is not None
        owned.avoid[owned.scheduler.id] = now + AVOIDED * self._times.heartbeat
        self._search(application, owned, now)

    def found(self, message: Found, now: float) -> None:
        """An anycast has found a scheduler."""
        owned = self.owned.get(message.application)
        if owned is not None and owned.scheduler is None and owned.number == message.number:
            owned.scheduler, owned.elected, owned.hops = message.scheduler, message.elected, message.hops
            self._register(message.application, owned, now)

    def registered(self, sender: int, message: Registered, now: float) -> None:
        """A scheduler has answered."""
        owned = self.owned.get(message.application)
        if owned is None or owned.scheduler is None or owned.scheduler.at != sender:
            return
        if not message.accepted:
            self._give_up(message.application, owned, now)
        elif owned.tries:
            owned.served, owned.tries = True, 0
            owned.due = now + RENEWAL * self._times.heartbeat

    def _owners_tick(self, now: float) -> None:
        for application, owned in self.owned.items():
            if now < owned.due:
                continue
            if owned.scheduler is None:
                self._search(application, owned, now)
            elif owned.tries < TRIES:
                self._register(application, owned, now)
            else:
                self._give_up(application, owned, now)

    # --- a scheduler

    def register(self, sender: int, message: Register, now: float) -> None:
        """An owner wants an application to be served."""
        ours = message.zone == self.zone != ""
        if ours and message.elected and not self.active:
            self._begin()
        accepted = ours and self.active and (message.application in self.served or len(self.served) < MOST)
        if accepted:
            self.served[message.application] = sender, now
        self._outbox.send(sender, Registered(application=message.application, accepted=accepted))

    def withdraw(self, sender: int, message: Withdraw) -> None:
        """An application is over, or its owner has found another scheduler."""
        served = self.served.get(message.application)
        if served is not None and served[0] == sender:
            del self.served[message.application]

    def appoint(self, message: Appoint) -> None:
        """The root wants this node to be a scheduler."""
        if message.zone == self.zone != "" and not self.active:
            self._begin()

    def retire(self, now: float) -> None:
        """Be no scheduler any more: the root has dismissed this one, or it leaves. Owners are told."""
        if not self.active:
            return
        self.active = False
        for application, (owner, _) in self.served.items():
            self._outbox.send(owner, Registered(application=application, accepted=False))
        self.served.clear()
        key = to_bytes(topic(self.zone))
        self._route(Retire(key=key, origin=self._me, number=next(self._numbers), zone=self.zone), now)

    def _begin(self) -> None:
        self.active, self._report_at = True, 0.0

    def _report(self, now: float) -> None:
        self._report_at = now + REPORT * self._times.heartbeat
        lasts = LASTS * self._times.heartbeat
        self.served = {name: held for name, held in self.served.items() if now - held[1] <= lasts}
        report = Report(
            key=to_bytes(topic(self.zone)), origin=self._me, number=next(self._numbers), zone=self.zone,
            scheduler=self._candidate, applications=len(self.served),
        )  # fmt: skip
        self._route(report, now)

    # --- the tree towards a topic

    def pass_by(self, message: Routed, now: float) -> bool:
        """A message to a topic is on its way through this node; whether it ends here, before the root."""
        match message:
            case Report():
                self._directory(message.zone).report(message.scheduler, message.applications, self._beats(now))
            case Retire():
                self._directory(message.zone).retire(message.origin.id)
            case Anycast():
                return self._answer(message, now)
        return False

    def _answer(self, message: Anycast, now: float) -> bool:
        avoid = {from_bytes(node) for node in message.avoid}
        if self.active and message.zone == self.zone and self._me.id not in avoid and len(self.served) < MOST:
            self._found(message, self._me, elected=False)
            return True
        directory = self.directories.get(message.zone)
        serving = directory.open(avoid, self._beats(now)) if directory else None
        if serving is not None:
            self._found(message, serving.candidate.contact, elected=not serving.reported)
        return serving is not None

    def at_root(self, message: Routed, now: float) -> None:
        """An anycast has reached the root, and nobody on its way has a scheduler with room: one is elected.

        With no member known yet, or after URGENT vain attempts, that is the owner itself, which lives, as it has asked.
        """
        if not isinstance(message, Anycast) or self._answer(message, now):
            return
        avoid = {from_bytes(node) for node in message.avoid}
        owner = Candidate(contact=message.origin, capacity=0.0)
        directory, beats = self._directory(message.zone), self._beats(now)
        if len(avoid) < URGENT:
            serving = directory.elect(avoid, beats) or directory.elect_this(owner, avoid, beats)
        else:
            serving = directory.elect_this(owner, avoid, beats) or directory.elect(avoid, beats)
        if serving is not None:
            serving.applications += 1
            self._found(message, serving.candidate.contact, elected=True)

    def _found(self, message: Anycast, scheduler: Contact, *, elected: bool) -> None:
        found = Found(
            number=message.number, application=message.application, scheduler=scheduler, elected=elected,
            hops=len(message.path),
        )  # fmt: skip
        self._outbox.send(message.origin.at, found)

    def members(self, sender: int, message: Members, now: float) -> None:
        """A node before this one in the tree knows these members."""
        self._directory(message.zone).members(sender, message.candidates, self._beats(now))

    def beat(self, now: float) -> None:
        """Once a heartbeat: pass on the best members of each zone, by the next hop to its topic."""
        for zone in sorted({*self.directories, self.zone} - {""}):
            directory = self._directory(zone)
            directory.expire(self._beats(now))
            own = (self._candidate,) if zone == self.zone else ()
            best = directory.best(own)
            hop = self._neighbours.tables.next_hop(topic(zone), self._neighbours.suspects)
            if hop is not None and best:
                self._outbox.send(self._neighbours.contacts[hop].at, Members(zone=zone, candidates=best))
            elif own:
                directory.members(self._me.at, own, self._beats(now))
            if directory.empty:
                del self.directories[zone]

    def _look(self, now: float) -> None:
        """A root elects and dismisses. A new one first listens for a while, as schedulers report twice a heartbeat."""
        self._look_at = now + LOOK * self._times.heartbeat
        beats = self._beats(now)
        for zone, directory in self.directories.items():
            if self._neighbours.tables.next_hop(topic(zone), self._neighbours.suspects) is not None:
                directory.root_since = None
                continue
            if directory.root_since is None:
                directory.root_since = beats
            directory.expire(beats)
            if beats - directory.root_since < 1.0:
                continue
            for serving in directory.surplus(beats):
                self._outbox.send(serving.candidate.contact.at, Dismiss(zone=zone))
            elected = directory.elect((), beats) if directory.missing() else None
            if elected is not None:
                self._outbox.send(elected.candidate.contact.at, Appoint(zone=zone))

    # --- time

    def tick(self, now: float) -> None:
        """Time has passed."""
        if self.owned:
            self._owners_tick(now)
        if self.active and now >= self._report_at:
            self._report(now)
        if self.directories and now >= self._look_at:
            self._look(now)

    def _directory(self, zone: str) -> Directory:
        return self.directories.setdefault(zone, Directory())

    def _beats(self, now: float) -> float:
        return now / self._times.heartbeat
