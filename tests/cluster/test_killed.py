"""A topology is killed while it is served: nothing of it is left, and the next one of its name starts clean."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.harness import LONG_S, Running, Stage, await_, leeward

NAME = "killed"

#: Events of each second, and of each snapshot.
QUIET = ("measured", "learnt", "cluster_seen")


class Served:
    """`leeward serve` as a process, and its events."""

    def __init__(self, running: Running, file: Path) -> None:
        self.file = file
        command = [Path(sys.executable).with_name("leeward"), "serve", running.name, "--events", file]
        options = ["-o", "policy=none", "-o", "checkpoint_every_s=2", "--cluster", running.cluster.dir]
        self.process = subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL)

    def actions(self) -> list[str]:
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return [action for action in (json.loads(line)["action"] for line in lines) if action not in QUIET]


def left_of(stage: Stage, running: Running) -> list[str]:
    """Znodes and keys of the topology."""
    found = [path for path in (running.paths.base,) if stage.zookeeper.exists(path)]
    return found + [key.decode() for key in stage.snapshots._redis.keys(f"leeward:{running.id}:*")]


def served_and_killed(stage: Stage, events: Path) -> tuple[Running, list[str]]:
    """A topology that ran, was served and killed; the service has ended by itself."""
    (stage.folder / f"{NAME}.out").unlink(missing_ok=True)
    with stage.counting(NAME) as running:
        served = Served(running, events)
        try:
            await_(lambda: served.actions().count("checkpoint_committed") > 1, "two checkpoints")
            assert len(left_of(stage, running)) > 2
        except BaseException:
            served.process.kill()
            raise
    try:
        assert served.process.wait(LONG_S) == 0
    finally:
        served.process.kill()
    return running, served.actions()


@pytest.mark.timeout(600)
def test_nothing_is_left_of_a_killed_topology_and_the_next_one_starts_clean(stage_: Stage, tmp_path: Path):
    first, actions = served_and_killed(stage_, tmp_path / "first.jsonl")
    assert actions[-2:] == ["topology_gone", "tidied"]
    assert left_of(stage_, first) == []
    areas = sorted(stage_.cluster.dir.glob("supervisor-*"))
    swaps = [area / "leeward-swap" / f"{NAME}-1-1600000000" for area in areas]
    for swap in swaps:
        swap.mkdir(parents=True)
    second, actions = served_and_killed(stage_, tmp_path / "second.jsonl")
    assert second.id != first.id
    begun = [action for action in actions if action != "waiting"]
    assert begun[:3] == ["service_started", "leading", "first_record"], "nothing to take over"
    assert [swap for swap in swaps if swap.exists()] == [], "a task that starts deletes what is of no topology"
    assert left_of(stage_, second) == []
    said = leeward("tidy", "--json", "--cluster", str(stage_.cluster.dir))
    assert said.returncode == 0, said.stderr
    ours = [entry for entry in json.loads(said.stdout)["deleted"] if entry["topology_id"].startswith(NAME)]
    assert ours == []
