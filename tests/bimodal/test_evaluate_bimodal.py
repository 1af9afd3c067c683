"""`leeward evaluate bimodal` on the given instances, and on files that make no sense."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from leeward.cli.evaluate import register

SHARED = (
    Path(os.environ.get("LEEWARD_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "instances" / "bimodal"
)
CASES = sorted(SHARED.glob("map*.json"))


def evaluate(file: Path, *options: str) -> Any:
    app = typer.Typer()
    register(app)
    return CliRunner().invoke(app, ["evaluate", "bimodal", str(file), *options])


def test_the_given_cases_are_there():
    assert len(CASES) >= 2, f"no instances in {SHARED}"


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.stem)
def test_costs_equal_those_of_the_given_instances(file: Path):
    done = evaluate(file, "--output", "json")
    assert done.exit_code == 0, done.output
    found, expected = json.loads(done.stdout), json.loads(file.read_text())["expected"]
    for kind in ("per_edge", "aggregated"):
        if expected[kind] is None:
            assert found[kind] is None
        else:
            assert found[kind]["cost"] == expected[kind]["cost"]
    assert found["per_edge"]["exact"] == found["per_edge"]["cost"] and found["per_edge"]["messages"] > 0


def test_people_get_lines(tmp_path: Path):
    done = evaluate(CASES[0])
    assert done.exit_code == 0
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == ["per edge", "aggregated"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d["task"].update(services=[], cpu=[], bandwidth=[1]), "task.services"),
        (lambda d: d["task"].update(source=99), "task.source = 99: there is no such server"),
        (lambda d: d["task"].update(price=0), "task.price"),
        (lambda d: d["links"][0].update(b=99), "links[0] = 99"),
        (lambda d: d["links"][0].update(bandwidth=-1), "links[0].bandwidth"),
        (lambda d: d["servers"][0].update(cpu="much"), "servers[0].cpu"),
        (lambda d: d.update(format="other/1"), "format"),
        (lambda d: d.update(more=1), "unknown key"),
    ],
)
def test_bad_input_is_refused_by_its_field(tmp_path: Path, change: Callable[[dict[str, Any]], None], says: str):
    document = json.loads(CASES[0].read_text())
    change(document)
    file = tmp_path / "case.json"
    file.write_text(json.dumps(document))
    done = evaluate(file)
    assert done.exit_code == 2 and says in done.output


def test_a_service_that_is_hosted_nowhere_has_no_map(tmp_path: Path):
    document = json.loads(CASES[0].read_text())
    document["task"]["services"][0] = 77
    file = tmp_path / "case.json"
    file.write_text(json.dumps(document))
    done = evaluate(file, "--output", "json")
    assert done.exit_code == 0 and json.loads(done.stdout) == {"per_edge": None, "aggregated": None}
