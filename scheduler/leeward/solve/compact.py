"""EDRP as a programme without the paper's O(|E| |V|^2k) link variables, for OR-Tools' CP-SAT.

The same problem as `ilp.py` with the same equation numbers; the binaries are those of `placements.py`.  What the
literal programme reads off a pair of configurations is written with nodes alone, for each stream (i, j):
    D >= d_uv  if  b_iu and b_jv                      the stream delay (3), with b for "hosts a replica";
    g_u >= s (sum over v of f_jv C_uv)  if  f_iu = s  the traffic cost (4), rate x sum of g_u, with f for the share
                                                      of the load, which takes few values: c of m replicas;
    sum of pi_uv C_uv <= cost, pi with margins f_i, f_j      cuts nothing off (pi_uv = f_iu f_jv is one such pi); it
                                                      makes the bound better, and is left out where traffic is free.
That is O(|E| |V| k^2) integers, and |E| |V|^2 clauses for the delays.

CP-SAT counts in whole numbers.  Values are shares of their bounds in units of 1 / `SCALE`, rounded down, so that the
programme is a relaxation: its bound is a bound, and a solution that the definitions refuse by a hair is forbidden and
the next one is looked for.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from leeward.solve.configurations import node_matrices
from leeward.solve.evaluate import TOLERANCE, verify
from leeward.solve.milp import Answer, conclude, keep_if_better
from leeward.solve.outcome import Effort, Infeasible, Outcome, Unknown
from leeward.solve.placements import FORBIDDEN, Placements, downtime_rows, latency_rows, placements_of
from leeward.solve.problem import Deployment, Problem

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

#: Units in which a share of a bound is counted, and those of the weights and of capacity.
SCALE, WEIGHT_SCALE, ROOM_SCALE = 10**9, 10**8, 10**6
#: What rounding down may take from F.
ROUNDING = 3e-7
#: Above this many clauses for the stream delays the model is not built: it would take gigabytes.
CLAUSE_LIMIT = 1_500_000
#: Above this many variables pi, the bound does without them.
COUPLING_LIMIT = 100_000


def units(value: float) -> int:
    """A share of a bound in whole units, rounded down; what only float noise keeps from the next one is not."""
    return math.floor(value * SCALE + 1e-6)


@dataclass(kw_only=True)
class Compact:
    """One instance on its way into the solver."""

    problem: Problem
    placements: list[Placements]
    model: cp_model.CpModel
    #: The binaries of each operator, in the order of `placements.py`.
    v: list[list[cp_model.IntVar]] = field(default_factory=list)
    #: b: for each operator, node -> whether it hosts a replica.
    hosts: list[dict[int, cp_model.IntVar]] = field(default_factory=list)
    #: R_i and C_(i,j), shares of R_max and C_max in units.
    latency: list[cp_model.IntVar] = field(default_factory=list)
    traffic: list[cp_model.IntVar] = field(default_factory=list)
    binaries: int = 0

    def binary(self) -> cp_model.IntVar:
        self.binaries += 1
        return self.model.new_bool_var("")

    def share(self, most: float = 1.0) -> cp_model.IntVar:
        return self.model.new_int_var(0, units(most), "")

    def linear(self, i: int, row: np.ndarray, *, scale: float = SCALE):
        """`row` times the binaries of operator i, in units; rounded down."""
        places = np.flatnonzero(row)
        whole = [math.floor(float(row[at]) * scale + 1e-6) for at in places]
        return sum(factor * self.v[i][at] for factor, at in zip(whole, places, strict=True))


def one_deployment_each(m: Compact) -> None:
    """(19), and b: the counts of the chosen size add up to it, each node with one count."""
    for i, p in enumerate(m.placements):
        v = [m.binary() for _ in range(p.length)]
        m.v.append(v)
        m.model.add_exactly_one(v[: p.first_x])
        x = v[p.first_x :]
        for z, size in zip(v, p.sizes, strict=False):
            (of_size,) = np.nonzero(p.size == size)
            m.model.add(sum(int(p.count[s]) * x[s] for s in of_size) == int(size) * z)
            for u in np.unique(p.node[of_size]):
                m.model.add_at_most_one([x[s] for s in of_size if p.node[s] == u] + [z.negated()])
        m.hosts.append({u: _any(m, i, row) for u, row in enumerate(p.hosts().toarray()) if row.any()})


def _any(m: Compact, i: int, row: np.ndarray) -> cp_model.IntVar:
    """Whether one of the binaries of the row is set; no more than one can be."""
    literals = [m.v[i][at] for at in np.flatnonzero(row)]
    if len(literals) == 1:
        return literals[0]
    found = m.binary()
    m.model.add(sum(literals) == found)
    return found


def capacities(m: Compact) -> None:
    """(18)."""
    counts = [p.counts().toarray() for p in m.placements]
    demands = [math.floor(p.operator.res * ROOM_SCALE + 1e-3) for p in m.placements]
    for u, node in enumerate(m.problem.nodes):
        used = sum(demands[i] * m.linear(i, c[u], scale=1) for i, c in enumerate(counts))
        m.model.add(used <= math.floor(node.res * ROOM_SCALE + 1e-3))


def response(m: Compact) -> cp_model.IntVar:
    """(1), (3), (13), (15): each operator finishes after those that feed it; r is the last."""
    problem, limit = m.problem, m.problem.bounds.r
    for i, p in enumerate(m.placements):
        latency = m.share()
        for row in latency_rows(problem, i, p) / limit:
            m.model.add(latency >= m.linear(i, row))
        m.latency.append(latency)
    finish, r = [m.share() for _ in m.placements], m.share()
    for done, latency in zip(finish, m.latency, strict=True):
        m.model.add(done >= latency)
        m.model.add(r >= done)
    delay_s, _ = node_matrices(problem)
    for i, j in problem.edges:
        delay = m.share()
        m.model.add(finish[j] >= finish[i] + delay + m.latency[j])
        for u, here in m.hosts[i].items():
            for v, there in m.hosts[j].items():
                apart = units(min(delay_s[u, v] / limit, FORBIDDEN))
                if apart > SCALE:
                    m.model.add_bool_or(here.negated(), there.negated())
                elif apart > 0:
                    m.model.add(delay >= apart).only_enforce_if(here, there)
    return r


def downtime(m: Compact) -> cp_model.IntVar:
    """(14), (17)."""
    t = m.share()
    for i, p in enumerate(m.placements):
        matrix, offset = downtime_rows(m.problem, p)
        for row, less in zip(matrix / m.problem.bounds.d, offset / m.problem.bounds.d, strict=True):
            m.model.add(t >= m.linear(i, row) - math.ceil(less * SCALE))
    return t


def cost(m: Compact) -> cp_model.IntVar:
    """(2), (4), (8), (9), (16)."""
    problem, limit = m.problem, m.problem.bounds.c
    _, link = node_matrices(problem)
    pairs = sum(len(m.hosts[i]) * len(m.hosts[j]) for i, j in problem.edges)
    operators = sum(
        m.linear(i, p.operator.cost * p.operator.res / limit * p.counts().sum(axis=0))
        for i, p in enumerate(m.placements)
    )
    for (i, j), stream in zip(problem.edges, problem.streams, strict=True):
        # any two replicas have at least this share, so that what costs more is forbidden all the same
        least = 1 / (m.placements[i].operator.k * m.placements[j].operator.k)
        price = np.minimum(stream.rate * link / limit, FORBIDDEN / least)
        if price.any():
            m.traffic.append(stream_cost(m, i, j, price))
            if pairs <= COUPLING_LIMIT:
                coupling(m, i, j, price, m.traffic[-1])
    total = m.share()
    m.model.add(total >= operators + sum(m.traffic))
    return total


def stream_cost(m: Compact, i: int, j: int, price: np.ndarray) -> cp_model.IntVar:
    """C_(i,j) (4) by the shares that the nodes of one end can have."""
    if m.placements[j].length < m.placements[i].length:  # the simpler end has fewer shares
        i, j, price = j, i, price.T
    node, share, level = m.placements[i].share_levels()
    level, far = level.toarray(), m.placements[j].shares().toarray()
    paid = []
    for u in np.unique(node):
        onward = price[u] @ far
        if not onward.any():
            continue
        here = m.share()
        for at in np.flatnonzero(node == u):
            m.model.add(here >= m.linear(j, share[at] * onward)).only_enforce_if(_any(m, i, level[at]))
        paid.append(here)
    total = m.share()
    m.model.add(total >= sum(paid))
    return total


def coupling(m: Compact, i: int, j: int, price: np.ndarray, paid: cp_model.IntVar) -> None:
    """A bound on the traffic cost that linear relaxations see, and neighbours' room on a node within it."""
    parts = [math.lcm(*range(1, m.placements[at].operator.k + 1)) for at in (i, j)]
    whole = parts[0] * parts[1]
    share = [m.placements[at].shares().toarray() * whole for at in (i, j)]
    pi = {(u, v): m.model.new_int_var(0, whole, "") for u in m.hosts[i] for v in m.hosts[j]}
    for u in m.hosts[i]:
        m.model.add(sum(pi[u, v] for v in m.hosts[j]) == m.linear(i, np.round(share[0][u]), scale=1))
    for v in m.hosts[j]:
        m.model.add(sum(pi[u, v] for u in m.hosts[i]) == m.linear(j, np.round(share[1][v]), scale=1))
    m.model.add(paid * whole >= sum(units(price[u, v]) * flow for (u, v), flow in pi.items()))
    room = m.problem.nodes
    for u in set(m.hosts[i]) & set(m.hosts[j]):
        for at, other in ((i, j), (j, i)):
            beside = room_beside(m.placements[at], m.placements[other], u, room[u].res) * whole
            m.model.add(ROOM_SCALE * pi[u, u] <= m.linear(at, np.ceil(beside * ROOM_SCALE), scale=1))


