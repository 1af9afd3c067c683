"""S-EDRP: elastic operator replication and placement on Storm (spec/edrp.md section 5).

Paper -> here: operator i -> component; replica -> task that owns key groups; k_i -> its tasks; C_i = Res_i = 1;
Res_u -> slots x EPS_max (`Node.capacity`); lambda_ij -> `stream_rate`; R_i -> the curve that was learnt, else M/M/1
with mu_i -> measured service rate; I_S,i -> state in the newest cut; d_uv -> `delay_s`; d and r to and from the
DataStore -> `Node.store`; T_D -> what handovers cost as measured where no executor has to move, appendix A.2 where one
has to, with t_syn and t_s as restarts took; by setting A.2 or A.1 for all; w_d = 0 for the first plan, where every
change is a restart (ADR 13).

Our own part: the paper's replicas share an operator's load evenly, ours own key groups, so where one gets clearly more
than its share a plan changes owners only; rates are raised by a head-room and by what a backlog needs; an operator that
no number of replicas can serve is planned as if it could at 95 %; bounds that cannot be met yield (`loosened.py`), and
the reason says so; components of one list of `leeward.apart` share no node; among (nearly) equal deployments the one
that finds warm tasks in place is taken.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from leeward.core.learnt import RestartCost, restart_cost
from leeward.core.model import ClusterView, Component, Measured
from leeward.core.model import Node as ViewNode
from leeward.core.placing import (
    Deployment,
    carry,
    must_leave,
    places,
    present_deployment,
    stops_work,
    tasks_by_node,
    unbalanced,
)
from leeward.core.plan import Estimate, Plan, deployment, diff
from leeward.core.table import replicas
from leeward.policies.edrp.candidates import candidates
from leeward.policies.edrp.leaving import off_draining
from leeward.policies.edrp.loosened import cheapest, loosened
from leeward.policies.edrp.methods import solve
from leeward.policies.edrp.problem.downtime import Live, Storm, downtime_of
from leeward.policies.edrp.problem.evaluate import Metrics, assess, evaluate, verify
from leeward.policies.edrp.problem.latency import MG1, MM1, ResponseCurve
from leeward.policies.edrp.problem.nearby import Nearby
from leeward.policies.edrp.problem.outcome import Feasible, Optimal, Outcome, found_in_words
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Bounds, DowntimeModel, LiveDowntime, Node, Operator, Stream, Weights
from leeward.policies.edrp.settings import EdrpSettings

#: Utilisation at which an overloaded operator is planned.
SATURATED = 0.95
#: Rates are never raised by more than this factor.
RAISE_MAX = 3.0
#: How much of the objective may be given up for a replica that needs no executor moved: appendix A.2 does not know that
#: a warm task restarts no worker, and in the first plan by restart changes have no price.
WARM_WORTH = 0.005
#: A learnt curve of fewer samples is not used.
LEAST_SAMPLES = 5.0
#: Objectives that differ by less are equal.
SAME = 1e-6

Solve = Callable[..., Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    deployment: Deployment
    metrics: Metrics
    seconds: float
    remarks: tuple[str, ...]
    problem: Problem  #: with the bounds that it keeps, which may be wider than those of the settings


class Edrp:
    """See the module."""

    Settings = EdrpSettings

    def __init__(self, settings: EdrpSettings, *, solver: Solve = solve) -> None:
        self._settings, self._solve = settings, solver

    def decide(self, view: ClusterView, *, now: float, rng: random.Random) -> Plan:
        """The best deployment, or the present one if nothing else can be had. Raises FieldError for bad facts."""
        if not any(c.source and view.measured.get(c.id, Measured()).arrival_rate > 0 for c in view.components):
            return _without_load(view)
        stranded = [one.id for one in view.components if not any(_hosts(node, one) for node in view.nodes)]
        if stranded:
            return _keep(view, f"every node that may host {', '.join(stranded)} drains or is away")
        chosen = candidates(view)
        every, view = view, replace(view, nodes=chosen.nodes)
        problem, remarks = build_problem(view, self._settings)
        if not chosen.complete:
            remarks = (*remarks, f"{len(chosen.nodes)} of {len(every.nodes)} nodes were looked at")
        plan = self._plan(view, problem, remarks)
        if not _is_too_cheap(view, problem, plan):
            return plan
        if _brought(view, deployment(plan.tables, plan.placement)):
            assert problem.live is not None  # _is_too_cheap looked
            live = replace(problem.live, tasks=tasks_by_node(view))
            plan = self._plan(view, replace(problem, live=live), remarks)
        if view.first and _is_too_cheap(view, problem, plan):  # the first plan takes warm tasks apart if that is wanted
            reason = f"{plan.reason}, but workers restart"
            return replace(plan, reason=reason, estimate=replace(plan.estimate, restart=True))
        return plan

    def _plan(self, view: ClusterView, problem: Problem, remarks: tuple[str, ...]) -> Plan:
        present = problem.current
        result = self._search(problem, remarks, seed=self._settings.seed)
        if result is None:
            apart = ("components of leeward.apart find no nodes of their own, perhaps",) if view.apart else ()
            return _keep(view, "; ".join((*remarks, "no deployment found: the present one stays", *apart)))
        problem = result.problem
        wanted = settle_on_warm(view, problem, result.deployment)
        metrics = result.metrics if wanted == result.deployment else evaluate(problem, wanted)
        now_F, now_C = (metrics.F, metrics.C) if wanted == present else _now(problem, present)
        hot = unbalanced(view, self._settings.rebalance_over) if view.live else {}
        least = self._settings.tie if hot else SAME
        if present is not None and wanted != present and now_F <= metrics.F + least and not verify(problem, present):
            wanted, metrics = present, evaluate(problem, present)  # optima tie: the one that is there costs nothing
        estimate = Estimate(
            objective=metrics.F,
            objective_now=now_F,
            relieves=bool(hot) and wanted == present,  # F takes load for even, so it cannot price what is gained
            response_s=metrics.R,
            cost_per_h=metrics.C,
            cost_now_per_h=now_C,
            downtime_s=metrics.T_D,
            restart=needs_restart(problem, wanted),
            solve_s=result.seconds,
        )
        uneven = [f"a replica of {name} has {1 + share:.1f} times the mean load" for name, share in hot.items()]
        remarks = (*_price(view, problem, wanted, metrics), *uneven, *result.remarks)
        reason = _reason(view, present, wanted, remarks)
        return carry(view, wanted, reason=reason, estimate=estimate, rebalance=hot)

    def _search(self, problem: Problem, remarks: tuple[str, ...], *, seed: int) -> _Result | None:
        """Try the method of the settings, then with bounds that can be met, then so with the whole problem."""
        method = self._settings.method
        whole = "auto" if method == "restricted" else method
        first = method if problem.current is not None else whole
        attempts: list[tuple[str, bool, tuple[str, ...]]] = [(first, False, ()), (first, True, ())]
        if first != whole:
            attempts.append((whole, True, ("solved whole, as no neighbour of the present one will do",)))
        seconds = 0.0
        for method, looser, more in attempts:
            instance = problem
            if looser:
                least = self._ask(cheapest(problem), method, seed)
                seconds += least.effort.seconds
                if not isinstance(least, Optimal | Feasible):
                    continue
                instance, why = loosened(problem, least.metrics.C)
                more = (why, *more)
            outcome = self._ask(instance, method, seed)
            seconds += outcome.effort.seconds
            if isinstance(outcome, Optimal | Feasible):
                by = found_in_words(outcome)
                return _Result(
                    deployment=outcome.deployment, metrics=outcome.metrics, seconds=seconds,
                    remarks=(*remarks, *more, *((by,) if by else ())), problem=instance,
                )  # fmt: skip
        return None

    def _ask(self, problem: Problem, method: str, seed: int) -> Outcome:
        """Without reasons if there is no answer: the next attempt is the answer to "why not", and the clock runs."""
        settings = self._settings
        return self._solve(
            problem, method=method, time_limit_s=settings.solve_limit_s, seed=seed, gap=settings.gap, reasons=False,
            exact_limit_s=settings.exact_limit_s,
        )  # fmt: skip


def _without_load(view: ClusterView) -> Plan:
    unknown = "no source emits: nothing is known of the load"
    if not must_leave(view):
        return _keep(view, unknown)
    wanted = off_draining(view, _hosts)
    if wanted is None:
        return _keep(view, f"{unknown}, and replicas on nodes that drain find no other nodes")
    return carry(view, wanted, reason=f"{unknown}, and replicas leave nodes that drain")


def _now(problem: Problem, present: Deployment | None) -> tuple[float, float | None]:
    """F and C of the deployment in force; F is inf without one, or if it breaks a constraint, which no F justifies."""
    metrics, violations = assess(problem, present) if present is not None else (None, ())
    if metrics is None:
        return math.inf, None
    return (math.inf if violations else metrics.F), metrics.C


def _keep(view: ClusterView, reason: str) -> Plan:
    return Plan(tables=view.tables, placement=view.assignment, reason=reason)


def build_problem(view: ClusterView, settings: EdrpSettings) -> tuple[Problem, tuple[str, ...]]:
    """The EDRP problem of this view, and remarks on what was assumed for it. Pure."""
    factor = _raise_factor(view, settings)
    streams = tuple(
        Stream(source=source, target=target, rate=factor * view.stream_rate.get((source, target), 0.0))
        for source, target in view.streams
    )
    remarks: list[str] = []
    operators = tuple(_operator(view, component, streams, factor, settings, remarks) for component in view.components)
    weights = Weights(r=settings.w_r, c=settings.w_c, d=settings.w_d)
    model, restart = downtime_model(view, settings), restart_price(view, settings)
    rest = settings.w_r + settings.w_c
    if view.first and model != "live" and rest:
        weights = Weights(r=settings.w_r / rest, c=settings.w_c / rest, d=0.0)
    problem = Problem(
        name=view.topology,
        nodes=tuple(_node(node, restart.each_s) for node in view.nodes),
        delay_s=_delays(view, settings),
        link_cost=settings.link_cost,
        operators=operators,
        streams=streams,
        apart=view.apart,
        weights=weights,
        bounds=Bounds(r=settings.r_max_s, c=settings.c_max, d=settings.t_d_max_s),
        current=present_deployment(view),
        sync_s=restart.constant_s,
        downtime_model=model,
        live=_live(view) if model == "live" else None,
    )
    return problem, tuple(remarks)


def downtime_model(view: ClusterView, settings: EdrpSettings) -> DowntimeModel:
    """The strategy for T_D: the one of the settings; with "auto", the one that fits how plans are carried out."""
    if settings.downtime_model != "auto":
        return cast(DowntimeModel, settings.downtime_model)  # one of its choices
    return "live" if view.live else "storm"


def restart_price(view: ClusterView, settings: EdrpSettings) -> RestartCost:
    """t_syn and t_s: those of the settings; with "auto", drawn to what restarts took."""
    prior = RestartCost(settings.t_syn_s, settings.t_spawn_s)
    return restart_cost(view.restarts, prior) if settings.downtime_model == "auto" else prior


def _live(view: ClusterView) -> LiveDowntime:
    cost = view.handover_cost
    tasks = places(view) if view.live else tasks_by_node(view)
    return LiveDowntime(constant_s=cost.constant_s, per_byte_s=cost.per_byte_s, tasks=tasks)


def _brought(view: ClusterView, wanted: Deployment) -> tuple[str, ...]:
    """Component and node of replicas for which no task is there, in words."""
    here = tasks_by_node(view)
    return tuple(
        f"{name} on {node}"
        for name, counts in sorted(wanted.items())
        for node, count in sorted(counts.items())
        if count > here[name].get(node, 0)
    )


def _is_too_cheap(view: ClusterView, problem: Problem, plan: Plan) -> bool:
    """Priced as a handover, it would restart workers: it counts on one warm task in two places, or takes some apart."""
    return problem.live is not None and not plan.estimate.restart and stops_work(view, plan.placement)


def needs_restart(problem: Problem, wanted: Deployment) -> bool:
    """The downtime model prices the change as a restart of all."""
    if problem.current is None or wanted == problem.current:
        return False
    strategy = downtime_of(problem)
    if isinstance(strategy, Live):
        return any(strategy.restarts(op, wanted[op.id]) for op in problem.operators)
    return isinstance(strategy, Storm)


def _price(view: ClusterView, problem: Problem, wanted: Deployment, metrics: Metrics) -> tuple[str, ...]:
    if problem.current is None or wanted == problem.current:
        return ()
    kind = "restart" if needs_restart(problem, wanted) else "handover" if problem.live else "pause"
    brought = _brought(view, wanted) if kind == "handover" else ()
    first = (f"warm tasks are brought first: {', '.join(brought)}",) if brought else ()
    return (f"priced as a {kind} of {metrics.T_D:.3g} s", *first)


def _raise_factor(view: ClusterView, settings: EdrpSettings) -> float:
    """Head-room, and what it takes to work off the backlog in `drain_s`; the same for all rates of the application."""
    factor = 1.0 + settings.headroom
    for component in view.components:
        measured = view.measured.get(component.id)
        if component.source and measured and measured.arrival_rate > 0:
            factor = max(factor, 1.0 + settings.headroom + measured.queued / settings.drain_s / measured.arrival_rate)
    return min(factor, RAISE_MAX)


def _operator(
    view: ClusterView,
    component: Component,
    streams: tuple[Stream, ...],
    factor: float,
    settings: EdrpSettings,
    remarks: list[str],
) -> Operator:
    measured = view.measured.get(component.id, Measured())
    emitted = factor * measured.arrival_rate if component.source else 0.0
    load = emitted + sum(stream.rate for stream in streams if stream.target == component.id)
    mu = measured.service_rate or settings.default_rate
    most = component.max_replicas * mu * SATURATED
    if load > most:
        if not component.source:
            remarks.append(
                f"{component.id} is overloaded: {load:.0f}/s for {component.max_replicas} replicas of {mu:.0f}/s"
            )
        mu = load / (component.max_replicas * SATURATED)
    return Operator(
        id=component.id,
        k=component.max_replicas,
        curve=_curve(view, component, measured, mu, settings),
        cost=view.replica_cost,
        res=1.0,
        state_bytes=float(measured.state_bytes) if component.stateful or component.source else 0.0,
        source_rate=emitted,
        allowed=_usable(view, component) or component.pinned or None,
    )


def _usable(view: ClusterView, component: Component) -> tuple[str, ...]:
    """Nodes that may host it and do not drain."""
    return tuple(node.id for node in view.nodes if _hosts(node, component))


def _hosts(node: ViewNode, component: Component) -> bool:
    return not node.draining and node.capacity > 0 and (not component.pinned or node.id in component.pinned)


def _curve(
    view: ClusterView, component: Component, measured: Measured, mu: float, settings: EdrpSettings
) -> ResponseCurve:
    """The learnt curve if it is sure enough at the rate of a replica now, else M/M/1; both with service rate `mu`."""
    learnt = measured.curve
    if settings.curve != "learnt" or learnt is None or learnt.samples < LEAST_SAMPLES:
        return MM1(mu=mu)
    rate = measured.arrival_rate / len(replicas(view.tables[component.id]))
    if not learnt.error(rate) <= settings.curve_error:
        return MM1(mu=mu)
    return MG1(mu=mu, rest=learnt.rest, growth=learnt.growth)


def _node(node: ViewNode, spawn_s: float) -> Node:
    try:
        speedup = float(node.meta.get("speedup", 1.0))
    except ValueError:
        speedup = 1.0
    found = Node(id=node.id, res=float(node.capacity), speedup=max(speedup, 1e-3), spawn_s=spawn_s)
    store = node.store
    way_s = None if store.trip_s is None else store.trip_s / 2
    known = {
        "store_up_s": way_s, "store_down_s": way_s, "store_up_rate": store.up_rate, "store_down_rate": store.down_rate,
    }  # fmt: skip
    measured: dict[str, Any] = {name: value for name, value in known.items() if value is not None}
    return replace(found, **measured)


def _delays(view: ClusterView, settings: EdrpSettings) -> tuple[tuple[float, ...], ...]:
    names = [node.id for node in view.nodes]
    return tuple(
        tuple(0.0 if u == v else view.delay_s.get((u, v), settings.link_delay_s) for v in names) for u in names
    )


def settle_on_warm(view: ClusterView, problem: Problem, wanted: Deployment) -> Deployment:
    """A deployment about as good that needs fewer executors moved: new replicas go where warm tasks are.

    Greedy over components and nodes by name; F rises by at most WARM_WORTH in all; no constraint that `wanted` keeps
    is broken.
    """
    here = tasks_by_node(view)
    best = {name: dict(counts) for name, counts in wanted.items()}
    if not _brought(view, best):
        return best
    metrics, broken = assess(problem, best)
    assert metrics is not None  # a solver's deployment is well-formed
    nearby, most = Nearby(problem, best), metrics.F + WARM_WORTH
    for name in sorted(best):
        for node in sorted(best[name]):
            while best[name].get(node, 0) > here[name].get(node, 0):
                better = _swap(nearby, name, node, here[name], most, len(broken))
                if better is None:
                    break
                nearby.move(name, better)
                best[name] = better
    return best


def _swap(
    nearby: Nearby, name: str, node: str, here: Mapping[str, int], most: float, broken: int
) -> dict[str, int] | None:
    """Where the operator has a replica less on this node, and one where a warm task is; None if that costs too much."""
    placed = nearby.deployment[name]
    for other in sorted(here):
        if here[other] <= placed.get(other, 0) or other not in nearby.problem.node_index:
            continue
        counts = dict(placed)
        counts[node] -= 1
        if not counts[node]:
            del counts[node]
        counts[other] = counts.get(other, 0) + 1
        metrics, violations = nearby.assess(name, counts)
        if metrics is None or violations > broken:
            continue
        value = metrics.F
        if value <= most:
            return counts
    return None


def _reason(view: ClusterView, present: Deployment | None, wanted: Deployment, remarks: tuple[str, ...]) -> str:
    if present is None:
        changes = ["a replica has no place"]
    else:
        after = {name: dict(sorted(counts.items())) for name, counts in wanted.items()}
        changes = [
            f"{c.component} {c.kind} {sum(c.before.values())} -> {sum(c.after.values())}" for c in diff(present, after)
        ]
    rates = [
        f"{component.id} {view.measured[component.id].arrival_rate:.0f}/s"
        for component in view.components
        if component.source and component.id in view.measured
    ]
    return "; ".join([", ".join(changes) or "the present deployment is best", *rates, *remarks])
