"""Peers over sockets within one process: every path of the shell, and the command's own functions."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from leeward.adapters import peers as shell
from leeward.adapters.frames import LENGTH, Sealer
from leeward.adapters.peers import AskTraffic, PeerClient, PeerProcess
from leeward.cli import agent as command
from leeward.core.errors import LeewardError
from leeward.policies.bimodal.mapping.agent import Agent, Times
from leeward.policies.bimodal.mapping.messages import KINDS, Ack, Asked, Told
from leeward.policies.bimodal.mapping.rules import METHODS
from leeward.policies.bimodal.model.agents_file import Agents, agents_from_json
from tests.helpers.bimodal_agents import SECRET, document, task
from tests.helpers.servers import port_block

KEY = SECRET.encode()
TIMES = Times(lease=3.0, renewal=1.0, probe=0.5, mapping=1.0, silence=3.0, gossip=0.1)


def agents() -> Agents:
    return agents_from_json(document(port_block()))


def processes(known: Agents, method: str) -> dict[int, PeerProcess]:
    everyone = tuple(sorted(known.addresses))
    return {
        v: PeerProcess(
            Agent(v, known.network.around(v), method=METHODS[method], times=TIMES, peers=everyone),
            KINDS, known.addresses, KEY, seed=v, tick_s=0.05,
        )
        for v in everyone
    }  # fmt: skip


def run(known: Agents, method: str, then: Callable[[dict[int, PeerProcess]], Awaitable[None]]) -> None:
    """Start all, do that, and end all."""

    async def work() -> None:
        stop, started = asyncio.Event(), processes(known, method)
        tasks = [asyncio.create_task(process.run(stop)) for process in started.values()]
        try:
            await asyncio.sleep(1.0)  # gossip goes round
            await then(started)
        finally:
            stop.set()
            await asyncio.gather(*tasks)

    asyncio.run(asyncio.wait_for(work(), 60))


@pytest.mark.parametrize("method", ["survey", "least-cost"])
def test_tasks_are_mapped_and_ended_by_the_command_s_own_functions(method: str):
    known = agents()
    wanted = command._tasks_of([task("a"), task("b"), task("c")])

    async def then(_: dict[int, PeerProcess]) -> None:
        found = await command.map_all(known, wanted, KEY, 20.0)
        assert [one["status"] for one in found["tasks"]].count("running") <= 2
        first = found["tasks"][0]
        assert found["dropped"] == 0 and found["frames_per_task"] > 0 and {"servers", "cost"} <= first.keys()
        assert await command.holding(known, KEY) != []
        running = {one["task"]: 3 for one in found["tasks"] if one["status"] == "running"}
        await command.end_all(known, running, KEY)
        for _ in range(100):
            if not await command.holding(known, KEY):
                break
            await asyncio.sleep(0.1)
        else:
            raise AssertionError("something is still reserved")
        with pytest.raises(LeewardError, match="knows no task 'other'"):
            await command.end_all(known, {"other": 3}, KEY)

    run(known, method, then)


def test_a_client_that_waits_too_long_is_told_what_for():
    known = agents()

    async def then(started: dict[int, PeerProcess]) -> None:
        portal = started[3].peer
        portal.submit = lambda task, now: []  # it never begins
        with pytest.raises(LeewardError, match=r"no answer for a in 0\.3 s"):
            await command.map_all(known, command._tasks_of([task("a")]), KEY, 0.3)

    run(known, "survey", then)


def test_a_client_with_another_secret_is_told_and_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shell, "ANSWER_S", 0.3)
    known = agents()

    async def then(_: dict[int, PeerProcess]) -> None:
        with pytest.raises(LeewardError, match=r"gives no answer\. Give the secret"):
            await command.ways_of(known, b"another key of some length")

    run(known, "survey", then)


def test_faulty_frames_are_counted_by_kind_and_the_connection_of_a_senseless_length_is_closed():
    known = agents()
    forged = Sealer(KINDS, b"another key of some length", 2, 1).seal(Ack(task="t", turn=1, last=True))
    told = Sealer((*shell.COMMON, *KINDS), KEY, -7, 1).seal(Told(task="t", status="", walk=None))

    async def then(started: dict[int, PeerProcess]) -> None:
        for frame in (forged, told, told, LENGTH.pack(2**31) + b"x"):
            reader, writer = await asyncio.open_connection(*known.addresses[3])
            writer.write(frame)
            if frame.startswith(LENGTH.pack(2**31)):
                assert await reader.read() == b"", "it is closed"
            writer.close()
        client = PeerClient(KINDS, known.addresses, KEY)
        for _ in range(50):
            dropped = (await client.ask(3, AskTraffic())).dropped
            if sum(dropped.values()) >= 3:
                break
            await asyncio.sleep(0.05)
        assert dropped == {"forged": 1, "repeated": 1, "malformed": 1}
        client.close()

    run(known, "survey", then)


def test_frames_to_a_server_that_is_away_are_given_up_and_counted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shell, "RETRY_S", 0.01)
    monkeypatch.setattr(shell, "TRIES", 3)
    monkeypatch.setattr(shell, "WAITING", 2)
    known = agents()

    async def work() -> None:
        stop, alone = asyncio.Event(), processes(known, "survey")[0]
        running = asyncio.create_task(alone.run(stop))
        for _ in range(200):
            await asyncio.sleep(0.05)
            if alone.traffic.dropped["unsent"]:
                break
        stop.set()
        await running
        assert alone.traffic.dropped["unsent"] and alone.traffic.sent == 0
        client = PeerClient(KINDS, known.addresses, KEY)
        with pytest.raises(LeewardError, match="does not answer"):
            await client.ask(5, Asked(task=""))

    asyncio.run(asyncio.wait_for(work(), 60))


def test_an_address_that_is_taken_is_an_error():
    known = agents()
    with contextlib.closing(socket.create_server(known.addresses[0])), pytest.raises(OSError, match="in use"):
        asyncio.run(processes(known, "survey")[0].run(asyncio.Event()))


def leeward(*words: str) -> Any:
    app = typer.Typer()
    command.register(app)
    return CliRunner().invoke(app, ["agent", *words])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.update(format="x"), "format"),
        (lambda d: d.update(direction="up"), "direction"),
        (lambda d: d["servers"][0].update(address="nowhere"), "servers[0].address"),
        (lambda d: d["servers"][0].pop("address"), "servers[0].address"),
        (lambda d: d["links"][0].update(a=99), "links[0]"),
    ],
)
def test_a_file_of_agents_with_a_wrong_field_is_refused_by_its_name(
    tmp_path: Path, change: Callable[[dict[str, Any]], None], says: str
):
    wrong = document(20_000)
    change(wrong)
    (file := tmp_path / "agents.json").write_text(json.dumps(wrong))
    (secret := tmp_path / "secret").write_text(SECRET)
    done = leeward("run", str(file), "--secret", str(secret), "--server", "0")
    assert done.exit_code == 2 and says in done.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--server", "9"], "there is no such server"),
        ([], "which agent is not clear"),
        (["--server", "1", "--method", "best"], "it is unknown"),
        (["--server", "1", "--cluster", "nowhere"], "server 1 has no node"),
        (["--all", "--cluster", "nowhere"], "server 0 has no node"),
    ],
)
def test_wrong_options_are_refused(tmp_path: Path, words: list[str], says: str):
    (file := tmp_path / "agents.json").write_text(json.dumps(document(20_000)))
    (secret := tmp_path / "secret").write_text(SECRET)
    done = leeward("run", str(file), "--secret", str(secret), *words)
    assert done.exit_code == 2 and says in done.output


def test_wrong_tasks_are_refused_before_anything_is_sent(tmp_path: Path):
    (file := tmp_path / "agents.json").write_text(json.dumps(document(20_000)))
    (secret := tmp_path / "secret").write_text(SECRET)
    for change, says in (
        ({"services": [0, 7]}, "service 7 is hosted nowhere"),
        ({"source": 44}, "there is no such server"),
        ({"price": 0}, "task.price"),
    ):
        (tasks := tmp_path / "task.json").write_text(json.dumps(task() | change))
        done = leeward("map", str(file), str(tasks), "--secret", str(secret))
        assert done.exit_code == 2 and says in done.output, done.output


def test_all_agents_of_a_machine_end_with_an_error_if_one_of_them_ends(tmp_path: Path):
    base = port_block()
    (file := tmp_path / "agents.json").write_text(json.dumps(document(base)))
    (secret := tmp_path / "secret").write_text(SECRET)
    words = [sys.executable, "-m", "leeward", "agent", "run", str(file), "--secret", str(secret), "--all"]
    with contextlib.closing(socket.create_server(("127.0.0.1", base + 3))):
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "server 3: " in done.stderr and "agent of server 3 has ended" in done.stderr
    for server in range(6):  # the others are gone, too
        socket.create_server(("127.0.0.1", base + server)).close()


def test_sigterm_ends_all_agents_of_a_machine(tmp_path: Path):
    base = port_block()
    (file := tmp_path / "agents.json").write_text(json.dumps(document(base)))
    (secret := tmp_path / "secret").write_text(SECRET)
    words = [sys.executable, "-m", "leeward", "agent", "run", str(file), "--secret", str(secret), "--all"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None and "6 agents run" in running.stderr.readline()
        running.terminate()
        assert running.wait(30) == 0
