"""A lock that could not be given back while ZooKeeper was away keeps nobody of the same session waiting."""

from __future__ import annotations

import pytest
from kazoo.exceptions import ConnectionLoss

from leeward.adapters.zookeeper import ZooLock, connect
from leeward.core.control import Paths


@pytest.fixture
def clients(zoo):
    clients = [connect(zoo.hosts, timeout_s=60) for _ in range(2)]
    yield clients
    for client in clients:
        client.stop()
        client.close()


def test_a_lock_that_could_not_be_deleted_is_had_again(clients, monkeypatch):
    """Its session survives where ZooKeeper is started anew. The service stood by for itself, for ever."""
    mine, other = clients
    paths = Paths("/test-remains", "app-1-1")
    first, second = ZooLock(mine, paths), ZooLock(mine, paths)
    assert first.acquire(5.0)
    with monkeypatch.context() as broken:
        broken.setattr(first._lock, "release", lambda: (_ for _ in ()).throw(ConnectionLoss()))
        first.release()
    rival = ZooLock(other, paths)
    assert not rival.acquire(0.2), "ZooKeeper still has the first one's node"
    assert second.acquire(5.0)
    assert not rival.acquire(0.2), "what another session holds is left alone"
    second.release()
    assert rival.acquire(5.0)
    rival.release()


def test_one_that_does_not_wait_stands_before_nobody(clients):
    """A command that asked a leader queued for its lock. Killed with the leader, it kept the standby waiting for as
    long as its own session lasted: 15.9 s instead of 7.
    """
    mine, other = clients
    paths = Paths("/test-queue", "app-1-1")
    leader, command = ZooLock(mine, paths), ZooLock(other, paths)
    assert leader.acquire(5.0)
    assert not command.acquire(0.0)
    assert len(mine.get_children(f"{paths.base}/leader")) == 1
    leader.release()
    assert command.acquire(0.0)
    command.release()
