"""`leeward evaluate dssp`: the paper's quantities, beside closed forms."""

from __future__ import annotations

import json
import math

import pytest
from typer.testing import CliRunner

from leeward.cli import _build

QUERY = {"percent": 99, "objective_s": 0.9, "domains": 4}
NODE = {"mean_s": 0.1}


def evaluate(tmp_path, document, *options):
    (file := tmp_path / "case.json").write_text(json.dumps(document))
    return CliRunner().invoke(_build(), ["evaluate", "dssp", str(file), *options])


def test_equal_exponential_nodes_have_a_closed_form(tmp_path):
    found = json.loads(
        evaluate(tmp_path, {"query": QUERY, "nodes": [NODE] * 8, "rate": 2.0}, "--output", "json").stdout
    )
    p_t = 0.99**0.25
    assert found["task_percent"] == pytest.approx(100 * p_t)
    x_u = -0.1 * math.log(1 - p_t ** (1 / 8))
    assert found["unloaded_s"] == pytest.approx(x_u)
    assert found["deadline_s"] == pytest.approx(0.9 - x_u)
    assert found["least_objective_s"] == pytest.approx(x_u)
    assert found["affordable_execution_s"] == pytest.approx(1 / (2.0 - math.log(1 - p_t ** (1 / 8)) / 0.9))
    assert found["violations"] == []


def test_measured_nodes_and_a_broken_objective(tmp_path):
    query = QUERY | {"domains": 1, "percent": 50, "objective_s": 0.3, "spent_s": 0.15}
    nodes = [{"samples_s": [0.1, 0.2, 0.3, 0.4]}, {"mean_s": 0.05, "shape": "constant"}]
    done = evaluate(tmp_path, {"query": query, "nodes": nodes})
    assert done.exit_code == 0
    assert "unloaded: 0.2 s" in done.stdout and "broken: objective below unloaded" in done.stdout


@pytest.mark.parametrize(
    "document, field",
    [
        ({"query": QUERY, "nodes": []}, "nodes"),
        ({"query": QUERY | {"percent": 100}, "nodes": [NODE]}, "query.percent"),
        ({"query": QUERY | {"domains": 0}, "nodes": [NODE]}, "query.domains"),
        ({"query": QUERY | {"objective_s": -1}, "nodes": [NODE]}, "query.objective_s"),
        ({"query": QUERY, "nodes": [NODE], "rate": -2}, "rate"),
        ({"query": QUERY, "nodes": [NODE | {"shape": "square"}]}, "nodes[0].shape"),
        ({"query": QUERY, "nodes": [{"samples_s": []}]}, "nodes[0].samples_s"),
        ({"query": QUERY, "nodes": [{"shape": "uniform"}]}, "nodes[0]"),
        ({"query": QUERY, "nodes": [NODE], "more": 1}, "case.more"),
    ],
)
def test_bad_input_names_the_field(tmp_path, document, field):
    done = evaluate(tmp_path, document)
    assert done.exit_code == 2 and field in done.stderr