def room_beside(p: Placements, other: Placements, u: int, room: float) -> np.ndarray:
    """f_iu times the replicas of `other` that fit beside those of i on the node: at least f_iu f_ju."""
    fits = (room * (1 + TOLERANCE) - p.operator.res * p.counts().toarray()[u]) / max(other.operator.res, 1e-9)
    return p.shares().toarray()[u] * np.clip(fits, 0.0, 1.0)


def build(problem: Problem, placements: list[Placements]) -> Compact:
    """The whole programme with its objective (12)."""
    from ortools.sat.python import cp_model

    m = Compact(problem=problem, placements=placements, model=cp_model.CpModel())
    one_deployment_each(m)
    capacities(m)
    terms = (response(m), cost(m), downtime(m))
    weights = (problem.weights.r, problem.weights.c, problem.weights.d)
    m.model.minimize(sum(math.floor(w * WEIGHT_SCALE + 1e-6) * term for w, term in zip(weights, terms, strict=True)))
    for p, v in zip(placements, m.v, strict=True):
        if p.kept is not None:
            m.model.add_hint(v[len(p.sizes)], True)
    return m


def solve_compact(
    problem: Problem, *, time_limit_s: float | None = None, seed: int = 0, gap: float = 0.0
) -> Outcome:
    """Solves the compact programme; the time limit includes building, which cannot be interrupted.

    One thread, so that a run with the same seed repeats.
    """
    started = time.monotonic()

    def effort(variables: int) -> Effort:
        return Effort(method="compact", seconds=time.monotonic() - started, variables=variables)

    pairs = sum(len(problem.candidates[i]) * len(problem.candidates[j]) for i, j in problem.edges)
    if pairs > CLAUSE_LIMIT:
        why = f"the compact programme has {pairs} clauses for stream delays; at most {CLAUSE_LIMIT} are built"
        return keep_if_better(problem, Unknown(why=why, effort=effort(0)))
    placements = [placements_of(problem, i) for i in range(len(problem.operators))]
    if not all(p.length for p in placements):
        slow = next(p.operator.id for p in placements if not p.length)
        return Infeasible(why=(f"operator {slow} alone takes longer than R_max everywhere",), effort=effort(0))
    m = build(problem, placements)
    deadline = math.inf if time_limit_s is None else started + time_limit_s
    deployment, answer = run(m, deadline=deadline, seed=seed, gap=gap)
    found = conclude(problem, deployment, answer, effort(m.binaries), gap, rounding=ROUNDING)
    return keep_if_better(problem, found)


