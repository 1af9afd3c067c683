"""Scale out, move, scale in on the real Storm, under load: nothing lost, doubled or out of order."""

from __future__ import annotations

import os
import signal
import time

import pytest

from leeward.core.table import replicas
from tests.cluster.builders import Builder, moved, scaled, scaled_and_moved
from tests.cluster.harness import Pilot, Running, await_

pytestmark = pytest.mark.timeout(400)


def carried_out(pilot: Pilot, counting: Running, builder: Builder) -> dict:
    """Carry it out; it is done, Storm and the record have what was wanted, and the stream was not hurt."""
    ended = pilot.reconfigure(builder)
    assert ended["result"] == "done", pilot.events.all
    journal = counting.journal()
    # where only tables changed, the places are pinned at the end: the plugin's next pass follows
    await_(lambda: counting.snapshot().assigned.managed, "the plugin to follow the placement")
    assert dict(counting.snapshot().assigned.slots) == dict(journal.new_slots)
    assert dict(counting.record().tables) == dict(journal.new_tables)
    counting.stream.exact()
    return ended


def kinds(ended: dict) -> list[tuple[str, str]]:
    return [(change["component"], change["kind"]) for change in ended["changes"]]


def test_each_kind_of_change_keeps_the_stream_exact(counting: Running):
    stream = counting.stream
    with counting.pilot() as pilot:
        stream.exact(400)
        workers = counting.cluster.worker_pids()
        ended = carried_out(pilot, counting, scaled("count", 2))
        assert kinds(ended) == [("count", "scale-out")]
        assert ended["bytes_exported"] > 0
        assert ended["bytes_imported"] > 0
        assert counting.cluster.worker_pids() == workers  # only tables changed
        both = set(replicas(counting.record().tables["count"]))
        stream.tally.tasks.clear()
        assert stream.exact().tasks == both

        ended = carried_out(pilot, counting, scaled_and_moved("count", 3))
        assert kinds(ended) == [("count", "scale-out")]
        assert counting.cluster.worker_pids() != workers

        ended = carried_out(pilot, counting, moved("count"))
        assert kinds(ended) == [("count", "move")]
        assert ended["bytes_exported"] > 0
        assert ended["bytes_imported"] > 0

        ended = carried_out(pilot, counting, scaled("count", 1))
        assert kinds(ended) == [("count", "scale-in")]
        assert not pilot.events.named("reset", "alert", "reconfiguration_undone")


#: scale-outs, moves and scale-ins; stateful and stateless; every third restarts workers
ROUND: list[Builder] = [
    scaled("count", 2),
    moved("count"),
    scaled("count", 3),
    scaled("passing", 2),
    moved("sink"),
    scaled("count", 1),
    scaled("passing", 1),
    scaled_and_moved("count", 2),
    scaled("count", 3),
    scaled("count", 1),
]


def in_a_row(counting: Running, builders: list[Builder]) -> list[dict]:
    with counting.pilot() as pilot:
        for component in ("count", "passing"):  # whatever was before
            if len(replicas(counting.record().tables[component])) > 1:
                pilot.reconfigure(scaled(component, 1))
        ended = [pilot.reconfigure(builder) for builder in builders]
        assert [event["result"] for event in ended] == ["done"] * len(builders), pilot.events.all
        counting.stream.exact(400)
        assert not pilot.events.named("reset", "alert", "reconfiguration_undone")
    return ended


@pytest.mark.slow  # the test before has each kind once, tests/sim thousands in a row
def test_eight_migrations_in_a_row(counting: Running):
    ended = in_a_row(counting, ROUND[:8])
    assert sum("move_s" in event["phases"] for event in ended) == 3


def test_a_slow_replica_of_a_stateless_bolt_costs_no_key_its_order(counting: Running):
    with counting.pilot() as pilot:
        pilot.reconfigure(scaled("passing", 2))
        slow = min(pid for pid, child in counting.cluster.python_pids().items() if child.target.endswith(".Pass"))
        os.kill(slow, signal.SIGSTOP)
        time.sleep(1.0)  # each key comes again meanwhile
        os.kill(slow, signal.SIGCONT)
        counting.stream.exact(400)
        pilot.reconfigure(scaled("passing", 1))


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_twenty_migrations_in_a_row(counting: Running):
    ended = in_a_row(counting, [*ROUND, *ROUND])
    assert sum("move_s" in event["phases"] for event in ended) == 6
    assert {kind for event in ended for _, kind in kinds(event)} == {"scale-out", "scale-in", "move"}
