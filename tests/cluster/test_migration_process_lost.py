"""Processes die: everybody goes back to the last cut that is whole, and nothing is lost.

The counting topology's sink appends, so what is sent again shows there again (at least once). Query 1's sink writes
under a sequence number, so its output stays equal to the reference: test_migration_query1.py.
"""

from __future__ import annotations

import os
import signal

import pytest

from leeward.core.control import Phase
from tests.cluster.builders import moved
from tests.cluster.harness import At, Pilot, Running, await_

pytestmark = pytest.mark.timeout(400)


def after_the_loss(counting: Running, pilot: Pilot, kill: int) -> None:
    """Kill this process between two checkpoints; the topology is reset and goes on."""
    pilot.checkpoint()
    mark, tally = len(pilot.events.all), counting.stream.flow()
    repeated, base = tally.repeated, counting.record().base
    os.kill(kill, signal.SIGKILL)
    reset = pilot.await_event("reset", since=mark)
    assert reset["cut"] > 0
    ended = await_(
        lambda: [e for e in pilot.events.named("reconfiguration_ended", since=mark) if e["kind"] == "reset"],
        "the reset to end",
    )
    assert ended[0]["result"].startswith("reset: ")
    tally = counting.stream.settled(400)
    await_(lambda: pilot.idle and counting.record().phase is Phase.RUN, "the topology to run")
    assert counting.record().base > base
    assert tally.repeated > repeated  # the source went back: this was no lucky moment without work
    counting.stream.settled(400)


@pytest.mark.parametrize("component", ["count", "numbers", "sink"])
def test_kill_9_of_a_python_task(counting: Running, component: str):
    with counting.pilot() as pilot:
        after_the_loss(counting, pilot, counting.owner_pid(component))


def test_kill_9_of_a_worker(counting: Running):
    with counting.pilot() as pilot:
        workers = counting.cluster.worker_pids()
        slot = counting.snapshot().assigned.slots[counting.tasks("numbers")[0]]
        after_the_loss(counting, pilot, workers[slot.node, slot.port])


def test_a_loss_without_a_service_waits_for_one(counting: Running):
    """Nobody leads: the others process what is there and wait; the next service resets."""
    with counting.pilot() as pilot:
        pilot.checkpoint()
    base = counting.record().base
    worker = counting.cluster.worker_pids()
    slot = counting.snapshot().assigned.slots[counting.tasks("sink")[0]]
    os.kill(worker[slot.node, slot.port], signal.SIGKILL)
    await_(
        lambda: counting.stage.zookeeper.exists(counting.paths.recover(counting.record().epoch)),
        "a task to ask for a reset",
    )
    with counting.pilot() as pilot:
        counting.stream.settled(400, timeout_s=120)
        assert counting.record().base > base


@pytest.mark.parametrize(
    "step",
    [
        "control:pause",
        pytest.param("placement", marks=pytest.mark.slow),
        pytest.param("rebalance", marks=pytest.mark.slow),
        "control:restore",
        pytest.param("control:run", marks=pytest.mark.slow),
    ],
)
def test_kill_9_of_a_python_task_in_the_middle_of_a_migration(counting: Running, step: str):
    """Given up or finished, by how far it was; not lost in between."""
    killed: list[int] = []

    def kill() -> None:
        children = counting.cluster.python_pids()
        killed.append(max(pid for pid, child in children.items() if child.target.endswith(".Pass")))
        os.kill(killed[0], signal.SIGKILL)

    fault = At(step, kill, armed=False)
    with counting.pilot(fault=fault) as pilot:
        pilot.checkpoint()
        fault.armed = True
        ended = pilot.reconfigure(moved("count"))
        assert killed
        assert ended["result"] == "done" or ended["result"].startswith("aborted: "), ended
        counting.stream.settled(400, timeout_s=120)
        await_(lambda: pilot.check() and pilot.idle and not counting.journal().open, "the topology to be whole")
        again = pilot.reconfigure(moved("count"))
        assert again["result"] == "done"
        counting.stream.settled(400)
