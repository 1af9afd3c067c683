"""One suite for the port of snapshots and measurements in Redis: the in-memory twin and the real server."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from leeward.adapters.redis import RedisSnapshots
from leeward.control.ports import StreamFacts
from leeward.core.errors import ClusterRefusedError
from leeward.sim.memory import MemorySnapshots, World
from tests.helpers.servers import RedisServer, silent_port


@pytest.fixture(params=["memory", "redis"])
def snapshots(request):
    """(store, add a cut, add metrics, set streams)"""
    if request.param == "memory":
        world = World()
        yield (
            MemorySnapshots(world),
            lambda cut: world.cuts.setdefault("app", set()).add(cut),
            lambda task, line: world.metrics.setdefault("app", {}).__setitem__(task, line),
            lambda facts: setattr(world, "streams", facts),
            lambda: world.fences["app"],
        )
        return
    store = RedisSnapshots(request.getfixturevalue("server").url)
    client = store._redis
    client.flushall()

    def add_streams(facts):
        for number in (1, facts.last):
            client.xadd("in", {"r": b"row"}, id=f"{number}-0")
        client.hset("in:progress", "seq", facts.done)
        for number, (w0, w) in enumerate(reversed(facts.results), start=1):
            client.xadd("out", {"w0": w0, "w": w}, id=f"{number}-0")

    yield (
        store,
        lambda cut: client.hset(f"leeward:app:cut:{cut}:work", "1", b"x"),
        lambda task, line: client.hset("leeward:app:metrics", str(task), line),
        add_streams,
        lambda: int(client.get("leeward:app:fence")),
    )
    store.close()


def test_the_fence_only_rises(snapshots):
    store, *_, fence = snapshots
    store.raise_fence("app", 3)
    store.raise_fence("app", 2)
    assert fence() == 3
    store.raise_fence("app", 11)
    assert fence() == 11


def test_old_cuts_go(snapshots):
    store, add_cut, *_ = snapshots
    for cut in (1, 2, 9, 10, 11):
        add_cut(cut)
    assert store.delete_cuts("app", below=10) == 3
    assert store.delete_cuts("app", below=10) == 0
    assert store.delete_cuts("app", below=12) == 2


def test_metrics_and_streams(snapshots):
    store, _, add_metrics, set_streams, _ = snapshots
    assert store.metrics("app") == {}
    add_metrics(3, '{"task":3}')
    assert store.metrics("app") == {3: '{"task":3}'}
    assert store.streams(None, None) == StreamFacts()
    facts = StreamFacts(last=20, done=12, results=((5.0, 5.5), (4.0, 4.25)))
    set_streams(facts)
    found = store.streams("in", "out")
    assert replace(found, now=None) == facts
    assert found.now is None or abs(found.now - time.time()) < 60.0, "of the server's clock, where there is one"


def test_fields_of_results_that_are_no_numbers_are_passed_over(server):
    store = RedisSnapshots(server.url)
    client = store._redis
    client.flushall()
    client.xadd("in", {"r": b"row"}, id="7-0")
    client.hset("in:progress", "seq", "12 rows")
    for number, (w0, w) in enumerate((("soon", 2.0), (1.0, "nan"), (1.0, 2.5), (1.0, "")), start=1):
        client.xadd("out", {"w0": w0, "w": w}, id=f"{number}-0")
    found = store.streams("in", "out")
    store.close()
    assert (found.last, found.done, found.results) == (7, 0, ((1.0, 2.5),))


def test_redis_refuses(server, tmp_path):
    store = RedisSnapshots(f"redis://:wrong@127.0.0.1:{server.port}/0")
    with pytest.raises(ClusterRefusedError, match=r"redis://:\*\*\*@127.0.0.1.*AuthenticationError") as refused:
        store.raise_fence("app", 1)
    assert "wrong" not in str(refused.value)
    with silent_port() as port, pytest.raises(ClusterRefusedError, match="ConnectionError"):
        RedisSnapshots(f"redis://:secret@127.0.0.1:{port}/0").metrics("app")
    small = ("--maxmemory", "1", "--maxmemory-policy", "noeviction")
    for match, options in (("OutOfMemory", small), ("ReadOnly", ("--replicaof", "127.0.0.1", str(server.port)))):
        folder = tmp_path / match
        folder.mkdir()
        with RedisServer(folder, *options) as other, pytest.raises(ClusterRefusedError, match=match):
            RedisSnapshots(other.url).raise_fence("app", 1)
