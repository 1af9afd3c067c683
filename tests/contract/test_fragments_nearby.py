"""Fragments at the agents next to one of an overlay: found by its leaf set, lost with its nodes, and found anew."""

from __future__ import annotations

import json
import logging
import random
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis
from typer.testing import CliRunner

from leeward.adapters.datagrams import DatagramClient
from leeward.adapters.fragment_agent import FragmentAgent, FragmentFiles
from leeward.adapters.redis import RedisSnapshots
from leeward.cli import _build
from leeward.core.errors import ClusterRefusedError, ConfigError
from leeward.core.secrets import Secrets
from leeward.policies.agiledart.overlay.ids import id_of, nearness
from leeward.policies.agiledart.recovery.scheme import Fragments
from leeward.policies.agiledart.recovery.settings import FragmentSettings
from leeward.runtime.state import snapshot
from leeward.runtime.state.nearby import Nearby
from leeward.runtime.state.scattered import Scattered
from leeward.runtime.state.schemes import scattered_of
from leeward.runtime.state.store import TaskStore
from leeward.wire.fragments import AgentClient
from tests.helpers.overlay_agents import Agents, joined
from tests.helpers.servers import RedisServer, port_block
from tests.helpers.waiting import wait_for

SECRET = b"of this test"
STATE = {group: {"bytes": random.Random(group).randbytes(20_000 + group)} for group in range(8)}
M, K = 4, 2


@pytest.fixture
def overlay(tmp_path: Path) -> Iterator[Agents]:
    started = Agents(tmp_path, heartbeat_s=0.5, base_port=port_block())
    yield started
    started.end_all()


def start(overlay: Agents, name: str) -> int:
    """One that keeps fragments."""
    return overlay.start(name, capacity=4, options=("--fragments", str(overlay.folder / f"{name}.fragments")))


def count(overlay: Agents, number: int) -> int:
    client = AgentClient(overlay.address(number), overlay.key.encode(), 5.0)
    try:
        return client.count()
    finally:
        client.close()


def near(overlay: Agents, number: int) -> list[str]:
    client = AgentClient(overlay.address(number), overlay.key.encode(), 5.0)
    try:
        return client.near()
    finally:
        client.close()


def by_distance(overlay: Agents, number: int) -> list[int]:
    """The others, the nearest on the ring to this one first."""
    me = id_of(overlay.names[number])
    return sorted(set(overlay.running) - {number}, key=lambda one: nearness(id_of(overlay.names[one]), me))


def store(overlay: Agents, server: RedisServer, folder: Path, asked: int, *, task: int = 1) -> TaskStore:
    """Of a task on a node of its own, by the configuration of its topology."""
    node = f"127.0.1.{task}"
    conf = {
        "leeward.state.store": "leeward.policies.agiledart.recovery.scheme:Fragments",
        "leeward.state.agents": f"near:{overlay.address(asked)}", "leeward.state.options": {"m": M, "k": K},
    }  # fmt: skip
    access = scattered_of(conf, node, Secrets(agent_secret=overlay.key))
    return TaskStore(server.url, "t-1", "count", task, node=node, swap=folder / node, scattered=access)


def blobs(cut: int) -> dict[int, bytes]:
    return {group: snapshot.encode(entries, cut=cut, owner="count") for group, entries in STATE.items()}


@pytest.mark.long
def test_state_is_at_the_nearest_agents_and_outlives_k_of_them(
    overlay: Agents, server: RedisServer, client: Redis, tmp_path: Path
):
    first, *others = (start(overlay, f"node-{number}") for number in range(8))
    plain = overlay.start("plain", capacity=4)
    overlay.ask(lambda client: _joined(client, overlay))
    expected = [overlay.address(number) for number in by_distance(overlay, first) if number != plain]
    wait_for(lambda: near(overlay, first) == expected)
    status = ["overlay", "status", overlay.address(first), "--secrets", str(overlay.secrets), "--output", "json"]
    shown = CliRunner().invoke(_build(), status)
    assert json.loads(shown.output)["fragments_near"] == expected
    writer, reader = (store(overlay, server, tmp_path, first, task=task) for task in (1, 2))
    writer.export(7, 1, blobs(7), STATE, {})
    assert {one.decode() for one in client.smembers("leeward:t-1:agents")} == set(expected)
    holders = [number for number in by_distance(overlay, first) if number != plain][: M + K]
    assert [count(overlay, number) for number in holders] == [1] * (M + K)
    assert [count(overlay, number) for number in others if number not in holders] == [0]
    for number in holders[:K]:
        overlay.end(number)
    assert reader.load(7, STATE)[0] == STATE
    wait_for(lambda: len(near(overlay, first)) == 7 - K)
    with pytest.raises(ConfigError, match="6 fragments need as many neighbours, and there are 5"):
        writer.export(8, 1, blobs(8), STATE, {})

    fresh = start(overlay, "node-new")
    wait_for(lambda: overlay.address(fresh) in near(overlay, first))
    writer.export(9, 1, blobs(9), STATE, {})
    assert count(overlay, fresh) == 1, "a neighbour that has joined is used by the next checkpoint"
    assert overlay.end(first, sign=signal.SIGTERM) == 0
    assert reader.load(9, STATE)[0] == STATE, "the agent that was asked for the neighbours need not live"
    snapshots = RedisSnapshots(server.url, secrets=Secrets(agent_secret=overlay.key))
    snapshots.delete_topology("t-1")
    assert [count(overlay, number) for number in overlay.running if number != plain] == [0] * 6


