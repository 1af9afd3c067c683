"""Problems for the solver's tests: small ones by hand, random ones by Hypothesis, the stored instances."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from leeward.core.fields import FieldError
from leeward.policies.edrp.problem.document import problem_from_json
from leeward.policies.edrp.problem.problem import Problem
from tests.helpers.shared_folder import stored


def instance_document(prefix: str) -> dict[str, Any]:
    """The stored instance whose file name starts so; skips where the folder is absent."""
    return json.loads(stored("instances/edrp", f"{prefix}*.json")[0].read_text())


def chain_document(nodes: int = 3, k: int = 2) -> dict[str, Any]:
    """source -> work -> sink on `nodes` nodes in a row, 10 ms from one to the next; nothing pinned."""
    return {
        "name": "chain",
        "nodes": [{"id": f"n{u}"} for u in range(nodes)],
        "delay": [[0.01 * abs(u - v) for v in range(nodes)] for u in range(nodes)],
        "operators": [
            {"id": "source", "k": 1, "mu": 300, "source_rate": 100},
            {"id": "work", "k": k, "mu": 150, "state": 1e6},
            {"id": "sink", "k": 1, "mu": 200},
        ],
        "streams": [
            {"from": "source", "to": "work", "rate": 100},
            {"from": "work", "to": "sink", "rate": 100},
        ],
        "weights": {"r": 0.5, "c": 0.5, "d": 0.0},
        "bounds": {"r": 0.2, "c": 20, "d": 10},
    }


def settled_document() -> dict[str, Any]:
    """A chain whose present deployment stays: no other is worth the downtime of a change."""
    return chain_document() | {
        "current": {"source": {"n0": 1}, "work": {"n0": 1}, "sink": {"n2": 1}},
        "weights": {"r": 0.1, "c": 0.1, "d": 0.8},
        "bounds": {"r": 0.2, "c": 20, "d": 1},
    }


def reference_document(nodes: int, k: int) -> dict[str, Any]:
    """The reference application as the paper's Table IV counts it: nine streams, nobody pinned."""
    mu = {
        "data_source": 284, "parser": 233, "filter_by_coordinates": 253, "compute_route_id": 253,
        "metronome": 300, "count_by_window": 335, "partial_rank": 2371, "global_rank": 3000,
    }  # fmt: skip
    single = {"data_source", "metronome", "global_rank"}
    streams = [
        ("data_source", "parser"), ("data_source", "metronome"), ("parser", "filter_by_coordinates"),
        ("filter_by_coordinates", "compute_route_id"), ("filter_by_coordinates", "metronome"),
        ("compute_route_id", "count_by_window"), ("metronome", "count_by_window"),
        ("count_by_window", "partial_rank"), ("partial_rank", "global_rank"),
    ]  # fmt: skip
    return chain_document(nodes) | {
        "operators": [
            {"id": name, "k": 1 if name in single else k, "mu": rate}
            | ({"source_rate": 100} if name == "data_source" else {})
            for name, rate in mu.items()
        ],
        "streams": [{"from": source, "to": target, "rate": 50} for source, target in streams],
    }


#: Round numbers make ties and exactly met bounds likely, where errors hide.
_DELAYS = st.one_of(st.sampled_from([0.0, 0.01, 0.02, 0.05]), st.floats(0.0, 0.1))
_WEIGHTS = st.sampled_from(
    [
        (1, 0, 0),
        (0, 1, 0),
        (0, 0, 1),
        (0.5, 0.5, 0),
        (0.3, 0.3, 0.4),
        (0.6, 0, 0.4),
        (0, 0.6, 0.4),
        (0.9, 0.05, 0.05),
    ]
)


