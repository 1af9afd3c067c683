"""On a real Storm: ticks reach replicas only, and state beside self.state is told of and not moved unforced."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from leeward.core.metrics import TaskMetrics
from tests.cluster.harness import Running, Stage, await_, leeward

PROJECT = Path(__file__).parent / "outside"


@pytest.fixture(scope="module")
def outside(stage_: Stage) -> Iterator[Running]:
    out = stage_.folder / "outside.out"
    jar = stage_.project_jar(PROJECT)
    with stage_.submitted("outside", "outside", jar, PROJECT, [f"outside.out={out}"], 2) as running:
        yield running


def tops(running: Running) -> list[tuple[int, int]]:
    """(task, words) of each top that reached the sink."""
    file = running.stage.folder / "outside.out"
    lines = file.read_text().splitlines() if file.exists() else []
    return [tuple(map(int, line.split())) for line in lines]


def samples(running: Running) -> dict[int, TaskMetrics]:
    read = {task: TaskMetrics.from_line(line) for task, line in running.stage.snapshots.metrics(running.id).items()}
    return {task: sample for task, sample in read.items() if sample}


@pytest.mark.timeout(200)
def test_ticks_and_state_beside_the_state(outside: Running):
    await_(lambda: len(tops(outside)) >= 4, "four ticks", 60)
    assert {task for task, _ in tops(outside)} == {outside.tasks("top")[0]}, "a warm task had a tick"
    assert sum(sample.dropped for sample in samples(outside).values()) == 0

    cluster = ("--cluster", str(outside.cluster.dir))
    await_(lambda: any(sample.outside for sample in samples(outside).values()), "the task to notice", 20)
    status = json.loads(leeward("status", "outside", *cluster, "--output", "json").stdout)
    (warning,) = status["warnings"]
    assert warning.startswith("count keeps counter and total outside of self.state")

    nodes = sorted({slot.node for slot in outside.snapshot().assigned.slots.values()})
    wanted = ("--replicas", f"count={nodes[0]}:1,{nodes[1]}:1")
    refused = leeward("reconfigure", "outside", *wanted, *cluster)
    assert refused.returncode == 2 and "count keeps counter and total" in refused.stderr, refused.stderr
    assert "--force" in refused.stderr and len(set(outside.record().tables["count"])) == 1
    forced = leeward("reconfigure", "outside", *wanted, *cluster, "--force")
    assert (forced.returncode, forced.stdout) == (0, "done\n"), forced.stdout + forced.stderr
    assert len(set(outside.record().tables["count"])) == 2

    scaled = leeward("reconfigure", "outside", "--replicas", f"top={nodes[0]}:1,{nodes[1]}:1", *cluster)
    assert (scaled.returncode, scaled.stdout) == (0, "done\n"), scaled.stdout + scaled.stderr
    owners = set(outside.record().tables["top"])
    await_(lambda: {task for task, _ in tops(outside)} == owners, "ticks in both replicas", 20)
