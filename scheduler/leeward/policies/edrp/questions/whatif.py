"""Questions "what if": the problem with one thing changed, solved anew.

A bound of the problem also normalises the objective (12).  A question about another bound must not change what
F means, so the weights are rescaled with the bounds: F of the changed problem times `scale` is F of the first.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from leeward.core.fields import FieldError
from leeward.policies.edrp.methods import solve
from leeward.policies.edrp.problem.evaluate import Metrics, evaluate
from leeward.policies.edrp.problem.latency import Table
from leeward.policies.edrp.problem.outcome import Infeasible, Optimal, Unknown
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Bounds, Deployment, Operator, Weights
from leeward.policies.edrp.questions.facts import units_used

Status = Literal["optimal", "feasible", "infeasible", "unknown", "not asked", "evaluated"]

#: Differences of F below this are the solvers' tolerance, not a gain.
NOTHING = 1e-6
#: A question gets this part of what is left of the time, so that one hard question does not eat the others.
SHARE = 0.1
#: A group of nodes gets this many times the seconds of the first solve (and at least one second) before its
#: members are asked about one by one: the more capacity, the weaker the bounds of a search.
PATIENCE = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to one question; F is that of the problem as it was stated, after any change."""

    #: "evaluated": computed without solving; "not asked": no time was left, or the data say nothing about it.
    status: Status
    deployment: Deployment | None = None
    metrics: Metrics | None = None
    #: Proven lower bound on F, if there is one.
    bound: float | None = None

    def gain(self, base: Metrics) -> float | None:
        """By how much F falls below that of `base`; negative where the change costs; None without a deployment."""
        return None if self.metrics is None else base.F - self.metrics.F


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A changed problem."""

    problem: Problem
    #: F of the problem as stated is this times F of the variant.
    scale: float = 1.0
    #: Node of the variant -> node of the problem as stated, where they differ.
    alias: Mapping[str, str] = field(default_factory=dict)
    #: An operator that only the variant has.
    added: str | None = None

    def restore(self, deployment: Deployment) -> Deployment:
        """The deployment in the words of the problem as stated."""
        return {
            name: {self.alias.get(node, node): count for node, count in placed.items()}
            for name, placed in deployment.items()
            if name != self.added
        }


@dataclass(kw_only=True)
class Inquiry:
    """Asks questions about one problem until the deadline."""

    problem: Problem
    method: str
    seed: int = 0
    deadline: float = math.inf
    clock: Callable[[], float] = time.monotonic
    #: Told each question before it is solved.
    notify: Callable[[str], None] = lambda question: None

    def ask(self, question: str, variant: Variant | None, *, patience_s: float = math.inf) -> Answer:
        """Solves the variant within `patience_s`; None stands for one that cannot even be stated."""
        if variant is None:
            return Answer(status="infeasible")
        left = self.deadline - self.clock()
        if left <= 0:
            return Answer(status="not asked")
        self.notify(question)
        seconds = min(patience_s, max(0.05, left * SHARE))
        limit = None if math.isinf(seconds) else seconds
        outcome = solve(variant.problem, method=self.method, time_limit_s=limit, seed=self.seed)
        if isinstance(outcome, Infeasible):
            return Answer(status="infeasible")
        bound = None if outcome.bound is None else outcome.bound * variant.scale
        if isinstance(outcome, Unknown):
            return Answer(status="unknown", bound=bound)
        deployment = variant.restore(outcome.deployment)
        return Answer(
            status="optimal" if isinstance(outcome, Optimal) else "feasible",
            deployment=deployment,
            metrics=evaluate(self.problem, deployment),
            bound=bound,
        )


# --- changed bounds -------------------------------------------------------------------------------------------


def with_bounds(problem: Problem, bounds: Bounds) -> Variant:
    """Other R_max, C_max, T_D,max under the same objective."""
    scaled = {key: getattr(problem.weights, key) * getattr(bounds, key) / getattr(problem.bounds, key) for key in "rcd"}
    total = math.fsum(scaled.values())
    weights = Weights(**{key: weight / total for key, weight in scaled.items()})
    return Variant(problem=replace(problem, bounds=bounds, weights=weights), scale=total)


def without_bound(problem: Problem, key: str, best: float) -> Variant:
    """The problem without one bound, for all that is better than F = `best`.

    A deployment that is better has w X / X_max < F, so X = F X_max / w is as good as no bound.
    """
    weight, limit = getattr(problem.weights, key), getattr(problem.bounds, key)
    enough = limit * max(1.0, best / weight) if weight > 0 else limit * 1e6
    return with_bounds(problem, replace(problem.bounds, **{key: enough}))


# --- changed operators ----------------------------------------------------------------------------------------


def _with_operator(problem: Problem, changed: Operator) -> Variant | None:
    operators = tuple(changed if op.id == changed.id else op for op in problem.operators)
    try:
        return Variant(problem=replace(problem, operators=operators))
    except FieldError:
        return None  # not even one replica of each fits


def at_most(problem: Problem, operator: Operator, replicas: int) -> Variant | None:
    """At most so many replicas of one operator."""
    return None if replicas < 1 else _with_operator(problem, replace(operator, k=replicas))


def at_least(problem: Problem, operator: Operator, replicas: int) -> Variant | None:
    """At least so many replicas: fewer count as too slow."""
    if replicas > operator.k:
        return None
    load = problem.load_tps[problem.operator_index[operator.id]]
    values = [
        math.inf if count < replicas else operator.curve.response_s(load, count) for count in range(1, operator.k + 1)
    ]
    return _with_operator(problem, replace(operator, curve=Table(values_s=tuple(values))))


def leaving(problem: Problem, operator: Operator, node: str) -> Variant | None:
    """No replica of one operator on one node."""
    candidates = problem.candidates[problem.operator_index[operator.id]]
    others = tuple(problem.nodes[u].id for u in candidates if problem.nodes[u].id != node)
    return _with_operator(problem, replace(operator, allowed=others)) if others else None


def thinning(problem: Problem, operator: Operator, node: str, most: int) -> Variant | None:
    """At most `most` replicas (>= 1) of one operator on one node; None if not so many fit there.

    They get a twin of the node to themselves, without delay or cost between the two, and with just the room for
    `most` replicas, which the node gives up.  Deployments with fewer are only in it as far as that room is spare.
    """
    if problem.rivals[problem.operator_index[operator.id]]:
        return None  # a rival would have to keep away from both nodes, which no list of operators says
    twin = _unused(node, problem.node_index)
    at = problem.node_index[node]
    room = most * operator.res
    if room > problem.nodes[at].res:
        return None
    ids = tuple(n.id for n in problem.nodes)
    link = [[problem.link_cost_between(u, v) for v in range(len(ids))] for u in range(len(ids))]
    nodes = tuple(replace(n, res=n.res - room) if n.id == node else n for n in problem.nodes)
    operators = []
    for op in problem.operators:
        allowed = op.allowed or ids
        own = op.id == operator.id
        operators.append(replace(op, allowed=tuple(twin if own and n == node else n for n in allowed)))
    current = {name: dict(placed) for name, placed in (problem.current or {}).items()}
    if node in current.get(operator.id, {}):
        current[operator.id] = {twin if n == node else n: count for n, count in current[operator.id].items()}
    live = problem.live
    if live is not None and live.tasks is not None:
        running = {twin if n == node else n: count for n, count in live.tasks.get(operator.id, {}).items()}
        live = replace(live, tasks={**live.tasks, operator.id: running})
    added = _keep_code(problem, operators, current, node, twin)
    try:
        varied = replace(
            problem,
            nodes=(*nodes, replace(problem.nodes[at], id=twin, res=room)),
            delay_s=_with_twin(problem.delay_s, at),
            link_cost=_with_twin(link, at) if problem.link_cost != 0.0 else 0.0,
            operators=tuple(operators),
            current=current or None,
            live=live,
        )
    except FieldError:
        return None
    return Variant(problem=varied, alias={twin: node}, added=added)


def _keep_code(
    problem: Problem, operators: list[Operator], current: dict[str, dict[str, int]], node: str, twin: str
) -> str | None:
    """Adds an operator that needs nothing, where only one of node and twin hosts something at present.

    Where a change restarts all, a node that hosts anything holds the code.  It holds it for its twin, too.
    """
    hosting = {name for placed in current.values() for name in placed}
    missing = {node, twin} - hosting
    if problem.downtime_model == "generic" or len(missing) != 1:
        return None
    name, place = _unused("code", problem.operator_index), missing.pop()
    operators.append(
        Operator(
            id=name, k=1, curve=Table(values_s=(0.0,)), cost=0.0, res=0.0, code_bytes=0.0, source_rate=1.0,
            allowed=(place,),
        )
    )  # fmt: skip
    current[name] = {place: 1}
    return name


def _unused(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "'"
    return name


def _with_twin(rows: Sequence[Sequence[float]], at: int) -> tuple[tuple[float, ...], ...]:
    """A matrix between nodes with one more that is where node `at` is."""
    wider = [(*row, row[at]) for row in rows]
    return (*wider, (*rows[at], 0.0))


def one_more_allowed(problem: Problem, operator: Operator) -> Variant | None:
    """k_i greater by one; None where the curve says nothing about so many replicas."""
    if isinstance(operator.curve, Table) and len(operator.curve.values_s) <= operator.k:
        return None
    return _with_operator(problem, replace(operator, k=operator.k + 1))


def anywhere(problem: Problem, operator: Operator) -> Variant | None:
    """No limit on the nodes that may host one operator."""
    return _with_operator(problem, replace(operator, allowed=None))


# --- changed nodes --------------------------------------------------------------------------------------------


def with_more(problem: Problem, nodes: Iterable[str], units: float = 1.0) -> Variant:
    """More capacity on each of some nodes."""
    larger = set(nodes)
    changed = tuple(replace(node, res=node.res + units) if node.id in larger else node for node in problem.nodes)
    return Variant(problem=replace(problem, nodes=changed))


def unit_gains(inquiry: Inquiry, base: Metrics, used: Mapping[str, float], seconds: float) -> dict[str, Answer]:
    """For every node the optimum with one more unit on it, greatest gains first.

    Nodes are asked about in groups.  A node that a group cannot use together, no member can use alone; and an
    optimum of a group that exceeds the capacity of one node alone is that node's optimum.  `used` is how full
    the nodes are (the fullest come first) and `seconds` what the first solve took.
    """
    same = Answer(status="optimal", metrics=base, bound=base.F)
    patience_s = max(1.0, PATIENCE * seconds)
    eager = sorted(_could_use_more(inquiry.problem), key=lambda node: -used[node])
    groups = [(tuple(eager), 0.0)]
    answers: dict[str, Answer] = {}
    while groups:
        group, bound = groups.pop()
        if not group:
            continue
        alone = len(group) == 1
        question = f"one more unit on {group[0] if alone else f'each of {len(group)} nodes'}"
        variant = with_more(inquiry.problem, group)
        answer = inquiry.ask(question, variant, patience_s=math.inf if alone else patience_s)
        settled, parts = _settle(inquiry.problem, base, group, answer)
        for node, found in settled.items():
            answers[node] = replace(found, bound=max(bound, found.bound or 0.0))
        groups += [(part, max(bound, answer.bound or 0.0)) for part in parts]
    idle = {node.id: same for node in inquiry.problem.nodes if node.id not in answers}
    return dict(sorted((answers | idle).items(), key=lambda item: -(item[1].gain(base) or -1.0)))


def _could_use_more(problem: Problem) -> Iterator[str]:
    """Nodes too small for all replicas that may go there."""
    for position, node in enumerate(problem.nodes):
        most = math.fsum(
            op.k * op.res for op, own in zip(problem.operators, problem.candidates, strict=True) if position in own
        )
        if most > node.res:
            yield node.id


def _settle(
    problem: Problem, base: Metrics, group: tuple[str, ...], answer: Answer
) -> tuple[dict[str, Answer], list[tuple[str, ...]]]:
    """Answers for members that follow from a group's answer, and the groups still to ask about."""
    if len(group) <= 1 or answer.status == "not asked":
        return dict.fromkeys(group, answer), []
    if answer.status == "optimal" and (answer.gain(base) or 0.0) <= NOTHING:
        return dict.fromkeys(group, Answer(status="optimal", metrics=base, bound=base.F)), []
    if answer.status == "optimal" and answer.deployment is not None:
        used = units_used(problem, answer.deployment)
        room = {node.id: node.res for node in problem.nodes}
        over = [node for node in group if used[node] > room[node] + 1e-9 * max(1.0, room[node])]
        if not over:  # it fits as things are, so the first deployment was not the best
            return dict.fromkeys(group, answer), []
        if len(over) == 1:
            return {over[0]: answer}, [tuple(node for node in group if node != over[0])]
        return {}, [tuple(node for node in group if node not in over[1:]), tuple(over[1:])]
    return {}, [(node,) for node in reversed(group)]
