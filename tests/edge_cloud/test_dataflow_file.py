"""A dataflow file: read, written, refused by field, and submitted as a topology."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from leeward.core.errors import ConfigError
from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.benchmark import NUMBER, TYPES
from leeward.policies.edge_cloud.model.dataflow_file import dataflow_from_json, dataflow_to_json

TOPOLOGY = Path(__file__).parents[2] / "topologies" / "dataflow.py"


def document() -> dict[str, Any]:
    """Two sensors, a join, one sink."""
    source = {"kind": "source", "type": "filter-most", "sigma": 1.0, "delta": 400.0, "rate": 2.0}
    return {
        "name": "d1",
        "queries": [
            source | {"pin": "edge-2"},
            source | {"pin": "edge-1"},
            {"kind": "query", "type": "filter-join", "sigma": 0.5, "delta": 200.0},
            {"kind": "sink", "type": "batch-10", "sigma": 0.1, "delta": 100.0},
        ],
        "edges": [[0, 2], [1, 2], [2, 3]],
    }


def test_what_is_read_is_written_again():
    found = dataflow_from_json(document())
    assert found.nodes == ("edge-2", "edge-1")
    assert [query.pin for query in found.dataflow.queries] == [0, 1, None, None]
    assert dataflow_to_json(found.dataflow, found.nodes) == document()


@pytest.mark.parametrize(
    ("at", "value", "field"),
    [
        (("queries", 2, "type"), "filter", r"queries\[2\].type"),
        (("queries", 0, "rate"), None, r"queries\[0\].rate"),
        (("queries", 0, "pin"), 1, r"queries\[0\].pin"),
        (("queries", 3, "sigma"), -1, r"queries\[3\].sigma"),
        (("queries", 3, "omega"), 1, r"queries\[3\].omega"),
        (("edges", 2), [2], r"edges\[2\]"),
        (("edges", 2), [3, 2], r"queries\[2\].kind"),
        (("name",), 7, "name"),
    ],
)
def test_a_wrong_field_is_named(at: tuple[Any, ...], value: object, field: str):
    found = document()
    *way, last = at
    entry = found
    for step in way:
        entry = entry[step]
    entry[last] = value
    with pytest.raises(FieldError, match=field):
        dataflow_from_json(found)


def load(monkeypatch: pytest.MonkeyPatch, file: Path | None) -> Any:
    monkeypatch.delenv("LEEWARD_DATAFLOW", raising=False)
    if file is not None:
        monkeypatch.setenv("LEEWARD_DATAFLOW", str(file))
    monkeypatch.syspath_prepend(str(TOPOLOGY.parents[1]))
    spec = importlib.util.spec_from_file_location("dataflow_topology", TOPOLOGY)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_query_is_a_component_with_facts_and_a_warm_task(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    file = tmp_path / "d1.json"
    file.write_text(json.dumps(document()))
    specs = {spec.name: spec for spec in load(monkeypatch, file).Dataflow.specs}
    confs = {name: json.loads(spec.common.json_conf) for name, spec in specs.items()}
    assert set(specs) == {"q0", "q1", "q2", "q3"}
    assert [specs[name].par for name in sorted(specs)] == [1, 1, 2, 2]
    assert confs["q0"]["leeward.pinned"] == ["edge-2"] and "leeward.pinned" not in confs["q2"]
    assert confs["q2"]["leeward.facts"] == {
        "kind": "query", "type": "filter-join", "selectivity": 0.5, "event_bytes": 200.0
    }  # fmt: skip
    join = TYPES[NUMBER["filter-join"]]
    assert confs["q2"]["leeward.service_rate"] == {"edge": 1 / join.edge_s, "cloud": 1 / join.cloud_s}
    inputs = {(stream.componentId, stream.streamId) for stream in specs["q2"].inputs}
    assert {name for name, stream in inputs if stream == "default"} == {"q0", "q1"}


def test_without_a_file_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(ConfigError, match="LEEWARD_DATAFLOW is not set"):
        load(monkeypatch, None)
