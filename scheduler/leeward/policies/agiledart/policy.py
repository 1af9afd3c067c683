"""AgileDART's placement and scaling as a policy for any topology (spec of AgileDART, sections 1 and 2).

With `place=dataflow` a topology without a plan is placed along JOINs (`placement.py`), before Storm does if Nimbus
leaves the time.  From then on, and from the start without it, its components scale.

Paper -> here: operator -> component; instances x -> its replicas; r -> `worth` times the service rate of one; R -> the
rate that arrives; Q -> tuples that wait in its tasks, and its share of the backlog at the sources.  Compute-bound and
bandwidth-bound are told apart in `scaling/bound.py`.  Scale up: replicas on the nodes that have some; scale out: on
others; move: the replicas of one node go to another, in another site where the network is known.  Nodes to which a warm
task comes without a restart of workers go first; for a component bound by compute then those in a site that has some of
its replicas.

Our own part: a replica is worth less than its service rate, as queues grow without bound at that; where the network
limits a stateless component, a replica is worth what it then received, until one receives more; a move goes to no node
that was found slow since the network last kept up; components of one list of `leeward.apart` share no node.  The paper
looks for the other node in the leaf set of its overlay, here any node may be it.  A source keeps its one replica.  The
loop ends one reconfiguration before it begins another.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from leeward.core.apart import barred, rivals_of
from leeward.core.errors import PlanError
from leeward.core.model import ClusterView, Component, Measured
from leeward.core.placing import carry, places, present_deployment
from leeward.core.plan import Plan
from leeward.core.table import replicas
from leeward.policies.agiledart.placement import by_dataflow, keep_apart
from leeward.policies.agiledart.scaling.bound import Bound, Remedy, bound_of, remedy_of
from leeward.policies.agiledart.scaling.facts import Shares, from_sources, upstream
from leeward.policies.agiledart.scaling.health import Load
from leeward.policies.agiledart.scaling.rules import GuardedRule, Rule, SecantRule
from leeward.policies.agiledart.scaling.spread import Counts, Room, grow, move, shrink
from leeward.policies.agiledart.settings import DATAFLOW, AgileDartSettings


@dataclass(slots=True)
class _Known:
    """Facts of a component, from one view to the next."""

    rule: Rule
    counts: Counts = field(default_factory=dict)  #: node -> replicas, as seen last
    stuck: int = 0  #: views in a row in which the network limited these replicas
    through: float | None = None  #: tuples/s that a replica received while the network limited it; None: it never did
    slow: set[str] = field(default_factory=set)  #: nodes on which it did


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question: the view, and what each component's answer needs of it, computed once."""

    view: ClusterView
    room: Room
    shares: Shares
    usable: tuple[str, ...]  #: nodes that do not drain
    sites: Mapping[str, str]  #: node -> its site, where the network is known

    @staticmethod
    def of(view: ClusterView) -> _Asked:
        usable = tuple(node.id for node in view.nodes if not node.draining)
        sites = {one.id: one.site for one in view.network.nodes} if view.network else {}
        return _Asked(view, Room.of(view.nodes), Shares(view), usable, sites)

    def allowed(self, component: Component) -> Sequence[str]:
        """The nodes that may host it."""
        pinned = set(component.pinned)
        return [node for node in self.usable if node in pinned] if pinned else self.usable

    def site(self, node: str) -> str:
        """The site of a node; the node where none is known."""
        return self.sites.get(node, node)

    def near(self, counts: Counts, nodes: Collection[str]) -> Collection[str]:
        """Those of the nodes that are in a site with some of the replicas."""
        sites = {self.site(node) for node in counts}
        return [node for node in nodes if self.site(node) in sites] if self.sites else sites


class _Near(NamedTuple):
    """A component's replicas by node, and the nodes for them."""

    present: Counts  #: as they are
    kept: Counts  #: those that may stay
    ready: Mapping[str, int]  #: node -> replicas that it can have with no worker restarted
    allowed: Collection[str]  #: nodes on which it may be


