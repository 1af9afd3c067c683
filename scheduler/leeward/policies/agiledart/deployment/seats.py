"""Rooms for operators that may run on some nodes only: a matching by the loads of these nodes, then reserved.

Loads may change between the two, so a room that is refused leads to another matching.  An application is refused only
if no matching holds it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from leeward.core.errors import PlanError
from leeward.policies.agiledart.dataflow.pins import matched
from leeward.policies.agiledart.deployment.messages import AskLoads, Deploy, Hosted, LoadsAre, Reserve, Reserved, Wanted
from leeward.policies.agiledart.deployment.questions import Questions
from leeward.policies.agiledart.deployment.roots import Roots
from leeward.policies.agiledart.overlay.ids import from_bytes, id_of, nearness
from leeward.policies.agiledart.overlay.messages import Contact
from leeward.policies.agiledart.overlay.neighbours import Times

#: Matchings before an application is refused, as others take the rooms.
ROUNDS = 4
#: Takes the hosts, why there are none for some ("" for none such), and the time.
Then = Callable[[dict[str, Hosted], str, float], None]


def key_of(application: str, operator: str) -> int:
    """Where an operator belongs that may run anywhere."""
    return id_of(f"{application}/{operator}")


@dataclass(slots=True)
class _Search:
    """One application."""

    deploy: Deploy
    pinned: tuple[Wanted, ...]
    then: Then
    nodes: dict[int, Contact] = field(default_factory=dict)  #: that are in the overlay
    room: dict[int, int] = field(default_factory=dict)
    hosts: dict[str, Hosted] = field(default_factory=dict)
    waits: int = 0
    rounds: int = 0


class Seats:
    """The part of one node, as a scheduler."""

    def __init__(self, times: Times, questions: Questions, roots: Roots) -> None:
        self._times, self._questions, self._roots = times, questions, roots

    def find(self, deploy: Deploy, then: Then, now: float) -> None:
        """Rooms for all operators of an application that name nodes."""
        pinned = tuple(one for one in deploy.operators if one.nodes)
        ids = sorted({from_bytes(node) for one in pinned for node in one.nodes})
        search = _Search(deploy, pinned, then, waits=len(ids))
        if not ids:
            then({}, "", now)
        for id in ids:
            self._roots.node(id, partial(self._found, search, id), now)

    def _found(self, search: _Search, id: int, node: Contact | None, now: float) -> None:
        if node is not None:
            search.nodes[id] = node
        self._counted(search, self._ask, now)

    def _ask(self, search: _Search, now: float) -> None:
        """All of the nodes for their loads."""
        search.rounds += 1
        search.waits, search.room = len(search.nodes), {}
        for id, node in sorted(search.nodes.items()):
            self._questions.ask(node, lambda number: AskLoads(number=number), partial(self._loads, search, id), now)
        if not search.nodes:
            self._match(search, now)

    def _loads(self, search: _Search, id: int, answer: LoadsAre | None, now: float) -> None:
        if answer is not None and answer.loads:
            search.room[id] = answer.loads[0].capacity - answer.loads[0].held
        self._counted(search, self._match, now)

    def _match(self, search: _Search, now: float) -> None:
        name = search.deploy.application
        left = [one for one in search.pinned if one.name not in search.hosts]
        choices = {
            one.name: sorted(
                (node for node in map(from_bytes, one.nodes) if node in search.room),
                key=partial(nearness, key=key_of(name, one.name)),
            )
            for one in left
        }  # fmt: skip
        try:
            rooms = matched(choices, search.room)
        except PlanError as error:
            absent = sorted({node.hex() for one in left for node in one.nodes if from_bytes(node) not in search.room})
            also = f" Not in the overlay: {', '.join(absent)}." if absent else ""
            search.then(search.hosts, f"{error}{also}", now)
            return
        search.waits = len(rooms)
        for operator, node in rooms.items():
            self._reserve(search, operator, search.nodes[node], now)
        if not rooms:
            search.then(search.hosts, "", now)

    def _reserve(self, search: _Search, operator: str, node: Contact, now: float) -> None:
        deploy = search.deploy

        def make(number: int) -> Reserve:
            return Reserve(number=number, application=deploy.application, attempt=deploy.attempt, operator=operator)

        def reserved(answer: Reserved | None, now: float) -> None:
            if answer is None:
                search.nodes.pop(node.id, None)
            elif answer.accepted:
                search.hosts[operator] = Hosted(operator=operator, host=node, machine=answer.machine)
            self._counted(search, self._reserved, now)

        self._questions.ask(node, make, reserved, now)

    def _reserved(self, search: _Search, now: float) -> None:
        if len(search.hosts) == len(search.pinned):
            search.then(search.hosts, "", now)
        elif search.rounds < ROUNDS:
            self._ask(search, now)
        else:
            search.then(search.hosts, "others took the rooms of its pinned operators", now)

    def _counted(self, search: _Search, then: Callable[[_Search, float], None], now: float) -> None:
        """One answer less to come; the next step behind the last one."""
        search.waits -= 1
        if not search.waits:
            then(search, now)
