"""JOINs on their way from a source's node to a sink's: each node chooses the next one by loads (`dataflow/joins`).

The node that Pastry names is asked for the loads of its leaf set; of the nearest candidates with room the least loaded
one forwards.  A node that does not answer, or does not acknowledge, is passed by.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import inf

from leeward.policies.agiledart.dataflow.joins import least_loaded
from leeward.policies.agiledart.deployment.messages import AskLoads, LoadsAre, Passed, Step, Took
from leeward.policies.agiledart.deployment.questions import Questions
from leeward.policies.agiledart.overlay.forwarding import MOST_HOPS
from leeward.policies.agiledart.overlay.ids import common_prefix
from leeward.policies.agiledart.overlay.messages import Contact
from leeward.policies.agiledart.overlay.neighbours import Load, Neighbours, Outbox

#: Heartbeats for which a JOIN that comes once more is known.
KEPT = 5


class Joins:
    """The part of one node. A JOIN is lost with a node that dies while it has it; the scheduler sends another one."""

    def __init__(self, neighbours: Neighbours, questions: Questions, outbox: Outbox) -> None:
        self._neighbours, self._questions, self._outbox = neighbours, questions, outbox
        self._seen: dict[tuple[int, int], float] = {}  #: by the scheduler's address and the JOIN's number

    def take(self, sender: int, step: Step, now: float) -> None:
        """A JOIN is here."""
        self._outbox.send(sender, Took(number=step.number))
        name = step.origin.at, step.join
        if name in self._seen:
            return
        self._seen[name] = now
        me = self._neighbours.me
        path = (*step.path, me)
        if step.sink.id == me.id:
            self._arrived(step.origin, step.join, path, now)
        elif len(path) <= MOST_HOPS:
            self._onward(replace(step, path=path), now)

    def tick(self, now: float, heartbeat: float) -> None:
        """Time has passed: old JOINs are forgotten."""
        self._seen = {name: when for name, when in self._seen.items() if now - when < KEPT * heartbeat}

    def _arrived(self, origin: Contact, join: int, path: tuple[Contact, ...], now: float) -> None:
        """Tell the scheduler; if it has died the application's next one sends another JOIN."""
        self._questions.ask(
            origin, lambda number: Passed(number=number, join=join, path=path), lambda answer, now: None, now
        )  # fmt: skip

    def _onward(self, step: Step, now: float) -> None:
        """To the node that Pastry names, or to one that is as good a step; dropped where there is none."""
        neighbours, sink = self._neighbours, step.sink.id
        passed = {contact.id for contact in step.path}
        hop = neighbours.tables.next_hop(sink, passed | neighbours.suspects)
        if hop is None:
            return
        contact = neighbours.contacts[hop]
        if hop == sink:
            self._send(step, contact, now)
        else:
            chosen = partial(self._chosen, step, contact)
            self._questions.ask(contact, lambda number: AskLoads(number=number), chosen, now)

    def _chosen(self, step: Step, hop: Contact, answer: LoadsAre | None, now: float) -> None:
        if answer is None:
            self._pass_by(hop, now)
            self._onward(step, now)
            return
        sink, passed = step.sink.id, {contact.id for contact in step.path} | self._neighbours.suspects
        digits, trips = common_prefix(hop.id, sink), self._neighbours.round_trips
        able = {
            one.node.id: (one.node, Load(one.held, one.capacity))
            for one in answer.loads
            if one.held < one.capacity and common_prefix(one.node.id, sink) >= digits
            and one.node.id != sink and one.node.id not in passed
        }  # fmt: skip
        nearest = ((trips.get(node, inf), node) for node in able)
        forwarder = least_loaded(nearest, lambda node: able[node][1].share, hop.id)
        self._send(step, able[forwarder][0] if forwarder in able else hop, now)

    def _send(self, step: Step, to: Contact, now: float) -> None:
        def took(answer: Took | None, now: float) -> None:
            if answer is None:
                self._pass_by(to, now)
                self._onward(step, now)

        self._questions.ask(to, lambda number: replace(step, number=number), took, now)

    def _pass_by(self, node: Contact, now: float) -> None:
        self._neighbours.suspects.add(node.id)
        self._neighbours.probe(node, now)
