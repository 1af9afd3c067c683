"""A Redis that hangs costs a caller one timeout, and one that is away for a moment is waited for."""

from __future__ import annotations

import signal
import socket
import threading
import time
from contextlib import contextmanager

import pytest
import redis

from leeward.adapters.redis import RedisSnapshots
from leeward.core.clocks import READINGS
from leeward.core.errors import ClusterRefusedError
from leeward.core.secrets import Secrets
from leeward.runtime.state.store import TaskStore
from leeward.runtime.task.beat import Beat
from leeward.wire.redis import client
from tests.helpers.servers import PASSWORD, RedisServer, free_port

SECRETS = Secrets(redis_password=PASSWORD)


@contextmanager
def hanging():
    """Takes connections and never answers; its address, and the connections that it has taken."""
    taken: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            while True:
                try:
                    taken.append(server.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield f"redis://127.0.0.1:{server.getsockname()[1]}/0", taken
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(10)
            for one in taken:
                one.close()


def test_a_call_of_a_redis_that_hangs_is_tried_once():
    """redis-py tries eleven times: a call of 5 s took a minute."""
    with hanging() as (url, taken):
        with pytest.raises(redis.TimeoutError):
            client(url, timeout_s=0.2).ping()
        assert len(taken) == 1


def test_the_service_is_refused_after_one_timeout():
    with hanging() as (url, taken):
        with pytest.raises(ClusterRefusedError, match=r"Redis at .*Timeout"):
            RedisSnapshots(url, timeout_s=0.2).beats("t-1")
        assert len(taken) == 1


def test_a_farewell_waits_for_one_timeout_at_most():
    with hanging() as (url, taken):
        Beat(url, "t-1", 5, lambda: 0.0).farewell()
        assert len(taken) <= 1


@pytest.fixture
def server(tmp_path):
    with RedisServer(tmp_path) as running:
        yield running


def test_a_restart_is_outlasted(server):
    patient = client(server.address, secrets=SECRETS)
    patient.set("a", 1)
    server.stop()
    timer = threading.Timer(1.0, server.start)
    timer.start()
    try:
        assert patient.get("a") == b"1"
    finally:
        timer.join()


def test_a_port_that_nobody_listens_on_is_told():
    with pytest.raises(redis.ConnectionError):
        client(f"redis://127.0.0.1:{free_port()}/0", tries=2).ping()


def test_metrics_tell_how_far_the_nodes_clock_is_ahead(server, tmp_path, monkeypatch):
    store = TaskStore(server.address, "t-1", "count", 5, node="n1", swap=tmp_path, secrets=SECRETS)
    assert store.ahead_s is None
    store.publish_metrics("{}")
    assert store.ahead_s == pytest.approx(0.0, abs=1.0)
    now = time.time
    monkeypatch.setattr("leeward.runtime.state.store.time.time", lambda: now() + 60.0)
    store.publish_metrics("{}")
    assert store.ahead_s == pytest.approx(60.0, abs=1.0)
    assert RedisSnapshots(server.address, secrets=SECRETS).metrics("t-1") == {5: "{}"}


def test_metrics_are_written_each_time_and_the_clock_is_read_seldom(server, tmp_path):
    store = TaskStore(server.address, "t-1", "count", 5, node="n1", swap=tmp_path, secrets=SECRETS)
    for _ in range(READINGS):
        store.publish_metrics("{}")
    known, store.transfers.trip_s = store.ahead_s, 0.0
    server.client.config_resetstat()
    for number in range(3):
        store.publish_metrics(f"line {number}")
        assert RedisSnapshots(server.address, secrets=SECRETS).metrics("t-1") == {5: f"line {number}"}
    commands = server.client.info("commandstats")
    assert commands["cmdstat_hset"]["calls"] == 3 and "cmdstat_time" not in commands
    assert store.ahead_s == known and store.transfers.trip_s > 0


def test_a_redis_that_was_stopped_is_used_again(server):
    quick = client(server.address, secrets=SECRETS, timeout_s=0.3)
    quick.set("a", 1)
    server.process.send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(redis.TimeoutError):
            quick.get("a")
    finally:
        server.process.send_signal(signal.SIGCONT)
    assert quick.get("a") == b"1"
