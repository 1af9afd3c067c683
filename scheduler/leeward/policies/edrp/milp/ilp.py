"""The paper's integer linear programme (12)-(23), literally, in cvxpy; one function per constraint.

Cardellini, Lo Presti, Nardelli, Russo Russo: Optimal operator deployment and replication for elastic
distributed data stream processing (2017).  Symbols: x_i,U -> `x[i]`, y_(i,j),(U,V) -> `y[e]` (row by row over
U, V), r -> `r` and t_D -> `t`, both as shares of R_max and T_D,max so that all rows are of one size.

Differences from the page: an infinite R_i,U fixes its x to 0 (a coefficient cannot be infinite); paths are
enumerated up to `PATH_LIMIT`, beyond which the same polyhedron is written with one finish time per operator.
The steps are build -> solve -> decode -> verify; all but the programme itself is in `programme.py`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from leeward.policies.edrp.milp.programme import conclude, keep_if_better, request_of, run, time_left
from leeward.policies.edrp.problem.configurations import (
    Configurations,
    configuration_count,
    configurations_of,
    delay_between,
    node_matrices,
    traffic_cost_between,
)
from leeward.policies.edrp.problem.outcome import Effort, Outcome, Unknown
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Deployment

if TYPE_CHECKING:
    import cvxpy as cp

#: Above this many binary variables the model is not built: it would take gigabytes.
VARIABLE_LIMIT = 1_200_000
#: Above this many source-to-sink paths, (13) is written with finish times.
PATH_LIMIT = 2_000


def variable_count(problem: Problem) -> int:
    """Binary variables x and y of the full model, without building it."""
    counts = [
        configuration_count(len(candidates), operator.k)
        for operator, candidates in zip(problem.operators, problem.candidates, strict=True)
    ]
    return sum(counts) + sum(counts[i] * counts[j] for i, j in problem.edges)


@dataclass(frozen=True, kw_only=True)
class Model:
    """Variables and data of one instance, ready for the constraint functions below."""

    problem: Problem
    configurations: list[Configurations]
    #: d_(U,V) in s and C_(i,j),(U,V) in $/h for each stream, flat, row by row over U, V.
    delay_s: list[np.ndarray]
    traffic_cost: list[np.ndarray]
    x: list[cp.Variable]
    y: list[cp.Variable]
    r: cp.Variable
    t: cp.Variable

    @property
    def variables(self) -> int:
        return sum(variable.size for variable in (*self.x, *self.y))


def make_model(problem: Problem, configurations: list[Configurations]) -> Model:
    """The decision variables (22), (23) and the coefficients of every stream."""
    import cvxpy as cp

    delay, link_cost = node_matrices(problem)
    ends = [(configurations[i], configurations[j]) for i, j in problem.edges]
    return Model(
        problem=problem,
        configurations=configurations,
        delay_s=[delay_between(delay, up, down).ravel() for up, down in ends],
        traffic_cost=[
            np.asarray(traffic_cost_between(link_cost, stream.rate, up, down)).ravel()
            for stream, (up, down) in zip(problem.streams, ends, strict=True)
        ],
        x=[cp.Variable(len(c), boolean=True) for c in configurations],
        y=[cp.Variable(len(up) * len(down), boolean=True) for up, down in ends],
        r=cp.Variable(),
        t=cp.Variable(nonneg=True),
    )


# --- the terms ------------------------------------------------------------------------------------------


def cost(model: Model) -> cp.Expression:
    """C(x, y) (8)-(9)."""
    operators = sum(c.cost @ x for c, x in zip(model.configurations, model.x, strict=True))
    return operators + sum(c @ y for c, y in zip(model.traffic_cost, model.y, strict=True))


def objective(model: Model) -> cp.Expression:
    """F' (12), with r and t in shares of their bounds."""
    weights = model.problem.weights
    return weights.r * model.r + weights.c * cost(model) / model.problem.bounds.c + weights.d * model.t


