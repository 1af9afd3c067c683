"""Real servers for tests, each with a port and a folder of its own."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest
import redis

PASSWORD = "secret word"


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class RedisServer:
    """A durable redis-server that can be stopped and started again on the same port."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("redis-server") is None:
            pytest.skip("redis-server is not installed")
        self.folder, self.port = folder, free_port()
        self.url = f"redis://:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{self.port}/0"
        self.client = redis.Redis(port=self.port, password=PASSWORD)
        self.start()

    def start(self) -> None:
        """Returns when it answers."""
        options = [
            "--port",
            self.port,
            "--bind",
            "127.0.0.1",
            "--dir",
            self.folder,
            "--requirepass",
            PASSWORD,
        ]
        durable = ["--appendonly", "yes", "--appendfsync", "always"]
        command = ["redis-server", *map(str, options), *durable]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        for _ in range(200):
            try:
                assert self.client.ping()
                return
            except redis.ConnectionError:
                time.sleep(0.05)
        raise AssertionError(f"no Redis on port {self.port}")

    def stop(self) -> None:
        """As an operator would."""
        self.process.terminate()
        self.process.wait(20)
