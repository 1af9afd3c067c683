"""`leeward explain` and `leeward pareto`: their forms, their exit codes, what they say about bad input."""

from __future__ import annotations

import csv
import io
import itertools
import json

import pytest
import typer
from typer.testing import CliRunner

from leeward.cli import explain, pareto
from leeward.policies.edrp.experiments.instances import reference_instance
from leeward.policies.edrp.problem.document import problem_from_json
from leeward.policies.edrp.problem.evaluate import Metrics, Parts, verify
from leeward.policies.edrp.problem.outcome import Unknown
from leeward.policies.edrp.questions.pareto import Point, Tracer, unbeaten
from tests.helpers.solve_builders import chain_document

#: The first call on a machine compiles.
pytestmark = pytest.mark.timeout(600)

INFEASIBLE = {"bounds": {"r": 0.001, "c": 20, "d": 1}}


@pytest.fixture
def run(tmp_path):
    app = typer.Typer()
    explain.register(app)
    pareto.register(app)

    def call(command: str, document: object, *options: str):
        path = tmp_path / "problem.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return CliRunner().invoke(app, [command, str(path), *options])

    return call


def traded() -> dict:
    """A chain in which speed costs: one to three replicas of `work`."""
    document = chain_document(k=3) | {"current": {"source": {"n0": 1}, "work": {"n0": 1}, "sink": {"n1": 1}}}
    document["operators"][1]["mu"] = 110
    return document


def test_explain_as_json_has_the_documented_keys(run):
    result = run("explain", traded(), "--output", "json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert set(document) >= {
        "name", "status", "method", "F", "R", "C", "T_D", "bound", "gap", "parts", "deployment", "weights", "bounds",
        "path", "operators", "streams", "nodes", "limits", "alternatives", "next_best",
    }  # fmt: skip
    for limit in document["limits"]:
        assert set(limit) == {
            "kind", "where", "used", "limit", "slack", "tight", "binds", "step", "relaxed", "without",
        }  # fmt: skip
    answer = document["alternatives"][0]["answer"]
    assert set(answer) == {
        "status", "F", "R", "C", "T_D", "dF", "dR", "dC", "dT_D", "bound", "changes",
    }  # fmt: skip


def test_explain_as_text_names_every_operator_and_limit(run):
    result = run("explain", traded())
    assert result.exit_code == 0
    for word in ("source", "work", "sink", "R_max", "C_max", "T_D,max", "units on n0", "Critical path", "proven"):
        assert word in result.stdout


def test_explain_writes_a_page(run, tmp_path):
    where = tmp_path / "new" / "page.html"
    result = run("explain", traded(), "--output", "html", "--out", str(where))
    assert result.exit_code == 0 and result.stdout == ""
    assert where.read_text().startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("command", ["explain", "pareto"])
def test_infeasible_is_exit_3_with_the_reason(run, command):
    result = run(command, traded() | INFEASIBLE, "--output", "json")
    assert result.exit_code == 3
    document = json.loads(result.stdout)
    assert document["status"] == "infeasible" and document["why"]
    assert document["why"][0] in run(command, traded() | INFEASIBLE).stdout.replace("\n", " ")


@pytest.mark.parametrize("command", ["explain", "pareto"])
def test_unknown_is_exit_4(run, command):
    result = run(command, chain_document(nodes=60, k=4), "--method", "ilp", "--output", "json")
    assert result.exit_code == 4
    assert json.loads(result.stdout)["status"] == "unknown"


@pytest.mark.parametrize(
    ("command", "document", "options", "words"),
    [
        ("explain", "{", (), ["not JSON"]),
        ("explain", chain_document() | {"t_syn": -1}, (), ["t_syn", "-1"]),
        ("explain", chain_document(), ("--method", "guess"), ["method", "guess"]),
        ("explain", chain_document(), ("--time-limit", "0"), ["--time-limit"]),
        ("explain", chain_document(), ("--out", "/dev/null/page"), ["--out", "cannot be written"]),
        ("pareto", "{", (), ["not JSON"]),
        ("pareto", chain_document(), ("--method", "restricted"), ["current"]),
        ("pareto", chain_document(), ("--points", "1"), ["--points"]),
        ("pareto", chain_document(), ("--downtime", "nan"), ["--downtime"]),
        ("pareto", chain_document(), ("--picture", "curve.pdf"), ["--picture", ".svg"]),
        ("pareto", chain_document(), ("--picture", "/dev/null/a.svg"), ["--picture", "cannot be written"]),
    ],
)
def test_bad_input_is_exit_2_with_a_reason(run, command, document, options, words):
    result = run(command, document, *options)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    for word in words:
        assert word in result.stderr


