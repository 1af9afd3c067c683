"""Agents that keep fragments, each a process in a group of its own, on ports that the kernel gives."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from leeward.core.secrets import Secrets
from leeward.wire.fragments import AgentClient
from leeward.wire.secrets import read_secrets, write_secrets

SECRET = "of the agents in tests"


def fragments(folder: Path) -> list[Path]:
    """That an agent keeps there. It may delete a cut meanwhile, over which `Path.glob` would fail."""
    found = [Path(at, name) for at, _, names in os.walk(folder) for name in names]
    return sorted(path for path in found if path.parents[2] == folder)


class Agents:
    """So many of them, as a context manager."""

    def __init__(self, folder: Path, count: int, *options: str, secrets_file: Path | None = None) -> None:
        """`secrets_file`: of a cluster; else they have one of their own."""
        self._folder, self._count, self._options = folder, count, options
        self._given = secrets_file
        self.processes: list[subprocess.Popen] = []
        self.addresses: list[str] = []

    def __enter__(self) -> Agents:
        self._folder.mkdir(parents=True, exist_ok=True)
        self.secrets_file = self._given or self._folder / "secrets.json"
        if self._given is None:
            write_secrets(self.secrets_file, Secrets(agent_secret=SECRET))
        self._secret = read_secrets(self.secrets_file).agent_secret.encode()
        self.processes = [self._spawn(number, 0) for number in range(self._count)]
        self.addresses = [self._address(process) for process in self.processes]
        return self

    def __exit__(self, *_: object) -> None:
        for number in range(self._count):
            self.kill(number)

    def files(self, number: int) -> list[Path]:
        """Of its fragments."""
        return fragments(self.folder(number))

    def folder(self, number: int) -> Path:
        """Where it keeps them."""
        return self._folder / f"agent-{number}"

    def kill(self, number: int) -> None:
        """As a node that loses its power."""
        process = self.processes[number]
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()

    def start(self, number: int) -> None:
        """Again, on the same port and folder."""
        port = int(self.addresses[number].rpartition(":")[2])
        self.processes[number] = self._spawn(number, port)
        assert self._address(self.processes[number]) == self.addresses[number]

    def pause(self, number: int, *, on: bool) -> None:
        """It stays connected and answers nothing."""
        os.killpg(self.processes[number].pid, signal.SIGSTOP if on else signal.SIGCONT)

    def client(self, number: int) -> AgentClient:
        return AgentClient(self.addresses[number], self._secret, 5.0)

    def counts(self) -> list[int]:
        """Fragments at each."""
        found = []
        for number in range(self._count):
            client = self.client(number)
            found.append(client.count())
            client.close()
        return found

    def _spawn(self, number: int, port: int) -> subprocess.Popen:
        command = [sys.executable, "-m", "leeward", "fragments", "serve", f"127.0.0.1:{port}"]
        command += ["--dir", str(self.folder(number)), "--secrets", str(self.secrets_file), *self._options]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)

    @staticmethod
    def _address(process: subprocess.Popen) -> str:
        line = process.stdout.readline()
        assert line.startswith("fragments are kept at "), line
        return line.split()[-1]
