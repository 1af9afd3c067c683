"""The instance format (JSON) to and from `Problem`: types and known keys are checked here, values there.

A parsed document is data from outside: nothing in it is trusted, and every complaint names the path.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from leeward.policies.edrp.problem.latency import MM1, ResponseCurve, Table
from leeward.policies.edrp.problem.polynomial import Polynomial
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.problem.values import Bounds, LiveDowntime, Node, Operator, ProblemError, Stream, Weights

T = TypeVar("T")

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
CURVES = ("mu", "latency", "polynomial")
#: `seed` and `optimum` belong to benchmark files; they are allowed and not looked at.
TOP_KEYS = frozenset(
    (
        *("name", "nodes", "delay", "link_cost", "operators", "streams", "current", "weights", "bounds"),
        *("t_syn", "downtime_model", "live", "seed", "optimum"),
    )
)


def read_problem(path: Path) -> Problem:
    """The problem in a JSON file; raises `ProblemError` also where it cannot be read or is not JSON."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ProblemError("file", str(path), f"cannot be read: {error}", remedy="name a readable file") from None
    try:
        document = json.loads(text, object_pairs_hook=_object_without_repeats)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ProblemError("file", str(path), f"is not JSON: {error}", remedy="correct the syntax") from None
    return problem_from_json(document)


