"""The coordinator dies after each of its steps; the next one finishes or undoes, and the stream stays exact."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from leeward.core.control import Phase
from tests.cluster.builders import Builder, moved, scaled
from tests.cluster.harness import At, Running, await_, die

pytestmark = pytest.mark.timeout(400)

#: Replicas of `count` that each plan wants; each must change something, whatever became of the one before.
COUNTS = itertools.cycle((2, 3, 1))

WITHOUT_STORM = [
    "claimed",
    "journal:announce",
    "fence",
    "control:pause",
    "journal:restore",
    "control:restore",
    "control:run",
    "journal:closed",
]
WITH_STORM = ["journal:move", "control:move", "placement", "rebalance", "control:restore"]
#: In the pipeline. The others are slow: `leeward.sim.torture` kills the coordinator at each, by thousands of seeds.
QUICK = {"claimed", "fence", "control:run", "control:move", "rebalance"}


def marked(steps: list[str]) -> list:
    return [pytest.param(step, marks=() if step in QUICK else pytest.mark.slow) for step in steps]


def survive(counting: Running, step: str, builder: Builder) -> None:
    """The service dies once it has taken `step` of this plan; another one takes over."""
    fault = At(step, die, armed=step == "claimed")
    with counting.pilot(fault=fault) as first:
        fault.armed = True
        first.ask(builder)
        first.await_death()
    assert fault.done
    with counting.pilot() as second:
        # the machine is idle in memory a moment before the journal's last line is out
        await_(
            lambda: second.check() and second.idle and not counting.journal().open,
            "the second service to be through",
        )
        assert counting.record().phase is Phase.RUN
        counting.stream.exact()
        if step in WITH_STORM:
            assert str(counting.journal().result) == "done"
        # and it can do more
        again = second.reconfigure(scaled("count", next(COUNTS)))
        assert again["result"] == "done"
        counting.stream.exact()
        assert not second.events.named("reset", "alert")


@pytest.mark.parametrize("step", marked(WITHOUT_STORM))
def test_killed_while_only_tables_change(counting: Running, step: str):
    survive(counting, step, scaled("count", next(COUNTS)))


@pytest.mark.parametrize("step", marked(WITH_STORM))
def test_killed_while_storm_moves_an_executor(counting: Running, step: str):
    survive(counting, step, moved("count"))


@pytest.mark.slow
@pytest.mark.parametrize("step", ["journal:announce", "control:pause", "journal:restore", "control:run"])
def test_killed_around_a_move(counting: Running, step: str):
    survive(counting, step, moved("count"))


def test_kill_9_of_the_service_while_another_one_stands_by(counting: Running, tmp_path: Path):
    """A process, with a session at ZooKeeper that has to end before the standby leads."""
    first, second = Served(counting, tmp_path / "first.jsonl"), Served(counting, tmp_path / "second.jsonl")
    try:
        first.start()
        await_(lambda: first.events("leading"), "the first service to lead")
        second.start()
        await_(lambda: second.events("standby"), "the second service to stand by")
        here = counting.snapshot().assigned.slots[counting.tasks("sink")[0]].node
        node = next(node.name for node in counting.cluster.nodes if node.name != here)
        asking = first.ask(f"sink={node}:1")
        await_(lambda: [e for e in first.events("phase") if e["phase"] == Phase.MOVE], "the move to begin")
        killed = time.time()
        first.kill()
        asking.kill()
        asking.wait()
        (leading,) = await_(lambda: second.events("leading"), "the second service to lead")
        (end,) = await_(
            lambda: [e for e in second.events("reconfiguration_ended") if e["result"] == "done"], "the move to end"
        )
        leads_s, ended_s = leading["t"] - killed, end["t"] - killed
        print(f"\nstandby: leads {leads_s:.1f} s after kill -9 of the leader, has ended it after {ended_s:.1f} s")
        assert counting.snapshot().assigned.slots[counting.tasks("sink")[0]].node == node
        counting.stream.exact()
    finally:
        first.kill()
        second.kill()


class Served:
    """`leeward serve -o policy=none` as a process."""

    def __init__(self, counting: Running, file: Path) -> None:
        self.counting, self.file = counting, file
        self.process: subprocess.Popen | None = None
        self._command = str(Path(sys.executable).with_name("leeward"))
        self._where = ["--cluster", str(counting.cluster.dir)]

    def start(self) -> None:
        command = [self._command, "serve", self.counting.name, *self._where, "-o", "policy=none"]
        command += ["-o", "pause_s=60", "--events", str(self.file)]
        with self.file.with_suffix(".log").open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def ask(self, replicas: str) -> subprocess.Popen:
        command = [self._command, "reconfigure", self.counting.name, *self._where, "--replicas", replicas]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def events(self, action: str) -> list[dict]:
        assert self.process is not None
        text = self.file.read_text() if self.file.exists() else ""
        return [event for event in map(json.loads, text.splitlines()) if event["action"] == action]

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()
