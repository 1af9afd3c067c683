"""EDRP as a programme without the paper's O(|E| |V|^2k) link variables, in cvxpy.

The same problem as `ilp.py` with the same equation numbers; the binaries are those of `placements.py`.  Terms that
the literal programme reads off a pair of configurations are written with nodes alone, for each stream (i, j):
    D >= d_uv (b_iu + b_jv - 1)       the stream delay (3): every pair of nodes that both host a replica;
    g_us <= H_u [share of u is s],    the traffic (4), sum over u, v of f_iu f_jv C_uv: with h_u = sum over v of
    sum over s of g_us >= h_u - H_u (1 - b_iu)      f_jv C_uv <= H_u the cost is rate x sum of s g_us;
    pi >= 0 with margins f_i and f_j  no more than the truth of both: D >= sum of pi d, cost >= rate x sum of pi C.
b says which nodes host a replica and f which share of the load.  The first two make it exact, with O(|E| |V| k^2)
variables and |E| |V|^2 rows.  The third cuts nothing off (pi_uv = f_iu f_jv is such a pi), it makes the bound better.
(OR-Tools' CP-SAT, the other candidate, cannot be loaded into one process with highspy.)
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from leeward.policies.edrp.milp.placements import (
    FORBIDDEN,
    Placements,
    downtime_rows,
    latency_rows,
    placements_of,
    spelling,
)
from leeward.policies.edrp.milp.programme import conclude, keep_if_better, request_of, run, time_left
from leeward.policies.edrp.problem.configurations import node_matrices
from leeward.policies.edrp.problem.outcome import Effort, Infeasible, Outcome, Unknown
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Deployment

if TYPE_CHECKING:
    import cvxpy as cp

#: Above this many rows for the stream delays the model is not built: it would take gigabytes.
ROW_LIMIT = 1_500_000
#: Above this many variables pi, the bound does without them.
COUPLING_LIMIT = 50_000


@dataclass(frozen=True, kw_only=True)
class Compact:
    """Variables and data of one instance; times and costs are shares of their bounds."""

    problem: Problem
    placements: list[Placements]
    #: The binaries of each operator.
    v: list[cp.Variable]
    #: R_i, D_(i,j), C_(i,j), r, t_D.
    latency: cp.Variable
    delay: cp.Variable
    traffic: cp.Variable
    r: cp.Variable
    t: cp.Variable

    @property
    def variables(self) -> int:
        return sum(p.length for p in self.placements)


def make_model(problem: Problem, placements: list[Placements]) -> Compact:
    """The decision variables."""
    import cvxpy as cp

    streams = max(1, len(problem.streams))
    return Compact(
        problem=problem,
        placements=placements,
        v=[cp.Variable(p.length, boolean=True) for p in placements],
        latency=cp.Variable(len(placements), nonneg=True),
        delay=cp.Variable(streams, nonneg=True),
        traffic=cp.Variable(streams, nonneg=True),
        r=cp.Variable(nonneg=True),
        t=cp.Variable(nonneg=True),
    )


def cost(model: Compact) -> cp.Expression:
    """C (8)-(9), a share of C_max."""
    import cvxpy as cp

    operators = sum(
        p.operator.cost * p.operator.res / model.problem.bounds.c * (p.counts().sum(axis=0) @ v)
        for p, v in zip(model.placements, model.v, strict=True)
    )
    return operators + cp.sum(model.traffic)


def objective(model: Compact) -> cp.Expression:
    """F (12)."""
    weights = model.problem.weights
    return weights.r * model.r + weights.c * cost(model) + weights.d * model.t


def one_deployment_each(model: Compact) -> list[cp.Constraint]:
    """(19)."""
    rows = []
    for p, v in zip(model.placements, model.v, strict=True):
        equal, right, at_most = spelling(p)
        rows.append(equal @ v == right)
        if at_most.shape[0]:
            rows.append(at_most @ v <= 0)
    return rows


def operator_latencies(model: Compact) -> list[cp.Constraint]:
    """R_i (1)."""
    return [
        model.latency[i] >= latency_rows(model.problem, i, p) / model.problem.bounds.r @ v
        for i, (p, v) in enumerate(zip(model.placements, model.v, strict=True))
    ]


def response(model: Compact) -> list[cp.Constraint]:
    """(13) by finish times: each operator finishes after those that feed it; r is the last."""
    import cvxpy as cp

    finish, edges = cp.Variable(len(model.v), nonneg=True), np.array(model.problem.edges, dtype=int).reshape(-1, 2)
    rows = [finish >= model.latency, model.r >= finish]
    if len(edges):
        up, down = edges[:, 0], edges[:, 1]
        rows.append(finish[down] >= finish[up] + model.delay + model.latency[down])
    return rows


def downtime(model: Compact) -> list[cp.Constraint]:
    """(14)."""
    rows, scale = [], model.problem.bounds.d
    for p, v in zip(model.placements, model.v, strict=True):
        matrix, offset = downtime_rows(model.problem, p)
        if len(offset):
            rows.append(model.t >= sp.csr_array(matrix / scale) @ v - offset / scale)
    return rows


def worst_cases(model: Compact) -> list[cp.Constraint]:
    """(15), (16), (17)."""
    return [model.r <= 1, cost(model) <= 1, model.t <= 1]


def capacities(model: Compact) -> list[cp.Constraint]:
    """(18)."""
    used = sum(p.operator.res * (p.counts() @ v) for p, v in zip(model.placements, model.v, strict=True))
    return [used <= np.array([node.res for node in model.problem.nodes])]


def components_apart(model: Compact) -> list[cp.Constraint]:
    """b_iu + b_ju <= 1 for two operators that are to be apart."""
    here = [p.hosts() @ v for p, v in zip(model.placements, model.v, strict=True)]
    return [here[i] + here[j] <= 1 for i, rivals in enumerate(model.problem.rivals) for j in rivals if i < j]


def stream_delays(model: Compact, e: int, delay: np.ndarray) -> list[cp.Constraint]:
    """D >= d_uv (b_iu + b_jv - 1) for the nodes that may host (3)."""
    i, j = model.problem.edges[e]
    u, v = (side.ravel() for side in np.meshgrid(_nodes(model, i), _nodes(model, j), indexing="ij"))
    apart = delay[u, v] > 0
    u, v, d = u[apart], v[apart], delay[u, v][apart]
    if not len(d):
        return []
    here = sp.diags_array(d) @ model.placements[i].hosts()[u]
    there = sp.diags_array(d) @ model.placements[j].hosts()[v]
    return [model.delay[e] >= here @ model.v[i] + there @ model.v[j] - d]


def _nodes(model: Compact, i: int) -> np.ndarray:
    return np.unique(model.placements[i].hosts().nonzero()[0])


def stream_traffic(model: Compact, e: int, price: np.ndarray) -> list[cp.Constraint]:
    """The cost of a stream (4) by the shares that the nodes of one of its ends can have."""
    import cvxpy as cp

    i, j = model.problem.edges[e]
    if model.placements[j].length < model.placements[i].length:  # the simpler end has fewer shares
        i, j, price = j, i, price.T
    near, far = model.placements[i], model.placements[j]
    node, share, level = near.share_levels()
    nodes, most = np.unique(node), price[:, _nodes(model, j)].max(axis=1, initial=0.0)
    paid = cp.Variable(len(node), nonneg=True)
    total = sp.csr_array((np.ones(len(node)), (np.searchsorted(nodes, node), np.arange(len(node)))))
    onward = sp.csr_array(price[nodes] @ far.shares().toarray())
    here = sp.diags_array(most[nodes]) @ near.hosts()[nodes]
    return [
        paid <= sp.diags_array(most[node]) @ level @ model.v[i],
        total @ paid >= onward @ model.v[j] + here @ model.v[i] - most[nodes],
        model.traffic[e] >= share @ paid,
    ]


def coupling(
    model: Compact, e: int, delay: np.ndarray, price: np.ndarray, beside: dict[int, list[Any]]
) -> list[cp.Constraint]:
    """No more than the truth: with pi_uv = f_iu f_jv, a mean delay is at most the greatest.

    Notes in `beside`, for each end, what it has of the other on each node: Res_j pi_uu.
    """
    import cvxpy as cp

    i, j = model.problem.edges[e]
    up, down = _nodes(model, i), _nodes(model, j)
    pi = cp.Variable(len(up) * len(down), nonneg=True)
    leave = sp.kron(sp.eye_array(len(up)), np.ones((1, len(down))), format="csr")
    arrive = sp.kron(np.ones((1, len(up))), sp.eye_array(len(down)), format="csr")
    u, v = (side.ravel() for side in np.meshgrid(up, down, indexing="ij"))
    (same,) = np.nonzero(u == v)
    together = sp.csr_array((np.ones(len(same)), (u[same], same)), shape=(len(delay), len(u))) @ pi
    for at, other in ((i, j), (j, i)):
        beside[at].append(model.placements[other].operator.res * together)
    rows = [
        leave @ pi == model.placements[i].shares()[up] @ model.v[i],
        arrive @ pi == model.placements[j].shares()[down] @ model.v[j],
        model.delay[e] >= delay[u, v] @ pi,
    ]
    return [*rows, model.traffic[e] >= price[u, v] @ pi] if price.any() else rows


def room_beside(model: Compact, beside: dict[int, list[Any]]) -> list[cp.Constraint]:
    """(18) of a node times the share f_iu of an operator there: its neighbours find room beside it.

    Sum over the neighbours j of Res_j U_j(u) f_iu <= (Res_u - Res_i U_i(u)) f_iu, where U_j(u) >= f_ju.
    """
    room = sp.diags_array([node.res for node in model.problem.nodes])
    return [
        sum(near) <= (room @ p.shares() - p.operator.res * p.counts_by_share()) @ v
        for (_, near), p, v in zip(sorted(beside.items()), model.placements, model.v, strict=True)
        if near
    ]


def build(model: Compact) -> cp.Problem:
    """The whole programme."""
    import cvxpy as cp

    problem = model.problem
    delay, link = node_matrices(problem)
    delay = np.minimum(delay / problem.bounds.r, FORBIDDEN)
    rows = [
        *one_deployment_each(model),
        *operator_latencies(model),
        *response(model),
        *downtime(model),
        *worst_cases(model),
        *capacities(model),
        *components_apart(model),
    ]
    beside: dict[int, list[Any]] = {i: [] for i in range(len(problem.operators))}
    for e, stream in enumerate(problem.streams):
        price = stream.rate * link / problem.bounds.c
        rows += stream_delays(model, e, delay)
        if price.any():
            rows += stream_traffic(model, e, price)
        if pair_count(problem) <= COUPLING_LIMIT:
            rows += coupling(model, e, delay, price, beside)
    return cp.Problem(cp.Minimize(objective(model)), rows + room_beside(model, beside))


def pair_count(problem: Problem) -> int:
    """Pairs of nodes that a stream may connect, over all streams."""
    return sum(len(problem.candidates[i]) * len(problem.candidates[j]) for i, j in problem.edges)


def solve_compact(
    problem: Problem,
    *,
    time_limit_s: float | None = None,
    seed: int = 0,
    gap: float = 0.0,
    solver: str | None = None,
) -> Outcome:
    """Solves the compact programme; the time limit includes building, which cannot be interrupted."""
    started = time.monotonic()
    request = request_of(solver, time_limit_s, seed, gap)

    def effort(variables: int) -> Effort:
        return Effort(method="compact", seconds=time.monotonic() - started, variables=variables)

    placements = [placements_of(problem, i) for i in range(len(problem.operators))]
    size = sum(p.length for p in placements)
    if not all(p.length for p in placements):
        slow = next(p.operator.id for p in placements if not p.length)
        return Infeasible(why=(f"operator {slow} alone takes longer than R_max everywhere",), effort=effort(size))
    if pair_count(problem) > ROW_LIMIT:
        why = f"the compact programme has {pair_count(problem)} rows for delays; at most {ROW_LIMIT} are built"
        return keep_if_better(problem, Unknown(why=why, effort=effort(size)))
    model = make_model(problem, placements)
    programme = build(model)
    answer = run(programme, time_left(request, started))
    return keep_if_better(problem, conclude(problem, decode(model), answer, effort(model.variables), gap))


def decode(model: Compact) -> Deployment | None:
    """The deployment that v spells, or None if it is not one or nearly so."""
    deployment = {}
    for p, variable in zip(model.placements, model.v, strict=True):
        if variable.value is None:
            return None
        replicas = p.counts() @ np.asarray(variable.value)
        whole = np.round(replicas).astype(int)
        if whole.sum() < 1 or np.abs(replicas - whole).max() > 0.01:
            return None
        deployment[p.operator.id] = {model.problem.nodes[u].id: int(whole[u]) for u in np.flatnonzero(whole)}
    return deployment
