"""Servers that fail and plans that cannot be: the stream goes on, the error says why, and the next attempt works."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations

import pytest

from leeward.core.control import Phase
from leeward.runtime.state.snapshot import VERSION
from tests.cluster.builders import moved, scaled
from tests.cluster.harness import At, Running, Stage, await_, revive

pytestmark = pytest.mark.timeout(400)


# --- Redis


@contextmanager
def no_redis(stage: Stage) -> Iterator[Callable[[], None]]:
    """Gives what takes Redis away; it comes back at the end."""
    try:
        yield lambda: stage.cluster.stop_daemon("redis")
    finally:
        revive(stage.cluster)


@contextmanager
def read_only_redis(stage: Stage) -> Iterator[Callable[[], None]]:
    """A replica of nobody refuses writes and keeps its data."""
    with stage.cluster.open_redis() as client:
        try:
            yield lambda: client.replicaof("127.0.0.1", 1)
        finally:
            client.replicaof("NO", "ONE")


@contextmanager
def full_redis(stage: Stage) -> Iterator[Callable[[], None]]:
    """Every write needs more memory than allowed."""
    with stage.cluster.open_redis() as client:
        try:
            yield lambda: client.config_set("maxmemory", 1)
        finally:
            client.config_set("maxmemory", 0)


FAILING = {
    "down": (no_redis, "Connection"),
    "read-only": (read_only_redis, "ReadOnly"),
    "full": (full_redis, "OutOfMemory"),
}


@pytest.mark.parametrize("how", FAILING)
def test_an_export_that_redis_refuses_is_undone(counting: Running, how: str):
    taken_away, error = FAILING[how]
    with taken_away(counting.stage) as take_away:
        fault = At("fence", take_away)
        with counting.pilot(fault=fault, checkpoint_every_s=600) as pilot:
            before, workers = counting.record().tables, counting.cluster.worker_pids()
            ended = pilot.reconfigure(scaled("count", 3 if len(set(before["count"])) < 3 else 1))
            assert fault.done
            assert ended["result"].startswith("aborted: task ")
            assert error in ended["result"]
            assert (counting.record().phase, counting.record().tables) == (Phase.RUN, before)
            counting.stream.exact()
            assert counting.cluster.worker_pids() == workers
    works_again(counting)


def test_without_redis_a_reconfiguration_is_given_up_at_the_fence(counting: Running):
    with no_redis(counting.stage) as take_away:
        # once the plan is accepted: without measurements for some seconds the service makes none
        fault = At("journal:announce", take_away)
        with counting.pilot(fault=fault, checkpoint_every_s=600) as pilot:
            before = counting.record().tables
            ended = pilot.reconfigure(scaled("count", 3 if len(set(before["count"])) < 3 else 1))
            assert fault.done
            assert ended["result"].startswith("aborted: the fence could not be set: Redis at redis://")
            counting.stream.exact()
    works_again(counting)


def works_again(counting: Running) -> None:
    """A new reconfiguration is carried out."""
    with counting.pilot() as pilot:
        present = len(set(counting.record().tables["count"]))
        assert pilot.reconfigure(scaled("count", present % 3 + 1))["result"] == "done"
        counting.stream.exact()
        assert not pilot.events.named("reset", "alert")


# --- ZooKeeper


def test_ten_seconds_without_zookeeper(counting: Running):
    with counting.pilot() as pilot:
        workers = counting.cluster.worker_pids()
        counting.cluster.stop_daemon("zookeeper")
        counting.stream.exact(400)
        time.sleep(10)
        counting.cluster.start_daemon("zookeeper")
        counting.stream.exact(400)
        await_(lambda: pilot.check() and pilot.idle, "the service to lead again")
        present = len(set(counting.record().tables["count"]))
        assert pilot.reconfigure(scaled("count", present % 3 + 1))["result"] == "done"
        counting.stream.exact()
        assert not pilot.events.named("reset", "alert")
        assert counting.cluster.worker_pids() == workers


# --- Nimbus


def test_nimbus_is_restarted_while_storm_is_to_place(counting: Running):
    """Finished or undone, but exact. The outage begins after the placement was written and before `rebalance`."""
    back = threading.Thread(target=lambda: counting.cluster.start_daemon("nimbus"))

    def restart() -> None:
        counting.cluster.stop_daemon("nimbus")
        back.start()

    with counting.pilot(fault=At("placement", restart)) as pilot:
        ended = pilot.reconfigure(moved("count"), timeout_s=240)
        back.join()
        assert ended["result"] == "done" or ended["result"].startswith("undone: "), ended
        counting.stream.exact()
        assert not pilot.events.named("reset")
        summary = await_(counting.cluster.summary, "Nimbus to answer")
        assert summary.leader
    works_again(counting)


# --- snapshots


def spoilt(counting: Running, spoil: Callable[[bytes], bytes]) -> int:
    """Rewrite what the present reconfiguration has exported of `count` to Redis; how many groups that were."""
    with counting.cluster.open_redis() as client:
        key = f"leeward:{counting.id}:cut:{counting.record().cut}:count"
        blobs = client.hgetall(key)
        for group, blob in blobs.items():
            client.hset(key, group, spoil(blob))
    return len(blobs)


def with_wrong_checksum(blob: bytes) -> bytes:
    return blob[:-1] + bytes([blob[-1] ^ 0x55])


def with_newer_version(blob: bytes) -> bytes:
    return blob[:3] + bytes([blob[3] + 1]) + blob[4:]


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (with_wrong_checksum, "is damaged"),
        (with_newer_version, f"has version {VERSION + 1}, this program reads up to {VERSION}"),
    ],
    ids=["wrong checksum", "newer version"],
)
def test_a_snapshot_that_cannot_be_read_leads_back_to_the_one_before(
    counting_again: Running, spoil: Callable[[bytes], bytes], words: str
):
    """The source goes back with it, so this sink sees some results again, and none is lost."""
    counting = counting_again
    groups: list[int] = []
    fault = At("journal:restore", lambda: groups.append(spoilt(counting, spoil)), armed=False)
    with counting.pilot(fault=fault, checkpoint_every_s=1.0) as pilot:
        pilot.checkpoint()
        fault.armed = True
        present = len(set(counting.record().tables["count"]))
        ended = pilot.reconfigure(scaled("count", present % 3 + 1))
        assert groups[0] > 0
        assert words in pilot.events.named("restore_failed")[0]["why"]
        assert "cannot be read: restoring cut" in pilot.events.named("alert")[0]["why"]
        assert ended["result"] == "done"
        counting.stream.settled(400)
        assert counting.stream.tally.repeated > 0
        pilot.checkpoint()  # a good cut again, for whoever comes next


@pytest.fixture(scope="module")
def counting_again(counting: Running) -> Running:
    """The same topology, once it need not be exact any more: tests with it come last."""
    counting.stream.exact()
    return counting


# --- plans of people


@pytest.mark.parametrize(
    ("replicas", "options", "words"),
    [
        (("count=127.0.0.99:1",), (), "replicas of 'count' name unknown node '127.0.0.99'. Supervisors run on ["),
        (("cuont=127.0.0.11:1",), (), "replicas name unknown component 'cuont'. The topology has ["),
        (("count=127.0.0.11:1", "count=127.0.0.12:1"), (), "replicas name component 'count' twice. Name it once"),
        (("count=127.0.0.11:1,127.0.0.11:2",), (), "replicas of 'count' name node '127.0.0.11' twice. Add the"),
        (("count=127.0.0.11:4",), (), "component 'count' shall have 4 replicas. It has 3 tasks: give 1 to 3"),
        (
            ("count=127.0.0.11:3",),
            ("eps_max=1",),
            "replicas on '127.0.0.11', over its capacity of 2. Capacity is slots x eps_max: use fewer",
        ),
    ],
    ids=["unknown node", "unknown component", "component twice", "node twice", "too many replicas", "over capacity"],
)
def test_a_plan_that_cannot_be_is_refused_and_changes_nothing(
    counting: Running, replicas: tuple[str, ...], options: tuple[str, ...], words: str
):
    with counting.pilot():
        pass  # somebody has led: there is a record
    before, workers = counting.record(), counting.cluster.worker_pids()
    done = counting.asked(*replicas, options=options)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr.replace("\n", " ")
    after = counting.record()
    assert (after.epoch, after.tables, after.base) == (before.epoch, before.tables, before.base)
    assert counting.cluster.worker_pids() == workers


def test_a_plan_that_can_be_is_carried_out_by_the_command(counting: Running):
    present, names = nodes(counting), sorted(node.name for node in counting.cluster.nodes)
    wanted = next(pair for pair in combinations(names, 2) if pair != present)
    done = counting.asked("count=" + ",".join(f"{node}:1" for node in wanted))
    assert (done.returncode, done.stdout.split()[0]) == (0, "done"), done
    assert nodes(counting) == wanted


def nodes(counting: Running) -> tuple[str, ...]:
    """Of the replicas of `count`, sorted."""
    slots = counting.snapshot().assigned.slots
    return tuple(sorted(slots[task].node for task in set(counting.record().tables["count"])))
