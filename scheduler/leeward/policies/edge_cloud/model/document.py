"""The instance format (JSON) to values, and an evaluation to JSON: types and known keys are checked here.

A parsed document is data from outside: nothing in it is trusted, and every complaint names the path.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.evaluate import Change, Evaluation
from leeward.policies.edge_cloud.model.fabric import Fabric
from leeward.policies.edge_cloud.model.instance import Instance
from leeward.policies.edge_cloud.model.values import Cloud, Edge, ModelError, Network, Placement, Query, Resource

T = TypeVar("T")

#: `note`, `expected` and what `after` has beside its placement are for readers; they are allowed and not looked at.
TOP_KEYS = frozenset(("note", "instance", "placement", "expected", "after"))
AFTER_KEYS = frozenset(
    ("placement", "eta", "note", "expected", "migrations", "stabilization_shared", "stabilization_exclusive")
)
INSTANCE_KEYS = ("lam", "eps", "latency", "bandwidth", "pi_edge", "pi_cloud", "resources", "dataflows")
#: JSON key -> field of `Edge`.
EDGE_KEYS = {"battery_mAh": "battery_mah", "base_mA": "base_ma", "recharge_s": "recharge_s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An instance with a placement, and with the placement after a change if the file has one."""

    instance: Instance
    placement: tuple[Placement, ...]
    after: tuple[Placement, ...] | None
    #: eta, s.
    migration_s: float


