"""The clock of one node is off by a minute: supervisor, workers and Python tasks. Plans go on, and nobody is lost."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from leeward.local import LocalCluster, native
from tests.cluster.harness import Stage, await_
from tests.cluster.plans_served import PlansServed

pytestmark = [pytest.mark.timeout(400), pytest.mark.slow]

SOURCE = Path(__file__).parent / "clock_off.c"
FLAGS = ["-shared", "-fPIC", "-ldl"]


@contextmanager
def clock_off(cluster: LocalCluster, daemon: str, seconds: int, library: Path) -> Iterator[None]:
    """This supervisor is started anew with such a clock, and at last with a right one."""
    library = native.built(SOURCE.read_bytes(), library, FLAGS, name="clock")
    before = dict(os.environ)
    try:
        cluster.stop_daemon(daemon)
        os.environ |= {"LD_PRELOAD": str(library), "LEEWARD_CLOCK_OFF": str(seconds)}
        cluster.start_daemon(daemon)
        for name in ("LD_PRELOAD", "LEEWARD_CLOCK_OFF"):
            del os.environ[name]
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        cluster.stop_daemon(daemon)
        cluster.start_daemon(daemon)


@pytest.mark.parametrize("off_s", [60, -60])
def test_the_clock_of_a_node_is_off_by_a_minute(stage_: Stage, tmp_path: Path, off_s: int):
    cluster = stage_.cluster
    node = cluster.nodes[0]
    name = f"clock_{'ahead' if off_s > 0 else 'behind'}"
    with clock_off(cluster, node.daemon, off_s, tmp_path / "clock_off.so"), stage_.counting(name) as counting:
        slots = counting.snapshot().assigned.slots
        assert node.name in {slot.node for slot in slots.values()}, "some task is there"
        served = PlansServed(counting, tmp_path)
        try:
            lack = await_(lambda: served.missing().get("clocks"), "the page to tell of the clock")
            assert f"{node.name} by 60 s ({'ahead' if off_s > 0 else 'behind'})" in lack["why"], lack
            for _ in range(3):
                served.planned(time.time())
            counting.stream.exact(400)
            assert not any(served.events(action) for action in ("measure_failed", "reset", "alert", "tasks_left_out"))
            assert served.missing().keys() == {"clocks"}
            served.end()
        finally:
            served.kill()
