"""Agents as processes place applications by messages; a scheduler is killed while it is at it."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from leeward.adapters.datagram_post import DatagramPost
from leeward.adapters.datagrams import DatagramClient, address_of
from leeward.cli.overlay import place_all
from leeward.core.peers import Letter
from leeward.local.network import namespaces
from leeward.policies.agiledart.deployment.messages import (
    KINDS,
    Announce,
    AskPlacement,
    AskRooms,
    Over,
    PlacementIs,
    Wanted,
)
from leeward.policies.agiledart.overlay.ids import id_of, to_bytes
from tests.helpers.overlay_agents import KEY, Agents, free_number, joined, rooms, told
from tests.helpers.servers import port_block

#: All nodes hold two attempts at all applications: rooms that a dead scheduler has reserved are held for 12 heartbeats,
#: and an application that is refused twice meanwhile stays refused.
NODES, APPLICATIONS, OPERATORS, CAPACITY = 18, 10, 10, 14
WHY = namespaces.hindrance()
NETWORK = pytest.mark.skipif(WHY is not None, reason=f"needs hardware and rights to emulate a network: {WHY}")


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Agents]:
    started = Agents(tmp_path)
    yield started
    started.end_all()


def chain(name: str, operators: int, *ends: str) -> Announce:
    """Operators one behind the other; names of the nodes of the source and the sink."""
    pins = dict(zip((0, operators - 1), ends, strict=False))
    wanted = tuple(
        Wanted(
            name=f"op-{at}", upstream=(at - 1,) if at else (),
            nodes=(to_bytes(id_of(pins[at])),) if at in pins else (),
        )
        for at in range(operators)
    )  # fmt: skip
    return Announce(application=name, zone="north", operators=wanted)


async def placements(client: DatagramClient, owners: dict[str, int]) -> dict[str, PlacementIs]:
    found = {}
    for name, owner in owners.items():
        asked = AskPlacement(application=name)

        def answering(answer: PlacementIs, name: str = name, owner: int = owner) -> int | None:
            return owner if answer.application == name else None

        answers = await told(client, [owner], asked, PlacementIs, answering)
        found[name] = answers[owner]
    return found


@pytest.mark.long
def test_applications_are_placed_though_their_scheduler_is_killed_meanwhile(agents: Agents):
    for number in range(NODES):
        agents.start(f"node-{number}", capacity=CAPACITY)

    async def work(client: DatagramClient) -> None:
        before = await joined(client, agents)
        schedulers = [number for number, one in before.items() if one.schedules]
        others = [number for number in agents.running if number not in schedulers]
        names = [agents.names[number] for number in others]
        announced = {
            chain(f"app-{at}", OPERATORS, names[at], names[-1 - at]): others[at % len(others)]
            for at in range(APPLICATIONS)
        }
        owners = {one.application: owner for one, owner in announced.items()}
        placing = asyncio.create_task(place_all(client, announced, 60))
        while not client.received.qsize() and not placing.done():  # the first owner has answered
            await asyncio.sleep(0)
        assert not placing.done()
        for number in schedulers:
            agents.end(number)
        document = await placing
        assert {one["status"] for one in document["applications"]} == {"placed"}, document
        await until_right(client, agents, owners)

    agents.ask(work, 110)


async def until_right(client: DatagramClient, agents: Agents, owners: dict[str, int]) -> None:
    """All are placed on nodes that live, each operator once, and no node holds more than it can."""
    until = time.monotonic() + 60
    while True:
        found = await placements(client, owners)
        held = await rooms(client, agents)
        assert all(one.held <= one.capacity for one in held.values())
        hosted = Counter((room, name) for name, one in held.items() for room in one.operators)
        wanted = {((name, one.operator), one.machine) for name, told in found.items() for one in told.hosts}
        placed = all(one.status == "placed" and len(one.hosts) == OPERATORS for one in found.values())
        if placed and hosted == dict.fromkeys(wanted, 1):
            return
        assert time.monotonic() < until, (found, hosted)
        await asyncio.sleep(0.3)


@pytest.mark.long
def test_commands_place_refuse_and_end(agents: Agents, tmp_path: Path):
    first = agents.start("node-0", capacity=3)
    agents.start("node-1", capacity=3)
    agents.ask(lambda client: joined(client, agents))
    file = tmp_path / "apps.json"
    file.write_text(json.dumps({
        "fits": [{"name": "a", "nodes": ["node-1"]}, {"name": "b", "reads": ["a"]}],
        "large": [{"name": f"o{at}", "reads": [f"o{at - 1}"] if at else []} for at in range(7)],
    }))  # fmt: skip
    done = command(agents, "place", agents.address(first), str(file), "--output", "json")
    assert done.returncode == 1, done.stderr
    told = {one["application"]: one for one in json.loads(done.stdout)["applications"]}
    assert told["fits"]["status"] == "placed" and told["fits"]["hosts"]["a"] == "node-1"
    assert (
        told["large"]["status"] == "refused"
        and "reaches 2 nodes by leaf sets, and they are full" in told["large"]["why"]
    )
    status = json.loads(command(agents, "status", agents.address(first), "--output", "json").stdout)
    assert status["name"] == "node-0" and {"application": "fits", "status": "placed"} in status["owned"]
    assert command(agents, "end", agents.address(first), "fits").returncode == 0
    again = command(agents, "end", agents.address(first), "fits")
    assert again.returncode == 2 and "owns no application 'fits'" in again.stderr


@pytest.mark.long
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_an_agent_that_is_stopped_leaves_the_overlay(agents: Agents, sign: signal.Signals):
    first, second = agents.start("node-0", capacity=1), agents.start("node-1", capacity=1)
    agents.ask(lambda client: joined(client, agents))
    assert agents.end(first, sign) == 0
    states = agents.ask(lambda client: joined(client, agents))  # it knows no other one at once
    assert states[second].leaves == () and "Traceback" not in agents.log(first)


@pytest.mark.long
def test_a_name_that_is_taken_ends_the_agent_with_the_reason(agents: Agents):
    agents.start("node-0", capacity=1)
    agents.ask(lambda client: joined(client, agents))
    twin = agents.start("node-0", capacity=1)
    assert agents.running[twin].wait(20) == 2
    assert "has it already. Give this node a name of its own" in agents.log(twin)


def test_an_agent_of_another_secret_is_not_heard(agents: Agents, tmp_path: Path):
    first = agents.start("node-0", capacity=1)
    agents.ask(lambda client: joined(client, agents))
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"agent_secret": KEY[::-1]}))
    other.chmod(0o600)
    agents.secrets = other
    done = command(agents, "status", agents.address(first))
    assert done.returncode == 2 and "does not answer" in done.stderr


def command(agents: Agents, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`leeward overlay ...` to its end."""
    line = [str(Path(sys.executable).with_name("leeward")), "overlay", *arguments, "--secrets", str(agents.secrets)]
    return subprocess.run(line, capture_output=True, text=True, timeout=60)


