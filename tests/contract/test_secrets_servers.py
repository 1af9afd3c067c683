"""The secret of a cluster on a real ZooKeeper and a real Redis: its owner may do everything, all others nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import OPEN_ACL_UNSAFE

from leeward.adapters.leftovers import ServerLeftovers
from leeward.adapters.redis import RedisSnapshots
from leeward.adapters.results import Results
from leeward.adapters.zookeeper import (
    ZooBarriers,
    ZooClusterStore,
    ZooControlStore,
    ZooLock,
    ZooRequests,
    close_root,
    close_topology,
    connect,
)
from leeward.core.control import ControlRecord, Paths, Report
from leeward.core.errors import ClusterRefusedError, ConfigError
from leeward.core.journal import Journal
from leeward.core.outcome import DONE
from leeward.core.plan import Placement, Slot
from leeward.core.secrets import Secrets
from leeward.runtime import FencedRedis, FencingToken, open_redis
from leeward.runtime.state.store import TaskStore
from leeward.runtime.task.beat import Beat
from leeward.runtime.task.link import Link
from leeward.wire.secrets import write_secrets
from tests.helpers.servers import PASSWORD, RedisServer, ZooKeeperServer

SECRETS = Secrets(redis_password=PASSWORD, zookeeper_secret="known to us: all")
PATHS = Paths("/leeward", "app-1-1")


@pytest.fixture
def owner(zoo: ZooKeeperServer) -> Iterator[KazooClient]:
    """A client with the secret; all of Leeward is gone before and after."""
    client = connect(zoo.hosts, secrets=SECRETS, timeout_s=60)
    client.delete("/leeward", recursive=True)
    yield client
    client.delete("/leeward", recursive=True)
    client.stop()
    client.close()


@pytest.fixture
def stranger(zoo: ZooKeeperServer) -> Iterator[KazooClient]:
    client = connect(zoo.hosts, timeout_s=60)
    yield client
    client.stop()
    client.close()


def tree(client: KazooClient, path: str) -> Iterator[str]:
    yield path
    for child in client.get_children(path):
        yield from tree(client, f"{path}/{child}")


def task(hosts: str, secrets: Secrets, tmp_path: Path) -> tuple[Link, list[Callable[[], None]], threading.Event]:
    """A task's link that is not started, what it posts, and that it has posted."""
    posted: list[Callable[[], None]] = []
    came = threading.Event()

    def post(work: Callable[[], None]) -> None:
        posted.append(work)
        came.set()

    link = Link(
        zookeeper=hosts,
        secrets=secrets,
        paths=PATHS,
        store=TaskStore("redis://127.0.0.1:1/0", PATHS.topology_id, "count", 3, node="n", swap=tmp_path),
        task=3,
        post=post,
        on_record=lambda record, first: None,
        default=ControlRecord(tables={}),
        metrics=lambda: "{}",
        hurry=lambda: True,
        leisure=lambda: 0.0,
    )
    return link, posted, came


def written_by_everybody(owner: KazooClient, hosts: str, tmp_path: Path) -> None:
    """A znode of every kind, by the classes that write them."""
    store = ZooControlStore(owner, PATHS, "app")
    store.claim()
    store.write_record(ControlRecord(tables={}), journal=Journal(), barrier="cut-2")
    store.write_placement(Placement(topology_id=PATHS.topology_id, epoch=1, slots={1: Slot("n1", 6700)}))
    requests = ZooRequests(owner, PATHS)
    requests.answer(requests.ask({"replicas": {}}), DONE)
    requests.ask({"replicas": {}})
    ZooClusterStore(owner, PATHS.root).set_draining("n1", True)
    ZooBarriers(owner, PATHS).recoveries(lambda: None)
    assert ZooLock(owner, PATHS).acquire(10)
    link, _, came = task(hosts, SECRETS, tmp_path)
    link.start()
    assert came.wait(30)
    came.clear()
    link.report("cut-1", Report(task=3, component="count"))
    link.recover(0, "because", fresh=False)
    while not (owner.exists(PATHS.recover(0)) and owner.exists(f"{PATHS.barrier('cut-1')}/3")):
        came.wait(0.05)
    link._client.stop()
    link._client.close()


def test_every_znode_belongs_to_the_secret_and_others_can_neither_read_nor_write(owner, stranger, zoo, tmp_path):
    written_by_everybody(owner, zoo.hosts, tmp_path)
    paths = list(tree(owner, "/leeward"))
    mine = PATHS.control, PATHS.journal, PATHS.told, PATHS.halt, PATHS.requests, PATHS.answers, PATHS.recover(0)
    assert {*mine, f"{PATHS.joined}/3", f"{PATHS.barrier('cut-1')}/3"} <= set(paths)
    for path in paths:
        assert owner.get_acls(path)[0] == owner.default_acl, path
        for attempt in (
            lambda: stranger.get(path),  # noqa: B023
            lambda: stranger.get_children(path),  # noqa: B023
            lambda: stranger.set(path, b"forged"),  # noqa: B023
            lambda: stranger.create(f"{path}/forged"),  # noqa: B023
            lambda: stranger.set_acls(path, OPEN_ACL_UNSAFE),  # noqa: B023
        ):
            with pytest.raises(NoAuthError):
                attempt()
    for path in paths[1:]:
        with pytest.raises(NoAuthError):
            stranger.delete(path)


