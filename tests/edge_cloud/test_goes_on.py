"""The policy in the simulator: a run that was broken off goes on with the rows of one that was not."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from leeward.core.workload import Interval
from leeward.policies.edge_cloud.policy import EdgeCloud
from leeward.policies.edge_cloud.settings import EdgeCloudSettings
from leeward.policies.edge_cloud.workload.generated import Generated
from leeward.sim.workload.arrivals import Step, poisson
from leeward.sim.workload.run import play

NODES, SEED = 20, 2


@pytest.mark.parametrize("method", ["topset", "polished"])
def test_a_run_that_was_broken_off_gives_the_rows_of_one_that_was_not(method: str):
    workload = Generated(nodes=NODES, seed=SEED)
    steps = poisson(workload.sizes, NODES, 30, random.Random(SEED))

    def rows(steps: Sequence[Step], done: Sequence[Interval] = ()) -> list[Interval]:
        policy = EdgeCloud(EdgeCloudSettings(method=method))
        return list(play(workload, policy, steps, seed=SEED, clock=lambda: 0.0, done=done))

    whole = rows(steps)
    assert any(row.refused for row in whole), "a refusal is what a policy could remember"
    for cut in (1, 8, 15, 22, 29):
        assert rows(steps, whole[:cut]) == whole[cut:]
