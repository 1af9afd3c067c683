"""AgileDART's policy where the overlay's agents place: a first plan by messages, then scaling as in `policy.py`.

The policy runs in the service of an elected scheduler (`leeward overlay serve --nimbus`), and writes to the agent of
the same node.  A topology without a plan is announced to it, and the hosts of its operators are the plan.  The agent is
told where a topology runs, so that the loads in the overlay are those on Storm, also after another scheduler has taken
over.

Paper -> here: as in `placement.py`, but each supervisor has one agent, of which its heartbeats tell the load.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from leeward.core.errors import LeewardError, PlanError
from leeward.core.model import ClusterView
from leeward.core.peers import Directory, Letter
from leeward.core.placing import carry, present_deployment
from leeward.core.plan import Plan, Refusal
from leeward.policies.agiledart.deployment.messages import (
    KINDS,
    Announce,
    AskPlacement,
    Over,
    PlacementIs,
    Runs,
    Wanted,
)
from leeward.policies.agiledart.overlay.ids import id_of, to_bytes
from leeward.policies.agiledart.placement import keep_apart, names_of, usable, without_circles
from leeward.policies.agiledart.policy import AgileDart
from leeward.policies.agiledart.settings import STORM, AgileDartSettings

#: Number of the only peer: the agent beside the service.
AGENT = 0


@dataclass(slots=True)
class _Known:
    """A topology, and how far the agents are with it."""

    scaling: AgileDart
    told: PlacementIs | None = None  #: the newest answer about its first placement
    asked: float | None = None  #: the `now` of the newest announcement
    avoided: set[str] = field(default_factory=set)  #: nodes that hold less than their agents say
    laid: bool = False  #: it runs where the overlay laid it
    view: ClusterView | None = None  #: the view that was answered last
    answer: Plan | Refusal | None = None


class Overlaid:
    """See the module; a `Correspondent`. `place` of its settings has no meaning here."""

    Settings = AgileDartSettings
    #: The overlay needs no rates.
    at_once = True

    def __init__(self, settings: AgileDartSettings) -> None:
        self._settings = replace(settings, place=STORM)
        self._known: dict[str, _Known] = {}  # by topology id
        self._letters: list[Letter] = []

    def directory(self) -> Directory:
        """Without addresses: the only peer is the agent beside the service, which its command knows."""
        return Directory(kinds=KINDS, addresses={}, key=b"")

    def letters(self) -> Sequence[Letter]:
        """Those that follow from the newest decision."""
        letters, self._letters = self._letters, []
        return letters

    def receive(self, sender: int, answer: Any) -> None:
        """How far an application is."""
        if isinstance(answer, PlacementIs) and answer.application in self._known:
            self._known[answer.application].told = answer

    def decide_all(
        self, views: Sequence[ClusterView], *, now: float, rng: random.Random
    ) -> Mapping[str, Plan | Refusal]:
        """A plan for each topology whose view is new: by the overlay for the first one, by scaling for those after."""
        for id in sorted(self._known.keys() - {view.topology_id for view in views}):
            del self._known[id]
            self._letter(Over(application=id))
        found: dict[str, Plan | Refusal] = {}
        for view in views:
            known = self._known.setdefault(view.topology_id, _Known(AgileDart(self._settings)))
            if known.view is not view or (view.first and not known.laid):
                try:
                    known.answer = self._answer(view, known, now, rng)
                except LeewardError as error:  # of this one alone; others have plans
                    known.answer = Refusal(reason=str(error))
                known.view = view
            if known.answer is not None:
                found[view.topology] = known.answer
        return found

    def _answer(self, view: ClusterView, known: _Known, now: float, rng: random.Random) -> Plan | Refusal:
        if view.first and not known.laid:
            return self._first(view, known, now)
        return self._next(view, known, now, rng)

    # --- the first plan

    def _first(self, view: ClusterView, known: _Known, now: float) -> Plan | Refusal:
        if known.asked != now:
            known.asked, known.told = now, None
            known.avoided.clear()
            self._announce(view, known)
            return Refusal(reason="the agent beside the service has not answered")
        self._nodes(view, known)  # its reason, whenever other topologies have this one asked again
        told = known.told
        if told is None:
            return Refusal(reason="the agent beside the service has not answered")
        if told.status == "unknown":
            self._announce(view, known)
        elif told.status == "refused":
            return Refusal(reason=f"the overlay refuses it: {told.why}")
        elif told.status == "placed":
            return self._placed(view, known, told)
        else:
            self._letter(AskPlacement(application=view.topology_id))
        return Refusal(reason=f"the overlay is at it: {told.status}{', ' + told.why if told.why else ''}")

    def _placed(self, view: ClusterView, known: _Known, told: PlacementIs) -> Plan | Refusal:
        wanted: dict[str, dict[str, int]] = {component.id: {} for component in view.components}
        for one in told.hosts:
            counts = wanted.setdefault(one.operator.rpartition("#")[0], {})
            counts[one.machine] = counts.get(one.machine, 0) + 1
        used = Counter(one.machine for one in told.hosts)
        capacity = {node.id: node.capacity for node in view.nodes if usable(node)}
        wrong = {node for node, count in used.items() if count > capacity.get(node, 0)}
        if wrong and wrong <= known.avoided:  # an answer to the announcement before
            self._letter(AskPlacement(application=view.topology_id))
            return Refusal(reason=f"the overlay still places it on {', '.join(sorted(wrong))}, where there is no room")
        if wrong:  # other topologies have its slots, or Storm has lost its supervisor
            known.avoided |= wrong
            self._letter(Over(application=view.topology_id))
            self._announce(view, known)
            return Refusal(reason=f"Storm has no room on {', '.join(sorted(wrong))}; the overlay places it elsewhere")
        wanted = keep_apart(view, wanted)  # the overlay knows no rivals; it is told where they went
        if wanted == present_deployment(view):
            known.laid = True
            return Refusal(reason="Storm has placed it as the overlay would")
        return carry(view, wanted, reason=f"placed by the overlay: {len(used)} nodes, by messages between agents")

    def _announce(self, view: ClusterView, known: _Known) -> None:
        """Where some nodes cannot be used, operators name those that can. Raises PlanError for one that has none."""
        pins = self._nodes(view, known)
        wanted: list[Wanted] = []
        positions: dict[str, list[int]] = {}
        parts = {component.id: component for component in view.components}
        for name, upstream in without_circles(view).items():
            before = tuple(position for one in upstream for position in positions[one])
            nodes = tuple(to_bytes(id_of(node)) for node in sorted(pins[name]))
            positions[name] = []
            for operator in names_of(view, parts[name]):
                positions[name].append(len(wanted))
                wanted.append(Wanted(name=operator, upstream=before, nodes=nodes))
        self._letter(Announce(application=view.topology_id, zone="", operators=tuple(wanted)))

    @staticmethod
    def _nodes(view: ClusterView, known: _Known) -> dict[str, list[str]]:
        """Component -> the nodes that may host it; []: any. Raises PlanError for a component with pins of which none
        can be used."""
        able = [node.id for node in view.nodes if usable(node) and node.id not in known.avoided]
        some = len(able) < len(view.nodes)
        pins = {
            one.id: [node for node in able if not one.pinned or node in one.pinned] if some else list(one.pinned)
            for one in view.components
        }
        for one in view.components:
            if one.pinned and not pins[one.id]:  # an operator without nodes may go to any
                raise PlanError(
                    f"component {one.id!r} is pinned to {', '.join(one.pinned)}, and none of these can be used.",
                    remedy="One of them needs a free slot and must not drain.",
                )
        return pins

    # --- later plans

    def _next(self, view: ClusterView, known: _Known, now: float, rng: random.Random) -> Plan:
        """Of one that runs: the agent is told where, and its components scale."""
        present = present_deployment(view)
        if present is not None:
            hosts = tuple(
                (f"{component}#{node}#{number}", to_bytes(id_of(node)))
                for component, counts in sorted(present.items())
                for node, count in sorted(counts.items())
                for number in range(count)
            )
            self._letter(Runs(application=view.topology_id, zone="", hosts=hosts))
        return known.scaling.decide(view, now=now, rng=rng)

    def _letter(self, message: object) -> None:
        self._letters.append(Letter(AGENT, message, answered=True))
