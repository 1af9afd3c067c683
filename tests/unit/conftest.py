"""The in-memory cluster of the coordinator's tests, and a bolt behind a pipe."""

from __future__ import annotations

import pytest

from leeward.sim.memory import ListSink, ManualClock
from tests.helpers.control_twins import Cluster, checkpointed, coordinator, settle
from tests.helpers.pipe_twin import Twin
from tests.helpers.task_worker import BOLT, Count, Worker, count_of_two


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def clock(cluster) -> ManualClock:
    return cluster.clock


@pytest.fixture
def sink(cluster) -> ListSink:
    return cluster.sink


@pytest.fixture
def running(cluster, clock, sink):
    coord = coordinator(cluster, clock, sink)
    coord.start()
    settle(cluster, clock, coord)
    checkpointed(cluster, clock, coord)
    return coord


@pytest.fixture(params=["json", "binary with ids", "binary"])
def twin(request):
    return None if request.param == "json" else Twin(ids="ids" in request.param)


@pytest.fixture
def bolt(tmp_path, twin):
    worker = Worker(Count, tmp_path, twin, **BOLT)
    yield worker
    worker.close()


@pytest.fixture(params=[True, False], ids=["with ids", "without"])
def keyed_bolt(tmp_path, request):
    worker = count_of_two(tmp_path, Twin(ids=request.param, keyed={("pass", "default"): [0]}))
    yield worker
    worker.close()
