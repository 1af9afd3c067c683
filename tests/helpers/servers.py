"""Real servers for tests, each with ports and a folder of its own, so that two runs on one machine do not meet."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest
import redis

from leeward.core.secrets import Secrets
from leeward.wire.secrets import write_secrets

ROOT = Path(__file__).parents[2]
PASSWORD = "secret word"
URL_PASSWORD = PASSWORD.replace(" ", "%20")
#: Ports for clusters, under those that the kernel deals out.
BLOCKS = range(10_000, 32_000, 400)
_held: list[TextIO] = []  # a lock lasts as long as its file is open: to the end of this process


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def port_block() -> int:
    """The first of 400 free ports, for a local cluster; no other test process gets it while this one lives."""
    folder = Path(tempfile.gettempdir()) / f"leeward-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for base in BLOCKS:
        file = (folder / str(base)).open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            continue
        if all(_is_free(port) for port in range(base, base + BLOCKS.step)):
            _held.append(file)
            return base
    raise AssertionError(f"no 400 free ports from {BLOCKS.start} to {BLOCKS.stop}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: ports of ended ones count as free
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class RedisServer:
    """A durable redis-server with a password; it can be stopped and started again on the same port."""

    def __init__(self, folder: Path, *options: str) -> None:
        if shutil.which("redis-server") is None:
            pytest.skip("redis-server is not installed")
        self.folder, self.port, self._options = folder, free_port(), options
        self.url = f"redis://:{URL_PASSWORD}@127.0.0.1:{self.port}/0"
        self.address = f"redis://127.0.0.1:{self.port}/0"  #: for clients that have the password from elsewhere
        self.secrets_file = folder / "secrets.json"
        write_secrets(self.secrets_file, Secrets(redis_password=PASSWORD))
        self.client = redis.Redis(port=self.port, password=PASSWORD)
        self.start()

    def start(self) -> None:
        """Returns when it answers."""
        options = {"--port": self.port, "--bind": "127.0.0.1", "--dir": self.folder, "--requirepass": PASSWORD}
        durable = {"--appendonly": "yes", "--appendfsync": "always"}
        words = [str(word) for pair in (options | durable).items() for word in pair]
        self.process = subprocess.Popen(["redis-server", *words, *self._options], stdout=subprocess.DEVNULL)
        for _ in range(400):
            with contextlib.suppress(redis.ConnectionError):
                assert self.client.ping()
                return
            time.sleep(0.05)
        raise AssertionError(f"no Redis on port {self.port}")

    def stop(self) -> None:
        """As an operator would."""
        self.process.terminate()
        self.process.wait(20)

    def __enter__(self) -> RedisServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class ZooKeeperServer:
    """The ZooKeeper that Storm ships, shaded; its data stays in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._lib = Path(os.environ.get("LEEWARD_STORM_LIB", ROOT / ".storm/current/lib"))
        if not list(self._lib.glob("storm-shaded-deps-*.jar")):
            pytest.skip(f"no Storm jars in {self._lib}; run make setup")
        self.folder, self.port = folder, free_port()
        self.hosts = f"127.0.0.1:{self.port}"
        (folder / "zoo.cfg").write_text(
            f"tickTime=1000\ndataDir={folder}/data\nclientPort={self.port}\nclientPortAddress=127.0.0.1\n"
            "maxClientCnxns=0\nadmin.enableServer=false\nmaxSessionTimeout=60000\n"
        )
        with (folder / "zookeeper.log").open("ab") as log:
            self.process = subprocess.Popen(
                ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{self._lib}/*",
                 "org.apache.storm.shade.org.apache.zookeeper.server.ZooKeeperServerMain", f"{folder}/zoo.cfg"],
                stdout=log, stderr=log,
            )  # fmt: skip
        self._await_service()

    def _await_service(self, timeout_s: float = 60.0) -> None:
        """A connection of its first moments may stay without an answer for ever: its port opens before it serves."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end and self.process.poll() is None:
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.port), timeout=0.5) as connection,
            ):
                connection.sendall(b"srvr")
                with connection.makefile("rb") as answer:
                    if b"Mode: standalone" in answer.read():
                        return
            time.sleep(0.05)
        self.stop()
        raise AssertionError(f"no ZooKeeper on port {self.port}:\n{(self.folder / 'zookeeper.log').read_text()}")

    def stop(self) -> None:
        """At once: ZooKeeper writes before it answers."""
        self.process.kill()
        self.process.wait()

    def __enter__(self) -> ZooKeeperServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextlib.contextmanager
def silent_port() -> Iterator[int]:
    """A port that is taken, but where nobody answers."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]
