"""On the real Storm: a warm task is brought to a node that has none, and the next replica there starts no worker."""

from __future__ import annotations

import pytest

from leeward.core.model import ClusterView
from leeward.core.placing import carry, present_deployment
from leeward.core.plan import Plan, Slot
from leeward.core.table import replicas
from tests.cluster.harness import LONG_S, Pilot, Running, await_

pytestmark = pytest.mark.timeout(400)


def gathered(view: ClusterView) -> Plan:
    """All warm tasks share one free slot."""
    owners = {task for table in view.tables.values() for task in replicas(table)}
    warm = {task for component in view.components for task in component.tasks} - owners
    used = set(view.assignment.values())
    slot = next(slot for node in view.nodes for port in node.ports if (slot := Slot(node.id, port)) not in used)
    return Plan(tables=view.tables, placement=view.assignment | dict.fromkeys(warm, slot), reason="gathered")


def spare_brought(pilot: Pilot, since: int) -> dict:
    def told() -> dict | None:
        ended = pilot.events.named("reconfiguration_ended", since=since)
        return next((event for event in ended if event["reason"].startswith("a spare of count to ")), None)

    return await_(lambda: pilot.check() and told(), "a spare of the count", LONG_S)


def test_the_next_replica_on_a_node_with_a_spare_starts_no_worker(counting: Running):
    stream = counting.stream
    with counting.pilot(mode="live", spares=True) as pilot:
        pilot.checkpoint()
        mark = len(pilot.events.all)
        assert pilot.reconfigure(gathered)["result"] == "done"
        tables = counting.record().tables
        brought = spare_brought(pilot, mark)
        assert (brought["kind"], brought["result"], brought["changes"]) == ("handover", "done", [])
        assert "prepare_s" in brought["phases"] and counting.record().tables == tables
        stream.exact(400)
        node = brought["reason"].removeprefix("a spare of count to ").partition(",")[0]
        workers = counting.cluster.worker_pids()

        def scaled(view: ClusterView) -> Plan:
            present = present_deployment(view)
            counts = present["count"] | {node: present["count"].get(node, 0) + 1}
            return carry(view, present | {"count": counts}, reason=f"one more on {node}")

        ended = pilot.reconfigure(scaled)
        assert (ended["kind"], ended["result"]) == ("handover", "done"), pilot.events.all
        assert "prepare_s" not in ended["phases"]
        assert counting.cluster.worker_pids() == workers
        stream.exact(400)
        assert not pilot.events.named("reset", "alert", "checkpoint_failed")
        print(f"spare: {brought['phases']}; the replica there: {ended['phases']}")
