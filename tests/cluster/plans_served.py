"""`leeward serve --http` with a policy that wants another deployment every few seconds, on a running topology."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx

from tests.cluster.harness import LONG_S, Running, await_

#: `count` has one replica, then two, and so on: a handover each time, or (`move`) a restart.
SEESAW = """
from leeward.core.placing import carry, present_deployment

class Seesaw:
    def __init__(self, settings):
        self.rates = []

    def decide(self, view, *, now, rng):
        present = present_deployment(view)
        nodes = sorted({view.assignment[task].node for task in view.component("count").tasks})
        one = {nodes[0]: 1}
        two = {nodes[0]: 1, nodes[1]: 1} if len(nodes) > 1 else {nodes[0]: 2}
        return carry(view, {**present, "count": two if present["count"] == one else one}, reason="seesaw")
"""


class PlansServed:
    """The process; `options` are settings beside those that let it plan often."""

    def __init__(self, running: Running, folder: Path, name: str = "serve", *, options: Sequence[str] = (),
                 nimbus: Sequence[str] = ()) -> None:  # fmt: skip
        (folder / "seesaw.py").write_text(SEESAW)
        self.running, self.file = running, folder / f"{name}.jsonl"
        settings = ["policy=seesaw:Seesaw", "period_s=3", "cool_down_s=1", "window_s=3", "minimum_gain=0", *options]
        settings += ["scale_down_s=0", "no_return_s=0"]  # its policy goes back and forth
        command = [str(Path(sys.executable).with_name("leeward")), "serve", running.name, "--http", "127.0.0.1:0"]
        command += ["--cluster", str(running.cluster.dir), "--events", str(self.file)]
        command += [word for seed in nimbus for word in ("--nimbus", seed)]
        command += [word for setting in settings for word in ("-o", setting)]
        paths = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
        with (folder / f"{name}.log").open("w") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env=os.environ | {"PYTHONPATH": paths}, process_group=0
            )

    def events(self, action: str, since: float = 0.0) -> list[dict[str, Any]]:
        """Of this action, after this moment."""
        text = self.file.read_text() if self.file.exists() else ""
        *lines, _ = text.split("\n")
        return [event for event in map(json.loads, lines) if event["action"] == action and event["t"] > since]

    def missing(self) -> dict[str, dict[str, Any]]:
        """The missing things of `GET /api/topologies/NAME`, by name."""
        (told,) = await_(lambda: self.events("http_listens"), "the page to listen")
        url = f"{told['url']}api/topologies/{self.running.name}"
        report = await_(lambda: httpx.get(url, timeout=10).json().get("report"), "the page to know the topology")
        return {one["what"]: one for one in report["missing"]}

    def planned(self, since: float, timeout_s: float = LONG_S) -> None:
        """Wait until a plan that began later was carried out."""

        def done() -> bool:
            started = self.events("reconfiguration_started", since)
            ended = self.events("reconfiguration_ended", started[0]["t"]) if started else []
            return any(event["result"] == "done" for event in ended)

        await_(done, "a plan that was carried out", timeout_s)

    def end(self) -> None:
        """In order."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(100) == 0

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def outlasts(served: PlansServed, lacks: Sequence[str], away_s: float, back: Callable[[], object]) -> float:
    """The outage has begun now: the page tells of all of these until `back()`, and no plan is begun. When it ended."""
    began = time.time()
    for what in lacks:
        lack = await_(lambda what=what: served.missing().get(what), f"the page to say that {what} is missing", 30)
        assert began - 10.0 < lack["since"] < began + 30.0 and lack["why"], lack
    while time.time() < began + away_s:
        assert set(lacks) & served.missing().keys(), served.missing()
        time.sleep(1.0)
    # one that was decided when it began may still be begun
    assert not served.events("reconfiguration_started", began + 3.0)
    print(f"\naway for {time.time() - began:.0f} s: {served.missing()}")
    back()
    return time.time()
