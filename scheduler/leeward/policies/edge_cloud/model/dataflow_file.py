"""A dataflow in a file of its own (JSON), as it is submitted to Storm.

The instance format's dataflow, with names where an instance has numbers: a query's `type` is a name of the benchmark,
and a source's `pin` is the node that has its sensor.

    {"name": "d1",
     "queries": [{"kind": "source", "type": "filter-most", "sigma": 1, "delta": 400, "rate": 2, "pin": "edge-1"},
                 {"kind": "query", "type": "sliding-10", "sigma": 0.5, "delta": 200},
                 {"kind": "sink", "type": "filter-most", "sigma": 1, "delta": 100}],
     "edges": [[0, 1], [1, 2]]}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leeward.core import fields
from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.benchmark import NUMBER, TYPES
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.values import Query, check_one_of

QUERY_KEYS = frozenset(("kind", "type", "sigma", "delta", "rate", "pin"))


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenDataflow:
    """A dataflow whose pins count in `nodes`, the names of the nodes that have its sensors."""

    dataflow: Dataflow
    nodes: tuple[str, ...]


def read_dataflow(path: Path) -> WrittenDataflow:
    """The dataflow in a JSON file; raises `FieldError` also where it cannot be read or is not JSON."""
    return dataflow_from_json(fields.read_json(path))


def dataflow_from_json(document: object) -> WrittenDataflow:
    """The dataflow of a parsed file; each source needs a rate.  Raises `FieldError` naming the first wrong field."""
    top = fields.mapping("the document", document, frozenset(("name", "queries", "edges")), required=("name",))
    fields.mapping("the document", document, required=("queries", "edges"))
    nodes: list[str] = []
    queries = fields.each("queries", top["queries"], lambda field, value: _query(field, value, nodes))
    for v, query in enumerate(queries):
        if query.kind == "source" and not query.rate:
            raise FieldError(f"queries[{v}].rate", query.rate, "a source emits", remedy="give events/s, more than 0")
    dataflow = Dataflow(
        name=fields.text("name", top["name"]), queries=queries, edges=fields.each("edges", top["edges"], _edge)
    )
    return WrittenDataflow(dataflow=dataflow, nodes=tuple(nodes))


def dataflow_to_json(dataflow: Dataflow, nodes: Sequence[str]) -> dict[str, Any]:
    """The document of a dataflow whose pins count in `nodes`; `dataflow_from_json` reads it back."""
    queries = []
    for query in dataflow.queries:
        entry: dict[str, object] = {
            "kind": query.kind, "type": TYPES[query.type].name, "sigma": query.selectivity, "delta": query.event_bytes
        }  # fmt: skip
        if query.kind == "source":
            entry["rate"] = query.rate
        if query.pin is not None:
            entry["pin"] = nodes[query.pin]
        queries.append(entry)
    return {"name": dataflow.name, "queries": queries, "edges": [list(edge) for edge in dataflow.edges]}


def _query(field: str, value: object, nodes: list[str]) -> Query:
    entry = fields.mapping(field, value, QUERY_KEYS, required=("kind", "type", "sigma", "delta"))
    name = fields.text(f"{field}.type", entry["type"])
    check_one_of(f"{field}.type", name, tuple(NUMBER))
    pin = None
    if entry.get("pin") is not None:
        node = fields.text(f"{field}.pin", entry["pin"])
        if node not in nodes:
            nodes.append(node)
        pin = nodes.index(node)
    return Query(
        type=NUMBER[name],
        selectivity=fields.number(f"{field}.sigma", entry["sigma"]),
        event_bytes=fields.number(f"{field}.delta", entry["delta"]),
        kind=fields.text(f"{field}.kind", entry["kind"]),  # type: ignore[arg-type]
        rate=None if entry.get("rate") is None else fields.number(f"{field}.rate", entry["rate"]),
        pin=pin,
    )


def _edge(field: str, value: object) -> tuple[int, int]:
    ends = fields.each(field, value, fields.whole)
    if len(ends) != 2:
        raise FieldError(field, list(ends), "is not an edge", remedy="give two positions of queries")
    return ends[0], ends[1]
