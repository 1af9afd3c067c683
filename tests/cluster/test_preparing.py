"""On the real Storm: a replica is wanted where no task of its is, and a warm one is brought there under load."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest

from leeward.core.model import ClusterView
from leeward.core.placing import carry, present_deployment
from leeward.core.plan import Plan, Slot
from leeward.core.table import replicas
from tests.cluster.harness import At, Running, await_

pytestmark = pytest.mark.timeout(400)


def warm(view: ClusterView) -> list[int]:
    return sorted(set(view.component("count").tasks) - set(replicas(view.tables["count"])))


def free_slots(view: ClusterView) -> list[Slot]:
    used = set(view.assignment.values())
    return [slot for node in view.nodes for port in node.ports if (slot := Slot(node.id, port)) not in used]


def apart(view: ClusterView) -> Plan:
    """Warm tasks share slots with nobody who works, as the first plan has it with `warm_apart`."""
    return carry(replace(view, first=True, warm_apart=True), present_deployment(view), reason="apart")


def scaled(view: ClusterView) -> Plan:
    """One more replica of the count, on a node whose tasks of it all work."""
    present = present_deployment(view)
    (home,) = present["count"]
    return carry(view, present | {"count": {home: present["count"][home] + 1}}, reason=f"one more on {home}")


def brought(view: ClusterView) -> Plan:
    """The first warm task of the count goes to a free slot of another node."""
    task = warm(view)[0]
    slot = next(slot for slot in free_slots(view) if slot.node != view.assignment[task].node)
    return Plan(tables=view.tables, placement=view.assignment | {task: slot}, reason=f"task {task} to {slot}")


def test_a_warm_task_is_brought_and_nobody_who_works_is_restarted(counting: Running):
    stream = counting.stream
    with counting.pilot(mode="live") as pilot:
        pilot.checkpoint()
        assert pilot.reconfigure(apart)["kind"] == "restart", "they shared their slots with tasks that work"
        stream.exact(400)
        before, base = counting.snapshot().assigned.slots, counting.record().base
        workers = counting.cluster.worker_pids()

        ended = pilot.reconfigure(scaled)
        assert (ended["kind"], ended["result"]) == ("handover", "done"), pilot.events.all
        assert set(ended["phases"]) >= {"leave_s", "prepare_s", "join_s", "handover_s"}
        stream.exact(400)
        record, after = counting.record(), counting.snapshot().assigned.slots
        (task,) = (task for task in after if after[task] != before[task])
        assert task in replicas(record.tables["count"]) and record.base == base and record.absent == ()
        left = [slot for slot in before.values() if slot != before[task]]
        assert {slot: workers[slot.node, slot.port] for slot in left} == {
            slot: counting.cluster.worker_pids()[slot.node, slot.port] for slot in left
        }
        pilot.checkpoint()
        assert not pilot.events.named("reset", "alert", "checkpoint_failed")


def test_kill_9_of_a_task_that_works_meanwhile_restores_everybody(counting: Running):
    def kill() -> None:
        pids = [pid for pid, child in counting.cluster.python_pids().items() if child.target.endswith(".Sink")]
        os.kill(pids[0], signal.SIGKILL)

    fault = At("control:prepare", kill, armed=False)
    with counting.pilot(mode="live", fault=fault) as pilot:
        pilot.checkpoint()
        fault.armed = True
        base = counting.record().base
        ended = pilot.reconfigure(brought)
        assert fault.done and ended["result"].startswith("reset: "), ended
        counting.stream.settled(400, timeout_s=120)
        # the task that Storm was moving is left out, and returns when its process is there
        await_(
            lambda: pilot.check() and pilot.idle and not (counting.journal().open or counting.record().absent),
            "the topology to be whole",
        )
        assert counting.record().base > base
