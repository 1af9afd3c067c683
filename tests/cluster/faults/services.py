"""Two `leeward serve` processes, leader and standby, under a manager that starts again what has ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: As a service manager would (systemd's RestartSec).
RESTART_S = 5.0
_ROLES = ("service_started", "leading", "standby", "leadership_lost")


@dataclass(slots=True)
class _Service:
    name: str
    events: Path
    log: Path
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    start_at: float | None = 0.0  # monotonic; None while it runs


@dataclass(frozen=True, slots=True)
class Ended:
    """A service process that has ended."""

    t: float  #: epoch seconds
    name: str
    code: int
    asked: bool  #: a fault killed it


@dataclass(slots=True)
class Services:
    """A context manager; `started` processes live in groups of their own."""

    topology: str
    cluster: Path
    folder: Path
    options: tuple[str, ...] = ("policy=none",)
    ended: list[Ended] = field(default_factory=list)
    _all: list[_Service] = field(default_factory=list)
    _killed: set[int] = field(default_factory=set)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Services:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._all = [
            _Service(name, self.folder / f"serve-{name}.jsonl", self.folder / f"serve-{name}.log") for name in "ab"
        ]
        self._thread = threading.Thread(target=self._manage, name="service manager", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        running = [service.process for service in self._all if service.process is not None]
        for process in running:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in running:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def leader(self) -> int | None:
        """The pid of the live process whose events say that it leads; of two, the one that says so since later."""
        leading: list[tuple[float, int]] = []
        for service in self._all:
            process = service.process
            if process is None or process.poll() is not None:
                continue
            roles = [e for e in _read(service.events) if e["action"] in _ROLES and e["t"] >= service.started]
            if roles and roles[-1]["action"] == "leading":
                leading.append((roles[-1]["t"], process.pid))
        return max(leading)[1] if leading else None

    def kill(self, pid: int) -> None:
        """SIGKILL one of them."""
        self._killed.add(pid)
        os.kill(pid, signal.SIGKILL)

    def events(self, since: float, until: float) -> list[dict[str, Any]]:
        """The events of both, in order, without what is measured; `service` tells whose."""
        found = [
            {"service": service.name, **event}
            for service in self._all
            for event in _read(service.events)
            if since <= event["t"] <= until and event["action"] not in ("measured", "learnt", "cluster_seen")
        ]
        return sorted(found, key=lambda event: event["t"])

    def _manage(self) -> None:
        while not self._stop.wait(0.1):
            for service in self._all:
                if service.process is not None and service.start_at is None:
                    code = service.process.poll()
                    if code is not None:
                        asked = service.process.pid in self._killed
                        self.ended.append(Ended(time.time(), service.name, code, asked))
                        service.start_at = time.monotonic() + RESTART_S
                elif service.start_at is not None and time.monotonic() >= service.start_at:
                    self._start(service)

    def _start(self, service: _Service) -> None:
        command = [str(Path(sys.executable).with_name("leeward")), "serve", self.topology]
        command += ["--cluster", str(self.cluster), "--events", str(service.events)]
        command += [word for option in self.options for word in ("-o", option)]
        service.started, service.start_at = time.time(), None
        with service.log.open("ab") as log:
            service.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, process_group=0
            )


def _read(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a file of events."""
    if not path.exists():
        return []
    *lines, _ = path.read_text().split("\n")
    return [json.loads(line) for line in lines]