class AgileDart:
    """See the module. Remembers measurements, so each topology has a policy of its own."""

    Settings = AgileDartSettings

    def __init__(self, settings: AgileDartSettings) -> None:
        self._settings = settings
        self._known: dict[str, _Known] = {}
        self._queued: dict[str, int] = {}  # in the view before
        self._topology_id = ""
        self._laid = ""  # the topology that runs where the dataflow laid it first
        #: The dataflow needs no rates.
        self.at_once = settings.place == DATAFLOW

    def decide(self, view: ClusterView, *, now: float, rng: random.Random) -> Plan:
        """A first plan by dataflow, if that is set; else replicas by the rule, where there is room.

        Raises PlanError if a component can have no replica at all, LeewardError if a dataflow finds no room.
        """
        if self.at_once and view.first and self._laid != view.topology_id:
            laid, reason = by_dataflow(view)
            laid = keep_apart(view, laid)
            if laid != present_deployment(view):
                return carry(view, laid, reason=reason)
            self._laid = view.topology_id
        if view.topology_id != self._topology_id:
            self._known, self._queued, self._topology_id = {}, {}, view.topology_id
        present, asked = _present(view), _Asked.of(view)
        room = asked.room
        kept: dict[str, Counts] = {}
        for component in view.components:
            mine = set(asked.allowed(component))
            here = sorted((node, n) for node, n in present[component.id].items() if node in mine)
            kept[component.id] = {node: fit for node, n in here if (fit := min(n, room.free(node))) > 0}
            room.used.update(kept[component.id])
        if view.apart:
            kept = keep_apart(view, kept)
            room.used = Counter()
            for counts in kept.values():
                room.used.update(counts)
        ready, rivals = places(view), rivals_of(view.apart)
        for component in view.components:  # each needs one, before any gets more
            if not kept[component.id]:
                kept[component.id] = grow({}, 1, asked.allowed(component), room, ready=ready[component.id])
        wanted: dict[str, Counts] = {}
        reasons: list[str] = []
        for component in view.components:
            name, allowed = component.id, asked.allowed(component)
            if away := barred(name, rivals, kept | wanted):
                allowed = [node for node in allowed if node not in away]
            at = _Near(present=present[name], kept=kept[name], ready=ready[name], allowed=allowed)
            counts, reason = self._place(asked, component, at)
            wanted[name] = counts
            reasons += [f"{component.id}: {reason}"] if reason else []
        self._queued = {name: measured.queued for name, measured in view.measured.items()}
        return carry(view, wanted, reason="; ".join(reasons) or "every component rests")

    def _place(self, asked: _Asked, component: Component, at: _Near) -> tuple[Counts, str]:
        """Its replicas by node, and why they change; "" if they do not."""
        view, room, present, kept, allowed = asked.view, asked.room, at.present, at.kept, at.allowed
        x = len(replicas(view.tables[component.id]))
        known = self._look(component, present)
        remedy = self._remedy(asked, component, known, x)
        out = remedy is Remedy.OUT
        number = x if known.stuck and not out else self._number(view, component, known, x)
        number = min(max(1, number), component.max_replicas)
        counts, reason = kept, ""
        if number < sum(kept.values()):
            counts, reason = shrink(kept, sum(kept.values()) - number, room), "scale in"
        elif number > sum(kept.values()):
            near = () if out else asked.near(kept, allowed)
            counts = grow(kept, number - sum(kept.values()), allowed, room, out=out, ready=at.ready, near=near)
            reason = _way_of(kept, counts) if number > x else ""
        if not counts:
            raise PlanError(
                f"component {component.id!r} fits on no node.",
                remedy=f"Of {list(allowed or component.pinned) or 'the nodes'} one needs room and must not drain.",
            )
        if remedy is Remedy.MOVE and counts == present:
            counts, reason = self._move(asked, allowed, known, counts)
        elif counts == present:
            reason = f"{number - x} more find no room" if number > x else ""
        elif not reason:
            reason = "leave nodes"
        placed = sum(counts.values())
        return counts, f"{reason}, {x} to {placed} replicas" if placed != x else reason

    # --- how many

    def _look(self, component: Component, present: Counts) -> _Known:
        known = self._known.setdefault(component.id, _Known(self._rule()))
        if known.counts != present:
            known.counts, known.stuck = dict(present), 0
        return known

    def _rule(self) -> Rule:
        s = self._settings
        return GuardedRule(drain_s=s.drain_s, window=s.window) if s.rule == "guarded" else SecantRule(q=s.q, a=s.a)

    def _number(self, view: ClusterView, component: Component, known: _Known, x: int) -> int:
        """By the rule; the number that there is where nothing is measured or it has no other one."""
        measured = view.measured.get(component.id, Measured())
        if component.source or not measured.service_rate:
            return x
        worth = self._settings.worth * measured.service_rate
        if known.through is not None:
            known.through = max(known.through, measured.arrival_rate / x)
            worth = min(worth, known.through)
        waiting = measured.queued + from_sources(view, measured.arrival_rate)
        answer = known.rule.tell(Load(x=x, r=worth, R=measured.arrival_rate, Q=waiting))
        return x if isinstance(answer, str) else answer

    # --- where

    def _remedy(self, asked: _Asked, component: Component, known: _Known, x: int) -> Remedy | None:
        """None also while the network's limit has not been seen for a whole window."""
        if component.source:
            return None
        s, view, shares = self._settings, asked.view, asked.shares
        before = upstream(view, component, self._queued, shares)
        bound = bound_of(shares.busy[component.id], before, threshold=s.busy, waits_s=s.waits_s)
        known.stuck = known.stuck + 1 if bound is Bound.BANDWIDTH else 0
        if bound is not Bound.BANDWIDTH:
            known.slow.clear()
        elif known.stuck < s.window:
            return None
        remedy = remedy_of(bound, stateful=component.stateful)
        if remedy is Remedy.OUT and known.stuck == s.window:
            arriving = view.measured[component.id].arrival_rate
            known.through, known.rule = arriving / x if arriving > 0 else None, self._rule()
        return remedy

    def _move(self, asked: _Asked, allowed: Collection[str], known: _Known, counts: Counts) -> tuple[Counts, str]:
        known.slow.update(counts)
        others = [node for node in allowed if node not in known.slow]
        sites, room = {asked.site(node) for node in counts}, asked.room
        target = room.least_loaded([n for n in others if asked.site(n) not in sites]) or room.least_loaded(others)
        if target is None:
            return counts, "bound by bandwidth, and no other node has room"
        moved, source = move(counts, target, room)
        return moved, f"bound by bandwidth: move from {source} to {target}"


def _present(view: ClusterView) -> dict[str, Counts]:
    """Component -> node -> replicas; those that have no place are left out."""
    return {
        c.id: dict(Counter(view.assignment[t].node for t in replicas(view.tables[c.id]) if t in view.assignment))
        for c in view.components
    }


def _way_of(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    ways = [way for way, new in ((Remedy.UP, False), (Remedy.OUT, True)) if _grew(before, after, new=new)]
    return " and ".join(ways)


def _grew(before: Mapping[str, int], after: Mapping[str, int], *, new: bool) -> bool:
    return any((node not in before) == new and after[node] > before.get(node, 0) for node in after)
