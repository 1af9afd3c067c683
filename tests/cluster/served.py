"""The service as its own process, as a person starts it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.cluster.harness import Stage


class Served:
    """`leeward serve` without a name, as a process."""

    def __init__(self, stage: Stage, file: Path) -> None:
        self.file = file
        command = [str(Path(sys.executable).with_name("leeward")), "serve", "--cluster", str(stage.cluster.dir)]
        command += ["-o", "policy=none", "-o", "session_s=3", "--events", str(file)]
        with file.with_suffix(".log").open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def topologies(self, action: str) -> set[str]:
        """Names of the topologies with such an event."""
        text = self.file.read_text() if self.file.exists() else ""
        events = [json.loads(line) for line in text.splitlines()]
        return {event["topology"] for event in events if event["action"] == action}

    def end(self, number: signal.Signals) -> int:
        if self.process.poll() is None:
            os.kill(self.process.pid, number)
        return self.process.wait(30)
