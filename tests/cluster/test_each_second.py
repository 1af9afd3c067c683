"""On a real Storm: a task says each second what it did in it, also while one read of its pipe keeps it for longer."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest

from leeward.core.metrics import TaskMetrics
from tests.cluster.harness import Running, Stage, await_

SLOW_S = 0.05  # 20 tuples/s of 200 that come, so that the pipe fills, and a read of it has many seconds of work


def now_of(running: Running) -> dict[int, TaskMetrics]:
    """The tasks of the count that get tuples, as they publish themselves now."""
    read = {task: TaskMetrics.from_line(line) for task, line in running.stage.snapshots.metrics(running.id).items()}
    return {task: sample for task, sample in read.items() if sample and sample.component == "count" and sample.received}


def followed(running: Running, seconds: float) -> dict[int, list[TaskMetrics]]:
    """Task -> all that it published within this time, in order."""
    lines = {task: [sample] for task, sample in now_of(running).items()}
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.1)
        for task, sample in now_of(running).items():
            if sample.t > lines[task][-1].t:
                lines[task].append(sample)
    return lines


@pytest.mark.timeout(200)
def test_a_slow_bolt_counts_in_each_second(stage_: Stage):
    with stage_.counting("each_second", options=[f"counting.slow_s={SLOW_S}"]) as running:
        await_(lambda: any(sample.processed > 100 for sample in now_of(running).values()), "the count to be loaded")
        found = followed(running, 15)
    for task, lines in found.items():
        assert len(lines) >= 10, f"{task}: {len(lines)} lines in 15 s"
        for before, after in pairwise(lines):
            done, busy_s = after.processed - before.processed, after.busy_s - before.busy_s
            assert done > 0 and busy_s > 0, f"{task} did nothing from {before.t} to {after.t}"
            assert busy_s >= 0.9 * SLOW_S * done, f"{task}: {done} tuples in {busy_s} s"
        # over all: at a look the last tuple is not over, and on a busy machine one may take a while
        assert lines[-1].busy_s - lines[0].busy_s < 1.1 * (lines[-1].t - lines[0].t)
