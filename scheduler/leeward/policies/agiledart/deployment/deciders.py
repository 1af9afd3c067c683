"""A share of an application's operators, laid by one node: on itself, on its leaf set, or beyond it.

The rules are those of `dataflow/placement.py`.  Operators are decided one after another, so each decision knows the
rooms that those before it took.  A host that has no room refuses, whatever its last heartbeat said, and the next one is
asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import inf

from leeward.policies.agiledart.deployment.messages import (
    AskLoads,
    Hosted,
    Laid,
    Lay,
    Laying,
    LoadsAre,
    Reserve,
    Reserved,
)
from leeward.policies.agiledart.deployment.questions import Questions
from leeward.policies.agiledart.deployment.rooms import Rooms
from leeward.policies.agiledart.overlay.messages import Contact
from leeward.policies.agiledart.overlay.neighbours import Load, Neighbours, Outbox

#: Heartbeats for which an answer is kept, as its receiver may ask again.
KEPT = 10


@dataclass(slots=True)
class _Share:
    """Operators of which this node decides."""

    lay: Lay
    done: Callable[[tuple[Hosted, ...], str, float], None]
    hosts: list[Hosted] = field(default_factory=list)
    near: dict[int, tuple[Contact, Load]] = field(default_factory=dict)  #: nodes that may host, by id
    fresh: set[int] = field(default_factory=set)  #: those whose load is newer than their heartbeat
    rung: set[int] = field(default_factory=set)  #: nodes that were asked for their leaf sets
    gone: set[int] = field(default_factory=set)  #: nodes that have not answered
    waits: int = 0  #: answers of a ring that are still to come

    @property
    def operator(self) -> str:
        """The one to decide on now."""
        return self.lay.operators[len(self.hosts)]


class Deciders:
    """All shares of one node. `machine`: the name of the machine that it stands for."""

    def __init__(
        self, machine: str, rooms: Rooms, neighbours: Neighbours, questions: Questions, outbox: Outbox
    ) -> None:
        self._machine, self._rooms, self._neighbours = machine, rooms, neighbours
        self._questions, self._outbox = questions, outbox
        self._told: dict[tuple[int, int], tuple[float, Laid | None]] = {}  #: by asker and number; None: not yet

    def lay(self, sender: int, lay: Lay, now: float) -> None:
        """A scheduler wants these operators to be laid; asked again, the answer is repeated."""
        name = sender, lay.number
        if name in self._told:
            answer = self._told[name][1]
            self._outbox.send(sender, answer or Laying(number=lay.number))
            return
        self._told[name] = now, None

        def done(hosts: tuple[Hosted, ...], why: str, now: float) -> None:
            answer = Laid(number=lay.number, hosts=hosts, why=why)
            self._told[name] = now, answer
            self._outbox.send(sender, answer)

        self._next(_Share(lay, done), now)

    def tick(self, now: float, heartbeat: float) -> None:
        """Time has passed: old answers are forgotten."""
        self._told = {name: one for name, one in self._told.items() if now - one[0] < KEPT * heartbeat}

    # --- one operator after the other

    def _next(self, share: _Share, now: float) -> None:
        if len(share.hosts) == len(share.lay.operators):
            share.done(tuple(share.hosts), "", now)
            return
        lay = share.lay
        if not self._rooms.holds(lay.application, lay.attempt) and self._here(share, now):
            return
        self._nearby(share, now)

    def _here(self, share: _Share, now: float) -> bool:
        """On this node, if it has room."""
        lay, operator = share.lay, share.operator
        if not self._rooms.reserve(lay.application, lay.attempt, operator, now):
            return False
        self._neighbours.load = self._rooms.load
        share.hosts.append(Hosted(operator=operator, host=self._neighbours.me, machine=self._machine))
        self._next(share, now)
        return True

    def _nearby(self, share: _Share, now: float) -> None:
        """On the least loaded of the leaf set, or of the leaf sets of those if all are full."""
        for contact in self._neighbours.leaves():
            load = self._neighbours.loads.get(contact.id)
            if load is not None and contact.id not in share.fresh:
                share.near[contact.id] = contact, load
        trips = self._neighbours.round_trips
        able = [node for node, (_, load) in share.near.items() if load.room > 0 and node not in share.gone]
        if not able:
            self._farther(share, now)
            return
        node = min(able, key=lambda node: (share.near[node][1].share, trips.get(node, inf), node))
        lay, operator = share.lay, share.operator

        def reserve(number: int) -> Reserve:
            return Reserve(number=number, application=lay.application, attempt=lay.attempt, operator=operator)

        self._questions.ask(share.near[node][0], reserve, partial(self._reserved, share, node), now)

    def _reserved(self, share: _Share, node: int, answer: Reserved | None, now: float) -> None:
        contact, _ = share.near[node]
        if answer is None:
            share.gone.add(node)
            self._neighbours.probe(contact, now)
        else:
            told = Load(answer.held, answer.capacity)
            share.near[node] = contact, told if answer.accepted else Load(told.capacity, told.capacity)
            share.fresh.add(node)  # newer than its heartbeat
            if node in self._neighbours.contacts:
                self._neighbours.loads[node] = told
            if answer.accepted:
                share.hosts.append(Hosted(operator=share.operator, host=contact, machine=answer.machine))
        self._next(share, now)

    # --- where all nodes nearby are full

    def _farther(self, share: _Share, now: float) -> None:
        """Ask the nodes found so far for their leaf sets. This node's own rooms are the last."""
        known = {contact.id: contact for contact in self._neighbours.leaves()}
        known |= {node: contact for node, (contact, _) in share.near.items()}
        ring = [known[node] for node in sorted(known.keys() - share.rung - share.gone)]
        if not ring:
            self._last(share, now)
            return
        share.rung.update(contact.id for contact in ring)
        share.waits = len(ring)
        for contact in ring:
            told = partial(self._told_loads, share, contact)
            self._questions.ask(contact, lambda number: AskLoads(number=number), told, now)

    def _told_loads(self, share: _Share, asked: Contact, answer: LoadsAre | None, now: float) -> None:
        share.waits -= 1
        if answer is None:
            share.gone.add(asked.id)
        else:
            for position, one in enumerate(answer.loads):
                node = one.node.id
                if node == self._neighbours.me.id or (node in share.near and position):
                    continue
                share.near[node] = one.node, Load(one.held, one.capacity)
                share.fresh.add(node)
        if not share.waits:
            self._nearby(share, now)

    def _last(self, share: _Share, now: float) -> None:
        if self._here(share, now):
            return
        me, count = self._neighbours.me, len(share.near.keys() - share.gone) + 1
        share.done(tuple(share.hosts), f"node {me.id:032x} reaches {count} nodes by leaf sets, and they are full", now)
