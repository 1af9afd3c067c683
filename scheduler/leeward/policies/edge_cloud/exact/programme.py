"""The integer programme of one arriving dataflow, in cvxpy: a partition of its queries into columns (`columns.py`).

Variables, all times as shares of `unit_s`:
    q_c         binary: column c, a set of queries on a place, is used; each query is in one, a resource has one;
    f_e,(a,b)   the edge e = (u, v) goes from site a to site b between different resources;
    L_v, L      the critical length (10) of a query, and the makespan;
    L_d,u, L_d  the same of the others whose queries may be joined.
Latencies are linear in q, as pi and the service time are numbers in a column.  An edge between two queries of one
column takes no time; for all others f has 1 where u's site and v's site meet.  The programme is exact: f needs no
integrality, as q fixes both sums of f.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from leeward.policies.edge_cloud.exact.columns import own_latency_s
from leeward.policies.edge_cloud.exact.others import Other, latency_if_joined_s, makespan_now_s
from leeward.policies.edge_cloud.exact.reduce import Reduced
from leeward.policies.edge_cloud.planning.loads import Floats

if TYPE_CHECKING:
    import cvxpy as cp

#: Absolute and feasibility tolerance that HiGHS is asked for, in units of `unit_s`.
FINE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Programme:
    """Data and the variables of the arriving dataflow."""

    rest: Reduced
    q: cp.Variable
    length: cp.Variable
    makespan: cp.Variable


def make_programme(rest: Reduced, *, whole: bool) -> Programme:
    """The variables; without `whole` q may be shares."""
    import cvxpy as cp

    return Programme(
        rest=rest,
        q=cp.Variable(len(rest.columns), boolean=True) if whole else cp.Variable(len(rest.columns), nonneg=True),
        length=cp.Variable(len(rest.arrival.dataflow.queries), nonneg=True),
        makespan=cp.Variable(nonneg=True),
    )


def partition(programme: Programme) -> list[cp.Constraint]:
    """Each query is in one column, and each resource has at most one."""
    columns, members = programme.rest.columns, programme.rest.arrival.places.members
    used = np.unique(columns.place)
    on = sp.csr_array(columns.place == used[:, None], dtype=float)
    return [
        sp.csr_array(columns.has.T, dtype=float) @ programme.q == 1,
        on @ programme.q <= np.array([len(members[p]) for p in used], dtype=float),
    ]


def transfer(programme: Programme, u: int, v: int) -> tuple[cp.Expression, list[cp.Constraint]]:
    """The transfer of an edge, a share of the unit, and the rows of its f."""
    import cvxpy as cp

    columns, site = programme.rest.columns, programme.rest.arrival.places.site[programme.rest.columns.place]
    leaves, enters = columns.has[:, u] & ~columns.has[:, v], columns.has[:, v] & ~columns.has[:, u]
    pairs, seconds = _pairs(programme, u, v, site[leaves], site[enters])
    flow = cp.Variable(len(pairs), nonneg=True) if len(pairs) else cp.Constant(np.zeros(0))
    rows = []
    for alone, side in ((leaves, pairs[:, 0]), (enters, pairs[:, 1])):
        sites = np.unique(site[alone])[:, None]
        if len(sites):
            of_columns = sp.csr_array((site == sites) & alone, dtype=float) @ programme.q
            rows.append(
                sp.csr_array(side == sites, dtype=float) @ flow == of_columns if len(pairs) else of_columns == 0
            )
    return (seconds / programme.rest.unit_s) @ flow if len(pairs) else flow.sum(), rows


def _pairs(programme: Programme, u: int, v: int, leaves: np.ndarray, enters: np.ndarray) -> tuple[np.ndarray, Floats]:
    """The pairs of sites that the edge may join, [pair, 2], and its transfer there, s.

    `leaves` and `enters` are the sites of columns with one of its ends: each f needs a row on both sides.
    """
    site = programme.rest.arrival.places.site
    allowed = programme.rest.apart[u, v] & np.isin(site, leaves)[:, None] & np.isin(site, enters)
    here, there = np.nonzero(allowed)
    pairs, first = np.unique(np.stack([site[here], site[there]], axis=1), axis=0, return_index=True)
    return pairs, programme.rest.arrival.transfer_s[u, here[first], there[first]]


def own_lengths(programme: Programme) -> list[cp.Constraint]:
    """(10) and (2) of the arriving dataflow."""
    arrival, length = programme.rest.arrival, programme.length
    latency = sp.csr_array(own_latency_s(arrival, programme.rest.columns).T / programme.rest.unit_s) @ programme.q
    rows = [length >= latency, programme.makespan >= length]
    for u, v in sorted(arrival.dataflow.edges):
        onward, flows = transfer(programme, u, v)
        rows += [*flows, length[v] >= length[u] + onward + latency[v]]
    return rows


def change_of(programme: Programme, other: Other) -> tuple[cp.Variable, list[cp.Constraint]]:
    """By how much another dataflow takes longer than now, a share of the unit, and the rows of its lengths."""
    import cvxpy as cp

    unit = programme.rest.unit_s
    length, change = cp.Variable(len(other.met)), cp.Variable()
    latency = sp.csr_array(_rises_s(programme, other) / unit) @ programme.q + np.array(
        [one.latency_s / unit for one in other.met]
    )
    now = makespan_now_s(other) / unit
    rows = [change + now >= length + np.array([one.exit_s / unit for one in other.met])]
    if other.apart_s > 0:
        rows.append(change + now >= other.apart_s / unit)
    enters = [v for v, one in enumerate(other.met) if one.entry_s >= 0]
    rows.append(length[enters] >= latency[enters] + np.array([other.met[v].entry_s / unit for v in enters]))
    ways = [(u, v, way) for v, one in enumerate(other.met) for u, way in one.ways]
    if ways:
        up, down = [u for u, _, _ in ways], [v for _, v, _ in ways]
        rows.append(length[down] >= length[up] + latency[down] + np.array([way / unit for _, _, way in ways]))
    return change, rows


def _rises_s(programme: Programme, other: Other) -> np.ndarray:
    """How much longer each query that is met takes with each column, s, [met, column]."""
    columns = programme.rest.columns
    found = np.zeros((len(other.met), len(columns)))
    for v, one in enumerate(other.met):
        there = columns.place == one.place
        joined = latency_if_joined_s(programme.rest.arrival, one, columns.service_s[there], columns.overhead[there])
        found[v, there] = joined - one.latency_s
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The solver's answer, unverified."""

    status: str
    #: Its lower bound on the cost, s; None if it has none.
    bound_s: float | None
    #: q, [column]; None if it has no solution.
    q: Floats | None


