"""The plugin keeps its plan while the planned node is there, however long a worker on it is dead."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.cluster.builders import moved
from tests.cluster.harness import Running, await_

pytestmark = [pytest.mark.timeout(400), pytest.mark.slow]

#: Longer than Nimbus waits for an executor that was just placed, and for the next heartbeat of an older one
#: (`nimbus.task.launch.secs` and `nimbus.task.timeout.secs` in storm_conf/storm.yaml).
PLACED_S, DEAD_S = 65.0, 24.0


def test_a_stopped_and_then_killed_worker_is_started_again_where_the_plan_wants_it(counting: Running) -> None:
    with counting.pilot() as pilot:
        pilot.reconfigure(moved("count"))
        time.sleep(PLACED_S)
        pilot.checkpoint()
        planned = dict(counting.snapshot().assigned.slots)
        slot = planned[counting.tasks("count")[0]]
        worker = counting.cluster.worker_pids()[slot.node, slot.port]
        os.kill(worker, signal.SIGSTOP)
        until = time.monotonic() + DEAD_S
        while time.monotonic() < until:
            now = counting.snapshot()
            assert (dict(now.assigned.slots), now.assigned.reason) == (planned, "")
            assert slot.port in next(node.ports for node in now.supervisors if node.node == slot.node)
            time.sleep(0.2)
        os.kill(worker, signal.SIGKILL)
        await_(lambda: counting.cluster.worker_pids().get((slot.node, slot.port), worker) != worker, "a new worker")
        counting.stream.settled(400, timeout_s=120)
        now = counting.snapshot()
        assert (dict(now.assigned.slots), now.assigned.reason) == (planned, "")