def operator_latencies(model: Model) -> list[cp.Expression]:
    """R_i(x) (7) as a share of R_max; configurations that cannot keep up are excluded elsewhere."""
    scale = model.problem.bounds.r
    return [
        np.where(np.isfinite(c.latency_s), c.latency_s, 0.0) / scale @ x
        for c, x in zip(model.configurations, model.x, strict=True)
    ]


def stream_delays(model: Model) -> list[cp.Expression]:
    """D_(i,j)(y) (7) as a share of R_max."""
    return [d / model.problem.bounds.r @ y for d, y in zip(model.delay_s, model.y, strict=True)]


# --- the constraints ------------------------------------------------------------------------------------


def response_of_paths(model: Model, paths: list[tuple[int, ...]]) -> list[cp.Constraint]:
    """(13): r is at least R_pi (6) of every path; a path is given by its streams, or by one lone operator."""
    latency, delay = operator_latencies(model), stream_delays(model)
    edges = model.problem.edges
    rows = []
    for path in paths:
        streams = path[1:]
        visited = (path[0], *(edges[e][1] for e in streams))
        rows.append(model.r >= sum(latency[i] for i in visited) + sum(delay[e] for e in streams))
    return rows


def response_by_finish_times(model: Model) -> list[cp.Constraint]:
    """(13) for graphs with too many paths to list: each operator finishes after those that feed it."""
    import cvxpy as cp

    latency, delay = operator_latencies(model), stream_delays(model)
    finish = cp.Variable(len(model.x))
    rows = [finish[i] >= latency[i] for i in range(len(model.x))]
    rows += [finish[j] >= finish[i] + delay[e] + latency[j] for e, (i, j) in enumerate(model.problem.edges)]
    return [*rows, model.r >= finish]


def downtime(model: Model) -> list[cp.Constraint]:
    """(14): t is at least T_D,i of every operator."""
    return [
        model.t >= c.downtime_s / model.problem.bounds.d @ x
        for c, x in zip(model.configurations, model.x, strict=True)
        if c.downtime_s.any()
    ]


def worst_cases(model: Model) -> list[cp.Constraint]:
    """(15), (16), (17)."""
    return [model.r <= 1, cost(model) / model.problem.bounds.c <= 1, model.t <= 1]


def capacities(model: Model) -> list[cp.Constraint]:
    """(18), with U(u) replicas of Res_i each."""
    used = sum(
        operator.res * (c.counts.T @ x)
        for operator, c, x in zip(model.problem.operators, model.configurations, model.x, strict=True)
    )
    return [used <= np.array([node.res for node in model.problem.nodes])]


def components_apart(model: Model) -> list[cp.Constraint]:
    """Of two operators that are to be apart one at most chooses a configuration with a replica on a node."""
    hosts = [(c.counts > 0).T.astype(float) for c in model.configurations]  # [nodes, configurations]
    here: list[cp.Expression] = [h @ x for h, x in zip(hosts, model.x, strict=True)]
    return [here[i] + here[j] <= 1 for i, rivals in enumerate(model.problem.rivals) for j in rivals if i < j]


def one_configuration_each(model: Model) -> list[cp.Constraint]:
    """(19)."""
    import cvxpy as cp

    return [cp.sum(x) == 1 for x in model.x]


def links_leave(model: Model) -> list[cp.Constraint]:
    """(20): x_i,U = sum over V of y."""
    rows = []
    for y, (i, j) in zip(model.y, model.problem.edges, strict=True):
        up, down = len(model.configurations[i]), len(model.configurations[j])
        rows.append(sp.kron(sp.eye_array(up), np.ones((1, down)), format="csr") @ y == model.x[i])
    return rows


def links_arrive(model: Model) -> list[cp.Constraint]:
    """(21): x_j,V = sum over U of y."""
    rows = []
    for y, (i, j) in zip(model.y, model.problem.edges, strict=True):
        up, down = len(model.configurations[i]), len(model.configurations[j])
        rows.append(sp.kron(np.ones((1, up)), sp.eye_array(down), format="csr") @ y == model.x[j])
    return rows


