"""A problem as flat arrays, the form that compiled code reads.

`Arrays` is a NamedTuple because numba takes those as arguments.  Axes: operators (G), nodes (n), replicas
(index 1 .. kmax; index 0 is unused).  Times in s, costs in $/h; objective weights are already divided by the
bounds, so that F = a R + b C + e T_D.

A pinned operator can only go to its one node, so the place of its first replica there is held from the start;
elsewhere capacity means what is left.  Without this a search would fill that node and find out much later.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from leeward.policies.edrp.problem.configurations import node_matrices
from leeward.policies.edrp.problem.downtime import Storm
from leeward.policies.edrp.problem.evaluate import TOLERANCE
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Deployment

GENERIC, STORM, LIVE = 0, 1, 2
#: Most distinct levels of what is left on a node that a bound tells apart.
LEVELS = 32


class Arrays(NamedTuple):
    """See the module; `order` is the order in which operators are fixed."""

    delay: np.ndarray  # [n, n]
    link: np.ndarray  # [n, n]
    speed: np.ndarray  # [n]
    full: np.ndarray  # [n] capacity with its tolerance
    room: np.ndarray  # [n] the same without what is held for pinned operators
    room_units: np.ndarray  # [n] `room` in units of the bound, rounded up
    k: np.ndarray  # [G]
    price: np.ndarray  # [G] cost of one replica
    res: np.ndarray  # [G]
    res_units: np.ndarray  # [G] demand in units of the bound, rounded down
    held: np.ndarray  # [G] replicas that have their place already: 1 for a pinned operator, else 0
    latency: np.ndarray  # [G, kmax + 1] on the reference processor
    allowed: np.ndarray  # [G, n]
    rivals: np.ndarray  # [G, most] operators that may not share a node with it, then -1
    edge_from: np.ndarray  # [E]
    edge_to: np.ndarray  # [E]
    rate: np.ndarray  # [E]
    topo: np.ndarray  # [G] operators, upstream first
    present: np.ndarray  # [G, n] U_0(u); all 0 without a present deployment
    present_size: np.ndarray  # [G]
    model: int
    sync: float
    restart: float  # storm, live: least cost of any restart
    live: np.ndarray  # [2] constant, per byte
    tasks: np.ndarray  # [G, n] live: more replicas than these need a restart
    state: np.ndarray  # [G]
    code: np.ndarray  # [G] what a node must fetch: the operator's code, or (storm, live) the application's
    holds_code: np.ndarray  # [G, n]
    store_trip: np.ndarray  # [n] round trip to the DataStore
    store_up: np.ndarray  # [n] bytes/s
    store_down: np.ndarray  # [n] bytes/s
    spawn: np.ndarray  # [n]
    a: float
    b: float
    e: float
    r_max: float
    c_max: float
    d_max: float


def arrays_of(problem: Problem) -> Arrays:
    """The flat form of a problem; the bounds carry the same tolerance as `verify`."""
    delay, link = node_matrices(problem)
    operators, nodes = problem.operators, problem.nodes
    k = np.array([op.k for op in operators])
    present = _present(problem)
    allowed = _allowed(problem)
    held = (allowed.sum(axis=1) == 1).astype(np.int64)
    room_units, res_units = units(problem)
    full = np.array([node.res + TOLERANCE * max(1.0, node.res) for node in nodes])
    taken = (held * _column(operators, "res")) @ allowed
    storm = Storm.of(problem)
    hosting = np.array([node.id in storm.hosting for node in nodes])
    is_generic = problem.downtime_model == "generic"
    live = problem.live
    slack = 1 + TOLERANCE
    edges = np.array(problem.edges, dtype=np.int64).reshape(-1, 2)
    return Arrays(
        delay=delay,
        link=link,
        speed=_column(nodes, "speedup"),
        full=full,
        room=full - taken,
        room_units=np.maximum(room_units - (held * res_units) @ allowed, 0),
        k=k,
        price=np.array([op.cost * op.res for op in operators]),
        res=_column(operators, "res"),
        res_units=res_units,
        held=held,
        latency=_latencies(problem, int(k.max())),
        allowed=allowed,
        rivals=_rivals(problem),
        edge_from=np.ascontiguousarray(edges[:, 0]),
        edge_to=np.ascontiguousarray(edges[:, 1]),
        rate=np.array([stream.rate for stream in problem.streams], dtype=float),
        topo=np.array(problem.topological_order),
        present=present,
        present_size=present.sum(axis=1),
        model={"generic": GENERIC, "storm": STORM, "live": LIVE}[problem.downtime_model],
        sync=problem.sync_s,
        restart=storm.restart_s,
        live=np.array([live.constant_s, live.per_byte_s] if live else [0.0, 0.0]),
        tasks=_tasks(problem, int(k.max())),
        state=_column(operators, "state_bytes"),
        code=np.array([op.code_bytes if is_generic else storm.code_bytes for op in operators]),
        holds_code=present > 0 if is_generic else np.tile(hosting, (len(operators), 1)),
        store_trip=np.array([node.store_up_s + node.store_down_s for node in nodes]),
        store_up=_column(nodes, "store_up_rate"),
        store_down=_column(nodes, "store_down_rate"),
        spawn=_column(nodes, "spawn_s"),
        a=problem.weights.r / problem.bounds.r,
        b=problem.weights.c / problem.bounds.c,
        e=problem.weights.d / problem.bounds.d,
        r_max=problem.bounds.r * slack,
        c_max=problem.bounds.c * slack,
        d_max=problem.bounds.d * slack,
    )


def _column(items: tuple[Any, ...], field: str) -> np.ndarray:
    return np.array([getattr(item, field) for item in items], dtype=float)


def _present(problem: Problem) -> np.ndarray:
    return _counts(problem, problem.current or {})


def _tasks(problem: Problem, enough: int) -> np.ndarray:
    if problem.live is None or problem.live.tasks is None:
        return np.full((len(problem.operators), len(problem.nodes)), enough)
    return _counts(problem, problem.live.tasks)


def _counts(problem: Problem, deployment: Deployment) -> np.ndarray:
    counts = np.zeros((len(problem.operators), len(problem.nodes)), dtype=np.int64)
    for name, placed in deployment.items():
        for node, replicas in placed.items():
            counts[problem.operator_index[name], problem.node_index[node]] = replicas
    return counts


def _latencies(problem: Problem, kmax: int) -> np.ndarray:
    table = np.full((len(problem.operators), kmax + 1), np.inf)
    for position, (operator, load) in enumerate(zip(problem.operators, problem.load_tps, strict=True)):
        for replicas in range(1, operator.k + 1):
            table[position, replicas] = operator.curve.response_s(load, replicas)
    return table


def _allowed(problem: Problem) -> np.ndarray:
    allowed = np.zeros((len(problem.operators), len(problem.nodes)), dtype=np.bool_)
    for position, nodes in enumerate(problem.candidates):
        allowed[position, list(nodes)] = True
    return allowed


def _rivals(problem: Problem) -> np.ndarray:
    most = max(map(len, problem.rivals))
    rows = [[*others, *[-1] * (most - len(others))] for others in problem.rivals]
    return np.array(rows, dtype=np.int64).reshape(len(rows), most)


def units(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Capacities (rounded up) and demands (rounded down) in whole units of a common measure.

    The measure divides all demands and capacities where few enough levels do; else the rounding makes a bound
    weaker, never wrong.  No more is kept of a node's capacity than all operators together could use.
    """
    operators = problem.operators
    room_units, res_units = _units(
        tuple(op.res for op in operators), tuple(op.k for op in operators), tuple(node.res for node in problem.nodes)
    )
    return np.array(room_units, dtype=np.int64), np.array(res_units, dtype=np.int64)


@lru_cache(maxsize=16)  # from one minute to the next only rates change, and fractions are slow
def _units(
    res: tuple[float, ...], k: tuple[int, ...], room: tuple[float, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    demands = [Fraction(value).limit_denominator(1000) for value in res]
    rooms = [Fraction(value).limit_denominator(1000) for value in room]
    most = sum(demand * count for demand, count in zip(demands, k, strict=True))
    values = [value for value in (*demands, *(min(room, most) for room in rooms)) if value > 0]
    if not values:
        return (0,) * len(rooms), (0,) * len(demands)
    common = math.lcm(*(value.denominator for value in values))
    measure: Fraction | float = Fraction(math.gcd(*(int(value * common) for value in values)), common)
    largest = max(min(room, most) for room in rooms)
    if largest / measure > LEVELS:
        measure = largest / LEVELS
    bit = Fraction(1, 10**6)
    return (
        tuple(math.ceil(min(Fraction(value), most) / measure - bit) for value in room),
        tuple(math.floor(Fraction(value) / measure + bit) for value in res),
    )
