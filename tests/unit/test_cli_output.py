"""`--output`: the same result as a table, as JSON and as YAML; and what is asked once ends in time."""

from __future__ import annotations

import json
import time

import pytest
import yaml

from leeward.cli._once import in_time
from leeward.cli._output import Output, show
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
