"""Why this deployment: its parts, the limits that bind, and the cost of alternatives.

Every figure about another deployment comes from solving again with one thing changed (`whatif.py`), or, where
that is said, from changing one operator while the others stay as they are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, cast

from leeward.policies.edrp.methods import solve
from leeward.policies.edrp.problem.configurations import neighbours
from leeward.policies.edrp.problem.evaluate import TOLERANCE, Metrics, evaluate, verify
from leeward.policies.edrp.problem.outcome import Feasible, Infeasible, Optimal, Outcome, Unknown
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Deployment, Operator
from leeward.policies.edrp.questions.facts import Facts, facts_of
from leeward.policies.edrp.questions.whatif import (
    NOTHING,
    Answer,
    Inquiry,
    anywhere,
    at_least,
    at_most,
    leaving,
    one_more_allowed,
    thinning,
    unit_gains,
    with_bounds,
    without_bound,
)

#: The part of the time limit that the deployment itself may take.
FIRST_SHARE = 0.5
#: A relaxed bound is asked about in these steps: one millisecond, one $/h, one second.
STEPS = {"r": 0.001, "c": 1.0, "d": 1.0}

ChangeKind = Literal["fewer", "more", "leave", "thin", "move"]
LimitKind = Literal["response", "cost", "downtime", "replicas", "nodes", "capacity"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """The best deployment in which one operator differs in one way.

    `fewer`, `more`: replicas than now; `leave`: none on `node`; `thin`: fewer on `node` than now; `move`: one
    replica on another node.  With `others` "solved anew" all other operators are optimised again, with "fixed" they
    stay as they are.
    """

    operator: str
    change: ChangeKind
    node: str | None
    others: Literal["solved anew", "fixed"]
    answer: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """One constraint with what it leaves over, and what less of it would gain."""

    kind: LimitKind
    #: The operator or node; for a bound its name in the paper.
    where: str
    used: float
    limit: float
    #: In words, what `relaxed` was granted.
    step: str
    relaxed: Answer
    #: For a bound: the optimum without it.
    without: Answer | None = None

    @property
    def slack(self) -> float:
        return self.limit - self.used

    @property
    def tight(self) -> bool:
        """Nothing is left over."""
        return self.slack <= TOLERANCE * max(1.0, abs(self.limit))

    def binds(self, base: Metrics) -> bool | None:
        """Whether something better becomes possible without it (bounds) or with a step more; None if unknown."""
        decisive = self.without or self.relaxed
        gain = decisive.gain(base)
        if gain is not None and gain > NOTHING:
            return True
        return False if decisive.status in ("optimal", "infeasible") else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A solved problem with everything that was asked about it."""

    problem: Problem
    outcome: Optimal | Feasible
    facts: Facts
    limits: tuple[Limit, ...]
    alternatives: tuple[Alternative, ...]
    #: Seconds for everything, the deployment included.
    seconds: float


def explain(
    problem: Problem,
    *,
    method: str = "auto",
    time_limit_s: float | None = None,
    seed: int = 0,
    notify: Callable[[str], None] = lambda question: None,
    clock: Callable[[], float] = time.monotonic,
) -> Explanation | Infeasible | Unknown:
    """Solves `problem` and asks about it until `time_limit_s` is over; questions left out are marked.

    `notify` is told each question before it is solved.  Raises `FieldError` for a method that does not apply.
    """
    started = clock()
    notify("the deployment")
    first_limit = None if time_limit_s is None else time_limit_s * FIRST_SHARE
    outcome: Outcome = solve(problem, method=method, time_limit_s=first_limit, seed=seed)
    if isinstance(outcome, Infeasible | Unknown):
        return outcome
    deadline = math.inf if time_limit_s is None else started + time_limit_s
    inquiry = Inquiry(problem=problem, method=method, seed=seed, deadline=deadline, clock=clock, notify=notify)
    facts = facts_of(problem, outcome.deployment)
    bounds = tuple(_bound_limits(inquiry, outcome.metrics))
    alternatives = tuple(_alternatives(inquiry, outcome.deployment))
    limits = (
        *bounds,
        *_operator_limits(inquiry, outcome.deployment),
        *_capacity_limits(inquiry, outcome, facts),
    )
    return Explanation(
        problem=problem,
        outcome=outcome,
        facts=facts,
        limits=limits,
        alternatives=alternatives,
        seconds=clock() - started,
    )


def _alternatives(inquiry: Inquiry, deployment: Deployment) -> Iterator[Alternative]:
    problem = inquiry.problem
    for operator in problem.operators:
        placed = deployment[operator.id]
        size = sum(placed.values())
        asked = [
            ("fewer", None, at_most(problem, operator, size - 1), size > 1),
            ("more", None, at_least(problem, operator, size + 1), size < operator.k),
            *(("leave", node, leaving(problem, operator, node), True) for node in placed),
        ]
        answers: dict[tuple[str, str | None], Answer] = {}
        for change, node, variant, possible in asked:
            if possible:
                answers[change, node] = inquiry.ask(f"{operator.id}: {change} {node or 'replicas'}", variant)
        for node, count in placed.items():
            if count > 1:
                answers["thin", node] = _thinned(inquiry, operator, node, count, answers["leave", node])
        for (change, node), answer in answers.items():
            kind = cast(ChangeKind, change)
            yield Alternative(operator=operator.id, change=kind, node=node, others="solved anew", answer=answer)
        yield from _neighbours(inquiry, operator, deployment)


