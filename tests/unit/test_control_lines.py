"""The compiled decoder of tasks' lines says what `TaskMetrics.from_line` says, of every line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.control import lines
from leeward.core.coordinates import Coordinate
from leeward.core.metrics import TaskMetrics
from leeward.core.view import View

WHOLE = TaskMetrics(
    component="work", pid=7, t=12.5, received={"source": 9}, sent={"default": 3, "marker": 1}, dropped=1, processed=9,
    busy_s=0.25, sojourns=9, sojourn_s=0.5, buffered=2, groups={3: 4, 11: 5}, looked_at=9, reads="in", writes="out",
    resident_bytes=10**7, state_bytes=500, up_bytes=100, up_s=0.1, down_bytes=50, down_s=0.2, trip_s=0.001,
    mode="running", outside=("cache",), state_unused=True, ahead_s=-0.25, place=Coordinate((0.1, 0.2), 0.3, 0.4),
    trips={"node-2": 0.01}, view=View(title="t", note="n", width=3, height=2), more={"task": 4, "counters": {"a": 1}},
)  # fmt: skip
FIELDS = json.loads(WHOLE.to_line())
#: Values that another program, or a fault, may put where a figure belongs.
ODD = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([2**53, 2**53 + 1, 10**30, -0.0, 3.0, 2.5, 1e308])
    | st.floats() | st.text(max_size=4) | st.lists(st.integers(-1, 2) | st.floats(0, 2), max_size=3)
    | st.dictionaries(st.sampled_from(["a", "5", "05", "-1", " 7", "1_0", ""]), st.integers(-1, 9) | st.floats(0, 2))
)  # fmt: skip


def test_a_tasks_own_line_needs_no_second_reading(monkeypatch):
    monkeypatch.setattr(lines.TaskMetrics, "from_line", None)
    read = lines.read_line(WHOLE.to_line())
    assert read is not None and read.processed == 9 and read.groups == {3: 4, 11: 5} and read.view is not None


@given(st.dictionaries(st.sampled_from([*FIELDS, "unknown"]), ODD, max_size=3), st.sets(st.sampled_from([*FIELDS])))
def test_both_read_the_same(changed, left_out):
    line = json.dumps({name: value for name, value in {**FIELDS, **changed}.items() if name not in left_out})
    assert lines.read_line(line) == TaskMetrics.from_line(line)


@given(st.sampled_from([*FIELDS]), st.sampled_from(["1e999", "-1e999", "NaN", "Infinity", "1e2", '"\\ud800"', "01"]))
def test_so_they_do_with_figures_that_json_does_not_have(name, text):
    line = json.dumps({**FIELDS, name: "HERE"}).replace('"HERE"', text)
    assert lines.read_line(line) == TaskMetrics.from_line(line)


NO_LINES = ["", "no json", "[]", "{}", "[" * 100_000, "\ud800", '{"component": 1, "pid": 1, "t": 1}']


@pytest.mark.parametrize("line", NO_LINES, ids=range(len(NO_LINES)))
def test_so_they_do_with_what_is_no_line(line):
    assert lines.read_line(line) == TaskMetrics.from_line(line)