def test_the_curve_trades_time_for_money(run):
    document = json.loads(run("pareto", traded(), "--output", "json").stdout)
    (curve,) = document["curves"]
    assert document["status"] == "complete" and curve["complete"]
    costs, times = [p["C"] for p in curve["points"]], [p["R"] for p in curve["points"]]
    assert len(costs) >= 2
    assert costs == sorted(costs, reverse=True) and times == sorted(times)
    assert [p["replicas"] for p in curve["points"]] == costs  # 1 $/h each
    assert document["present"]["R"] >= document["optimum"]["R"]


def test_a_curve_for_each_downtime(run):
    result = run("pareto", traded(), "--output", "json", "--downtime", "0.1", "--downtime", "5")
    first, second = json.loads(result.stdout)["curves"]
    assert all(point["T_D"] <= 0.1 for point in first["points"])
    assert min(p["R"] for p in second["points"]) < min(p["R"] for p in first["points"])


def test_a_large_instance_has_a_curve_too_though_little_of_it_is_proven():
    problem = reference_instance(50, 4, traffic=True, present=False, seed=0)
    found = list(Tracer(problem=problem, each_s=0.3).trace(points=3))
    assert 2 <= len(found) <= 3 and all(isinstance(one, Point) for one in found)
    assert all(not verify(problem, one.deployment) for one in found)
    assert found[0].metrics.C < found[1].metrics.C and found[0].metrics.R > found[1].metrics.R


def test_what_another_point_beats_is_left_out():
    values = ((3.0, 9.0, 0.0), (2.0, 8.0, 0.0), (2.0, 7.0, 1.0), (5.0, 1.0, 0.0), (4.0, 5.0, 0.0), (2.0, 7.0, 2.0))
    nothing = Parts(response=0.0, cost=0.0, downtime=0.0)
    points = [
        Point(deployment={}, metrics=Metrics(F=0.0, R=r, C=c, T_D=d, parts=nothing), proven=True) for r, c, d in values
    ]
    assert unbeaten(points) == [points[2], points[4], points[3]]


def test_csv_and_picture(run, tmp_path):
    for name in ("curve.svg", "curve.png"):
        result = run("pareto", traded(), "--output", "csv", "--points", "2", "--picture", str(tmp_path / name))
        assert result.exit_code == 0
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert 1 < len(rows) <= 2
    assert float(rows[0]["C"]) > float(rows[1]["C"]) and rows[0]["proven"] == "true"
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert "cost C" in (tmp_path / "curve.svg").read_text()


def test_stopping_prints_what_was_found(run, monkeypatch):
    whole = json.loads(run("pareto", traded(), "--output", "json").stdout)["curves"][0]["points"]
    trace = Tracer.trace

    def stopped_after_one(self, points):
        yield next(trace(self, points))  # the cheapest
        raise KeyboardInterrupt

    monkeypatch.setattr(Tracer, "trace", stopped_after_one)
    result = run("pareto", traded(), "--output", "json")
    assert result.exit_code == 130
    document = json.loads(result.stdout)
    assert document["status"] == "stopped" and not document["curves"][0]["complete"]
    assert document["curves"][0]["points"] == whole[-1:]


def test_a_curve_that_the_time_limit_cuts_off_says_so():
    clock = itertools.chain([0.0, 0.0], itertools.repeat(100.0))
    tracer = Tracer(problem=problem_from_json(traded()), deadline=50.0, clock=lambda: next(clock))
    first, last = tracer.trace()
    assert isinstance(first, Point) and not first.proven  # least C and R were found, least T_D was not asked for
    assert isinstance(last, Unknown) and "time limit" in last.why