@pytest.mark.long
@pytest.mark.parametrize("between", [("loopback",), pytest.param(("loopback", "2 to 10 ms"), marks=NETWORK)])
def test_the_experiment_of_agents_as_processes_runs(between: tuple[str, ...], tmp_path: Path):
    base = port_block()
    line = [str(Path(sys.executable).with_name("leeward")), "experiment", "agiledart-live-deployment", "--quick"]
    line += ["--no-nimbus", *(["--no-network"] if len(between) == 1 else []), "--dir", str(tmp_path / "net")]
    line += ["--base-port", str(base), "--out", str(tmp_path), "--output", "json"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    placed = {row["setting"]: row["ours"] for row in rows if row["metric"] == "applications that are placed"}
    assert placed == {
        f"12 processes, {one}, {count} at once, mean of {runs}": 100.0
        for one in between for count, runs in ((1, 3), (10, 1))
    }  # fmt: skip
    assert [row["ours"] for row in rows if row["metric"] == "agents that held more than they can"] == [0]
    assert namespaces.left(tmp_path / "net" / "network") == []


@pytest.mark.long
def test_letters_of_a_policy_reach_the_agent_and_a_lost_one_gives_no_answer(agents: Agents):
    number = agents.start("node-0", capacity=4)
    agents.ask(lambda client: joined(client, agents))
    post = DatagramPost(KINDS, address_of(number), agents.key.encode())
    silent = DatagramPost(KINDS, address_of(free_number()), agents.key.encode())
    try:
        letters = [Letter(0, chain("app", 3), answered=True)]
        until = time.monotonic() + 20
        while not (placed := [told for _, told in post.exchange(letters) if told.status == "placed"]):
            assert time.monotonic() < until
            letters = [Letter(0, AskPlacement(application="app"), answered=True)]
        assert [one.machine for one in placed[0].hosts] == ["node-0"] * 3
        assert post.exchange([Letter(0, Over(application="other"), answered=False)]) == []
        late = [told for _, told in post.exchange([Letter(0, AskRooms(), answered=True)])]
        assert all(told.application in ("app", "other") for told in late if isinstance(told, PlacementIs))
        assert silent.exchange(letters) == []
    finally:
        post.close()
        silent.close()
