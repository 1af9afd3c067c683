"""The paper's quantities for a given instance of AgileDART, and those of ours beside them; see `document.py`."""

from __future__ import annotations

from math import isfinite
from random import Random
from typing import Any

from leeward.policies.agiledart.document import Case, Paths, Placement, Recovery, Scaling
from leeward.policies.agiledart.overlay.directory import wanted
from leeward.policies.agiledart.overlay.ids import hops_bound, id_of, nearness, to_bytes
from leeward.policies.agiledart.paths.planners import along
from leeward.policies.agiledart.recovery.tuning import central_s, papers_s, rebuild_s, whole_fragments_s
from leeward.policies.agiledart.scaling.health import health, need, solution, whole
from leeward.policies.agiledart.scaling.rules import aim, secant


def evaluate(case: Case) -> dict[str, Any]:
    """A section of quantities for each section of the case; None: an infinite or undefined one. Times in s."""
    found: dict[str, Any] = {}
    if case.scaling is not None:
        found["scaling"] = _scaling(case.scaling)
    if case.recovery is not None:
        found["recovery"] = _recovery(case.recovery)
    if case.paths is not None:
        found["paths"] = _paths(case.paths)
    if case.placement is not None:
        found["placement"] = _placement(case.placement)
    return found


def _scaling(case: Scaling) -> dict[str, Any]:
    load = case.load
    f, f_second = (health(x, load, q=case.q, a=case.a) for x in (load.x, case.second))
    needed = need(load, drain_s=case.drain_s)
    goal = aim(needed, case.need_error, load.R / load.r, case.rate_error) if needed > 0 else None
    return {
        "health": _finite(f), "health_second": _finite(f_second),
        "solution": solution(load, q=case.q, a=case.a),
        "secant_x": secant(case.second, f_second, load.x, f),
        "need": needed, "guarded_aim": goal,
        "guarded_x": max(1, whole(goal * needed)) if goal is not None else 1,
    }  # fmt: skip


def _recovery(case: Recovery) -> dict[str, Any]:
    facts, fastest = case.facts, sorted(case.facts.uplinks, reverse=True)
    return {
        "papers_s": papers_s(case.size, case.m, case.k, fastest[-1]) if case.m + case.k > 1 else None,
        "rebuild_s": rebuild_s(case.size, case.m, case.k, facts),
        "central_s": central_s(case.size, case.store_uplink, facts.download, facts.setup_s),
        "whole_fragments_s": whole_fragments_s(case.size, case.m, fastest, facts.download, facts.setup_s),
    }


def _paths(case: Paths) -> dict[str, Any]:
    network, unused = case.network, Random(0)  # KL draws nothing
    omega = [case.kl(record, case.tau, unused) for record in case.records]
    ahead = network.to_sink(omega)
    links = []
    for (tail, head), record, cost in zip(network.links, case.records, omega, strict=True):
        alpha, beta = case.thompson.beta(record)
        links.append(
            {
                "from": tail, "to": head, "theta_hat": record.delivered / record.attempts if record.attempts else None,
                "omega": cost, "C": cost + ahead[head], "alpha": alpha, "beta": beta,
            }
        )  # fmt: skip
    path = [0, *(network.links[link][1] for link in along(network, omega, ahead))]
    return {"J": ahead, "path": path, "links": links}


def _placement(case: Placement) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if case.nodes is not None:
        found["hops_bound"] = hops_bound(case.nodes)
    if case.zones:
        found["schedulers"] = {zone: wanted(count) for zone, count in case.zones.items()}
    if case.key is not None:
        key = id_of(case.key)
        nearest = min(case.names, key=lambda name: nearness(id_of(name), key))
        found |= {"key_id": _hex(key), "nearest": nearest, "nearest_id": _hex(id_of(nearest))}
    return found


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _hex(key: int) -> str:
    return to_bytes(key).hex()
