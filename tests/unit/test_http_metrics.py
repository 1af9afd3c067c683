"""The metrics: names and units of OpenMetrics, bounded labels; rules and dashboard name only what is there."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from leeward.adapters.http import metrics
from leeward.adapters.http.metrics import MISSING, Metrics
from tests.helpers.http_api import Stage

ROOT = Path(__file__).parents[2]
DASHBOARD = json.loads((ROOT / "storm_conf/grafana/leeward.json").read_text())
RULES = yaml.safe_load((ROOT / "storm_conf/prometheus/alerts.yml").read_text())["groups"][0]["rules"]
OPEN = "application/openmetrics-text; version=1.0.0"
#: Figures that are counts, flags or lists, and so have no unit.
WITHOUT_UNIT = {
    "leeward_topology", "leeward_epoch", "leeward_leader", "leeward_reconfiguring", "leeward_missing",
    "leeward_left_out",
    "leeward_component_replicas", "leeward_component_tasks", "leeward_node_replicas", "leeward_reconfigurations",
    "leeward_refusals",
}  # fmt: skip
UNITS = ("_seconds", "_ratio", "_bytes", "_bytes_per_second", "_tuples", "_tuples_per_second", "_dollars_per_hour")


def families(stage):
    content, kind = Metrics(stage.knowledge).exposition(OPEN)
    assert kind.startswith("application/openmetrics-text")
    return {family.name: family for family in text_string_to_metric_families(content.decode())}


def values(family):
    """Labels, that of the topology first, then by name -> value."""
    return {
        tuple(
            value for _, value in sorted(sample.labels.items(), key=lambda item: (item[0] != "topology", item))
        ): sample.value
        for sample in family.samples
    }


@pytest.mark.parametrize("version", ['"1.0.0"', "v1", "1.x", ""])
def test_a_version_that_is_no_number_gets_the_text_of_prometheus_or_openmetrics(version):
    exposition = Metrics(Stage().knowledge).exposition
    for media in ("application/openmetrics-text", "text/plain"):
        content, kind = exposition(f"{media}; version={version}")
        assert b"leeward_leader" in content and kind.startswith(("application/openmetrics-text", "text/plain"))


def test_a_topology_that_was_killed_fires_no_rule():
    stage = Stage()
    stage.knowledge.emit("topology_gone", {"topology": "taxi", "topology_id": "taxi-1", "why": "it was killed"})
    found = families(stage)
    for name in ("leader", "measurement_age_seconds", "missing", "component_busy_ratio"):
        assert not any("taxi" in labels for labels in values(found[f"leeward_{name}"])), name


def test_figures_of_the_report_are_metrics_with_labels():
    found = families(Stage())
    assert values(found["leeward_rate_tuples_per_second"]) == {("taxi",): 189.0}
    assert values(found["leeward_response_time_seconds"]) == {("taxi", "measured"): 0.25, ("taxi", "modelled"): 0.2}
    assert values(found["leeward_component_replicas"])["taxi", "work"] == 2
    assert values(found["leeward_node_replicas"]) == {("taxi", "n1"): 2, ("taxi", "n2"): 2}
    assert values(found["leeward_reconfigurations"]) == {("taxi", "done", "handover"): 1}
    assert values(found["leeward_downtime_seconds"]) == {("taxi",): 0.05}
    assert values(found["leeward_refusals"]) == {("taxi",): 1}
    assert values(found["leeward_missing"])["taxi", "measurements"] == 0
    assert found["leeward_reconfigurations"].type == "counter"
    assert values(found["leeward_topology"]) == {("taxi", "edrp", "taxi-1"): 1}


def test_models_and_links_are_metrics_beside_what_was_measured():
    found = families(Stage())
    assert values(found["leeward_component_response_time_seconds"]) == {
        ("taxi", "work", "measured"): 0.02, ("taxi", "work", "learnt"): 0.021, ("taxi", "work", "mm1"): 0.031,
    }  # fmt: skip
    assert values(found["leeward_component_response_error_seconds"]) == {("taxi", "work"): 0.001}
    assert values(found["leeward_store_rate_bytes_per_second"]) == {
        ("taxi", "up", "n1"): 4e7, ("taxi", "down", "n1"): 6e7, ("taxi", "up", "n2"): 4e7,
    }  # fmt: skip
    assert values(found["leeward_store_round_trip_seconds"]) == {("taxi", "n1"): 0.0004, ("taxi", "n2"): 0.0004}
    assert values(found["leeward_restart_pause_seconds"]) == {("taxi",): 9.5}


def test_everything_that_can_be_missing_is_a_value_of_the_label():
    """That of ZooKeeper, say, would not be seen by an alert."""
    stage = Stage()
    for server in ("Nimbus", "ZooKeeper"):
        stage.knowledge.emit("server_away", {"topology": "taxi", "server": server, "why": "no answer"})
    for action in ("measure_failed", "waiting", "leadership_lost", "held", "tasks_left_out", "service_failed"):
        stage.knowledge.emit(action, {"topology": "taxi", "why": "a test"})
    stage.knowledge.emit("clocks_off", {"topology": "taxi", "nodes": {"n1": 60.0}, "why": "a test"})
    report = stage.knowledge.report("taxi")
    assert report is not None and {one.what for one in report.missing} == set(MISSING)
    assert {values(families(stage)["leeward_missing"])["taxi", what] for what in MISSING} == {1}


def test_names_have_units_and_no_label_is_without_bound():
    found = families(Stage())
    ours = {name for name in found if name.startswith("leeward_")}
    for name in ours - WITHOUT_UNIT:
        assert name.endswith(UNITS), f"{name} has no unit"
    labels = {label for name in ours for sample in found[name].samples for label in sample.labels}
    assert labels == {"topology", "component", "node", "what", "kind", "ending", "phase", "policy", "topology_id"}


def test_names_beyond_the_bounds_are_counted_not_told(monkeypatch):
    stage = Stage()
    for bound, value in {"TOPOLOGIES": 2, "COMPONENTS": 2, "NODES": 1}.items():
        monkeypatch.setattr(metrics, bound, value)
    for n in range(3):
        stage.knowledge.emit("leading", {"topology": f"t{n}"})
    stage.knowledge.emit("leading", {"topology": "a"})
    found = families(stage)
    assert values(found["leeward_left_out"]) == {("topologies",): 3, ("components",): 0, ("nodes",): 0}
    monkeypatch.setattr(metrics, "TOPOLOGIES", 9)
    found = families(stage)
    assert values(found["leeward_left_out"]) == {("topologies",): 0, ("components",): 1, ("nodes",): 1}
    assert len(found["leeward_component_replicas"].samples) == 2 and len(found["leeward_node_replicas"].samples) == 1


def test_names_that_are_gone_leave_no_living_one_out(monkeypatch):
    stage = Stage()
    monkeypatch.setattr(metrics, "TOPOLOGIES", 1)
    for name in ("a", "b"):
        stage.knowledge.emit("topology_gone", {"topology": name})
    found = families(stage)
    assert values(found["leeward_rate_tuples_per_second"]) == {("taxi",): 189.0}
    assert values(found["leeward_left_out"])[("topologies",)] == 0


def test_a_name_with_quotes_and_line_ends_is_written_as_one_label():
    stage = Stage()
    stage.knowledge.emit("measured", {**stage.measured(float("nan"), {"a": {'n"1\n': 1}}), "topology": 'we"ird\\\n'})
    found = families(stage)
    assert ('we"ird\\\n', 'n"1\n') in values(found["leeward_node_replicas"])
    assert ('we"ird\\\n',) not in values(found["leeward_rate_tuples_per_second"]), "NaN is not told"


def test_the_path_answers_in_the_form_that_is_asked_for():
    with Stage().client() as client:
        assert client.get("/metrics", headers={"Accept": OPEN}).text.endswith("# EOF\n")
        plain = client.get("/metrics")
        assert plain.headers["content-type"].startswith("text/plain") and "leeward_downtime_seconds_total" in plain.text


def named(expression: str) -> set[str]:
    return set(re.findall(r"\b(leeward_\w+)", expression))


@pytest.mark.parametrize(
    "expression",
    [rule["expr"] for rule in RULES] + [t["expr"] for panel in DASHBOARD["panels"] for t in panel["targets"]],
)
def test_rules_and_dashboard_name_metrics_that_are_there(expression):
    samples = {sample.name for family in families(Stage()).values() for sample in family.samples}
    assert named(expression) <= samples


def test_every_alert_says_what_to_do():
    for rule in RULES:
        assert rule["annotations"]["summary"] and rule["annotations"]["remedy"] and rule["labels"]["severity"]


def test_the_dashboard_has_only_what_grafanas_schema_knows():
    """Read into the classes that Grafana makes from its schema, and written again, it is the same."""
    plugins.register_default_plugins()
    again = json.loads(JSONEncoder(sort_keys=True).encode(Dashboard.from_json(DASHBOARD)))
    assert lost(DASHBOARD, again) == []
    assert lost({**DASHBOARD, "panles": []}, again) == ["/panles"]


def lost(before, after, path=""):
    """Paths of what is in `before` and not, or not the same, in `after`."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [
            found for key, value in before.items()
            for found in (lost(value, after[key], f"{path}/{key}") if key in after else [f"{path}/{key}"])
        ]  # fmt: skip
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [found for at, (one, other) in pairs for found in lost(one, other, f"{path}/{at}")]
    return [] if before == after else [path]


def test_the_dashboard_is_one_that_grafana_takes():
    """The parts without which an import fails: panels with places that do not overlap, one data source by variable."""
    assert DASHBOARD["schemaVersion"] >= 36 and DASHBOARD["title"] and DASHBOARD["uid"]
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y) for panel in panels
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]  # fmt: skip
    assert len(set(cells)) == len(cells) and max(x for x, _ in cells) < 24
    assert {panel["datasource"]["uid"] for panel in panels} == {"${datasource}"}
    for panel in panels:
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
