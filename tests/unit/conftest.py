"""The in-memory cluster of the coordinator's tests."""

from __future__ import annotations

import pytest
from control_twins import Cluster

from leeward.control.memory import ListSink, ManualClock


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def sink() -> ListSink:
    return ListSink()
