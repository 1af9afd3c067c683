"""On the real Storm: a replica is wanted where no task of its is, and a warm one is brought there under load."""

from __future__ import annotations

import os
import signal

import pytest

from leeward.core.model import ClusterView
from leeward.core.plan import Plan, Slot
from leeward.core.table import redistribute, replicas
from tests.cluster.harness import At, Builder, Running, await_

pytestmark = pytest.mark.timeout(400)


def warm(view: ClusterView) -> list[int]:
    return sorted(set(view.component("count").tasks) - set(replicas(view.tables["count"])))


def free_slots(view: ClusterView) -> list[Slot]:
    used = set(view.assignment.values())
    return [slot for node in view.nodes for port in node.ports if (slot := Slot(node.id, port)) not in used]


def apart(view: ClusterView) -> Plan:
    """All warm tasks of the count share a slot with nobody else."""
    slot = free_slots(view)[0]
    return Plan(tables=view.tables, placement=view.assignment | dict.fromkeys(warm(view), slot), reason="apart")


def brought(*, scaled: bool) -> Builder:
    """The first warm task of the count goes to a free slot of another node, to work there if `scaled`."""

    def build(view: ClusterView) -> Plan:
        task, tables = warm(view)[0], dict(view.tables)
        here = view.assignment[task].node
        slot = next(slot for slot in free_slots(view) if slot.node != here)
        if scaled:
            tables["count"] = redistribute(tables["count"], sorted([*replicas(tables["count"]), task]))
        return Plan(tables=tables, placement=view.assignment | {task: slot}, reason=f"task {task} to {slot}")

    return build


def test_a_warm_task_is_brought_and_nobody_who_works_is_restarted(counting: Running):
    stream = counting.stream
    with counting.pilot(mode="live") as pilot:
        pilot.checkpoint()
        assert pilot.reconfigure(apart)["kind"] == "restart", "they shared their slots with tasks that work"
        stream.exact(400)
        before, base = counting.snapshot().assigned.slots, counting.record().base
        workers = counting.cluster.worker_pids()

        ended = pilot.reconfigure(brought(scaled=True))
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
        ended = pilot.reconfigure(brought(scaled=False))
        assert fault.done and ended["result"].startswith("reset: "), ended
        counting.stream.settled(400, timeout_s=120)
        await_(lambda: pilot.check() and pilot.idle and not counting.journal().open, "the topology to be whole")
        record = counting.record()
        assert record.base > base and record.absent == ()