@st.composite
def documents(
    draw: st.DrawFn, *, deployments: int = 20_000, operators: int = 4, nodes: int = 4, apart: bool = False
) -> dict[str, Any]:
    """Random tiny instances: any DAG, all downtime models, with and without current, pins, traffic.

    `apart`: some of them with operators that may share no node.
    """
    node_count = draw(st.sampled_from([1, *range(2, nodes + 1), *range(2, nodes + 1)]))
    operator_count = draw(st.sampled_from([1, *range(2, operators + 1), *range(2, operators + 1)]))
    ids = [f"n{u}" for u in range(node_count)]
    edges = [(i, j) for j in range(operator_count) for i in range(j) if draw(st.integers(0, 2)) > 0]
    price = draw(st.sampled_from([0.0, 0.0, 0.02, 1.0, 20.0, "matrix"]))
    weights = draw(_WEIGHTS)
    document: dict[str, Any] = {
        "nodes": [_node(draw, name) for name in ids],
        "delay": _matrix(draw, node_count, _DELAYS),
        "link_cost": _matrix(draw, node_count, st.floats(0.0, 2.0)) if price == "matrix" else price,
        "operators": [_operator(draw, j, ids, source=all(t != j for _, t in edges)) for j in range(operator_count)],
        "streams": [
            {"from": f"op{i}", "to": f"op{j}", "rate": draw(st.sampled_from([0.0, 1.0, 10.0, 40.0]))} for i, j in edges
        ],
        "weights": dict(zip("rcd", weights, strict=True)),
        "bounds": {
            "r": draw(st.sampled_from([0.08, 0.15, 0.4, 5.0, 5.0])),
            "c": draw(st.sampled_from([6.0, 10.0, 30.0, 500.0])),
            "d": draw(st.sampled_from([0.8, 1.5, 10.0, 10.0])),
        },
        "downtime_model": draw(st.sampled_from(["generic", "storm", "live"])),
        "live": {"constant": draw(st.sampled_from([0.0, 0.05])), "per_byte": draw(st.sampled_from([0.0, 1e-6]))},
        "t_syn": draw(st.sampled_from([0.25, 0.25, 0.0, 1.0])),
    }
    if draw(st.booleans()):
        document["current"] = {
            operator["id"]: _placed(draw, operator["allowed"] or ids, operator["k"])
            for operator in document["operators"]
        }
    if draw(st.booleans()):
        document["live"]["tasks"] = {
            operator["id"]: {node: draw(st.integers(0, operator["k"])) for node in ids}
            for operator in document["operators"]
            if draw(st.integers(0, 4)) > 0
        }
    if apart:
        some = st.lists(st.sampled_from([f"op{j}" for j in range(operator_count)]), min_size=1, max_size=3)
        document["apart"] = draw(st.lists(some, max_size=2))
    size = 1
    for operator in document["operators"]:
        n, k = len(operator["allowed"] or ids), operator["k"]
        size *= sum(_multisets(n, r) for r in range(1, k + 1))
    assume(size <= deployments)
    return document


@st.composite
def problems(draw: st.DrawFn, **sizes: int) -> Problem:
    """The same as problems; those that validation refuses (capacity) are not drawn."""
    try:
        return problem_from_json(draw(documents(**sizes)))
    except FieldError:
        assume(False)
        raise


def _multisets(n: int, r: int) -> int:
    from math import comb

    return comb(n + r - 1, r)


def _matrix(draw: st.DrawFn, size: int, entry: st.SearchStrategy[float]) -> list[list[float]]:
    return [[0.0 if u == v else draw(entry) for v in range(size)] for u in range(size)]


def _node(draw: st.DrawFn, name: str) -> dict[str, Any]:
    return {
        "id": name,
        "res": draw(st.sampled_from([2, 2, 3, 4, 2.5, 1])),
        "speedup": draw(st.sampled_from([1.0, 1.0, 0.5, 2.0])),
        "t_spawn": draw(st.sampled_from([0.5, 0.1])),
        "ds_up": draw(st.sampled_from([0.005, 0.02])),
    }


def _operator(draw: st.DrawFn, position: int, ids: list[str], *, source: bool) -> dict[str, Any]:
    k = draw(st.integers(1, 3))
    curve: dict[str, Any] = {"mu": draw(st.sampled_from([333.0, 100.0, 60.0, 30.0]))}
    if draw(st.integers(0, 3)) == 0:
        falling = sorted((draw(st.floats(0.001, 0.05)) for _ in range(k)), reverse=True)
        curve = {"latency": [None if draw(st.integers(0, 7)) == 0 and r == 0 else s for r, s in enumerate(falling)]}
    return {
        "id": f"op{position}",
        "k": k,
        "cost": draw(st.sampled_from([0.0, 1.0, 1.0, 2.0])),
        "res": draw(st.sampled_from([1, 1, 1, 2, 0.5])),
        "state": draw(st.sampled_from([0, 1500, 2e6])),
        "code": draw(st.sampled_from([3e5, 5e6])),
        "source_rate": draw(st.sampled_from([10.0, 40.0])) if source else 0.0,
        "allowed": draw(st.one_of(st.none(), st.lists(st.sampled_from(ids), min_size=1, max_size=3, unique=True))),
    } | curve


def _placed(draw: st.DrawFn, ids: list[str], k: int) -> dict[str, int]:
    chosen = draw(st.lists(st.sampled_from(ids), min_size=1, max_size=k))
    return {node: chosen.count(node) for node in sorted(set(chosen))}
