"""Faults that an independent harness has found, on real processes: coordinator, requests, cuts.

Sinks are in test_found_sinks.py. The order of the tests matters: after the first two the stream need not be exact any
more, and the last one begins anew from empty state.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from leeward.adapters.zookeeper import ZooRequests
from leeward.core.control import Phase
from tests.cluster.builders import moved, scaled
from tests.cluster.harness import At, Pilot, Running, Stage, await_, die, leeward
from tests.cluster.tally import Stream

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def counting(stage_: Stage) -> Iterator[Running]:
    """The source appends what it is told of durable cuts to a file."""
    with stage_.counting("found_faults", options=[f"counting.committed={told_file(stage_)}"]) as running:
        yield running


def told_file(stage: Stage) -> Path:
    """Where the source writes, for each call of `committed`, the last number of that state."""
    return stage.folder / "found_faults.told"


def spread(running: Running, component: str, count: int) -> dict[str, dict[str, int]]:
    """`--replicas` for so many replicas, on nodes where the component has tasks: a handover."""
    slots, tasks = running.snapshot().assigned.slots, running.tasks(component)
    working = set(running.record().tables[component])
    nodes = [slots[task].node for task in sorted(tasks, key=lambda task: (task not in working, task))[:count]]
    return {component: {node: nodes.count(node) for node in nodes}}


def option(wanted: dict[str, dict[str, int]]) -> str:
    """The same as a text for `--replicas`."""
    ((component, nodes),) = wanted.items()
    return f"{component}={','.join(f'{node}:{number}' for node, number in nodes.items())}"


def another_count(running: Running) -> int:
    """A number of replicas of `count` that differs from the present one."""
    return len(set(running.record().tables["count"])) % 3 + 1


def requests_of(running: Running) -> ZooRequests:
    """What `leeward reconfigure` writes to."""
    return ZooRequests(running.stage.zookeeper, running.paths)


def ended_resets(pilot: Pilot, since: int) -> list[dict]:
    """Resets that are over."""
    return [event for event in pilot.events.named("reconfiguration_ended", since=since) if event["kind"] == "reset"]


# --- the coordinator


def test_deleted_znodes_are_written_again_and_a_handover_follows(counting: Running):
    """D5. The coordinator found its znode gone, took that for another coordinator's claim, and gave up leadership,
    again and again: after the loss of one znode no reconfiguration was possible any more.
    """
    with counting.pilot(mode="live") as pilot:
        for path in (counting.paths.told, counting.paths.control, counting.paths.journal):
            count = another_count(counting)
            counting.stage.zookeeper.delete(path)
            ended = pilot.reconfigure(scaled("count", count))
            assert (ended["kind"], ended["result"]) == ("handover", "done"), path
            assert counting.stage.zookeeper.exists(path)
            counting.stream.exact()
        assert not pilot.events.named("leadership_lost", "reset", "alert")


@pytest.mark.parametrize("successor", ["standby", "command"])
def test_a_request_outlives_the_leader_that_copied_state_ahead_for_it(counting: Running, successor: str):
    """D4. A new leader took the journal's copying for something to be given up: the request was answered "aborted",
    although nothing spoke against it. `command`: no standby is there, and `leeward reconfigure` itself goes on.
    """
    fault, answers = At("control:ahead", die, armed=False), []
    with counting.pilot(mode="live", ahead_bytes=0, fault=fault) as first:
        first.checkpoint()
        count = another_count(counting)
        wanted = spread(counting, "count", count)
        fault.armed = True
        if successor == "command":
            asking = threading.Thread(target=lambda: answers.append(counting.asked(option(wanted))))
            asking.start()
        else:
            request = requests_of(counting).ask({"replicas": wanted})
        first.await_death()
    if successor == "command":
        asking.join(120)
        assert answers[0].returncode == 0, answers
        assert answers[0].stdout.startswith("done"), answers
    else:
        with counting.pilot(mode="live", ahead_bytes=0) as second:
            answer = await_(lambda: second.check() and requests_of(counting).answer_to(request), "an answer", 60)
            assert str(answer) == "done"
            assert not second.events.named("reset", "alert")
    assert len(set(counting.record().tables["count"])) == count
    assert not counting.journal().open
    counting.stream.exact()


# --- requests while somebody is away


class Phases:
    """The phases of all control records while it is used, read often: a pause lasts longer than that."""

    def __init__(self, running: Running) -> None:
        self._running, self._stop = running, threading.Event()
        self.seen: list[Phase] = []
        self._thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self) -> Phases:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _read(self) -> None:
        while not self._stop.wait(0.05):
            phase = self._running.record().phase
            if self.seen[-1:] != [phase]:
                self.seen.append(phase)


def test_requests_wait_for_a_worker_that_is_away_and_pause_nobody(counting: Running):
    """D3. A request that came while the only task of a component was away was begun all the same: the topology was
    paused until the deadline of barrier 1, 20.9 s, and the request was aborted.
    """
    with counting.pilot(mode="live") as pilot:
        pilot.checkpoint()
        slots, mark = counting.snapshot().assigned.slots, len(pilot.events.all)
        here, source = slots[counting.tasks("sink")[0]], slots[counting.tasks("numbers")[0]]
        other = next(node.name for node in counting.cluster.nodes if node.name != source.node)
        count = another_count(counting)
        wishes = [{"numbers": {other: 1}}, spread(counting, "count", count)]  # a restart; a handover
        os.kill(counting.cluster.worker_pids()[here.node, here.port], signal.SIGKILL)
        machine = pilot.service.term.coordinator
        await_(lambda: machine.machine.silent, "the service to miss the worker's tasks", 20)
        with Phases(counting) as phases:
            names = [requests_of(counting).ask({"replicas": wish}) for wish in wishes]
            await_(lambda: pilot.check() and ended_resets(pilot, mark), "the worker to be back")
        assert Phase.PAUSE not in phases.seen, phases.seen
        answers = [
            await_(lambda name=name: pilot.check() and requests_of(counting).answer_to(name), f"an answer to {name}")
            for name in names
        ]
        assert [str(answer) for answer in answers] == ["done", "done"]
        kinds = [event["kind"] for event in pilot.events.named("reconfiguration_ended", since=mark)]
        assert kinds == ["reset", "restart", "handover"]
        assert counting.snapshot().assigned.slots[counting.tasks("numbers")[0]].node == other
        assert len(set(counting.record().tables["count"])) == count
        counting.stream.settled(400)


# --- cuts


def test_a_source_is_never_told_of_a_state_newer_than_the_cut_to_fall_back_to(counting: Running):
    """D1. After the restore of a cut a source reported the state of that cut as durable, although the coordinator kept
    the cut before it, too: when the newer one could not be read, input that was needed again had been trimmed.

    The cut of a restart lies in the nodes' swap areas, so it is lost with one node.
    """
    before, told = counting.stream.path.stat().st_size, told_file(counting.stage)
    lost: list[Path] = []
    told_then: list[int] = []

    def lose_a_node() -> None:
        """Once the restored topology has run for a while: the swap files of the source's node, and one process."""
        counting.stream.flow(300)
        told_then.extend(map(int, told.read_text().split()))
        source = counting.snapshot().assigned.slots[counting.tasks("numbers")[0]].node
        daemon = next(node.daemon for node in counting.cluster.nodes if node.name == source)
        os.kill(counting.owner_pid("sink"), signal.SIGKILL)
        area = counting.cluster.dir / daemon / "leeward-swap" / counting.id
        for file in area.glob(f"cut-{counting.record().cut}-*.swap"):
            file.unlink()
            lost.append(file)

    fault = At("journal:closed", lose_a_node, armed=False)
    with counting.pilot(mode="restart", fault=fault) as pilot:
        pilot.checkpoint()
        mark, fault.armed = len(pilot.events.all), True
        ended = pilot.reconfigure(moved("count"))
        assert (ended["kind"], ended["result"]) == ("restart", "done")
        alert = pilot.await_event("alert", since=mark)
        await_(lambda: pilot.check() and ended_resets(pilot, mark), "the reset to end")
        counting.stream.settled(400)
        assert lost, "no swap file was there"
        assert "cannot be read: restoring cut" in alert["why"]
        goes_back_to = first_repeated(counting.stream.path, before) - 1
        assert told_then and max(told_then) <= goes_back_to