def keeping_up(model: Model) -> list[cp.Constraint]:
    """(1) with an infinite R_i,U: such a configuration is not chosen."""
    rows = []
    for c, x in zip(model.configurations, model.x, strict=True):
        (unstable,) = np.nonzero(~np.isfinite(c.latency_s))
        if len(unstable):
            rows.append(x[unstable] == 0)
    return rows


def source_to_sink_paths(problem: Problem, limit: int) -> list[tuple[int, ...]] | None:
    """Pi_dsp: each path as its source followed by its streams; None if there are more than `limit`."""
    leaving: dict[int, list[int]] = {i: [] for i in range(len(problem.operators))}
    for e, (i, _) in enumerate(problem.edges):
        leaving[i].append(e)
    fed = {j for _, j in problem.edges}
    open_paths: list[tuple[int, tuple[int, ...]]] = [(i, (i,)) for i in leaving if i not in fed]
    paths: list[tuple[int, ...]] = []
    while open_paths:
        at, path = open_paths.pop()
        if not leaving[at]:
            paths.append(path)
        open_paths += [(problem.edges[e][1], (*path, e)) for e in leaving[at]]
        if len(paths) + len(open_paths) > limit:
            return None
    return paths


def build(model: Model) -> cp.Problem:
    """The whole programme."""
    import cvxpy as cp

    paths = source_to_sink_paths(model.problem, PATH_LIMIT)
    response = response_by_finish_times(model) if paths is None else response_of_paths(model, paths)
    constraints = (
        response
        + downtime(model)
        + worst_cases(model)
        + capacities(model)
        + components_apart(model)
        + one_configuration_each(model)
        + links_leave(model)
        + links_arrive(model)
        + keeping_up(model)
    )
    return cp.Problem(cp.Minimize(objective(model)), constraints)


# --- build -> solve -> decode -> verify -----------------------------------------------------------------


def solve_ilp(
    problem: Problem,
    *,
    time_limit_s: float | None = None,
    seed: int = 0,
    gap: float = 0.0,
    solver: str | None = None,
    restricted: bool = False,
) -> Outcome:
    """Solves the literal programme; with `restricted`, over the configurations of rEDRP only.

    The time limit includes building, which cannot be interrupted.  `restricted` proves optimality among its
    own configurations only, so its best outcome is `Feasible`.
    """
    started = time.monotonic()
    request = request_of(solver, time_limit_s, seed, gap)
    size = variable_count(problem)

    def effort(variables: int) -> Effort:
        method = "restricted" if restricted else "ilp"
        return Effort(method=method, seconds=time.monotonic() - started, variables=variables)

    if not restricted and size > VARIABLE_LIMIT:
        why = f"the literal programme has {size} binary variables; at most {VARIABLE_LIMIT} are built"
        return keep_if_better(problem, Unknown(why=why, effort=effort(size)))
    configurations = configurations_of(problem, restricted=restricted)
    if not all(map(len, configurations)):
        return Unknown(why="an operator has no allowed neighbour of its present deployment", effort=effort(0))
    model = make_model(problem, configurations)
    programme = build(model)
    answer = run(programme, time_left(request, started))
    found = conclude(problem, decode(model), answer, effort(model.variables), gap, whole=not restricted)
    return keep_if_better(problem, found)


def decode(model: Model) -> Deployment | None:
    """The deployment that x spells, or None if it does not name one configuration for each operator."""
    deployment = {}
    for operator, c, x in zip(model.problem.operators, model.configurations, model.x, strict=True):
        values = None if x.value is None else np.asarray(x.value)
        if values is None or abs(values.sum() - 1.0) > 1e-4 or values.max() < 0.9:
            return None
        deployment[operator.id] = c.as_mapping(model.problem, int(values.argmax()))
    return deployment
