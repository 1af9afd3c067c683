"""Generated workloads in the simulator: policies that claim the constraints keep them at every interval."""

from __future__ import annotations

import itertools
import random

import pytest

from leeward.control.registry import make_joint_policy, make_workload
from leeward.core.workload import Interval
from leeward.sim.workload.arrivals import random_walk
from leeward.sim.workload.run import play


def rows(workload: str, nodes: int, intervals: int, *, seed: int, **options: str) -> list[Interval]:
    made = make_workload(workload, nodes=nodes, seed=seed)
    steps = random_walk(made.sizes, nodes, intervals, random.Random(seed), spread=0.5)
    policy = make_joint_policy("edge-cloud", dict(options))
    ticks = itertools.count()
    return list(play(made, policy, steps, seed=seed, clock=lambda: float(next(ticks))))


@pytest.mark.parametrize("workload", ["edge-cloud-ref", "edge-cloud-th"])
@pytest.mark.parametrize("method", ["topset", "topset-p", "polished"])
def test_no_interval_has_a_broken_constraint_and_few_arrivals_are_refused(workload: str, method: str):
    found = rows(workload, 50, 60, seed=3, method=method)
    assert not any(row.violations for row in found)
    assert sum(len(row.refused) for row in found) <= 1
    assert max(row.active for row in found) >= 5
    assert not any(row.moves for row in found), "nobody rebalances here"


def test_a_run_repeats_and_the_polished_policy_is_better_than_its_start():
    first = rows("edge-cloud-ref", 50, 40, seed=1, method="polished")
    assert first == rows("edge-cloud-ref", 50, 40, seed=1, method="polished")
    plain = rows("edge-cloud-ref", 50, 40, seed=1, method="topset-p")
    assert sum(row.makespan_s for row in first) < sum(row.makespan_s for row in plain)


def test_figures_of_the_workload_are_those_of_the_policy():
    """The workload computes by the formulas, the policy by its arrays."""
    made = make_workload("edge-cloud-ref", nodes=50, seed=2)
    steps = random_walk(made.sizes, 50, 30, random.Random(2), spread=0.0)
    policy = make_joint_policy("edge-cloud", {})
    for row in play(made, policy, steps, seed=2, clock=lambda: 0.0):
        board = policy._board  # type: ignore[attr-defined]
        assert row.makespan_s == pytest.approx(board.total(), rel=1e-9)
        assert row.active == len(board.active)
