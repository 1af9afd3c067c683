"""A Redis, a ZooKeeper and a Spark, where they are wanted, for each file of tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from leeward.replay.generate import Settings, generate
from leeward.replay.spark import spark_session
from tests.helpers.control_commands import NIMBUS, App, Bots, beat, end_started
from tests.helpers.nimbus_twin import Cluster, serving
from tests.helpers.servers import RedisServer, ZooKeeperServer

#: Java that lives for seconds: its better compiler would take more of the processor than it gives back.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The replay first: it is the longest file, and what begins last ends last."""
    items.sort(key=lambda item: item.path.stem != "test_replay_redis")


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[RedisServer]:
    """A Redis of its own for each test module."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def client(server: RedisServer) -> redis.Redis:
    """Its client; the server is empty."""
    server.client.flushall()
    return server.client


@pytest.fixture(scope="module")
def zoo(tmp_path_factory) -> Iterator[ZooKeeperServer]:
    """A ZooKeeper of its own for each test module."""
    with ZooKeeperServer(tmp_path_factory.mktemp("zoo")) as server:
        yield server


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    """A session in a folder with a space in its name."""
    with spark_session(tmp_path_factory.mktemp("spark") / "with space", partitions=2) as session:
        yield session


@pytest.fixture(scope="module")
def made(spark, tmp_path_factory) -> Path:
    """Half an hour of generated rows in slices, and as CSV beside them."""
    folder = tmp_path_factory.mktemp("made")
    generate(Settings(hours=0.5, peak_rate=120), out=folder / "slices", csv=folder / "rows.csv.gz", spark=spark)
    return folder


@pytest.fixture(scope="module")
def servers(zoo: ZooKeeperServer, server: RedisServer) -> Iterator[ZooKeeperServer]:
    """A Nimbus that knows the module's ZooKeeper and Redis; gives the former."""
    state = Cluster()
    state.leader, state.both = NIMBUS, False
    App.redis_url, App.zookeeper_port = server.url, zoo.port
    with serving(state, NIMBUS, App):
        yield zoo


@pytest.fixture
def bots(servers: ZooKeeperServer) -> Iterator[Bots]:
    """The tasks of a topology, which have left a beat each; commands that a test leaves are ended."""
    beat()
    bots = Bots(servers.hosts)
    yield bots
    end_started()
    bots.close()
