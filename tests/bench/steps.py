"""How long steps take that one process writes to ZooKeeper, and another reads before it writes the next."""

from __future__ import annotations

import contextlib
import multiprocessing
import threading
import time
import uuid
from collections.abc import Iterator

from kazoo.client import KazooClient

from leeward.adapters.zookeeper import connect

#: What every live reconfiguration has, however it is done, if it is to outlive the end of any process: it is asked for,
#: announced, reported as over, and answered.
LEAST = 4
_TEXT = bytes(200)  # as a report's
_PATIENCE_S = 30.0


def steps_s(hosts: str, *, steps: int, times: int) -> float:
    """Seconds for so many steps (an even number) between two processes; the best of so many times."""
    path = f"/bench-steps-{uuid.uuid4().hex}"
    other = multiprocessing.get_context("spawn").Process(target=_other, args=(hosts, path, steps, times))
    with _connected(hosts) as client:
        client.ensure_path(path)
        other.start()
        try:
            _await(client, f"{path}/ready")
            return round(min(_timed(client, f"{path}/{run}-", steps) for run in range(times)), 4)
        finally:
            other.kill()
            other.join()
            client.delete(path, recursive=True)


def _timed(client: KazooClient, prefix: str, steps: int) -> float:
    began = time.perf_counter()
    _alternate(client, prefix, steps, mine=0)
    return time.perf_counter() - began


def _other(hosts: str, path: str, steps: int, times: int) -> None:
    with _connected(hosts) as client:
        client.create(f"{path}/ready")
        for run in range(times):
            _alternate(client, f"{path}/{run}-", steps, mine=1)


def _alternate(client: KazooClient, prefix: str, steps: int, *, mine: int) -> None:
    for number in range(steps):
        if number % 2 == mine:
            client.create(f"{prefix}{number}", _TEXT)
        else:
            _await(client, f"{prefix}{number}")


def _await(client: KazooClient, path: str) -> None:
    """Until it is there, and read."""
    came = threading.Event()
    if not client.exists(path, watch=lambda _: came.set()) and not came.wait(_PATIENCE_S):
        raise SystemExit(f"ZooKeeper has not told of {path} in {_PATIENCE_S:g} s")
    client.get(path)


@contextlib.contextmanager
def _connected(hosts: str) -> Iterator[KazooClient]:
    client = connect(hosts)
    try:
        yield client
    finally:
        client.stop()
        client.close()
