"""The health of a datastore, asked of a real Redis and a real ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from leeward.core.secrets import Secrets
from leeward.deploy.errors import HostError
from leeward.deploy.health import Health
from leeward.deploy.inventory import Host, Inventory, Role
from leeward.deploy.steps import Check
from tests.helpers.servers import PASSWORD, RedisServer, ZooKeeperServer, free_port

HOST = Host(name="h", address="h", roles=frozenset(Role), storm_home="/opt/storm", folder="/opt/leeward")
INVENTORY = Inventory(hosts=(HOST,), redis="redis://redis-name:6379/0")
RIGHT = Secrets(redis_password=PASSWORD)


class Way:
    """Leads to ports of this machine."""

    def __init__(self, redis: int, zookeeper: int) -> None:
        self.ports = {(6379, "redis-name"): redis, (2181, "h"): zookeeper}

    @contextmanager
    def forward(self, host: Host, port: int, to: str = "localhost") -> Iterator[tuple[str, int]]:
        yield "127.0.0.1", self.ports.get((port, to), 1)


def ask(redis: int, zookeeper: int, secrets: Secrets = RIGHT) -> None:
    Health(INVENTORY, Way(redis, zookeeper), secrets).wait(Check(host="h", role=Role.DATASTORE), HOST)


def test_a_datastore_is_healthy_when_redis_takes_the_password_and_zookeeper_answers(tmp_path: Path):
    for name in ("redis", "zoo"):
        (tmp_path / name).mkdir()
    with RedisServer(tmp_path / "redis") as redis, ZooKeeperServer(tmp_path / "zoo") as zookeeper:
        ask(redis.port, zookeeper.port)


def test_a_datastore_that_is_not_healthy_is_told_with_its_host(tmp_path: Path):
    nobody = free_port()

    def refused(said: str, redis: int, secrets: Secrets = RIGHT) -> None:
        with pytest.raises(HostError, match=f"host h: datastore is not healthy: {said}"):
            ask(redis, nobody, secrets)

    refused("Redis does not answer", nobody)
    with RedisServer(tmp_path) as redis:
        refused("Redis does not take the password", redis.port, Secrets(redis_password="wrong"))
        refused("Redis does not take the password", redis.port, Secrets())
        redis.client.config_set("maxmemory-policy", "allkeys-lru")
        refused("Redis may evict state", redis.port)
        redis.client.config_set("maxmemory-policy", "noeviction")
        refused("ZooKeeper does not answer on port 2181", redis.port)