def run(m: Compact, *, deadline: float, seed: int, gap: float) -> tuple[Deployment | None, Answer]:
    """Solves until the definitions accept what is found, or there is nothing left or no time."""
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.relative_gap_limit = gap
    solver.parameters.presolve_inclusion_work_limit = 0  # OR-Tools 9.15 calls feasible models infeasible with it
    while True:
        if math.isfinite(deadline):
            solver.parameters.max_time_in_seconds = max(0.01, deadline - time.monotonic())
        status = solver.solve(m.model)
        bound = solver.best_objective_bound / (SCALE * WEIGHT_SCALE)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            name = "infeasible" if status == cp_model.INFEASIBLE else solver.status_name(status).lower()
            return None, Answer(status=name, bound=None)
        deployment = decode(m, solver)
        answer = Answer(status="optimal" if status == cp_model.OPTIMAL else "user_limit", bound=max(bound, 0.0))
        if not verify(m.problem, deployment) or time.monotonic() >= deadline:
            return deployment, answer
        forbid(m, solver)


def forbid(m: Compact, solver: cp_model.CpSolver) -> None:
    """Not this one: it breaks a bound by less than a unit."""
    chosen = [literal for v in m.v for literal in v if solver.boolean_value(literal)]
    m.model.add_bool_or([literal.negated() for literal in chosen])


def decode(m: Compact, solver: cp_model.CpSolver) -> dict[str, dict[str, int]]:
    """The deployment that the binaries spell."""
    return {
        p.operator.id: _placed(m.problem, p.counts() @ np.array([solver.value(literal) for literal in v]))
        for p, v in zip(m.placements, m.v, strict=True)
    }


def _placed(problem: Problem, replicas: Iterable[float]) -> dict[str, int]:
    return {problem.nodes[u].id: round(count) for u, count in enumerate(replicas) if count > 0.5}