def first_repeated(results: Path, offset: int) -> int:
    """The smallest number that occurs twice in the sink's file from here on: the source began again with it."""
    seen: set[int] = set()
    repeated: set[int] = set()
    with results.open() as file:
        file.seek(offset)
        for line in file:
            n = int(line.split()[1])
            (repeated if n in seen else seen).add(n)
    return min(repeated)


def status_of(running: Running) -> dict:
    """`leeward status`."""
    done = leeward("status", running.name, "--cluster", str(running.cluster.dir), "--output", "json")
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def recovered(running: Running, *choice: str) -> tuple[int, str]:
    """`leeward recover`: the exit code and what it printed."""
    done = leeward("recover", running.name, *choice, "--cluster", str(running.cluster.dir))
    return done.returncode, (done.stdout + done.stderr).replace("\n", " ")


def test_a_topology_without_a_readable_cut_is_held_until_a_person_decides(counting: Running):
    """D2. With no readable cut everything began again from empty state by itself, and without a word."""
    with counting.pilot(mode="live") as pilot:
        pilot.checkpoint()
        mark = len(pilot.events.all)
        os.kill(counting.owner_pid("count"), signal.SIGKILL)  # first: what it has not exported is never committed
        with counting.cluster.open_redis() as client:
            client.delete(*client.scan_iter(match=f"leeward:{counting.id}:cut:*"))
        held = pilot.await_event("held", since=mark)
        assert "nobody exported group" in held["why"] and "leeward recover" in held["remedy"]

        status = status_of(counting)
        assert (status["held"], status["phase"]) == (True, Phase.RESTORE)
        assert status["cuts"] == held["cuts"]
        assert sorted(map(int, status["cuts_that_cannot_be_read"])) == held["cuts"]
        assert all("nobody exported" in why for why in status["cuts_that_cannot_be_read"].values())
        assert status["remedy"] == held["remedy"]

        asked = counting.asked(option(spread(counting, "count", another_count(counting))))
        assert (asked.returncode, "the topology is held" in asked.stderr.replace("\n", " ")) == (2, True), asked
        absent = max(held["cuts"]) + 1000
        code, said = recovered(counting, "--from-cut", str(absent))
        assert (code, f"cut {absent} is none of {held['cuts']}" in said) == (2, True), said

        anew = Stream(counting.stream.path)
        anew.begin_here()
        code, said = recovered(counting, "--from-start")
        assert (code, "done: restoring from empty state" in said) == (0, True), said
        await_(lambda: pilot.check() and ended_resets(pilot, mark), "the reset to end")
        anew.exact(400)
        assert not status_of(counting)["held"]
        assert recovered(counting, "--from-start")[0] == 2, "it is not held any more"
        pilot.checkpoint()
        anew.exact()
