"""Packed counters: exactly those of the measurements, in a fraction of their memory."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from leeward.control.counted import Counted, emitted, packed
from leeward.control.lines import read_samples
from leeward.control.monitor import Monitor
from leeward.core.metrics import TaskMetrics
from leeward.core.settings import Settings

counts = st.integers(0, 2**53)
times = st.floats(0, 1e10)
samples = st.builds(
    TaskMetrics,
    component=st.sampled_from(["work", "sink"]), pid=counts, t=times, processed=counts, busy_s=times, looked_at=counts,
    received=st.dictionaries(st.sampled_from(["a", "b", "c"]), counts),
    sent=st.dictionaries(st.sampled_from(["default", "marker"]), counts),
    groups=st.dictionaries(st.integers(0, 127), counts, max_size=5),
)  # fmt: skip


@given(samples, samples)
def test_what_is_packed_is_what_was_measured(before, sample):
    found = Counted(sample, Counted(before))
    for name in ("t", "pid", "processed", "busy_s", "looked_at", "received", "groups"):
        assert getattr(found, name) == getattr(sample, name), name
    assert found.emitted == emitted(sample) == sample.sent.get("default", 0)


def measured(second, tasks=40):
    """Lines of tasks that each own 32 key groups, as their texts come: no two share an object."""
    groups = {group: 1000 * second + group for group in range(32)}
    one = TaskMetrics(
        component="work", pid=7, t=float(second), received={"source": 1000 * second}, processed=1000 * second,
        sent={"default": 1000 * second}, groups=groups, looked_at=1000 * second,
    )  # fmt: skip
    return read_samples(dict.fromkeys(range(tasks), one.to_line()))


def test_names_are_kept_once_for_the_whole_window():
    first = packed(measured(1))
    second = packed(measured(2), first)
    assert all(second[task]._groups is first[task]._groups for task in first)
    assert all(second[task]._received is first[task]._received for task in first)


def test_a_window_takes_a_third_of_what_its_measurements_take():
    monitor = Monitor(Settings(window_s=10.0))
    tracemalloc.start()
    try:
        kept = [measured(second) for second in range(11)]
        whole = tracemalloc.get_traced_memory()[0]
        for second, lines in enumerate(kept):
            monitor.observe(lines, float(second))
        kept.clear()
        del lines
        of_window = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert of_window < whole / 3
