"""Two topologies on one cluster, led by one service; a standby takes over both."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cluster.harness import Running, Stage, await_, leeward
from tests.cluster.served import Served


def reconfigured_together(both: list[Running], replicas: str) -> None:
    """Both at once, each by a request of its own."""
    command = [str(Path(sys.executable).with_name("leeward")), "reconfigure"]
    asking = [
        subprocess.Popen(
            [*command, one.name, "--cluster", str(one.cluster.dir), "--replicas", replicas],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for one in both
    ]  # fmt: skip
    for process in asking:
        said, _ = process.communicate(timeout=180)
        assert process.returncode == 0 and said.startswith("done"), said


@pytest.mark.timeout(400)
def test_one_service_leads_both_and_its_standby_takes_over_both(stage_: Stage, tmp_path: Path):
    with ExitStack() as stack:
        both = [stack.enter_context(stage_.counting(name, rate=100, workers=2)) for name in ("twin_a", "twin_b")]
        names = {one.name for one in both}
        first, second = Served(stage_, tmp_path / "first.jsonl"), Served(stage_, tmp_path / "second.jsonl")
        stack.callback(lambda: [served.end(signal.SIGKILL) for served in (first, second)])
        await_(lambda: first.topologies("leading") | second.topologies("leading") == names, "both to be led")
        nodes = [node.name for node in stage_.cluster.nodes]
        used = [{slot.node for slot in one.snapshot().assigned.slots.values()} for one in both]
        common = sorted(used[0] & used[1] & set(nodes)) or nodes
        replicas = f"count={common[0]}:2"
        reconfigured_together(both, replicas)
        slots = [set(one.snapshot().assigned.slots.values()) for one in both]
        assert not slots[0] & slots[1], "a slot is used by both"
        leaders = [served for served in (first, second) if served.topologies("leading")]
        leaders[0].end(signal.SIGKILL)
        other = second if leaders[0] is first else first
        await_(lambda: other.topologies("leading") == names, "the standby to lead both")
        reconfigured_together(both, f"count={common[0]}:1")
        refused = leeward("serve", "--cluster", str(stage_.cluster.dir), "--once")
        assert refused.returncode == 2 and "Name one" in refused.stderr
        for one in both:
            one.stream.exact()
        assert other.end(signal.SIGTERM) == 0
