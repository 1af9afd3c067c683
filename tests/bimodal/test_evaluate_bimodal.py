"""`leeward evaluate bimodal` on the given instances, and on files that make no sense."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from leeward.cli.evaluate import register
from tests.helpers.shared_folder import SHARED, needs

FOLDER = SHARED / "instances" / "bimodal"
CASES = sorted(FOLDER.glob("map*.json"))


def instance() -> dict[str, Any]:
    """Three servers in a row; service 0 runs on the first two, service 1 on the last."""
    return {
        "format": "bimodal-mapping/1",
        "servers": [
            {"id": 0, "cpu": 4, "services": [0]},
            {"id": 1, "cpu": 4, "services": [0]},
            {"id": 2, "cpu": 4, "services": [1]},
        ],
        "links": [
            {"a": 0, "b": 1, "bandwidth": 5, "cost": 3, "delay": 1},
            {"a": 1, "b": 2, "bandwidth": 5, "cost": 2, "delay": 1},
        ],
        "task": {
            "source": 0, "delivery": 2, "services": [0, 1], "cpu": [1, 1], "bandwidth": [2, 2, 2], "max_null": 1,
        },
    }  # fmt: skip


def evaluate(file: Path, *options: str) -> Any:
    app = typer.Typer()
    register(app)
    return CliRunner().invoke(app, ["evaluate", "bimodal", str(file), *options])


def evaluated(document: dict[str, Any], folder: Path, *options: str) -> Any:
    """The same of a document, by a file in the folder."""
    file = folder / "case.json"
    file.write_text(json.dumps(document))
    return evaluate(file, *options)


@needs(FOLDER)
def test_the_given_cases_are_there():
    assert len(CASES) >= 2, f"no instances in {FOLDER}"


@pytest.mark.parametrize("file", CASES or [pytest.param(FOLDER, marks=needs(FOLDER))], ids=lambda f: f.stem)
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
    done = evaluated(instance(), tmp_path)
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
    document = instance()
    change(document)
    done = evaluated(document, tmp_path)
    assert done.exit_code == 2 and says in done.output


def test_a_service_that_is_hosted_nowhere_has_no_map(tmp_path: Path):
    document = instance()
    document["task"]["services"][0] = 77
    done = evaluated(document, tmp_path, "--output", "json")
    assert done.exit_code == 0 and json.loads(done.stdout) == {"per_edge": None, "aggregated": None}
