"""A node of the overlay that also hosts operators, lays them, schedules applications and owns them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from leeward.core.peers import Send
from leeward.policies.agiledart.deployment.deciders import Deciders
from leeward.policies.agiledart.deployment.deployments import Deployments
from leeward.policies.agiledart.deployment.joins import Joins
from leeward.policies.agiledart.deployment.messages import (
    Announce,
    AskLoads,
    AskPlacement,
    AskRooms,
    Deploy,
    Deployment,
    Kept,
    Laid,
    Lay,
    Laying,
    Loaded,
    LoadsAre,
    Over,
    Passed,
    Release,
    Renew,
    Reserve,
    Reserved,
    RoomsAre,
    Runs,
    Step,
    Took,
)
from leeward.policies.agiledart.deployment.owners import Owners
from leeward.policies.agiledart.deployment.questions import Questions
from leeward.policies.agiledart.deployment.rooms import Rooms
from leeward.policies.agiledart.deployment.roots import Roots
from leeward.policies.agiledart.overlay.messages import Contact, Registered
from leeward.policies.agiledart.overlay.neighbours import Times
from leeward.policies.agiledart.overlay.peer import Peer

#: Heartbeats for which a host holds a room that is not renewed; longer than an attempt lasts.
HELD = 12.0
#: Entries of a list in an answer to people.
SHOWN = 200


class Agent(Peer):
    """See the module. `machine`: its name, as Storm knows it; `capacity`: operators that it can hold."""

    def __init__(
        self, me: Contact, *, machine: str = "", times: Times | None = None, seeds: Sequence[int] = (), born: int = 0,
        zone: str = "", capacity: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(me, times=times, seeds=seeds, born=born, zone=zone, capacity=capacity)
        self.machine = machine or f"{me.id:032x}"
        self.rooms = Rooms(int(capacity), HELD * self.times.heartbeat)
        self._born, self._attempts = born, 0
        self._began: float | None = None
        questions = self._questions = Questions(self.times, self._outbox, self._numbers)
        roots = self._roots = Roots(self.neighbours, self.lookups, self._begin_lookup)
        self._joins = Joins(self.neighbours, questions, self._outbox)
        self._deciders = Deciders(self.machine, self.rooms, self.neighbours, questions, self._outbox)
        self._deployments = Deployments(
            self.neighbours, self.times, self._outbox, questions, roots, lambda: next(self._numbers)
        )
        self.owners = Owners(self.times, self._outbox, questions, roots, self.schedulers, self._next_attempt)
        self._count()

    def tick(self, now: float, rng: Random) -> list[Send]:
        """Time has passed."""
        self._began = now if self._began is None else self._began
        sends = super().tick(now, rng)
        if self.state != "joined":
            return sends
        heartbeat = self.times.heartbeat
        self.rooms.tick(now)
        self._questions.tick(now)
        self._deciders.tick(now, heartbeat)
        self._joins.tick(now, heartbeat)
        self._deployments.tick(now)
        self.owners.tick(now)
        self._advance(now)
        return sends + self._flush(now)

    def _take(self, sender: int, message: Any, now: float) -> None:
        super()._take(sender, message, now)
        if isinstance(message, Registered):
            self.owners.registered(message.application, now)
        self._advance(now)

    def _advance(self, now: float) -> None:
        self._roots.advance(now)
        self._count()

    def _of_others(self, sender: int, message: Any, now: float) -> None:
        if self.state != "joined":
            return
        match message:
            case Step():
                self._joins.take(sender, message, now)
            case Took() | LoadsAre() | Reserved() | Laid() | Kept():
                self._questions.answered(sender, message.number, message, now)
            case Laying():
                self._questions.patience(sender, message.number, now)
            case Passed():
                self._deployments.passed(sender, message, now)
            case AskLoads():
                self._outbox.send(sender, LoadsAre(number=message.number, loads=self._loads()))
            case Lay():
                self._deciders.lay(sender, message, now)
            case Deploy():
                self._deployments.deploy(sender, message, now)
            case Deployment():
                self.owners.deployment(sender, message, now)
            case Reserve() | Release() | Renew():
                self._of_rooms(sender, message, now)
            case _:
                self._of_clients(sender, message, now)

    def _of_rooms(self, sender: int, message: Any, now: float) -> None:
        match message:
            case Reserve():
                accepted = self.rooms.reserve(message.application, message.attempt, message.operator, now)
                load = self.rooms.load
                reserved = Reserved(
                    number=message.number, accepted=accepted, held=load.held, capacity=load.capacity,
                    machine=self.machine,
                )  # fmt: skip
                self._outbox.send(sender, reserved)
            case Release():
                self.rooms.release(message.application, message.attempt, message.operators)
            case Renew():
                name, attempt = message.application, message.attempt
                lost = self.rooms.renew(name, attempt, message.operators, now, running=message.running)
                newer = self.rooms.newest(name) if lost is None else 0
                kept = Kept(number=message.number, application=name, attempt=attempt, lost=lost or (), newer=newer)
                self._outbox.send(sender, kept)

    def _of_clients(self, sender: int, message: Any, now: float) -> None:
        match message:
            case Announce():
                self.owners.announce(sender, replace(message, zone=message.zone or self.schedulers.zone), now)
                self._outbox.send(sender, self.owners.placement(message.application))
            case Runs():
                self.owners.runs(replace(message, zone=message.zone or self.schedulers.zone), now)
                self._outbox.send(sender, self.owners.placement(message.application))
            case AskPlacement():
                self._outbox.send(sender, self.owners.placement(message.application))
            case Over():
                self.owners.over(message.application)
                self._outbox.send(sender, self.owners.placement(message.application))
            case AskRooms():
                self._outbox.send(sender, self._rooms_are())

    def _loads(self) -> tuple[Loaded, ...]:
        mine = self.rooms.load
        found = [Loaded(node=self.contact, held=mine.held, capacity=mine.capacity)]
        for leaf in self.neighbours.leaves():
            load = self.neighbours.loads.get(leaf.id)
            if load is not None:
                found.append(Loaded(node=leaf, held=load.held, capacity=load.capacity))
        return tuple(found)

    def _rooms_are(self) -> RoomsAre:
        load = self.rooms.load
        owned = ((name, self.owners.placement(name).status) for name in sorted(self.owners.all))
        return RoomsAre(
            machine=self.machine, capacity=load.capacity, held=load.held, operators=self.rooms.operators()[:SHOWN],
            owned=tuple(owned)[:SHOWN],
        )  # fmt: skip

    def _begin_lookup(self, key: int, now: float) -> int:
        number, carry = self.lookups.begin(key, "", b"", now)
        self._route(carry, now)
        return number

    def _next_attempt(self, now: float) -> int:
        """By the wall clock at the process's start and the time since: an owner elsewhere gives a greater one later."""
        self._began = now if self._began is None else self._began
        self._attempts = max(self._attempts + 1, self._born + int((now - self._began) * 1e9))
        return self._attempts

    def _count(self) -> None:
        self.neighbours.load = self.rooms.load
