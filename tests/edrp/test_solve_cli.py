"""`leeward solve`: its JSON, its exit codes, and what it says about bad input."""

from __future__ import annotations

import json
import math

import pytest
import typer
from typer.testing import CliRunner

from leeward.cli.solve import register
from tests.helpers.solve_builders import chain_document

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
    result = run(chain_document(), "--method", "ilp", "--output", "json")
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


def test_the_default_is_auto(run):
    document = json.loads(run(chain_document(), "--output", "json").stdout)
    assert set(document) >= KEYS
    assert document["method"] == "auto" and document["status"] == "optimal"
    assert document["variables"] is None


def test_ctrl_c_is_exit_130(run, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("leeward.policies.edrp.methods.auto.solve_auto", interrupt)
    assert run(chain_document()).exit_code == 130


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
        (chain_document(), ("--method", "ilp", "--solver", "ABACUS"), ["solver", "ABACUS", "HIGHS", "SCIPY"]),
        (chain_document(), ("--method", "exact", "--solver", "HIGHS"), ["solver", "exact"]),
    ],
)
def test_bad_input_is_exit_2_with_a_reason(run, document, options, words):
    result = run(document, *options)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    for word in words:
        assert word in result.stderr


def edited(path: str, value: object) -> dict:
    """The chain with one entry replaced, or added to the end of a list."""
    document = chain_document()
    *way, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    at = document
    for step in way:
        at = at[step]
    if isinstance(at, list) and last == len(at):
        at.append(value)
    else:
        at[last] = value
    return document


@pytest.mark.parametrize("method", ["exact", "ilp", "compact"])
@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("streams.2", {"from": "sink", "to": "work", "rate": 1}, ["streams", "sink", "cycle"]),
        ("streams.1.to", "nowhere", ["streams[1].to", "nowhere", "no such operator"]),
        ("streams.1.rate", -5, ["streams[1].rate", "-5", "0 or more"]),
        ("operators.1.mu", math.nan, ["operators[1].mu", "nan", "finite"]),
        ("delay.0.1", -0.01, ["delay[0][1]", "-0.01"]),
        ("delay.0.1", math.inf, ["delay[0][1]", "inf"]),
        ("delay", [[0.0, 0.1], [0.1, 0.0]], ["delay", "2 rows", "3 nodes"]),
        ("delay.2", [0.0, 0.0], ["delay[2]", "2 numbers", "3 nodes"]),
        ("weights.r", 0.6, ["weights", "1.1", "sum to 1"]),
        ("operators.0.allowed", ["n9"], ["operators[0].allowed[0]", "n9", "no such node"]),
        ("operators.3", {"id": "lost", "k": 1, "mu": 9}, ["operators[3].source_rate", "0", "nobody feeds", "lost"]),
        ("nodes", [{"id": f"n{u}", "res": 0.9} for u in range(3)], ["operators[0].res", "no node", "source"]),
        ("nodes", [{"id": "n0"}, {"id": "n1", "res": 0}, {"id": "n2", "res": 0}], ["nodes[].res", "2", "3 units"]),
    ],
)
def test_a_problem_that_makes_no_sense_is_exit_2_naming_field_and_value(run, method, path, value, words):
    result = run(edited(path, value), "--method", method)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Traceback" not in result.output and isinstance(result.exception, SystemExit)
    assert result.stderr.startswith("error: ")
    for word in words:
        assert word in result.stderr


def test_another_solver_gives_the_same(run):
    options = ("--method", "ilp", "--output", "json", "--solver")
    results = [run(chain_document(), *options, name) for name in ("HIGHS", "scipy")]
    assert [result.exit_code for result in results] == [0, 0]
    assert json.loads(results[0].stdout)["F"] == pytest.approx(json.loads(results[1].stdout)["F"], abs=1e-6)


def test_infeasible_says_what_to_relax(run):
    result = run(chain_document() | {"bounds": {"r": 0.001, "c": 20, "d": 1}}, "--output", "json")
    assert "R_max would have to be" in json.loads(result.stdout)["why"][0]
