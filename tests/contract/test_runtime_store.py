"""Snapshots of tasks in a real Redis and in the swap area: what is written comes back, and faults say what they are."""

from __future__ import annotations

import pytest
import redis

from leeward.core.errors import FencedError, SnapshotError
from leeward.runtime.state import snapshot
from leeward.runtime.state.store import TaskStore

STATE = {"a": [1, 2.5, None, True, b"\x00\xff", "é", {"nested": [1]}], "b": 2**62}


def store(server, tmp_path, task, component="count"):
    return TaskStore(server.url, "t-1", component, task, node=f"n{task}", swap=tmp_path / f"n{task}")


def blobs(cut, groups):
    return {group: snapshot.encode(entries, cut=cut, owner="count") for group, entries in groups.items()}


def test_groups_of_several_old_owners_come_together_at_the_new_one(server, client, tmp_path):
    store(server, tmp_path, 1).export(3, 1, blobs(3, {0: STATE}), (0, 1), {})
    store(server, tmp_path, 2).export(3, 1, blobs(3, {2: {7: "seven"}}), (2, 3), {})
    entries, size = store(server, tmp_path, 9).load(3, (0, 1, 2, 3))
    assert entries == {0: STATE, 1: {}, 2: {7: "seven"}, 3: {}} and size > 0
    assert [type(value) for value in entries[0]["a"]] == [type(value) for value in STATE["a"]]


def test_what_stays_on_the_node_never_leaves_it(server, client, tmp_path):
    mine = store(server, tmp_path, 1)
    mine.export(4, 1, blobs(4, {0: {"x": 1}}), (0, 5), blobs(4, {5: {"y": 2}}))
    assert client.hkeys("leeward:t-1:cut:4:count") == [b"0"]
    assert store(server, tmp_path, 1).load(4, (0, 5))[0] == {0: {"x": 1}, 5: {"y": 2}}
    with pytest.raises(SnapshotError, match="group 5 is in the swap area of task 1 on n1"):
        store(server, tmp_path, 2).load(4, (5,))
    moved = TaskStore(server.url, "t-1", "count", 1, node="elsewhere", swap=tmp_path / "elsewhere")
    with pytest.raises(SnapshotError, match="is not on this node"):
        moved.load(4, (5,))


def test_the_swap_file_before_the_newest_stays_whatever_numbers_lie_between(server, client, tmp_path):
    mine = store(server, tmp_path, 1)
    for cut in (4, 9, 17):
        mine.export(cut, 1, {}, (5,), blobs(cut, {5: {"cut": cut}}))
    assert mine.load(9, (5,))[0] == {5: {"cut": 9}} and mine.load(17, (5,))[0] == {5: {"cut": 17}}
    with pytest.raises(SnapshotError, match="is not on this node"):
        mine.load(4, (5,))


def test_much_state_is_written_in_several_calls_and_counts_with_the_last(server, client, tmp_path):
    groups = {group: {f"k{n}": "x" * 1000 for n in range(500)} for group in range(8)}
    mine = store(server, tmp_path, 1)
    calls, script = [], mine._script
    mine._script = lambda keys, args: calls.append((len(args), client.hlen(keys[2]))) or script(keys=keys, args=args)
    mine.export(3, 1, blobs(3, groups), range(8), {})
    assert len(calls) >= 3 and all(told == 0 for _, told in calls)
    assert store(server, tmp_path, 9).load(3, range(8))[0] == groups
    client.set("leeward:t-1:fence", 5)
    with pytest.raises(FencedError):
        mine.export(4, 1, blobs(4, groups), range(8), {})
    assert not client.exists("leeward:t-1:cut:4:count:tasks")


def test_cut_zero_is_empty_state(server, client, tmp_path):
    assert store(server, tmp_path, 1).load(0, (1, 2)) == ({1: {}, 2: {}}, 0)


def test_an_older_epoch_is_fenced_off(server, client, tmp_path):
    client.set("leeward:t-1:fence", 5)
    with pytest.raises(FencedError, match="task 1 of epoch 4 may not write: epoch 5"):
        store(server, tmp_path, 1).export(1, 4, blobs(1, {0: {"x": 1}}), (0,), {})
    assert client.keys("leeward:t-1:cut*") == []


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda blob: blob[:-1] + bytes([blob[-1] ^ 1]), "group 0 is damaged: .*crc32"),
        (lambda blob: blob[:3] + bytes([9]) + blob[4:], "group 0 has version 9, this program reads up to 2"),
        (lambda blob: blob[:10], "group 0 is not a snapshot"),
        (lambda blob: b"", "group 0 is not a snapshot"),
    ],
)
def test_spoilt_bytes_are_refused(server, client, tmp_path, spoil, message):
    store(server, tmp_path, 1).export(1, 0, blobs(1, {0: {"x": 1}}), (0,), {})
    key = "leeward:t-1:cut:1:count"
    client.hset(key, "0", spoil(client.hget(key, "0")))
    with pytest.raises(SnapshotError, match=message):
        store(server, tmp_path, 2).load(1, (0,))


def test_bytes_of_another_cut_are_refused(server, client, tmp_path):
    store(server, tmp_path, 1).export(1, 0, blobs(7, {0: {"x": 1}}), (0,), {})
    with pytest.raises(SnapshotError, match=r"cut 7 \(wanted 1\)"):
        store(server, tmp_path, 2).load(1, (0,))


def test_a_lost_group_and_an_unowned_one_are_told_apart(server, client, tmp_path):
    store(server, tmp_path, 1).export(1, 0, blobs(1, {0: {"x": 1}}), (0,), {})
    with pytest.raises(SnapshotError, match="nobody exported group 3"):
        store(server, tmp_path, 2).load(1, (0, 3))
    client.hdel("leeward:t-1:cut:1:count", "0")
    with pytest.raises(SnapshotError, match="group 0 is missing"):
        store(server, tmp_path, 2).load(1, (0,))


def test_redis_full_at_export_writes_nothing(server, client, tmp_path):
    client.config_set("maxmemory", 1)
    with pytest.raises(redis.RedisError, match=r"OOM|maxmemory"):
        store(server, tmp_path, 1).export(1, 0, blobs(1, {0: {"x": 1}}), (0,), {})
    client.config_set("maxmemory", 0)
    assert client.keys("leeward:t-1:cut*") == []


def test_redis_read_only_at_export_writes_nothing(server, client, tmp_path):
    client.replicaof("127.0.0.1", "1")  # as after a failover
    with pytest.raises(redis.RedisError, match="read only"):
        store(server, tmp_path, 1).export(1, 0, blobs(1, {0: {"x": 1}}), (0,), {})
    client.replicaof("NO", "ONE")
    assert client.keys("leeward:t-1:cut*") == []


def test_redis_away_at_export_is_an_error_and_later_works(server, client, tmp_path):
    mine = store(server, tmp_path, 1)
    mine.publish_metrics("{}")
    server.stop()
    with pytest.raises(redis.RedisError):
        mine.export(1, 0, blobs(1, {0: {"x": 1}}), (0,), {})
    server.start()
    mine.export(2, 0, blobs(2, {0: {"x": 1}}), (0,), {})
    assert store(server, tmp_path, 2).load(2, (0,))[0] == {0: {"x": 1}}


@pytest.mark.parametrize("value", [{1, 2}, (1, 2), 2**70, object()])
def test_values_that_cannot_travel_are_named(value):
    with pytest.raises(SnapshotError, match=r"state of count, key 'bad'.*" + type(value).__name__):
        snapshot.encode({"good": 1, "bad": value}, cut=1, owner="count")
