"""`leeward solve`: its JSON, its exit codes, and what it says about bad input."""

from __future__ import annotations

import json
import math

import pytest
import typer
from solve_builders import chain_document
from typer.testing import CliRunner

from leeward.cli.solve import register

KEYS = {
    "name", "status", "method", "F", "R", "C", "T_D", "bound", "gap", "parts", "deployment", "seconds",
    "variables",
}  # fmt: skip


@pytest.fixture
def run(tmp_path):
    app = typer.Typer()
    register(app)
    app.command("other")(lambda: None)  # so that `solve` stays a sub-command

    def call(document: object, *options: str):
        path = tmp_path / "problem.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return CliRunner().invoke(app, ["solve", str(path), *options])

    return call


def test_json_has_the_stable_keys(run):
    result = run(chain_document(), "--output", "json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert set(document) >= KEYS
    assert document["status"] == "optimal"
    assert document["method"] == "ilp"
    assert set(document["parts"]) == {"response", "cost", "downtime"}
    assert sum(document["parts"].values()) == pytest.approx(document["F"])
    assert document["deployment"]["work"] == {"n0": 1} or sum(document["deployment"]["work"].values()) >= 1
    assert document["bound"] <= document["F"] and document["gap"] < 1e-6
    assert document["variables"] == 3 + 9 + 3 + 27 + 27


def test_the_table_names_every_operator(run):
    result = run(chain_document(), "--method", "ilp")
    assert result.exit_code == 0
    for word in ("optimal", "source", "work", "sink", "$/h"):
        assert word in result.stdout


def test_infeasible_is_exit_3(run):
    result = run(chain_document() | {"bounds": {"r": 0.001, "c": 20, "d": 1}}, "--output", "json")
    assert result.exit_code == 3
    document = json.loads(result.stdout)
    assert document["status"] == "infeasible" and document["deployment"] is None and document["why"]


def test_unknown_is_exit_4(run):
    document = chain_document(nodes=60, k=4)
    result = run(document, "--method", "ilp", "--output", "json")
    assert result.exit_code == 4
    assert json.loads(result.stdout)["status"] == "unknown"


@pytest.mark.parametrize(
    ("document", "options", "words"),
    [
        (chain_document() | {"t_syn": math.nan}, (), ["t_syn", "nan"]),
        (chain_document() | {"extra": 1}, (), ["extra", "unknown key"]),
        ("{", (), ["not JSON"]),
        (chain_document(), ("--method", "guess"), ["method", "guess", "ilp"]),
        (chain_document(), ("--method", "restricted"), ["current"]),
        (chain_document(), ("--time-limit", "0"), ["--time-limit"]),
        (chain_document(), ("--time-limit", "nan"), ["--time-limit"]),
        (chain_document(), ("--gap", "-1"), ["--gap"]),
        (chain_document(), ("--seed", "-1"), ["--seed"]),
    ],
)
def test_bad_input_is_exit_2_with_a_reason(run, document, options, words):
    result = run(document, *options)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    for word in words:
        assert word in result.stderr