def problem_from_json(document: object) -> Problem:
    """A problem from the parsed instance format; raises `ProblemError` naming the first wrong field."""
    top = _object("the document", document, TOP_KEYS, required=("nodes", "delay", "operators", "streams"))
    for key in ("weights", "bounds"):
        if key not in top:
            raise ProblemError(key, None, "is missing", remedy=f"give {key}.r, {key}.c and {key}.d")
    name = top.get("name", "")
    if not isinstance(name, str):
        raise _wrong_type("name", name, "text")
    live = top.get("live")
    return Problem(
        name=name,
        nodes=_each("nodes", top["nodes"], _node),
        delay_s=_matrix("delay", top["delay"]),
        link_cost=_link_cost(top.get("link_cost", 0.0)),
        operators=_each("operators", top["operators"], _operator),
        streams=_each("streams", top["streams"], _stream),
        current=_deployment("current", top.get("current")),
        weights=Weights(**_numbers("weights", top["weights"], ("r", "c", "d"))),
        bounds=Bounds(**_numbers("bounds", top["bounds"], ("r", "c", "d"))),
        sync_s=_number("t_syn", top.get("t_syn", 0.25)),
        downtime_model=_text("downtime_model", top.get("downtime_model", "generic")),  # type: ignore[arg-type]
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
        case Table(values_s=values):
            document["latency"] = [None if math.isinf(value) else value for value in values]
        case Polynomial(coefficients=coefficients, low_tps=low, high_tps=high, residual_s=residual):
            document["polynomial"] = {"coefficients": list(coefficients), "range": [low, high], "residual": residual}
        case other:
            raise TypeError(f"the format has no key for the curve {other!r}")
    return document


def _node(field: str, value: object) -> Node:
    entry = _object(field, value, frozenset(NODE_KEYS) | {"id"}, required=("id",))
    numbers = {NODE_KEYS[key]: _number(f"{field}.{key}", entry[key]) for key in entry if key != "id"}
    return Node(id=_text(f"{field}.id", entry["id"]), **numbers)


def _operator(field: str, value: object) -> Operator:
    keys = frozenset(OPERATOR_KEYS) | {"id", "k", "allowed", *CURVES}
    entry = _object(field, value, keys, required=("id", "k"))
    allowed = entry.get("allowed")
    return Operator(
        id=_text(f"{field}.id", entry["id"]),
        k=_whole(f"{field}.k", entry["k"]),
        curve=_curve(field, entry),
        allowed=None if allowed is None else _each(f"{field}.allowed", allowed, _text),
        **{OPERATOR_KEYS[key]: _number(f"{field}.{key}", entry[key]) for key in entry if key in OPERATOR_KEYS},
    )


def _curve(field: str, entry: dict[str, Any]) -> ResponseCurve:
    given = [key for key in CURVES if key in entry]
    if len(given) != 1:
        what = " and ".join(given) if given else "none"
        raise ProblemError(field, what, "needs one of mu, latency and polynomial", remedy="give exactly one of them")
    match given[0]:
        case "mu":
            return MM1(mu=_number(f"{field}.mu", entry["mu"]))
        case "latency":
            return Table(values_s=_each(f"{field}.latency", entry["latency"], _seconds_or_null))
    return _polynomial(f"{field}.polynomial", entry["polynomial"])


def _polynomial(field: str, value: object) -> Polynomial:
    """`coefficients` c_0, c_1, ... (s, s per tuple/s, ...), `range` measured (tuples/s), `residual` (s, optional)."""
    known = frozenset(("coefficients", "range", "residual"))
    entry = _object(field, value, known, required=("coefficients", "range"))
    measured = _each(f"{field}.range", entry["range"], _number)
    if len(measured) != 2:
        raise ProblemError(f"{field}.range", list(measured), "is not a range", remedy="give two rates")
    return Polynomial(
        coefficients=_each(f"{field}.coefficients", entry["coefficients"], _number),
        low_tps=measured[0],
        high_tps=measured[1],
        residual_s=_number(f"{field}.residual", entry.get("residual", 0.0)),
    )


def _seconds_or_null(field: str, value: object) -> float:
    """JSON has no infinity: null says that a replica cannot keep up."""
    return math.inf if value is None else _number(field, value)


def _stream(field: str, value: object) -> Stream:
    entry = _object(field, value, frozenset(("from", "to", "rate")), required=("from", "to", "rate"))
    return Stream(
        source=_text(f"{field}.from", entry["from"]),
        target=_text(f"{field}.to", entry["to"]),
        rate=_number(f"{field}.rate", entry["rate"]),
    )


def _live(value: object) -> LiveDowntime:
    entry = _object("live", value, frozenset(("constant", "per_byte", "tasks")), required=("constant", "per_byte"))
    return LiveDowntime(
        constant_s=_number("live.constant", entry["constant"]),
        per_byte_s=_number("live.per_byte", entry["per_byte"]),
        tasks=_deployment("live.tasks", entry.get("tasks")),
    )


def _deployment(field: str, value: object) -> dict[str, dict[str, int]] | None:
    if value is None:
        return None
    deployment: dict[str, dict[str, int]] = {}
    for name, placed in _object(field, value).items():
        entry = _object(f"{field}.{name}", placed)
        deployment[name] = {node: _whole(f"{field}.{name}.{node}", count) for node, count in entry.items()}
    return deployment


def _link_cost(value: object) -> float | tuple[tuple[float, ...], ...]:
    return _matrix("link_cost", value) if isinstance(value, list) else _number("link_cost", value)


def _matrix(field: str, value: object) -> tuple[tuple[float, ...], ...]:
    return _each(field, value, _row)


def _row(field: str, value: object) -> tuple[float, ...]:
    if isinstance(value, list) and {type(item) for item in value} == {float}:
        return tuple(value)  # a million entries of a large cluster; `check_problem` looks at their values
    return _each(field, value, _number)


def _numbers(field: str, value: object, keys: tuple[str, ...]) -> dict[str, float]:
    entry = _object(field, value, frozenset(keys), required=keys)
    return {key: _number(f"{field}.{key}", entry[key]) for key in keys}


def _each(field: str, value: object, read: Callable[[str, object], T]) -> tuple[T, ...]:
    if not isinstance(value, list):
        raise _wrong_type(field, value, "a list")
    return tuple(read(f"{field}[{position}]", item) for position, item in enumerate(value))


def _object(
    field: str, value: object, known: frozenset[str] | None = None, *, required: tuple[str, ...] = ()
) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _wrong_type(field, value, "an object")
    for key in value:
        if not isinstance(key, str):
            raise _wrong_type(field, key, "text as key")
        if known is not None and key not in known:
            raise ProblemError(
                f"{field}.{key}",
                value[key],
                "unknown key",
                remedy=f"remove it; known: {', '.join(sorted(known))}",
            )
    for key in required:
        if key not in value:
            raise ProblemError(f"{field}.{key}", None, "is missing", remedy="add it")
    return value


def _object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entry = dict(pairs)
    if len(entry) < len(pairs):
        repeated = sorted({key for key, _ in pairs if sum(key == other for other, _ in pairs) > 1})
        raise ProblemError("file", repeated, "a key is given twice in one object", remedy="keep one of them")
    return entry


def _number(field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong_type(field, value, "a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ProblemError(field, value, "is not a finite number", remedy="give a finite number")
    return number


def _whole(field: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong_type(field, value, "a whole number")
    return value


def _text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise _wrong_type(field, value, "text")
    return value


def _wrong_type(field: str, value: object, wanted: str) -> ProblemError:
    return ProblemError(field, value, f"must be {wanted}, not {type(value).__name__}", remedy=f"give {wanted}")
