"""Handovers on the real Storm, under load: nothing lost, doubled or out of order, no worker restarted or stopped."""

from __future__ import annotations

import pytest

from leeward.core.table import replicas
from tests.cluster.harness import Builder, Pilot, Running, await_, scaled

pytestmark = pytest.mark.timeout(400)

#: stateful and stateless, out and in
ROUND: list[Builder] = [
    scaled("count", 2),
    scaled("passing", 2),
    scaled("count", 3),
    scaled("count", 1),
    scaled("passing", 1),
    scaled("count", 3),
    scaled("count", 2),
    scaled("count", 1),
]


def handed_over(pilot: Pilot, builder: Builder) -> dict:
    ended = pilot.reconfigure(builder)
    assert (ended["kind"], ended["result"]) == ("handover", "done"), pilot.events.all
    return ended


def test_handovers_under_load(counting: Running):
    stream = counting.stream
    with counting.pilot() as pilot:
        stream.exact(400)
        workers = counting.cluster.worker_pids()
        base = counting.record().base
        for _ in range(3):
            for builder in ROUND:
                ended = handed_over(pilot, builder)
                if "count" in ended["reason"]:
                    assert ended["bytes_imported"] > 0
        stream.exact(400)
        record = counting.record()
        assert record.base == base and record.handover > base
        assert counting.cluster.worker_pids() == workers
        await_(lambda: counting.snapshot().assigned.managed, "the plugin to follow the placement")
        assert stream.tally.tasks == set(counting.tasks("count"))
        stream.tally.tasks.clear()
        assert stream.exact().tasks == set(replicas(record.tables["count"]))
        assert not pilot.events.named("reset", "alert", "checkpoint_failed")
        print("silence", stream.tally.longest_ms, "ms")
        print([(e["pause_s"], e["phases"]) for e in pilot.events.named("reconfiguration_ended")])
