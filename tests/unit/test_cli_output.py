"""`--output`: the same result as a table, as JSON and as YAML; and what is asked once ends in time."""

from __future__ import annotations

import json
import time

import pytest
import yaml
from typer.testing import CliRunner

from leeward.cli import _build, app
from leeward.cli._common import CLUSTER_VARIABLE
from leeward.cli._once import in_time
from leeward.cli._output import Output, show
from leeward.cli._service import addresses_of
from leeward.core.errors import NotReadyError, PlanError

DOCUMENT = {
    "way": "handover",
    "why": "",
    "deployment": {"work": {"n1": 1, "n2": 2}},
    "live": True,
    "cuts": [1, 2],
    "changes": [{"component": "work[x]", "before": {"n1": 1}, "after": {"n2": 1}}],
}


def test_json_and_yaml_carry_the_same_document(capsys):
    show(DOCUMENT, Output.json)
    assert json.loads(capsys.readouterr().out) == DOCUMENT
    show(DOCUMENT, Output.yaml)
    assert yaml.safe_load(capsys.readouterr().out) == DOCUMENT


def test_a_table_has_a_line_for_each_value_and_a_table_for_records(capsys):
    show(DOCUMENT, Output.table)
    text = capsys.readouterr().out
    assert "work n1:1 n2:2" in text and "work[x]" in text and "n2:1" in text
    assert "yes" in text and "why" not in text, "what is empty is not shown"


def test_work_that_takes_too_long_ends_with_its_last_step():
    def work(tell):
        tell("measuring")
        time.sleep(5.0)
        return {}

    with pytest.raises(NotReadyError, match=r"no answer after 0\.05 s; the last step was: measuring"):
        in_time(work, 0.05)


def test_a_failure_is_raised_where_it_was_asked():
    def work(tell):
        raise PlanError("no.", remedy="Ask again.")

    with pytest.raises(PlanError, match="Ask again"):
        in_time(work, 5.0)
    assert in_time(lambda tell: {"done": 1}, 5.0) == {"done": 1}


@pytest.mark.parametrize("words", [["plan", "app", "--nope"], ["diff"], ["plan", "app", "--output", "xml"]])
def test_a_comparison_that_is_asked_wrongly_does_not_end_as_one_that_found_a_change(words):
    assert CliRunner().invoke(_build(), words).exit_code == 1


def test_a_nimbus_that_is_named_goes_before_the_cluster_of_the_environment(tmp_path, monkeypatch):
    (tmp_path / "cluster.json").write_text(
        json.dumps({"nimbus": "here:1", "zookeeper": "here:2", "redis_url": "redis://h"})
    )
    monkeypatch.setenv(CLUSTER_VARIABLE, str(tmp_path))
    assert addresses_of(None, None, None, tmp_path).zookeeper == "here:2"
    prod = addresses_of(["prod:6627"], None, None, tmp_path)
    assert (list(prod.nimbus), prod.zookeeper, prod.redis_url) == (["prod:6627"], None, None)
    monkeypatch.delenv(CLUSTER_VARIABLE)
    assert addresses_of(["prod:6627"], None, None, tmp_path).zookeeper == "here:2", "both were named"


def test_an_error_of_the_machine_is_one_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(
        "sys.argv", ["leeward", "jar", "--out", str(tmp_path / "file" / "a.jar"), "--src", str(tmp_path)]
    )
    with pytest.raises(SystemExit) as ended:
        app()
    told = capsys.readouterr().err
    assert ended.value.code == 2 and told.startswith("error: ") and "Traceback" not in told


def test_the_demo_looks_at_its_settings_before_it_starts_anything(tmp_path):
    for words, says in (
        (["--speed", "0"], "0.1"),
        (["-o", "perod_s=3"], "period_s"),
        (["--mode", "restrat"], "restart"),
    ):
        done = CliRunner().invoke(_build(), ["demo", "--out", str(tmp_path / "out"), *words])
        assert done.exit_code == 2 and says in done.output, done.output
    assert not (tmp_path / "out").exists()