@pytest.mark.parametrize("secret", ["", "another"])
def test_a_service_without_the_right_secret_is_told_what_to_name(owner, zoo, secret):
    ZooControlStore(owner, PATHS, "app").claim()
    client = connect(zoo.hosts, secrets=Secrets(zookeeper_secret=secret), timeout_s=60)
    try:
        with pytest.raises(ClusterRefusedError, match=r"belongs to clients .*secret.*LEEWARD_SECRETS") as error:
            ZooControlStore(client, PATHS, "app").read_record()
        assert "another" not in str(error.value)
    finally:
        client.stop()
        client.close()


def test_a_task_without_the_secret_ends_with_a_sentence_instead_of_waiting_for_ever(owner, zoo, tmp_path):
    ZooControlStore(owner, PATHS, "app").claim()
    link, posted, came = task(zoo.hosts, Secrets(), tmp_path)
    link.start()
    assert came.wait(30)
    with pytest.raises(ConfigError, match=r"does not let task 3 write to /leeward/topologies/app-1-1.*secrets\.file"):
        posted[0]()
    link._client.stop()
    link._client.close()


def test_znodes_of_an_installation_without_a_secret_are_closed(owner, stranger):
    other = Paths("/leeward", "older-1-1")
    shared = "/leeward/placement/app", "/leeward/snapshot"
    for path in (PATHS.control, f"{PATHS.barriers}/cut-1/3", other.control, *shared):
        stranger.create(path, b"old", makepath=True)
    close_root(owner, "/leeward")
    close_topology(owner, PATHS)
    is_open = {path for path in tree(owner, "/leeward") if owner.get_acls(path)[0] == OPEN_ACL_UNSAFE}
    assert is_open == {other.base, other.control}, "whether the tasks of another topology have the secret is not known"
    assert owner.get(PATHS.control)[0] == b"old"


def test_without_a_secret_nothing_is_closed(stranger):
    stranger.create(PATHS.control, b"old", makepath=True)
    try:
        close_root(stranger, "/leeward")
        close_topology(stranger, PATHS)
        assert stranger.get_acls(PATHS.control)[0] == OPEN_ACL_UNSAFE
    finally:
        stranger.delete("/leeward", recursive=True)


def test_clients_of_redis_take_the_password_from_the_secrets(server: RedisServer, tmp_path: Path):
    url = f"redis://127.0.0.1:{server.port}/0"
    with pytest.raises(redis.AuthenticationError):
        redis.Redis.from_url(url).ping()
    path = tmp_path / "secrets.json"
    write_secrets(path, SECRETS)
    assert open_redis({"leeward.redis.url": url, "leeward.secrets.file": str(path)}).ping()
    RedisSnapshots(url, secrets=SECRETS).raise_fence("app", 1)
    assert Results(url, secrets=SECRETS, source="in", results="out").sent() == 0
    store = TaskStore(url, "app", "count", 3, node="n", swap=tmp_path, secrets=SECRETS)
    store.publish_metrics("{}")
    assert RedisSnapshots(url, secrets=SECRETS).metrics("app") == {3: "{}"}


def test_signs_of_life_reach_a_redis_with_a_password(server: RedisServer):
    for secrets, arrived in ((Secrets(), set()), (SECRETS, {3})):
        beat = Beat(server.address, "alive-1-1", 3, lambda: 0.0, secrets=secrets)
        beat.farewell()
        assert RedisSnapshots(server.address, secrets=SECRETS).beats("alive-1-1").keys() == arrived


def test_a_fenced_sink_writes_with_the_password_of_the_secrets_file(server: RedisServer):
    client = open_redis({"leeward.redis.url": server.address, "leeward.secrets.file": str(server.secrets_file)})
    FencedRedis(client, "fenced-1-1").execute(FencingToken(1, 0), "SET", "fenced", "written", keys=("fenced",))
    assert client.get("fenced") == b"written"


def test_only_the_owner_of_the_secret_can_delete_what_a_topology_has_left(owner, stranger, zoo, server, tmp_path):
    written_by_everybody(owner, zoo.hosts, tmp_path)
    snapshots = RedisSnapshots(server.address, secrets=SECRETS)
    with pytest.raises(ClusterRefusedError, match=r"belongs to clients .*secret"):
        ServerLeftovers(stranger, PATHS.root, snapshots).delete(PATHS.topology_id)
    assert owner.exists(PATHS.control)
    left = ServerLeftovers(owner, PATHS.root, snapshots)
    assert left.found()[PATHS.topology_id].znodes == left.delete(PATHS.topology_id).znodes >= 10
    assert not owner.exists(PATHS.base) and PATHS.topology_id not in left.found()