async def _joined(client: DatagramClient, overlay: Agents) -> None:
    await joined(client, overlay)


# --- agents in this process, which tell what a test wants


class Told:
    """An agent, and those near it."""

    def __init__(self, folder: Path) -> None:
        self.near: list[str] = []
        self.asked = 0
        self.agent = FragmentAgent(FragmentFiles(folder, 10_000_000), ("127.0.0.1", 0), SECRET, self._tell)
        self.address = f"127.0.0.1:{self.agent.port}"
        threading.Thread(target=self.agent.run, daemon=True).start()

    def _tell(self) -> list[str]:
        self.asked += 1
        return self.near.pop(0).split(",") if len(self.near) > 1 else self.near[0].split(",")


@pytest.fixture
def told(tmp_path: Path) -> Iterator[list[Told]]:
    found = [Told(tmp_path / str(number)) for number in range(4)]
    yield found
    for one in found:
        one.agent.close()


def silent() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def access(*asked: str) -> Scattered:
    scheme = Fragments(FragmentSettings(m=1, k=1))
    return Scattered(scheme, Nearby(asked, SECRET), SECRET, connect_s=2.0)


def test_those_near_are_asked_for_again_where_a_holder_does_not_answer(told: list[Told]):
    asked, one, other, _ = told
    asked.near = [f"{one.address},{silent()}", f"{one.address},{other.address}"]
    names: list[str] = []
    scattered = access(asked.address)
    record = scattered.put("t-1", 1, "a", {0: b"abcdef"}, names.extend).record
    assert asked.asked == 2 and other.address in names
    one.agent.close()
    assert scattered.get("t-1", 1, record, [0]) == {0: b"abcdef"}


def test_the_next_one_is_asked_where_an_agent_is_away_or_knows_nobody(told: list[Told]):
    lonely, asked, one, other = told
    lonely.near, asked.near = [""], [f"{one.address},{other.address}"]
    assert access(silent(), lonely.address, asked.address).agents == (one.address, other.address)


def test_the_newest_known_ones_are_used_while_nobody_answers(told: list[Told], caplog: pytest.LogCaptureFixture):
    asked, one, other, _ = told
    asked.near = [f"{one.address},{other.address}"]
    nearby = Nearby([asked.address], SECRET, ask_s=0.5)
    assert nearby.find() == (one.address, other.address)
    asked.near = [""]
    with caplog.at_level(logging.WARNING):
        assert nearby.find() == (one.address, other.address)
    assert "the agents near are those of before" in caplog.text
    with pytest.raises(ClusterRefusedError, match="no agent tells those near it"):
        Nearby([silent()], SECRET, ask_s=0.5).find()


def test_agents_on_the_own_node_are_left_out_by_name_and_by_address(told: list[Told]):
    asked, *_ = told
    asked.near = [f"localhost:1,127.0.0.1:2,127.0.0.9:3,127.0.0.9:3,nonsense,:4,{'x' * 30}:port"]
    assert Nearby([asked.address], SECRET, node="localhost").find() == ("127.0.0.9:3",)


def test_an_agent_without_an_overlay_says_so(tmp_path: Path):
    agent = FragmentAgent(FragmentFiles(tmp_path, 1000), ("127.0.0.1", 0), SECRET)
    threading.Thread(target=agent.run, daemon=True).start()
    try:
        with pytest.raises(ClusterRefusedError, match="it is in no overlay, and knows no agents near it"):
            access(f"127.0.0.1:{agent.port}").put("t-1", 1, "a", {0: b"abc"})
    finally:
        agent.close()