def read_case(path: Path) -> Case:
    """The case in a JSON file; raises `ModelError` also where it cannot be read or is not JSON."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_object_without_repeats)
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError("file", str(path), f"cannot be read: {error}", remedy="name a readable file") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise ModelError("file", str(path), f"is not JSON: {error}", remedy="correct the syntax") from None
    return case_from_json(document)


def case_from_json(document: object) -> Case:
    """A case from the parsed format; raises `ModelError` naming the first wrong field."""
    top = _object("the document", document, TOP_KEYS, required=("instance", "placement"))
    after, migration_s = None, 1.0
    if top.get("after") is not None:
        entry = _object("after", top["after"], AFTER_KEYS, required=("placement",))
        after = _placements("after.placement", entry["placement"])
        migration_s = _number("after.eta", entry.get("eta", 1.0))
    return Case(
        instance=instance_from_json(top["instance"]),
        placement=_placements("placement", top["placement"]),
        after=after,
        migration_s=migration_s,
    )


def instance_from_json(document: object) -> Instance:
    """An instance from the parsed format; its matrices of the network have a row for each resource."""
    known = frozenset(("name", "mode", *INSTANCE_KEYS))
    entry = _object("instance", document, known, required=INSTANCE_KEYS)
    resources = _each("resources", entry["resources"], _resource)
    fabric = Fabric(
        resources=resources,
        lam_s=_matrix("lam", entry["lam"]),
        eps_mah=_matrix("eps", entry["eps"]),
        network=Network(
            site=tuple(range(len(resources))),
            latency_s=_matrix("latency", entry["latency"]),
            bandwidth_bps=_matrix("bandwidth", entry["bandwidth"]),
        ),
        pi_edge=_row("pi_edge", entry["pi_edge"]),
        pi_cloud=_row("pi_cloud", entry["pi_cloud"]),
        mode=_text("mode", entry.get("mode", "shared")),  # type: ignore[arg-type]
    )
    dataflows = entry["dataflows"]
    if not isinstance(dataflows, list):
        raise _wrong_type("dataflows", dataflows, "a list")
    return Instance(fabric=fabric, dataflows=tuple(_dataflow(place, value) for place, value in enumerate(dataflows)))


def _resource(field: str, value: object) -> Resource:
    entry = _object(field, value, frozenset(("kind", *EDGE_KEYS)), required=("kind",))
    if entry["kind"] == "cloud":
        extra = [key for key in EDGE_KEYS if entry.get(key) is not None]
        if extra:
            raise ModelError(f"{field}.{extra[0]}", entry[extra[0]], "a cloud machine has none", remedy="remove it")
        return Cloud()
    if entry["kind"] != "edge":
        raise ModelError(f"{field}.kind", entry["kind"], "is unknown", remedy="choose one of edge, cloud")
    _object(field, entry, required=tuple(EDGE_KEYS))
    return Edge(**{name: _number(f"{field}.{key}", entry[key]) for key, name in EDGE_KEYS.items()})


def _dataflow(position: int, value: object) -> Dataflow:
    """A dataflow without a name gets the one of its place."""
    field = f"dataflows[{position}]"
    entry = _object(field, value, frozenset(("name", "rate", "queries", "edges")), required=("queries", "edges"))
    queries = _each(f"{field}.queries", entry["queries"], _query)
    edges = _each(f"{field}.edges", entry["edges"], _edge)
    name = _text(f"{field}.name", entry.get("name", f"dataflow {position}"))
    rate = _number(f"{field}.rate", entry.get("rate", 0.0))
    try:
        return Dataflow(name=name, queries=queries, edges=edges, rate=rate)
    except ModelError as error:
        # the dataflow does not know its place in the file
        raise ModelError(f"{field}.{error.field}", error.value, error.reason, remedy=error.remedy.rstrip(".")) from None


def _query(field: str, value: object) -> Query:
    known = frozenset(("type", "sigma", "delta", "kind", "rate", "pin", "name"))
    entry = _object(field, value, known, required=("type", "sigma", "delta"))
    pin = None if entry.get("pin") is None else _whole(f"{field}.pin", entry["pin"])
    return Query(
        type=_whole(f"{field}.type", entry["type"]),
        selectivity=_number(f"{field}.sigma", entry["sigma"]),
        event_bytes=_number(f"{field}.delta", entry["delta"]),
        kind=_text(f"{field}.kind", entry.get("kind", "query")),  # type: ignore[arg-type]
        rate=None if entry.get("rate") is None else _number(f"{field}.rate", entry["rate"]),
        pin=None if pin == -1 else pin,
    )


def _edge(field: str, value: object) -> tuple[int, int]:
    ends = _each(field, value, _whole)
    if len(ends) != 2:
        raise ModelError(field, list(ends), "is not an edge", remedy="give two positions of queries")
    return ends[0], ends[1]


def _placements(field: str, value: object) -> tuple[Placement, ...]:
    return _each(field, value, lambda name, row: _each(name, row, _whole))


def _matrix(field: str, value: object) -> tuple[tuple[float, ...], ...]:
    return _each(field, value, _row)


def _row(field: str, value: object) -> tuple[float, ...]:
    if isinstance(value, list) and {type(item) for item in value} == {float}:
        return tuple(value)  # a million entries of a large fabric; `Fabric` looks at their values
    return _each(field, value, _number)


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
        if known is not None and key not in known:
            remedy = f"remove it; known: {', '.join(sorted(known))}"
            raise ModelError(f"{field}.{key}", value[key], "unknown key", remedy=remedy)
    for key in required:
        if key not in value:
            raise ModelError(f"{field}.{key}", None, "is missing", remedy="add it")
    return value


def _object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entry = dict(pairs)
    if len(entry) < len(pairs):
        repeated = sorted({key for key, _ in pairs if sum(key == other for other, _ in pairs) > 1})
        raise ModelError("file", repeated, "a key is given twice in one object", remedy="keep one of them")
    return entry


def _number(field: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong_type(field, value, "a number")
    if not math.isfinite(value):
        raise ModelError(field, value, "is not a finite number", remedy="give a finite number")
    try:
        return float(value)
    except OverflowError:
        raise ModelError(field, value, "is too large", remedy="give a number below 1e308") from None


def _whole(field: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong_type(field, value, "a whole number")
    return value


def _text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise _wrong_type(field, value, "text")
    return value


def _wrong_type(field: str, value: object, wanted: str) -> ModelError:
    return ModelError(field, value, f"must be {wanted}, not {type(value).__name__}", remedy=f"give {wanted}")


def evaluation_to_json(found: Evaluation) -> dict[str, Any]:
    """The keys of the format's `expected`."""
    return {
        "makespans": list(found.makespans),
        "total": found.total,
        "w_in": [list(row) for row in found.w_in],
        "w_out": [list(row) for row in found.w_out],
        "lengths": [list(row) for row in found.lengths],
        "violations": [list(violation) for violation in found.violations],
        "service_time": list(found.service_time),
        "energy_mAh": list(found.energy_mah),
    }


def change_to_json(found: Change) -> dict[str, Any]:
    """The keys of the format's `after` that are about the change; null: a moved query never catches up."""
    times = {
        "stabilization_shared": found.stabilization_shared,
        "stabilization_exclusive": found.stabilization_exclusive,
    }
    return {"migrations": found.migrations} | {key: s if math.isfinite(s) else None for key, s in times.items()}
