"""Plans on Storm against plans in the simulator: rates of the rows, the world as measured, and why plans differ."""

from __future__ import annotations

import gzip

import pytest

from tests.helpers.benches import bench_module


@pytest.fixture(scope="module")
def bench():
    with bench_module("agreement") as module:
        yield module


def made(bench, t=60.0, work=2, load=100.0, service=80.0):
    return bench.Made(
        t=t, replicas={"source": 1, "work": work}, rates={"source": 100.0, "work": load}, service={"work": service},
        objective=0.3,
    )  # fmt: skip


def test_rows_become_rates_of_real_time_after_the_lead(bench, tmp_path):
    path = tmp_path / "rows.csv.gz"
    with gzip.open(path, "wt") as file:  # 120 rows a minute of data, and nothing in the third minute
        for second in [*range(120), 180]:
            file.write(f"a,b,x,2013-01-14 00:{second // 60:02}:{second % 60:02}\n")
    trace = bench.trace_of(path, speed=12.0, lead_s=7.0)
    assert trace.at(0.0) == trace.at(6.9) == 0.0
    assert trace.at(7.0 + 2.5) == 60 / bench.BIN_S, "a minute of data is five seconds"
    assert trace.at(7.0 + 12.5) == 0.0


def test_the_world_takes_over_what_was_measured(bench):
    world = bench.load_world(bench.WORLD)
    live = [
        bench.Made(t=60.0 * n, replicas={}, rates={"parser": 100.0, "filter_by_coordinates": 90.0, "global_rank": 3.0,
                   "partial_rank": 100.0}, service={"parser": rate}, objective=0.3)
        for n, rate in enumerate([200.0, 210.0, 900.0])
    ]  # fmt: skip
    fitted = bench.as_measured(world, live)
    rates = {c.id: c.rate for c in fitted.components}
    ratios = {(s.source, s.target): s.ratio for s in fitted.streams}
    assert rates["parser"] == 210.0, "the median"
    assert rates["metronome"] == next(c.rate for c in world.components if c.id == "metronome"), "not measured"
    assert ratios["parser", "filter_by_coordinates"] == pytest.approx(0.9)
    assert ratios["partial_rank", "global_rank"] == pytest.approx(0.03)
    assert ratios["metronome", "count_by_window"] == 0.1, "two streams come to it: neither can be told from its load"


def test_equal_plans_need_no_reason(bench):
    assert bench.compared(made(bench), made(bench, load=300.0), made(bench))[3] == ""


@pytest.mark.parametrize(
    ("fitted", "words"), [(2, "with the measured ones the plans agree"), (3, "not by these alone")]
)
def test_a_difference_names_the_facts_that_differ(bench, fitted, words):
    why = bench.compared(made(bench), made(bench, work=3, load=150.0, service=82.0), made(bench, work=fitted))[3]
    assert why == f"load of work 100 against 150/s: {words}"


def test_a_plan_is_compared_with_the_one_of_its_time(bench):
    others = [made(bench, t=t) for t in (0.0, 61.0, 119.0)]
    assert bench.nearest(made(bench, t=90.0), others).t == 61.0, "the earlier of two that are as near"
