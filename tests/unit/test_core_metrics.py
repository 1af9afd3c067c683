"""A task's line of measurements: plain counts are taken as they are, and all others are checked one by one."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from leeward.core.metrics import TaskMetrics
from leeward.runtime.task.memory import resident_bytes

LINE = {"component": "work", "pid": 7, "t": 12.5}
plain = st.integers(0, 2**53)
values = plain | st.integers(-2, 2**60) | st.floats() | st.booleans() | st.none() | st.just("3") | st.just(2.0)


def allowed(value):
    """By the definition of a count: a number from 0 to 2**53 as a float, no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= float(value) <= 2**53


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), values), st.dictionaries(st.integers(0, 127).map(str), values))
def test_counts_are_read_as_one_by_one(tables, groups):
    line = json.dumps(LINE | {"in": tables, "out": tables, "groups": groups})
    read = TaskMetrics.from_line(line)
    if not all(map(allowed, [*tables.values(), *groups.values()])):
        assert read is None
        return
    assert read.received == read.sent == {name: int(float(value)) for name, value in tables.items()}
    assert read.groups == {int(group): int(float(value)) for group, value in groups.items()}
    assert all(type(value) is int for value in [*read.received.values(), *read.groups.values()])


@given(st.sampled_from(["in", "out", "groups"]), st.none() | st.lists(plain) | plain | st.text())
def test_a_table_that_is_none_is_a_line_that_cannot_be_read(name, found):
    assert TaskMetrics.from_line(json.dumps(LINE | {name: found})) is None


def test_the_memory_of_a_task_is_told_and_a_line_without_it_is_read():
    sample = TaskMetrics(component="work", pid=7, t=12.5, resident_bytes=resident_bytes())
    assert 1_000_000 < TaskMetrics.from_line(sample.to_line()).resident_bytes < 2**40
    assert TaskMetrics.from_line(json.dumps(LINE)).resident_bytes == 0


WHOLE = ("pid", "dropped", "processed", "sojourns", "buffered", "looked_at", "state_bytes", "resident_bytes")
AMOUNTS = ("t", "busy_s", "sojourn_s", "trip_s")


def an_amount(value):
    """By the definition of an amount: a finite number from 0, no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= float(value) < float("inf")


@given(
    st.dictionaries(st.sampled_from(WHOLE), values), st.dictionaries(st.sampled_from(AMOUNTS), values),
    st.tuples(values, values), st.tuples(values, values),
)  # fmt: skip
def test_figures_are_read_as_one_by_one(whole, amounts, up, down):
    read = TaskMetrics.from_line(json.dumps(LINE | whole | amounts | {"up": up, "down": down}))
    counts = {**whole, "up_bytes": up[0], "down_bytes": down[0]}
    times = {**amounts, "up_s": up[1], "down_s": down[1]}
    if not (all(map(allowed, counts.values())) and all(map(an_amount, times.values()))):
        assert read is None
        return
    assert {name: getattr(read, name) for name in counts} == {name: int(float(v)) for name, v in counts.items()}
    assert {name: getattr(read, name) for name in times} == {name: float(value) for name, value in times.items()}
    assert all(type(getattr(read, name)) is int for name in counts)
    assert all(type(getattr(read, name)) is float for name in times)