def _thinned(inquiry: Inquiry, operator: Operator, node: str, count: int, without: Answer) -> Answer:
    """The best with fewer than `count` replicas on the node; `without` is the best with none."""
    answers = [without]
    for most in range(1, count):
        question = f"{operator.id}: at most {most} on {node}"
        answers.append(inquiry.ask(question, thinning(inquiry.problem, operator, node, most)))
    found = [answer for answer in answers if answer.metrics is not None]
    unclear = [answer for answer in answers if answer.status not in ("optimal", "infeasible")]
    if not found:
        return unclear[0] if unclear else without
    best = min(found, key=lambda answer: answer.metrics.F if answer.metrics else math.inf)
    return replace(best, status="feasible", bound=None) if unclear else best


def _neighbours(inquiry: Inquiry, operator: Operator, deployment: Deployment) -> Iterator[Alternative]:
    """The best with one replica removed, added or moved while the other operators stay."""
    problem = inquiry.problem
    placed = deployment[operator.id]
    here = [problem.node_index[node] for node, count in placed.items() for _ in range(count)]
    best: dict[str, Answer] = {}
    for multiset in neighbours(tuple(here), problem.candidates[problem.operator_index[operator.id]], operator.k):
        if sorted(multiset) == sorted(here):
            continue
        change = "move" if len(multiset) == len(here) else "fewer" if len(multiset) < len(here) else "more"
        known = best.setdefault(change, Answer(status="infeasible"))
        ids = [problem.nodes[u].id for u in multiset]
        other = {**deployment, operator.id: {node: ids.count(node) for node in dict.fromkeys(ids)}}
        metrics = evaluate(problem, other)
        if (known.metrics is None or metrics.F < known.metrics.F) and not verify(problem, other):
            best[change] = Answer(status="evaluated", deployment=other, metrics=metrics)
    for change in ("fewer", "more", "move"):
        if change in best:
            yield Alternative(
                operator=operator.id, change=cast(ChangeKind, change), node=None, others="fixed", answer=best[change]
            )  # fmt: skip


def _bound_limits(inquiry: Inquiry, base: Metrics) -> Iterator[Limit]:
    """R_max, C_max and, where something is running, T_D,max."""
    problem = inquiry.problem
    rows = [("response", "R_max", "r", base.R, "1 ms more"), ("cost", "C_max", "c", base.C, "1 $/h more")]
    if problem.current is not None:
        rows.append(("downtime", "T_D,max", "d", base.T_D, "1 s more"))
    for kind, name, key, used, step in rows:
        limit = getattr(problem.bounds, key)
        without = inquiry.ask(f"no {name}", without_bound(problem, key, base.F))
        relaxed = without
        if without.status != "optimal" or (without.gain(base) or 0.0) > NOTHING:
            more = replace(problem.bounds, **{key: limit + STEPS[key]})
            relaxed = inquiry.ask(f"{name}: {step}", with_bounds(problem, more))
        of = cast(LimitKind, kind)
        yield Limit(kind=of, where=name, used=used, limit=limit, step=step, relaxed=relaxed, without=without)


def _operator_limits(inquiry: Inquiry, deployment: Deployment) -> Iterator[Limit]:
    """k_i where it is used up, and the candidate nodes where they are not all nodes."""
    problem = inquiry.problem
    for operator in problem.operators:
        size = sum(deployment[operator.id].values())
        if size == operator.k:
            variant = one_more_allowed(problem, operator)
            answer = inquiry.ask(f"k of {operator.id}: 1 more", variant) if variant else Answer(status="not asked")
            yield Limit(
                kind="replicas", where=operator.id, used=size, limit=operator.k, step="1 replica more", relaxed=answer
            )  # fmt: skip
    for operator, candidates in zip(problem.operators, problem.candidates, strict=True):
        if len(candidates) < len(problem.nodes):
            answer = inquiry.ask(f"{operator.id} on any node", anywhere(problem, operator))
            used, limit = len(deployment[operator.id]), len(candidates)
            yield Limit(kind="nodes", where=operator.id, used=used, limit=limit, step="any node", relaxed=answer)


def _capacity_limits(inquiry: Inquiry, chosen: Optimal | Feasible, facts: Facts) -> Iterator[Limit]:
    """Every node: (18), greatest gains first."""
    gains = unit_gains(inquiry, chosen.metrics, facts.used, chosen.effort.seconds)
    room = {node.id: node.res for node in inquiry.problem.nodes}
    for node, answer in gains.items():
        yield Limit(
            kind="capacity", where=node, used=facts.used[node], limit=room[node], step="1 unit more", relaxed=answer
        )  # fmt: skip
