"""The instance format (JSON) to values, and an evaluation to JSON: types and known keys are checked here.

A parsed document is data from outside: nothing in it is trusted, and every complaint names the path.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leeward.core import fields
from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.evaluate import Change, Evaluation
from leeward.policies.edge_cloud.model.fabric import Fabric
from leeward.policies.edge_cloud.model.instance import Instance
from leeward.policies.edge_cloud.model.values import Cloud, Edge, Network, Placement, Query, Resource

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
    """The case in a JSON file; raises `FieldError` also where it cannot be read or is not JSON."""
    return case_from_json(fields.read_json(path))


def case_from_json(document: object) -> Case:
    """A case from the parsed format; raises `FieldError` naming the first wrong field."""
    top = fields.mapping("the document", document, TOP_KEYS, required=("instance", "placement"))
    after, migration_s = None, 1.0
    if top.get("after") is not None:
        entry = fields.mapping("after", top["after"], AFTER_KEYS, required=("placement",))
        after = _placements("after.placement", entry["placement"])
        migration_s = fields.number("after.eta", entry.get("eta", 1.0))
    return Case(
        instance=instance_from_json(top["instance"]),
        placement=_placements("placement", top["placement"]),
        after=after,
        migration_s=migration_s,
    )


def instance_from_json(document: object) -> Instance:
    """An instance from the parsed format; its matrices of the network have a row for each resource."""
    known = frozenset(("name", "mode", *INSTANCE_KEYS))
    entry = fields.mapping("instance", document, known, required=INSTANCE_KEYS)
    resources = fields.each("resources", entry["resources"], _resource)
    fabric = Fabric(
        resources=resources,
        lam_s=fields.matrix("lam", entry["lam"]),
        eps_mah=fields.matrix("eps", entry["eps"]),
        network=Network(
            site=tuple(range(len(resources))),
            latency_s=fields.matrix("latency", entry["latency"]),
            bandwidth_bps=fields.matrix("bandwidth", entry["bandwidth"]),
        ),
        pi_edge=fields.row("pi_edge", entry["pi_edge"]),
        pi_cloud=fields.row("pi_cloud", entry["pi_cloud"]),
        mode=fields.text("mode", entry.get("mode", "shared")),  # type: ignore[arg-type]
    )
    dataflows = entry["dataflows"]
    if not isinstance(dataflows, list):
        raise fields.wrong_type("dataflows", dataflows, "a list")
    return Instance(fabric=fabric, dataflows=tuple(_dataflow(place, value) for place, value in enumerate(dataflows)))


def _resource(field: str, value: object) -> Resource:
    entry = fields.mapping(field, value, frozenset(("kind", *EDGE_KEYS)), required=("kind",))
    if entry["kind"] == "cloud":
        extra = [key for key in EDGE_KEYS if entry.get(key) is not None]
        if extra:
            raise FieldError(f"{field}.{extra[0]}", entry[extra[0]], "a cloud machine has none", remedy="remove it")
        return Cloud()
    if entry["kind"] != "edge":
        raise FieldError(f"{field}.kind", entry["kind"], "is unknown", remedy="choose one of edge, cloud")
    fields.mapping(field, entry, required=tuple(EDGE_KEYS))
    return Edge(**{name: fields.number(f"{field}.{key}", entry[key]) for key, name in EDGE_KEYS.items()})


def _dataflow(position: int, value: object) -> Dataflow:
    """A dataflow without a name gets the one of its place."""
    field = f"dataflows[{position}]"
    entry = fields.mapping(field, value, frozenset(("name", "rate", "queries", "edges")), required=("queries", "edges"))
    queries = fields.each(f"{field}.queries", entry["queries"], _query)
    edges = fields.each(f"{field}.edges", entry["edges"], _edge)
    name = fields.text(f"{field}.name", entry.get("name", f"dataflow {position}"))
    rate = fields.number(f"{field}.rate", entry.get("rate", 0.0))
    try:
        return Dataflow(name=name, queries=queries, edges=edges, rate=rate)
    except FieldError as error:
        # the dataflow does not know its place in the file
        raise FieldError(f"{field}.{error.field}", error.value, error.reason, remedy=error.remedy.rstrip(".")) from None


def _query(field: str, value: object) -> Query:
    known = frozenset(("type", "sigma", "delta", "kind", "rate", "pin", "name"))
    entry = fields.mapping(field, value, known, required=("type", "sigma", "delta"))
    pin = None if entry.get("pin") is None else fields.whole(f"{field}.pin", entry["pin"])
    return Query(
        type=fields.whole(f"{field}.type", entry["type"]),
        selectivity=fields.number(f"{field}.sigma", entry["sigma"]),
        event_bytes=fields.number(f"{field}.delta", entry["delta"]),
        kind=fields.text(f"{field}.kind", entry.get("kind", "query")),  # type: ignore[arg-type]
        rate=None if entry.get("rate") is None else fields.number(f"{field}.rate", entry["rate"]),
        pin=None if pin == -1 else pin,
    )


def _edge(field: str, value: object) -> tuple[int, int]:
    ends = fields.each(field, value, fields.whole)
    if len(ends) != 2:
        raise FieldError(field, list(ends), "is not an edge", remedy="give two positions of queries")
    return ends[0], ends[1]


def _placements(field: str, value: object) -> tuple[Placement, ...]:
    return fields.each(field, value, lambda name, row: fields.each(name, row, fields.whole))


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
