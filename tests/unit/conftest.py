"""The in-memory cluster of the coordinator's tests."""

from __future__ import annotations

import pytest
from control_twins import Cluster

from leeward.sim.memory import ListSink, ManualClock


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def clock(cluster) -> ManualClock:
    return cluster.clock


@pytest.fixture
def sink(cluster) -> ListSink:
    return cluster.sink
