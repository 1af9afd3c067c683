"""`leeward evaluate edge-cloud`: equal to every stored case, its forms, and what it says about bad input."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import typer
import yaml
from typer.testing import CliRunner

from leeward.cli.evaluate import register
from tests.helpers.edge_cloud_builders import case_document, stored_cases


@pytest.fixture
def run(tmp_path):
    app = typer.Typer()
    register(app)

    def call(document: object, *options: str):
        path = tmp_path / "case.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return CliRunner().invoke(app, ["evaluate", "edge-cloud", str(path), *options])

    return call


def differences(found: Any, expected: Any, path: str = "") -> list[str]:
    """Where two documents differ: numbers by more than 1e-9 of the expected, all else at all."""
    if isinstance(expected, dict):
        if found.keys() != expected.keys():
            return [f"{path}: {sorted(found.keys() ^ expected.keys())}"]
        return [line for key in expected for line in differences(found[key], expected[key], f"{path}.{key}")]
    if isinstance(expected, list):
        if len(found) != len(expected):
            return [f"{path}: {len(found)} entries, expected {len(expected)}"]
        pairs = enumerate(zip(found, expected, strict=True))
        return [line for place, (one, other) in pairs for line in differences(one, other, f"{path}[{place}]")]
    if isinstance(expected, float) or isinstance(found, float):
        same = math.isclose(found, expected, rel_tol=1e-9, abs_tol=0.0)
    else:
        same = found == expected
    return [] if same else [f"{path}: {found}, expected {expected}"]


def test_every_stored_case_is_met(run):
    for path in stored_cases():
        document = json.loads(path.read_text())
        result = run(document, "--output", "json")
        assert result.exit_code == 0, result.output
        expected = document["expected"] | ({"after": document["after"]} if "after" in document else {})
        assert differences(json.loads(result.stdout), expected, path.stem) == []


def test_a_chain_by_hand(run):
    found = json.loads(run(case_document(), "--output", "json").stdout)
    assert found["w_in"] == [[0.0, 100.0, 50.0]]
    assert found["lengths"][0] == pytest.approx([0.0, 0.001, 0.001 + 0.005 + 8 * 500 / 1e7 + 0.00025])
    assert found["energy_mAh"] == pytest.approx([24 * 230 + 86400 * 100 * 1e-5, 24 * 230, None])
    assert found["violations"] == []


def test_broken_constraints_are_told(run):
    document = case_document()
    document["instance"]["dataflows"][0]["queries"][0]["rate"] = 1000.0
    document["placement"] = [[1, 0, 1]]
    document["instance"]["resources"][0]["battery_mAh"] = 100.0
    found = json.loads(run(document, "--output", "json").stdout)
    expected = [["energy", 0], ["sink_not_in_cloud", 0, 2], ["source_not_on_its_edge", 0, 0], ["throughput", 0, 1]]
    assert found["violations"] == expected
    table = run(document).stdout
    assert "broken: throughput: dataflow 0, query 1" in table
    assert "broken: energy: resource 0" in table


def test_a_move_to_a_resource_that_cannot_keep_up_never_ends(run):
    document = case_document()
    document["instance"]["dataflows"][0]["queries"][0]["rate"] = 1500.0
    document["placement"], document["after"] = [[0, 2, 2]], {"placement": [[0, 1, 2]]}
    found = json.loads(run(document, "--output", "json").stdout)
    assert found["after"]["migrations"] == 1
    assert found["after"]["stabilization_shared"] is None
    assert "never stable again" in run(document).stdout


def test_yaml_says_the_same_as_json(run):
    one, other = run(case_document(), "--output", "yaml"), run(case_document(), "--output", "json")
    assert yaml.safe_load(one.stdout) == json.loads(other.stdout)


def test_the_table_has_makespan_and_load(run):
    lines = run(case_document()).stdout.splitlines()
    assert any(line.split() == ["chain", "3", "6.650", "50.0"] for line in lines)
    assert "total 6.650 ms" in lines


WRONG = {
    "a cycle": ("dataflows.0.edges", [[0, 1], [1, 2], [2, 1]], "dataflows[0].edges", "cycle"),
    "a negative selectivity": ("dataflows.0.queries.1.sigma", -1, "dataflows[0].queries[1].sigma", "0 or more"),
    "no such sensor": ("dataflows.0.queries.0.pin", 7, "dataflows[0].queries[0].pin", "no such resource"),
    "a sensor in the cloud": ("dataflows.0.queries.0.pin", 2, "dataflows[0].queries[0].pin", "no edge"),
    "a battery of zero": ("resources.0.battery_mAh", 0, "resources[0].battery_mAh", "greater than 0"),
    "no battery": ("resources.0", {"kind": "edge"}, "resources[0].battery_mAh", "missing"),
    "a battery in the cloud": ("resources.2.battery_mAh", 5, "resources[2].battery_mAh", "has none"),
    "a kind of resource": ("resources.0.kind", "fog", "resources[0].kind", "edge, cloud"),
    "a kind of query": ("dataflows.0.queries.1.kind", "map", "dataflows[0].queries[1].kind", "source, query, sink"),
    "a query without inputs": ("dataflows.0.edges", [[1, 2]], "dataflows[0].queries[0].kind", "sends to no query"),
    "an edge to nowhere": ("dataflows.0.edges", [[0, 1], [1, 3]], "dataflows[0].edges[1]", "no query 3"),
    "an edge twice": ("dataflows.0.edges", [[0, 1], [1, 2], [0, 1]], "dataflows[0].edges[2]", "second edge"),
    "an edge of three": ("dataflows.0.edges", [[0, 1, 2]], "dataflows[0].edges[0]", "not an edge"),
    "a rate of a query": ("dataflows.0.queries.1.rate", 5, "dataflows[0].queries[1].rate", "has none"),
    "an unknown type": ("dataflows.0.queries.1.type", 9, "dataflows[0].queries[1].type", "2 types"),
    "no time": ("lam.0", [0.0, 1.0, 1.0], "lam[0][0]", "greater than 0"),
    "a short row": ("latency.1", [0.0], "latency[1]", "must be 3"),
    "no bandwidth": ("bandwidth.1", [1e7, 1e7, 0.0], "bandwidth[1][2]", "greater than 0"),
    "overhead alone": ("pi_edge", [0.0, 0.5], "pi_edge[:2]", "no overhead"),
    "a mode": ("mode", "fast", "mode", "shared, overhead, exclusive"),
    "a key": ("speed", 1, "instance.speed", "unknown key"),
    "no number": ("dataflows.0.queries.1.delta", "1 kB", "dataflows[0].queries[1].delta", "a number"),
}


@pytest.mark.parametrize("path, value, field, reason", WRONG.values(), ids=WRONG)
def test_bad_input_is_told_by_field_value_and_remedy(run, path, value, field, reason):
    document = case_document()
    *way, last = path.split(".")
    inside = document["instance"]
    for key in way:
        inside = inside[int(key)] if isinstance(inside, list) else inside[key]
    inside[int(last) if isinstance(inside, list) else last] = value
    result = run(document)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {field} = "), result.stderr
    assert reason in result.stderr
    assert result.stderr.rstrip().endswith(".")


def test_two_dataflows_of_one_name_are_refused(run):
    document = case_document()
    document["instance"]["dataflows"] *= 2
    document["placement"] *= 2
    result = run(document)
    assert result.exit_code == 2
    assert "dataflows[1].name = 'chain': another dataflow has this name. Make the names unique." in result.stderr


@pytest.mark.parametrize("placement, reason", [([], "1 dataflows"), ([[0, 0]], "3 queries"), ([[0, 0, 3]], "no such")])
def test_a_placement_that_does_not_fit_is_refused(run, placement, reason):
    result = run(case_document() | {"placement": placement})
    assert result.exit_code == 2
    assert reason in result.stderr


@pytest.mark.parametrize("text", ["{", '{"placement": [], "placement": []}', "[]", "\x00"])
def test_a_file_that_is_no_case_is_refused(run, text):
    result = run(text)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
