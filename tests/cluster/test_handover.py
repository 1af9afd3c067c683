"""Handovers on the real Storm, under load: nothing lost, doubled or out of order, no worker restarted or stopped."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from leeward.core.errors import LeewardError
from leeward.core.table import replicas
from tests.cluster.builders import Builder, scaled
from tests.cluster.harness import LONG_S, At, Pilot, Running, Stage, await_, die, revive

pytestmark = pytest.mark.timeout(400)

#: stateful and stateless, out and in
STEPS = [
    *(("count", 2), ("passing", 2), ("count", 3), ("count", 1)),
    *(("passing", 1), ("count", 3), ("count", 2), ("count", 1)),
]
ROUND: list[Builder] = [scaled(*step) for step in STEPS]


def handed_over(pilot: Pilot, builder: Builder) -> dict:
    ended = pilot.reconfigure(builder)
    assert (ended["kind"], ended["result"]) == ("handover", "done"), pilot.events.all
    return ended


def test_handovers_under_load(counting: Running):
    stream = counting.stream
    with counting.pilot(mode="live") as pilot:
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


def placed(running: Running) -> list[str]:
    """The nodes of the first two tasks of the count; empty before Storm has placed them."""
    try:
        slots = running.snapshot().assigned.slots
        return [slots[task].node for task in running.tasks("count")[:2]]
    except (LeewardError, KeyError):
        return []


def test_a_handover_that_is_asked_for_while_storm_starts_the_workers_waits_for_them(stage_: Stage):
    """It was announced, no task could report, and it ended in a reset to empty state."""
    with stage_.counting("early", begun=False) as early, early.pilot(mode="live") as pilot:
        nodes = await_(lambda: placed(early), "Storm to place it", LONG_S)
        assert not early.all_run()
        done = early.asked("count=" + ",".join(f"{node}:{nodes.count(node)}" for node in dict.fromkeys(nodes)))
        assert done.returncode == 0, done.stderr
        assert early.stream.exact(400).tasks == set(early.tasks("count")[:2])
        assert not pilot.events.named("reset", "alert", "checkpoint_failed")


def pieces_through_redis(counting: Running) -> int:
    with counting.cluster.open_redis() as client:
        return client.info("commandstats")["cmdstat_xadd"]["calls"]


def test_handovers_with_everything_copied_ahead_and_straight_from_task_to_task(counting: Running):
    stream = counting.stream
    repeated, by_redis = stream.flow().repeated, pieces_through_redis(counting)
    with counting.pilot(mode="live", ahead_bytes=0) as pilot:
        pilot.checkpoint()  # tells how much state there is
        for component, count in [*STEPS, *STEPS]:
            if len(replicas(counting.record().tables[component])) != count:
                ended = handed_over(pilot, scaled(component, count))
                assert ("ahead_s" in ended["phases"]) == (component == "count")
        assert pieces_through_redis(counting) == by_redis
        tally = stream.settled(400)
        assert tally.repeated == repeated
        assert not pilot.events.named("reset", "alert", "checkpoint_failed")


# --- failures in the middle


def other_count(counting: Running) -> Builder:
    """Another number of replicas of the count than there is."""
    return scaled("count", len(replicas(counting.record().tables["count"])) % 3 + 1)


@pytest.mark.parametrize("component", ["count", "passing"])
def test_kill_9_of_a_task_in_the_middle_restores_everybody_with_the_new_tables(counting: Running, component: str):
    """A process that is not back in time is left out, and others own its key groups: found by this very test."""
    lost: list[int] = []

    def kill() -> None:
        lost.append(counting.owner(component))
        os.kill(counting.owner_pid(component), signal.SIGKILL)

    fault = At("control:handover", kill, armed=False)
    with counting.pilot(mode="live", fault=fault) as pilot:
        pilot.checkpoint()
        fault.armed = True
        base = counting.record().base
        ended = pilot.reconfigure(other_count(counting))
        assert fault.done
        assert ended["result"] == "done" or ended["result"].startswith("reset: "), ended
        tables = counting.journal().new_tables
        counting.stream.settled(400, timeout_s=120)
        await_(lambda: counting.record().base > base, "the reset")
        await_(lambda: pilot.check() and pilot.idle and not counting.journal().open, "the topology to be whole")
        for name, table in counting.record().tables.items():
            assert {old for old, new in zip(tables[name], table, strict=True) if old != new} <= set(lost), name
        handed_over(pilot, other_count(counting))
        counting.stream.settled(400)


def test_kill_9_while_state_is_copied_ahead(counting: Running):
    fault = At("control:ahead", lambda: os.kill(counting.owner_pid("count"), signal.SIGKILL), armed=False)
    with counting.pilot(mode="live", fault=fault, ahead_bytes=0) as pilot:
        pilot.checkpoint()
        if len(replicas(counting.record().tables["count"])) == 1:
            handed_over(pilot, scaled("count", 2))
        fault.armed = True
        before, base = counting.record().tables, counting.record().base
        ended = pilot.reconfigure(scaled("count", 1))
        assert fault.done
        counting.stream.settled(400, timeout_s=120)
        await_(lambda: counting.record().base > base, "the reset")
        await_(lambda: pilot.check() and pilot.idle and not counting.journal().open, "the topology to be whole")
        # by when the process was missed: while copying, while handing over, or after it
        result = ended["result"].partition(":")[0]
        assert result in ("aborted", "reset", "done")
        assert (dict(counting.record().tables) == dict(before)) == (result == "aborted")
        handed_over(pilot, other_count(counting))
        counting.stream.settled(400)


@pytest.mark.parametrize("step", ["fence", "control:handover", "journal:closed"])
def test_the_coordinator_killed_in_the_middle_is_made_up_for_by_the_next_one(counting: Running, step: str):
    counting.stream.read()
    repeated = counting.stream.tally.repeated
    fault = At(step, die, armed=False)
    with counting.pilot(mode="live", fault=fault) as pilot:
        pilot.checkpoint()
        asked, before = other_count(counting), counting.record().tables
        fault.armed = True
        pilot.ask(asked)
        pilot.await_death()
    with counting.pilot(mode="live") as pilot:
        await_(lambda: not counting.journal().open, "the journal to be closed")
        announced = dict(counting.record().tables) != dict(before)
        assert announced == (step != "fence"), "when it asks whether Redis answers it has written nothing yet"
        assert str(counting.journal().result) == "done" or not announced
        tally = counting.stream.settled(400)
        assert tally.repeated == repeated
        handed_over(pilot, other_count(counting))
        assert counting.stream.settled(400).repeated == repeated
        assert not pilot.events.named("reset", "alert")


@pytest.mark.parametrize("away_s", [3.0, 8.0], ids=["for less than the deadline", "for more"])
def test_redis_away_in_the_middle_is_waited_for(counting: Running, away_s: float):
    cluster = counting.stage.cluster
    repeated = counting.stream.flow().repeated

    def away_for_a_while() -> None:
        cluster.stop_daemon("redis")
        threading.Timer(away_s, revive, (cluster,)).start()

    fault = At("fence", away_for_a_while, armed=False)  # it has answered, and is gone before anything is written
    # nothing is copied ahead, however much state there is by now: that begins with a fence of its own
    with counting.pilot(mode="live", fault=fault, handover_s=4.0, ahead_bytes=2**30) as pilot:
        pilot.checkpoint()
        fault.armed = True
        ended = handed_over(pilot, other_count(counting))
        assert fault.done
        assert pilot.events.named("fence_failed") or away_s < 4.0  # its tries may outlast a short absence
        assert ended["pause_s"] > 1.0  # tuples of the groups under way had to wait, others did not
        tally = counting.stream.settled(400)
        assert tally.repeated == repeated
        assert not pilot.events.named("reset", "alert")
