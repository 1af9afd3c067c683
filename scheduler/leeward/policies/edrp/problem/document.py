"""The instance format (JSON) to and from `Problem`: types and known keys are checked here, values there.

A parsed document is data from outside: nothing in it is trusted, and every complaint names the path.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from leeward.core import fields
from leeward.core.fields import FieldError
from leeward.policies.edrp.problem.latency import MG1, MM1, ResponseCurve, Table
from leeward.policies.edrp.problem.polynomial import Polynomial
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Bounds, LiveDowntime, Node, Operator, Stream, Weights

#: JSON key -> field of `Node`; all but `id` are optional numbers.
NODE_KEYS = {
    "res": "res",
    "speedup": "speedup",
    "t_spawn": "spawn_s",
    "ds_up": "store_up_s",
    "ds_down": "store_down_s",
    "r_up": "store_up_rate",
    "r_down": "store_down_rate",
    "ls_write": "swap_write_rate",
    "ls_read": "swap_read_rate",
}
OPERATOR_KEYS = {
    "cost": "cost",
    "res": "res",
    "state": "state_bytes",
    "code": "code_bytes",
    "source_rate": "source_rate",
}
#: The forms of a response-time curve; an operator has one.
CURVES = ("mu", "queue", "latency", "polynomial")
#: `seed` and `optimum` belong to benchmark files; they are allowed and not looked at.
TOP_KEYS = frozenset(
    (
        *("name", "nodes", "delay", "link_cost", "operators", "streams", "current", "weights", "bounds"),
        *("t_syn", "downtime_model", "live", "apart", "seed", "optimum"),
    )
)


def read_problem(path: Path) -> Problem:
    """The problem in a JSON file; raises `FieldError` also where it cannot be read or is not JSON."""
    return problem_from_json(fields.read_json(path))


def problem_from_json(document: object) -> Problem:
    """A problem from the parsed instance format; raises `FieldError` naming the first wrong field."""
    top = fields.mapping("the document", document, TOP_KEYS, required=("nodes", "delay", "operators", "streams"))
    for key in ("weights", "bounds"):
        if key not in top:
            raise FieldError(key, None, "is missing", remedy=f"give {key}.r, {key}.c and {key}.d")
    name = top.get("name", "")
    if not isinstance(name, str):
        raise fields.wrong_type("name", name, "text")
    live = top.get("live")
    return Problem(
        name=name,
        nodes=fields.each("nodes", top["nodes"], _node),
        delay_s=fields.matrix("delay", top["delay"]),
        link_cost=_link_cost(top.get("link_cost", 0.0)),
        operators=fields.each("operators", top["operators"], _operator),
        streams=fields.each("streams", top["streams"], _stream),
        apart=fields.each("apart", top.get("apart", []), _names),
        current=_deployment("current", top.get("current")),
        weights=Weights(**_numbers("weights", top["weights"], ("r", "c", "d"))),
        bounds=Bounds(**_numbers("bounds", top["bounds"], ("r", "c", "d"))),
        sync_s=fields.number("t_syn", top.get("t_syn", 0.25)),
        downtime_model=fields.text("downtime_model", top.get("downtime_model", "generic")),  # type: ignore[arg-type]
        live=None if live is None else _live(live),
    )


def problem_to_json(problem: Problem) -> dict[str, Any]:
    """See `Problem.to_json`."""
    document: dict[str, Any] = {
        "name": problem.name,
        "nodes": [
            {"id": node.id} | {key: getattr(node, field) for key, field in NODE_KEYS.items()} for node in problem.nodes
        ],
        "delay": [list(row) for row in problem.delay_s],
        "link_cost": problem.link_cost
        if isinstance(problem.link_cost, float | int)
        else [list(row) for row in problem.link_cost],
        "operators": [_operator_to_json(operator) for operator in problem.operators],
        "streams": [{"from": s.source, "to": s.target, "rate": s.rate} for s in problem.streams],
        "weights": {"r": problem.weights.r, "c": problem.weights.c, "d": problem.weights.d},
        "bounds": {"r": problem.bounds.r, "c": problem.bounds.c, "d": problem.bounds.d},
        "t_syn": problem.sync_s,
        "downtime_model": problem.downtime_model,
    }
    if problem.apart:
        document["apart"] = [list(names) for names in problem.apart]
    if problem.current is not None:
        document["current"] = {name: dict(placed) for name, placed in problem.current.items()}
    if problem.live is not None:
        document["live"] = {"constant": problem.live.constant_s, "per_byte": problem.live.per_byte_s}
        if problem.live.tasks is not None:
            document["live"]["tasks"] = {name: dict(running) for name, running in problem.live.tasks.items()}
    return document


def _operator_to_json(operator: Operator) -> dict[str, Any]:
    document = {"id": operator.id, "k": operator.k}
    document |= {key: getattr(operator, field) for key, field in OPERATOR_KEYS.items()}
    document["allowed"] = None if operator.allowed is None else list(operator.allowed)
    match operator.curve:
        case MM1(mu=mu):
            document["mu"] = mu
        case MG1(mu=mu, rest=rest, growth=growth):
            document["queue"] = {"mu": mu, "rest": rest, "growth": growth}
        case Table(values_s=values):
            document["latency"] = [None if math.isinf(value) else value for value in values]
        case Polynomial(coefficients=coefficients, low_tps=low, high_tps=high, residual_s=residual):
            document["polynomial"] = {"coefficients": list(coefficients), "range": [low, high], "residual": residual}
        case other:
            raise TypeError(f"the format has no key for the curve {other!r}")
    return document


def _node(field: str, value: object) -> Node:
    entry = fields.mapping(field, value, frozenset(NODE_KEYS) | {"id"}, required=("id",))
    numbers = {NODE_KEYS[key]: fields.number(f"{field}.{key}", entry[key]) for key in entry if key != "id"}
    return Node(id=fields.text(f"{field}.id", entry["id"]), **numbers)


def _operator(field: str, value: object) -> Operator:
    keys = frozenset(OPERATOR_KEYS) | {"id", "k", "allowed", *CURVES}
    entry = fields.mapping(field, value, keys, required=("id", "k"))
    allowed = entry.get("allowed")
    return Operator(
        id=fields.text(f"{field}.id", entry["id"]),
        k=fields.whole(f"{field}.k", entry["k"]),
        curve=_curve(field, entry),
        allowed=None if allowed is None else fields.each(f"{field}.allowed", allowed, fields.text),
        **{OPERATOR_KEYS[key]: fields.number(f"{field}.{key}", entry[key]) for key in entry if key in OPERATOR_KEYS},
    )


def _curve(field: str, entry: dict[str, Any]) -> ResponseCurve:
    given = [key for key in CURVES if key in entry]
    if len(given) != 1:
        what = " and ".join(given) if given else "none"
        raise FieldError(
            field, what, "needs one of mu, queue, latency and polynomial", remedy="give exactly one of them"
        )
    match given[0]:
        case "mu":
            return MM1(mu=fields.number(f"{field}.mu", entry["mu"]))
        case "queue":
            return MG1(**_numbers(f"{field}.queue", entry["queue"], ("mu", "rest", "growth")))
        case "latency":
            return Table(values_s=fields.each(f"{field}.latency", entry["latency"], _seconds_or_null))
    return _polynomial(f"{field}.polynomial", entry["polynomial"])


def _polynomial(field: str, value: object) -> Polynomial:
    """`coefficients` c_0, c_1, ... (s, s per tuple/s, ...), `range` measured (tuples/s), `residual` (s, optional)."""
    known = frozenset(("coefficients", "range", "residual"))
    entry = fields.mapping(field, value, known, required=("coefficients", "range"))
    measured = fields.each(f"{field}.range", entry["range"], fields.number)
    if len(measured) != 2:
        raise FieldError(f"{field}.range", list(measured), "is not a range", remedy="give two rates")
    return Polynomial(
        coefficients=fields.each(f"{field}.coefficients", entry["coefficients"], fields.number),
        low_tps=measured[0],
        high_tps=measured[1],
        residual_s=fields.number(f"{field}.residual", entry.get("residual", 0.0)),
    )


def _seconds_or_null(field: str, value: object) -> float:
    """JSON has no infinity: null says that a replica cannot keep up."""
    return math.inf if value is None else fields.number(field, value)


def _stream(field: str, value: object) -> Stream:
    entry = fields.mapping(field, value, frozenset(("from", "to", "rate")), required=("from", "to", "rate"))
    return Stream(
        source=fields.text(f"{field}.from", entry["from"]),
        target=fields.text(f"{field}.to", entry["to"]),
        rate=fields.number(f"{field}.rate", entry["rate"]),
    )


def _names(field: str, value: object) -> tuple[str, ...]:
    return fields.each(field, value, fields.text)


def _live(value: object) -> LiveDowntime:
    entry = fields.mapping(
        "live", value, frozenset(("constant", "per_byte", "tasks")), required=("constant", "per_byte")
    )
    return LiveDowntime(
        constant_s=fields.number("live.constant", entry["constant"]),
        per_byte_s=fields.number("live.per_byte", entry["per_byte"]),
        tasks=_deployment("live.tasks", entry.get("tasks")),
    )


def _deployment(field: str, value: object) -> dict[str, dict[str, int]] | None:
    if value is None:
        return None
    deployment: dict[str, dict[str, int]] = {}
    for name, placed in fields.mapping(field, value).items():
        entry = fields.mapping(f"{field}.{name}", placed)
        deployment[name] = {node: fields.whole(f"{field}.{name}.{node}", count) for node, count in entry.items()}
    return deployment


def _link_cost(value: object) -> float | tuple[tuple[float, ...], ...]:
    return fields.matrix("link_cost", value) if isinstance(value, list) else fields.number("link_cost", value)


def _numbers(field: str, value: object, keys: tuple[str, ...]) -> dict[str, float]:
    entry = fields.mapping(field, value, frozenset(keys), required=keys)
    return {key: fields.number(f"{field}.{key}", entry[key]) for key in keys}
