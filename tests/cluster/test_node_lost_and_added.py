"""A node is lost with all that runs on it, and comes back: `leeward serve` with S-EDRP on a real Storm.

The source is pinned to the first node, the sink to the second, the count to the second and third. A slot holds one
replica, so that the second node has room for one of the count. More are faster by more than they cost.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from leeward.core.plan import deployment
from leeward.local.layout import Node
from tests.cluster.harness import COUNTING, LONG_S, Running, Stage, await_
from tests.cluster.plans_served import PlansServed
from tests.cluster.tally import KEYS, Stream

pytestmark = pytest.mark.timeout(600)

OPTIONS = ("policy=edrp", "eps_max=1", "edrp.w_r=0.8", "edrp.w_c=0.1", "edrp.w_d=0.1", "minimum_gain=0.02")


def kill(stage: Stage, node: Node) -> None:
    """Supervisor, workers and Python processes at once, as when the machine has no power."""
    cluster = stage.cluster
    pids = [pid for (name, _), pid in cluster.worker_pids().items() if name == node.name]
    pids += [pid for pid, child in cluster.python_pids().items() if child.node == node.name]
    cluster.kill_daemon(node.daemon)
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def nodes_of_count(running: Running) -> dict[str, int]:
    """Replicas of the count by node, as the tables and Storm have them."""
    tables, slots = running.record().tables, running.snapshot().assigned.slots
    known = all(task in slots for table in tables.values() for task in table)
    return deployment(tables, slots)["count"] if known else {}


def nodes_of(running: Running, component: str) -> set[str]:
    """Nodes on which Storm has its tasks."""
    slots = running.snapshot().assigned.slots
    return {slots[task].node for task in running.tasks(component) if task in slots}


@contextmanager
def slow(stage: Stage, folder: Path, name: str) -> Iterator[Running]:
    """The topology, placed as above by its service; numbers flow."""
    source, sink, third = stage.cluster.nodes
    pins = {"numbers": [source.name], "count": [sink.name, third.name], "sink": [sink.name]}
    options = [
        "counting.rate=200", f"counting.keys={KEYS}", f"counting.out={folder / 'out'}",
        "leeward.service_times=emulated", f"leeward.pins={json.dumps(pins)}",
    ]  # fmt: skip
    with stage.submitted("slow", name, stage.project_jar(COUNTING), COUNTING, options, 2) as running:
        running.stream = Stream(folder / "out")
        running.stream.flow(100, timeout_s=LONG_S)
        served = PlansServed(running, folder, options=OPTIONS)
        try:
            await_(lambda: served.events("first_record"), "the service to lead")
            placed = {"numbers": {source.name}, "sink": {sink.name}}
            await_(lambda: {name: nodes_of(running, name) for name in placed} == placed, "source and sink as pinned")
            yield running
            served.end()
        finally:
            served.kill()


def test_a_lost_node_is_left_at_once_and_used_again_when_it_is_back(stage_: Stage, tmp_path: Path):
    _, sink, third = stage_.cluster.nodes
    with slow(stage_, tmp_path, "lost_node") as running:
        await_(lambda: len(nodes_of_count(running)) == 2, "more replicas than the second node has room for")
        running.stream.exact(400)
        lost = time.monotonic()
        kill(stage_, third)
        await_(lambda: nodes_of_count(running) == {sink.name: 1}, "its groups to go to the second node")
        taken_s = time.monotonic() - lost
        running.stream.settled(400)
        stage_.cluster.start_daemon(third.daemon)
        back = time.monotonic()
        await_(lambda: third.name in nodes_of_count(running), "a replica on the node that is back")
        print(
            f"\nnode lost: groups elsewhere after {taken_s:.1f} s; used {time.monotonic() - back:.1f} s after its start"
        )
        running.stream.settled(400)


def test_a_node_that_is_added_is_used_as_it_pays(stage_: Stage, tmp_path: Path):
    _, sink, third = stage_.cluster.nodes
    stage_.cluster.stop_daemon(third.daemon)
    await_(lambda: len(stage_.cluster.summary().supervisors) == 2, "Nimbus to know two nodes")
    with slow(stage_, tmp_path, "added_node") as running:
        await_(lambda: nodes_of_count(running) == {sink.name: 1}, "a plan for the two nodes")
        running.stream.exact(400)
        stage_.cluster.start_daemon(third.daemon)
        added = time.monotonic()
        await_(lambda: third.name in nodes_of_count(running), "a replica on the node that was added")
        print(f"\nnode added: used {time.monotonic() - added:.1f} s after its start")
        running.stream.exact(400)