def solve(rest: Reduced, *, whole: bool, time_limit_s: float | None) -> Answer:
    """Builds and solves the programme, or, without `whole`, its linear relaxation.

    The cost is the makespan of the arriving dataflow, and how much longer than now the others take.
    """
    import cvxpy as cp

    programme = make_programme(rest, whole=whole)
    rows, cost = [*partition(programme), *own_lengths(programme)], programme.makespan
    for other in rest.others:
        change, more = change_of(programme, other)
        cost, rows = cost + change, [*rows, *more]
    problem = cp.Problem(cp.Minimize(cost), rows)
    status = _run(problem, time_limit_s)
    bound = _bound(problem, status, whole=whole)
    return Answer(
        status=status,
        bound_s=None if bound is None else bound * rest.unit_s,
        q=None if programme.q.value is None else np.asarray(programme.q.value),
    )


def _run(problem: Any, time_limit_s: float | None) -> str:
    """The one call to the solver; its status."""
    import cvxpy as cp

    options: dict[str, Any] = {
        "mip_rel_gap": 0.0,
        "mip_abs_gap": FINE,
        "mip_feasibility_tolerance": FINE,
        "primal_feasibility_tolerance": FINE,
        "dual_feasibility_tolerance": FINE,
        "random_seed": 0,
    }
    if time_limit_s is not None:
        options["time_limit"] = time_limit_s
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "solution may be inaccurate": the board verifies it
        try:
            problem.solve(solver="HIGHS", **options)
            if problem.status.startswith("infeasible"):
                # HiGHS' presolve has called programmes infeasible that have a solution: a proof needs both ways
                problem.solve(solver="HIGHS", **options, presolve="off")
        except cp.error.SolverError:
            return "solver_error"
    return str(problem.status)


def _bound(problem: Any, status: str, *, whole: bool) -> float | None:
    """The solver's lower bound on the objective, which has no constant part: HiGHS would leave that out."""
    stats = problem.solver_stats.extra_stats if problem.solver_stats else None
    bound = getattr(stats, "mip_dual_bound", None) if whole else problem.value if status == "optimal" else None
    return None if bound is None or not math.isfinite(bound) else float(bound)
