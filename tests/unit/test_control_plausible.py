"""Measurements that cannot be are told with their task, and change no rate; those that can be pass."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.control.lines import read_samples
from leeward.control.plausible import implausible, totals_of
from leeward.core.metrics import TaskMetrics

GOOD = TaskMetrics(
    component="work", pid=7, t=1000.0, received={"source": 50}, sent={"default": 40}, processed=50, busy_s=2.0,
    looked_at=10, groups={3: 5},
)  # fmt: skip


def judged(line: str, before: TaskMetrics | None = GOOD, earlier: TaskMetrics | None = None) -> str:
    lines = {4: line}
    last, first = ({} if one is None else {4: one} for one in (before, earlier))
    return implausible(lines, read_samples(lines), last, totals_of(first))


def changed(**fields: object) -> str:
    return json.dumps({**json.loads(GOOD.to_line()), **fields})


@pytest.mark.parametrize("name", ["t", "processed", "busy_s", "buffered", "looked_at", "state_bytes", "dropped", "pid"])
@pytest.mark.parametrize("value", [-1, math.nan, math.inf, 1e300, "5", True, None])
def test_a_figure_that_is_none_is_told(name: str, value: object):
    assert "task 4 tells figures" in judged(changed(**{name: value})) or (name in ("t", "busy_s") and value == 1e300)


@pytest.mark.parametrize("name", ["in", "out", "groups"])
def test_a_count_below_0_is_told(name: str):
    assert "task 4 tells figures" in judged(changed(**{name: {"3": -5}}))


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (replace(GOOD, processed=49), "task 4 of work: processed fell from 50 to 49"),
        (replace(GOOD, received={"source": 20}), "received source fell from 50 to 20"),
        (replace(GOOD, sent={}), "sent default fell from 40 to 0"),
        (replace(GOOD, t=1001.0, busy_s=90.0), "it was busy for 88.0 s of 1.0 s"),
    ],
)
def test_a_process_whose_counters_fall_is_told(after: TaskMetrics, why: str):
    assert why in judged(after.to_line())


@pytest.mark.parametrize(
    ("after", "why"),
    [
        ({"processed": 5000}, "task 4 of work: processed jumped from 500 to 5000"),
        ({"received": {"source": 5000}}, "received jumped from 500 to 5000"),
        ({"sent": {"default": 4000}}, "sent jumped from 400 to 4000"),
    ],
)
def test_a_count_that_jumps_is_told(after, why):
    before = replace(GOOD, processed=500, received={"source": 500}, sent={"default": 400})
    earlier = replace(before, t=999.0, processed=450, received={"source": 450}, sent={"default": 350})
    line = replace(before, t=1001.0, **after).to_line()
    assert why in judged(line, before, earlier)
    assert judged(line, before, replace(earlier, pid=6)) == judged(line, before, replace(earlier, t=1000.0)) == ""
    assert judged(line, before, replace(earlier, t=999.95)) == "", "it came as fast before"


def test_load_that_begins_is_no_jump_and_neither_is_a_large_count_that_goes_on():
    begins = replace(GOOD, processed=5000, received={"source": 5000}, sent={"default": 5000})
    assert judged(begins.to_line(), replace(GOOD, processed=400), GOOD) == judged(begins.to_line()) == ""
    large = replace(GOOD, processed=500_000)
    assert judged(replace(large, t=1001.0, processed=600_000).to_line(), large, replace(large, t=999.0)) == ""


def test_another_process_begins_at_0_and_a_clock_may_step():
    assert judged(TaskMetrics(component="work", pid=8, t=1001.0).to_line()) == ""
    assert judged(replace(GOOD, t=940.0).to_line()) == "" and judged(replace(GOOD, t=1060.0).to_line()) == ""
    assert judged(GOOD.to_line(), before=None) == ""


@given(st.integers(0, 1000), st.integers(0, 1000), st.floats(0, 100))
def test_counters_that_grow_pass(tuples: int, emitted: int, seconds: float):
    later = replace(
        GOOD, t=GOOD.t + seconds, processed=50 + tuples, received={"source": 50 + tuples},
        sent={"default": 40 + emitted}, busy_s=2.0 + seconds,
    )  # fmt: skip
    assert judged(later.to_line()) == ""


@pytest.mark.parametrize("line", ["[" * 100_000, '{"component": ' * 5000, '{"groups": {"x": 1}}', "\x00", "1" * 10_000])
def test_a_line_that_no_task_writes_is_told_and_ends_no_service(line: str):
    assert "task 4 tells figures that cannot be read" in judged(line)


@pytest.mark.parametrize(
    "field",
    [
        {"place": [10**400, 0.0, 0.1, 0.5]},
        {"view": {"title": "", "note": "", "width": 10**400, "height": 1, "arrows": []}},
    ],
)
def test_a_number_too_long_for_a_float_is_none_and_ends_no_service(field: dict[str, object]):
    [sample] = read_samples({4: changed(**field)}).values()
    assert sample.place is None and sample.view is None and judged(changed(**field)) == ""
