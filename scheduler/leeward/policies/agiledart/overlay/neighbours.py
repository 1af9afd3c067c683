"""The nodes that one node knows: which of them live, how far away they are, and how lost ones are replaced.

A node enters a table only after it has sent something itself.  Each node sends heartbeats to its leaf set.  A leaf that
is silent is pinged, and is lost if it answers none of a few pings; the same pings measure round trips, which are the
proximity that decides among candidates of one place in the routing table (Pastry, sections 2.1 and 2.4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import NamedTuple

from leeward.core.peers import Send
from leeward.policies.agiledart.overlay.ids import common_prefix, nearness
from leeward.policies.agiledart.overlay.messages import (
    AskLeaves,
    AskRow,
    Contact,
    Heartbeat,
    Leave,
    Ping,
    Pong,
    Refused,
)
from leeward.policies.agiledart.overlay.tables import UNKNOWN, Tables

#: Of a new round trip in its mean.
WEIGHT = 0.25
#: Heartbeats between two exchanges of leaf sets, of rows, and with a node that was given at the start.
LEAVES_EVERY, ROWS_EVERY, SEEDS_EVERY = 2, 4, 8
#: Heartbeats of silence after which a leaf is pinged, and for which a lost node is not pinged again on hearsay.
SILENCE, FORGET = 1.2, 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """In seconds. `ack`: an answer of a node that lives takes at most so long, or is asked for again."""

    heartbeat: float = 2.0
    ack: float = 0.2


class Load(NamedTuple):
    """Operators on a node, and how many it can hold."""

    held: int
    capacity: int

    @property
    def room(self) -> int:
        """Operators that it can still hold."""
        return self.capacity - self.held

    @property
    def share(self) -> float:
        """Held over capacity; 1 for a node without any."""
        return self.held / self.capacity if self.capacity else 1.0


class Outbox:
    """Messages that a node is about to send."""

    def __init__(self) -> None:
        self.sends: list[Send] = []

    def send(self, to: int, message: object) -> None:
        """To an address."""
        self.sends.append(Send(to, message))

    def empty(self) -> list[Send]:
        """All of them, once."""
        sends, self.sends = self.sends, []
        return sends


@dataclass(slots=True)
class _Probe:
    contact: Contact
    number: int
    sent: float  #: the first ping
    due: float  #: the answer to the last one
    tries: int = 1


class Neighbours:
    """See the module. `seeds`: addresses that were given at the start."""

    #: Pings without an answer after which a node is lost.
    TRIES = 3

    def __init__(self, me: Contact, times: Times, outbox: Outbox, seeds: tuple[int, ...] = ()) -> None:
        self.me, self.tables, self.joined = me, Tables(me.id), False
        self.contacts: dict[int, Contact] = {}  #: of every node in the tables
        self.load = Load(0, 0)  #: of this node, as its heartbeats carry it
        self.loads: dict[int, Load] = {}  #: node -> as its newest heartbeat carried it
        self.keeps = False  #: this node keeps fragments, as its heartbeats say
        self.keepers: set[int] = set()  #: nodes whose newest heartbeat says so
        self.suspects: set[int] = set()  #: nodes that have not acknowledged, until they are heard again
        self._times, self._outbox, self._seeds = times, outbox, seeds
        self._heard: dict[int, float] = {}  #: address -> when
        self._at: dict[int, int] = {}  #: address -> node
        self._round_trips: dict[int, float] = {}
        self._lost: dict[int, float] = {}  #: node -> until when hearsay of it is not believed
        self._probes: dict[int, _Probe] = {}
        self._numbers = count(1)
        self._beats = 0
        self._beat_at: float | None = None
        self._check_at = 0.0
        self._ragged = False  #: the leaf set has lost a node
        self._fresh = False  #: a node has entered it since the last heartbeat

    # --- messages of others

    def hear(self, sender: int, now: float) -> None:
        """A node has sent something."""
        self._heard[sender] = now
        if self.suspects:
            self.suspects.discard(self._at.get(sender, -1))

    def beaten(self, heartbeat: Heartbeat, now: float) -> None:
        """A heartbeat of a node."""
        self.meet(heartbeat.me, now)
        if self.contacts.get(heartbeat.me.id) == heartbeat.me:
            self.loads[heartbeat.me.id] = Load(heartbeat.held, heartbeat.capacity)
            (self.keepers.add if heartbeat.keeps else self.keepers.discard)(heartbeat.me.id)

    def meet(self, contact: Contact, now: float, round_trip: float | None = None) -> None:
        """A node that has joined has sent something. An id stays at its address while the node there lives."""
        node = contact.id
        held = self.contacts.get(node)
        if held == contact and round_trip is None:
            return
        holder = self.me if node == self.me.id else held
        if holder and holder.at != contact.at and (holder is self.me or not self._silent(holder, now)):
            self._outbox.send(contact.at, Refused(taken_by=holder.at))
            return
        if holder is self.me:
            return
        if round_trip is not None:
            mean = self._round_trips.get(node, round_trip)
            self._round_trips[node] = mean + WEIGHT * (round_trip - mean)
        self._lost.pop(node, None)
        before = self._at.get(contact.at, node)
        if before != node:  # another node was at this address
            self._lose(before, now)
        self._heard.setdefault(contact.at, now)
        self._fresh = self.tables.leaves.offer(node) or self._fresh
        self.tables.routes.offer(node, self._round_trips.get(node, UNKNOWN))
        self._keep(contact)

    def consider(self, contacts: Iterable[Contact], now: float, *, compare: bool = False) -> None:
        """Hearsay: those that the tables lack are pinged. `compare`: those for places that are taken, too."""
        for contact in contacts:
            node = contact.id
            if node == self.me.id or node in self.contacts or node in self._probes or now < self._lost.get(node, 0.0):
                continue
            if compare or self.tables.leaves.wants(node) or self.tables.routes.entry(node) is None:
                self.probe(contact, now)

    def probe(self, contact: Contact, now: float) -> None:
        """Ping a node; it is lost if it does not answer."""
        if contact.id not in self._probes:
            probe = self._probes[contact.id] = _Probe(contact, next(self._numbers), now, now + self._times.ack)
            self._ping(probe)

    def pong(self, message: Pong, now: float) -> None:
        """An answer to a ping. The round trip counts from the first one, so one that was lost lets it seem longer."""
        found = next((probe for probe in self._probes.values() if probe.number == message.number), None)
        if found is not None:
            del self._probes[found.contact.id]
            if message.me is not None:
                self.meet(message.me, now, now - found.sent)

    def leave(self, message: Leave, now: float) -> None:
        """A node leaves, and names those next to it."""
        self._lose(message.me.id, now)
        self.consider(message.others, now)

    def leaves(self) -> tuple[Contact, ...]:
        """Of the leaf set."""
        return tuple(self.contacts[node] for node in self.tables.leaves)

    def keeping(self) -> tuple[Contact, ...]:
        """Those of the leaf set that keep fragments, the nearest on the ring first."""
        found = [contact for contact in self.leaves() if contact.id in self.keepers]
        return tuple(sorted(found, key=lambda contact: nearness(contact.id, self.me.id)))

    def row(self, number: int) -> tuple[Contact, ...]:
        """Of one row of the routing table."""
        return tuple(self.contacts[node] for node in self.tables.routes.row(number))

    def lives(self, node: int, now: float) -> bool:
        """Whether a known node has been heard of late."""
        held = self.contacts.get(node)
        return held is not None and not self._silent(held, now)

    @property
    def probing(self) -> bool:
        """Whether an answer to a ping is still to come."""
        return bool(self._probes)

    @property
    def round_trips(self) -> Mapping[int, float]:
        """Node -> smoothed round trip, s."""
        return self._round_trips

    # --- time

    def tick(self, now: float, rng: Random) -> bool:
        """Time has passed; whether it was time for a heartbeat."""
        if self._probes:
            self._retry(now)
        if self._ragged:
            self._ragged = False
            self._mend(now, rng)
        if not self.joined:
            return False
        if now >= self._check_at:
            self._check(now)
        if self._beat_at is None:
            self._beat_at = now + rng.random() * self._times.heartbeat
        if now < self._beat_at:
            return False
        self._beat_at += self._times.heartbeat * (1 + (now - self._beat_at) // self._times.heartbeat)
        self._beat(now, rng)
        return True

    def announce(self) -> None:
        """Tell every known node that this one is there."""
        for contact in self.contacts.values():
            self._outbox.send(contact.at, self._heartbeat())

    def _beat(self, now: float, rng: Random) -> None:
        self._beats += 1
        heartbeat = self._heartbeat()
        for node in self.tables.leaves:
            self._outbox.send(self.contacts[node].at, heartbeat)
        others = [node for node in self.tables.routes if node not in self._probes]
        if others:  # one of the routing table in turn by chance: it may be lost, or farther away than it was
            self.probe(self.contacts[rng.choice(others)], now)
        leaves = self.tables.leaves
        if self._fresh:  # many may be joining here, and the nodes next to this one know them first
            self._fresh = False
            ends = (*leaves.after[:1], *leaves.before[:1], *leaves.after[-1:], *leaves.before[-1:])
            for node in dict.fromkeys(ends):
                self._outbox.send(self.contacts[node].at, AskLeaves())
        elif len(leaves) and self._beats % LEAVES_EVERY == 0:
            self._outbox.send(self.contacts[rng.choice(tuple(leaves))].at, AskLeaves())
        if others and self._beats % ROWS_EVERY == 0:
            node = rng.choice(others)
            self._outbox.send(self.contacts[node].at, AskRow(row=common_prefix(self.me.id, node)))
        if self._seeds and self._beats % SEEDS_EVERY == 0:
            self._outbox.send(rng.choice(self._seeds), AskLeaves())
        self._tidy(now)

    def _heartbeat(self) -> Heartbeat:
        return Heartbeat(me=self.me, held=self.load.held, capacity=self.load.capacity, keeps=self.keeps)

    def _tidy(self, now: float) -> None:
        self.loads = {node: load for node, load in self.loads.items() if node in self.contacts}
        self.keepers &= self.contacts.keys()
        self._lost = {node: until for node, until in self._lost.items() if until > now}
        kept = {contact.at for contact in self.contacts.values()}
        self._heard = {at: when for at, when in self._heard.items() if at in kept}
        self._round_trips = {node: trip for node, trip in self._round_trips.items() if node in self.contacts}

    def _check(self, now: float) -> None:
        """Ping the leaves that are silent; the time of the next check follows from the one heard longest ago."""
        silence = SILENCE * self._times.heartbeat
        oldest = now
        for node in self.tables.leaves:
            contact = self.contacts[node]
            heard = self._heard.setdefault(contact.at, now)
            if now - heard >= silence:
                self.probe(contact, now)
                heard = now - silence + self._times.ack
            oldest = min(oldest, heard)
        self._check_at = oldest + silence

    def _retry(self, now: float) -> None:
        for probe in [one for one in self._probes.values() if now >= one.due]:
            if probe.tries >= self.TRIES:
                self._lose(probe.contact.id, now)
            else:
                probe.due, probe.tries = now + self._times.ack, probe.tries + 1
                self._ping(probe)

    def _ping(self, probe: _Probe) -> None:
        self._outbox.send(probe.contact.at, Ping(number=probe.number, me=self.me if self.joined else None))

    # --- lost nodes

    def _lose(self, node: int, now: float) -> None:
        """A node is gone: others are asked to replace it where it was."""
        self._probes.pop(node, None)
        self._lost[node] = now + FORGET * self._times.heartbeat
        leaf, entry = node in self.tables.leaves, node in self.tables.routes
        self._drop(node)
        self._ragged = self._ragged or leaf
        if entry:
            row = common_prefix(self.me.id, node)
            helpers = self.row(row) or self.row(row + 1)
            if helpers:
                self._outbox.send(helpers[0].at, AskRow(row=row))

    def _mend(self, now: float, rng: Random) -> None:
        """The farthest leaf on each side knows nodes beyond; so does any other node if a side has none left.

        Nodes of the routing table may be next now. They are pinged, as they may not know this one.
        """
        leaves = self.tables.leaves
        for node, contact in self.contacts.items():
            if leaves.offer(node):
                self.probe(contact, now)
        for side in (leaves.after, leaves.before):
            helpers = [self.contacts[side[-1]]] if side else sorted(self.contacts.values(), key=lambda one: one.at)
            if helpers:
                self._outbox.send(rng.choice(helpers).at, AskLeaves())

    def _drop(self, node: int) -> None:
        self.tables.remove(node)
        self.suspects.discard(node)
        contact = self.contacts.pop(node, None)
        if contact is not None:
            self._at.pop(contact.at, None)

    def _keep(self, contact: Contact) -> None:
        """Contacts of nodes that are in no table any more are forgotten."""
        self.contacts[contact.id], self._at[contact.at] = contact, contact.id
        known = self.tables.known()
        if len(known) < len(self.contacts):
            for node in [node for node in self.contacts if node not in known]:
                self._drop(node)

    def _silent(self, contact: Contact, now: float) -> bool:
        return now - self._heard.get(contact.at, now) > 2 * self._times.heartbeat
