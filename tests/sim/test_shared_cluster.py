"""The stand-in for a large cluster does what Storm, the plugin and the tasks would."""

from __future__ import annotations

import json

from leeward.adapters.clock import SystemClock
from leeward.control.lines import read_line
from leeward.core.metrics import TaskMetrics
from leeward.core.plan import Placement, Slot
from leeward.sim.world.grown import LOAD, grown, nodes_of, places_of
from leeward.sim.world.shared import SharedCluster


class Sink:
    def emit(self, action, fields):
        pass


def cluster():
    worlds = [grown(name, components=5, tasks=2, workers=2, seed=0) for name in ("a", "b")]
    nodes = nodes_of(4, 2)
    return SharedCluster(worlds, nodes=nodes, places=places_of(nodes, 0), clock=SystemClock())


def control(cluster, name):
    ports = cluster.ports(name, Sink())
    store = ports.open_topology(ports.nimbus.structure(name)).control
    store.claim()
    return store


def test_a_placement_is_carried_out_without_a_rebalance_as_storms_next_pass_would():
    """Bringing a warm task asks for none; each such plan waited for its deadline and was given up."""
    one = cluster()
    tenant = one.tenants["a"]
    wanted = Placement(topology_id=tenant.id, epoch=1, slots={**tenant.slots, 1: Slot("n0003", 6701)})
    control(one, "a").write_placement(wanted)
    assert tenant.slots == wanted.slots


def test_a_slot_of_another_topology_is_refused():
    one = cluster()
    tenant, taken = one.tenants["a"], next(iter(one.tenants["b"].slots.values()))
    before = dict(tenant.slots)
    control(one, "a").write_placement(Placement(topology_id=tenant.id, epoch=1, slots={**before, 1: taken}))
    assert tenant.slots == before
    assert "is used by topology 'b'" in (one.snapshot(lambda: None) or "")


def test_the_lines_are_those_of_tasks():
    one = cluster()
    tenant = one.tenants["a"]
    tenant.load = LOAD
    now = one._clock.now()
    tenant.lines(now + 5.0, one._places)
    lines = tenant.lines(now + 10.0, one._places)
    read = {task: TaskMetrics.from_line(line) for task, line in lines.items()}
    assert read.keys() == tenant.tasks.keys() and None not in read.values()
    assert sum(sample.processed for sample in read.values()) > LOAD
    assert all(sample.groups for sample in read.values() if sample.looked_at)
    assert {task: read_line(line) for task, line in lines.items()} == read


def test_a_line_is_what_a_task_of_these_counts_would_write():
    one = cluster()
    tenant, now = one.tenants["a"], one._clock.now()
    tenant.load = LOAD
    for later in (10.0, 20.0):  # the second line is made of the first one's text
        lines = tenant.lines(now + later, one._places)
    for task, name in tenant.tasks.items():
        read = TaskMetrics.from_line(lines[task])
        same = tenant._counts.metrics(
            task, name, now + 20.0, mode="running", state_bytes=tenant._state(task, name), looked_at=read.looked_at,
            place=one._places[tenant.slots[task].node], reads="a.in" if name in tenant.file.sources else "",
            groups=dict.fromkeys(tenant._owned[task], read.processed // len(tenant._owned[task]))
            if read.looked_at else {}, more={"task": task},
        )  # fmt: skip
        assert TaskMetrics.from_line(same.to_line()) == read
        assert json.loads(same.to_line()).keys() <= json.loads(lines[task]).keys()
        assert read.looked_at == (read.processed // 10 if name in tenant._stateful else 0)


def test_a_task_that_was_placed_elsewhere_tells_its_new_node_and_counts_from_zero():
    one = cluster()
    tenant, now = one.tenants["a"], one._clock.now()
    tenant.load = LOAD
    before = json.loads(tenant.lines(now + 10.0, one._places)[1])
    tenant.place({**tenant.slots, 1: Slot("n0003", 6701)})
    after = json.loads(tenant.lines(now + 10.0, one._places)[1])
    assert before["processed"] > 0 == after["processed"]
    assert before["node"] != after["node"] == "n0003" and before["pid"] < after["pid"]
