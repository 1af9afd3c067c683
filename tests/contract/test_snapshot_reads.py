"""The plugin's snapshot is long, and each topology's service asks for it every second: it is read when it changed."""

from __future__ import annotations

import pytest
from kazoo.client import KazooClient

from leeward.adapters.zookeeper import ZooClusterStore, connect
from leeward.control.snapshot import nodes_of
from tests.helpers.zipped import zipped

ROOT = "/snapshot-reads"
PATH = f"{ROOT}/snapshot"
TEXT = '{"version":1,"supervisors":[{"node":"n%d"}],"topologies":[]}'


@pytest.fixture
def clients(zoo, monkeypatch):
    """Two services and a list of the paths that they read."""
    read, found = [], [connect(zoo.hosts, timeout_s=60) for _ in range(2)]
    get = KazooClient.get

    def counted(self: KazooClient, path: str, *rest: object, **more: object) -> object:
        read.append(path)
        return get(self, path, *rest, **more)

    for client in found:
        client.delete(ROOT, recursive=True)
    monkeypatch.setattr(KazooClient, "get", counted)
    yield found, read
    for client in found:
        client.stop()
        client.close()


def test_a_snapshot_is_read_once_for_all_services_until_it_changes(clients):
    (one, other), read = clients
    stores = [ZooClusterStore(client, ROOT) for client in (one, other)]
    assert [store.snapshot(lambda: None) for store in stores] == [None, None] and not read
    one.create(PATH, (TEXT % 1).encode(), makepath=True)
    for _ in range(3):
        assert [nodes_of(store.snapshot(lambda: None)) for store in stores] == [["n1"], ["n1"]]
    assert read == [PATH]
    one.set(PATH, zipped(TEXT % 2).encode())
    other.sync(PATH)
    assert [nodes_of(store.snapshot(lambda: None)) for store in stores] == [["n2"], ["n2"]]
    assert read == [PATH] * 2


def test_a_snapshot_that_is_made_anew_is_read_anew(clients):
    (one, _), read = clients
    store = ZooClusterStore(one, ROOT)
    for number in (3, 4):
        one.create(PATH, (TEXT % number).encode(), makepath=True)
        assert nodes_of(store.snapshot(lambda: None)) == [f"n{number}"]
        one.delete(PATH)
        assert store.snapshot(lambda: None) is None
    assert read == [PATH] * 2


def test_what_is_no_text_is_told_and_no_failure_of_the_reader(clients):
    (one, _), _ = clients
    one.create(PATH, b"\x1f\x8b\x08\x00", makepath=True)
    assert ZooClusterStore(one, ROOT).snapshot(lambda: None).startswith("\x1f")
