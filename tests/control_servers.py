"""Real servers for contract tests: Redis of the distribution, ZooKeeper out of Storm's jars."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def wait_for_port(port: int, process: subprocess.Popen, timeout_s: float = 20.0) -> None:
    """Returns once somebody listens; fails if the process ends first."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if process.poll() is not None:
            pytest.fail(f"{process.args[0]} ended with {process.returncode}; see {process.args}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=0.5):
            return
        time.sleep(0.05)
    pytest.fail(f"nobody listens on {port} after {timeout_s} s")


@contextlib.contextmanager
def redis_server(port: int, folder: Path, *options: str) -> Iterator[subprocess.Popen]:
    """A Redis with password `secret` and an append-only file."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [program, "--port", str(port), "--dir", str(folder), "--requirepass", "secret", "--appendonly", "yes",
         "--bind", "127.0.0.1", *options],
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_for_port(port, process)
        yield process
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def zookeeper_server(port: int, folder: Path) -> Iterator[subprocess.Popen]:
    """The ZooKeeper that Storm ships, shaded; its data stays in `folder`."""
    lib = Path(os.environ.get("LEEWARD_STORM_LIB", ROOT / ".storm/current/lib"))
    if not list(lib.glob("storm-shaded-deps-*.jar")):
        pytest.skip(f"no Storm jars in {lib}; run make setup")
    folder.mkdir(parents=True, exist_ok=True)
    conf = folder / "zoo.cfg"
    conf.write_text(
        f"tickTime=1000\ndataDir={folder}/data\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
        "maxClientCnxns=0\nadmin.enableServer=false\nmaxSessionTimeout=60000\n"
    )
    with (folder / "zookeeper.log").open("ab") as log:
        process = subprocess.Popen(
            ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{lib}/*",
             "org.apache.storm.shade.org.apache.zookeeper.server.ZooKeeperServerMain", str(conf)],
            stdout=log, stderr=log,
        )  # fmt: skip
    try:
        wait_for_port(port, process, 30.0)
        yield process
    finally:
        process.kill()
        process.wait()
