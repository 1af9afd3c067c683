"""The measurement of the solvers: what it runs, what it skips and says so, what it makes of the results."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.helpers.benches import bench_module


@pytest.fixture(scope="module")
def bench() -> Iterator[ModuleType]:
    with bench_module("edrp") as module:
        yield module


def options(**changes: object) -> argparse.Namespace:
    return argparse.Namespace(**{"method": "exact", "ilp_limit": None, "all_seeds": False} | changes)


def result(bench: ModuleType, *, method: str, group: str, seconds: float, F: float, **changes: object) -> dict:
    case = bench.Case(group=group, method=method, nodes=8, k=2, limit_s=60.0)
    measured = bench.Measured(key=case.key, status="optimal", seconds=seconds, F=F, gap=0.0, peak_mb=100.0)
    return bench._as_result(case, measured) | changes


def test_every_size_is_there_with_each_variant_and_five_seeds(bench: ModuleType):
    cases = bench.cases("sizes", bench.Plan(), options())
    assert len(cases) == len({case.key for case in cases}) == 5 * 3 * 4 * 5
    assert {case.method for case in cases} == {"exact"}


def test_the_programme_runs_on_the_same_instances_cheapest_first(bench: ModuleType):
    ours = bench.cases("sizes", bench.QUICK, options())
    theirs = bench.cases("ilp", bench.QUICK, options())
    assert {case.problem().name for case in theirs} <= {case.problem().name for case in ours}
    counts = [bench.variable_count(case.problem()) for case in theirs]
    assert counts == sorted(counts)
    assert len(bench.cases("ilp", bench.QUICK, options(all_seeds=True))) == 2 * len(theirs)


def test_what_is_skipped_says_why(bench: ModuleType):
    small = bench.Case(group="ilp", method="ilp", nodes=8, k=2, limit_s=1.0)
    large = bench.Case(group="ilp", method="ilp", nodes=24, k=3, limit_s=1.0)
    assert bench._reason_to_skip(small, Counter(), False) is None
    assert bench._reason_to_skip(small, Counter(), True) == ("skipped", "the group's budget was used up")
    assert bench._reason_to_skip(small, Counter([small.line]), False) == ("skipped", "smaller ones overran the limit")
    assert bench._reason_to_skip(large, Counter(), False)[0] == "not built"


def test_ratios_are_of_the_same_instance(bench: ModuleType):
    results = [
        result(bench, method="exact", group="sizes", seconds=0.01, F=0.5),
        result(bench, method="exact", group="sizes", seconds=0.02, F=0.6, seed=1),
        result(bench, method="ilp", group="ilp", seconds=4.0, F=0.6, seed=1),
    ]
    sizes, ilp = bench.summaries(results)
    assert (sizes["instances"], sizes["proven"], sizes["median_s"], sizes["max_s"]) == (2, 2, 0.015, 0.02)
    assert ilp["times_slower_than_ours_min"] == pytest.approx(200.0)


def test_two_optima_of_one_instance_are_an_error(bench: ModuleType):
    ours = result(bench, method="exact", group="sizes", seconds=0.01, F=0.5)
    same = result(bench, method="ilp", group="ilp", seconds=4.0, F=0.500002)
    other = result(bench, method="ilp", group="ilp", seconds=4.0, F=0.50001)
    assert bench.disagreements([ours, same]) == []
    assert len(bench.disagreements([ours, other])) == 1
    infeasible = other | {"F": None, "status": "infeasible"}
    assert len(bench.disagreements([ours, infeasible])) == 1


def test_a_picture_of_what_there_is(bench: ModuleType, tmp_path: Path):
    sizes = result(bench, method="exact", group="sizes", seconds=0.01, F=0.5)
    tree = result(bench, method="exact", group="operators", seconds=10.0, F=0.5, shape="tree", proven=False)
    for name, found in (("both", [sizes, tree]), ("left", [sizes]), ("right", [tree])):
        bench.draw(tmp_path / f"{name}.png", found)
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
