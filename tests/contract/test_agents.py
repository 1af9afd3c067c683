"""Agents of bi-modal links as processes: tasks are mapped over sockets, faulty frames dropped, a dead one avoided."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from leeward.adapters.frames import LENGTH, Sealer
from leeward.adapters.peers import AskTraffic, PeerClient
from leeward.adapters.post import PeerPost
from leeward.cli.agent import _tasks_of, holding
from leeward.core.peers import Directory, Letter
from leeward.policies.bimodal.mapping.messages import KINDS, Ack, Asked, Submit
from leeward.policies.bimodal.model.agents_file import Agents, agents_from_json
from tests.helpers.bimodal_agents import SECRET, document, task
from tests.helpers.servers import port_block
from tests.helpers.waiting import wait_for

LEASE_S = 3.0
LEEWARD = [sys.executable, "-m", "leeward"]


class Running:
    """The agents of one file, each a process of its own."""

    def __init__(self, folder: Path, method: str) -> None:
        self.folder, self.method = folder, method
        self.file, self.secret = folder / "agents.json", folder / "secret"
        self.file.write_text(json.dumps(document(port_block())))
        self.secret.write_text(SECRET)
        self.agents: Agents = agents_from_json(json.loads(self.file.read_text()))
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, server: int) -> None:
        words = ["agent", "run", str(self.file), "--secret", str(self.secret), "--server", str(server)]
        options = ["--method", self.method, "--lease", str(LEASE_S)]
        self.processes[server] = subprocess.Popen([*LEEWARD, *words, *options], start_new_session=True)

    def stop(self, server: int, sign: int = signal.SIGTERM) -> int:
        process = self.processes.pop(server)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        return process.wait(10)

    def leeward(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*LEEWARD, "agent", *words], capture_output=True, text=True, timeout=60)

    def map(self, *tasks: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        file = self.folder / "tasks.json"
        file.write_text(json.dumps(list(tasks)))
        done = self.leeward("map", str(self.file), str(file), "--secret", str(self.secret), "--output", "json")
        assert done.returncode in (0, 1), done.stderr
        return done.returncode, json.loads(done.stdout)

    def ask(self, server: int, message: object) -> Any:
        async def ask() -> Any:
            client = PeerClient(KINDS, self.agents.addresses, SECRET.encode(), number=-2)
            try:
                return await client.ask(server, message)
            finally:
                client.close()

        return asyncio.run(ask())

    def holding(self) -> list[int]:
        alive = {v: address for v, address in self.agents.addresses.items() if v in self.processes}
        return asyncio.run(holding(Agents(network=self.agents.network, addresses=alive, nodes={}), SECRET.encode()))


@pytest.fixture(params=["survey", "least-cost"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path, request.param)
    for server in running.agents.addresses:
        running.start(server)
    try:
        asyncio.run(holding(running.agents, SECRET.encode()))  # all are there
        time.sleep(3)  # gossip has gone round
        yield running
    finally:
        for server in list(running.processes):
            running.stop(server)


@pytest.mark.timeout(120)
def test_a_task_is_mapped_a_second_one_takes_the_other_way_and_a_third_has_to_wait(run: Running):
    code, found = run.map(task("a"))
    assert code == 0 and found["tasks"][0]["status"] == "running" and found["frames_per_task"] > 0
    first = found["tasks"][0]["servers"]
    shown = run.leeward("ways", str(run.file), "--secret", str(run.secret))
    assert shown.returncode == 0 and f"a hop 0: 0 to {first[0]} over 0 - {first[0]}" in shown.stdout, shown.stdout
    code, found = run.map(task("b"))
    assert code == 0
    assert sorted([*first, *found["tasks"][0]["servers"]]) == [1, 2, 4, 5], "the other two servers"
    code, found = run.map(task("c"))
    assert code == 1 and found["tasks"][0]["status"] == "refused"
    assert run.leeward("end", str(run.file), "a", "3", "--secret", str(run.secret)).returncode == 0
    wait_for(lambda: run.ask(0, Asked(task="")).held == 1, 5)
    code, found = run.map(task("d"))
    assert code == 0 and found["tasks"][0]["servers"] == first
    for name in ("b", "d"):
        run.leeward("end", str(run.file), name, "3", "--secret", str(run.secret))
    wait_for(lambda: run.holding() == [], 5)


@pytest.mark.timeout(120)
def test_a_policys_letters_are_answered_but_for_an_agent_that_is_away(run: Running):
    post = PeerPost(Directory(kinds=KINDS, addresses=run.agents.addresses, key=SECRET.encode()))
    questions = [Letter(server, Asked(task="t"), answered=True) for server in (2, 3)]
    submitted = Letter(3, Submit(spec=_tasks_of([task("t")])[0]), answered=False)
    assert [(server, told.status) for server, told in post.exchange(questions)] == [(2, ""), (3, "")]
    wait_for(lambda: [told.status for _, told in post.exchange([submitted, questions[1]])] == ["running"], 10)
    run.stop(2, signal.SIGKILL)
    for seconds in (2.5, 0.5):  # it is waited for once, and then left alone for a while
        began = time.monotonic()
        assert [server for server, _ in post.exchange(questions)] == [3]
        assert time.monotonic() - began < seconds


@pytest.mark.timeout(120)
def test_frames_without_the_secret_are_dropped_and_counted_and_the_agent_serves_on(run: Running):
    host, port = run.agents.addresses[3]
    forged = Sealer(KINDS, b"not the secret of the others", 2, 1).seal(Ack(task="t", turn=1, last=True))
    for frame in (forged, LENGTH.pack(40) + b"x" * 40, LENGTH.pack(2**31)):
        with socket.create_connection((host, port), 5) as connection:
            connection.sendall(frame)
    wait_for(lambda: sum(run.ask(3, AskTraffic()).dropped.values()) == 3, 5)
    assert run.ask(3, AskTraffic()).dropped == {"forged": 2, "malformed": 1}
    assert run.map(task())[0] == 0


@pytest.mark.timeout(120)
def test_a_server_that_is_killed_is_left_out_and_nothing_stays_reserved(run: Running):
    _, found = run.map(task("a"))
    lost, rest = found["tasks"][0]["servers"][0], {1, 2, 4, 5} - set(found["tasks"][0]["servers"])
    run.stop(lost, signal.SIGKILL)

    def mapped_again() -> bool:
        told = run.ask(3, Asked(task="a"))
        return told.status == "running" and lost not in [visit.at for visit in told.walk.visits]

    wait_for(mapped_again, 10 * LEASE_S)
    told = run.ask(3, Asked(task="a"))
    assert {visit.at for visit in told.walk.visits if visit.ran} == rest
    run.leeward("end", str(run.file), "a", "3", "--secret", str(run.secret))
    wait_for(lambda: run.holding() == [], 3 * LEASE_S)
    run.start(lost)
    wait_for(lambda: run.map(task("b"))[0] == 0, 20)


def test_sigterm_ends_an_agent_in_order(run: Running):
    assert run.stop(0) == 0
    run.start(0)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--server", "9"], "there is no such server"),
        ([], "which agent is not clear"),
        (["--server", "1", "--all"], "which agent is not clear"),
        (["--server", "1", "--method", "best"], "it is unknown"),
    ],
)
def test_wrong_options_are_told(tmp_path: Path, words: list[str], says: str):
    running = Running(tmp_path, "survey")
    done = running.leeward("run", str(running.file), "--secret", str(running.secret), *words)
    assert done.returncode == 2 and says in done.stderr
    (tmp_path / "short").write_text("abc")
    done = running.leeward("run", str(running.file), "--secret", str(tmp_path / "short"), "--server", "1")
    assert done.returncode == 2 and "the secret has 3 bytes" in done.stderr


def test_a_task_that_no_network_can_carry_is_refused_by_its_bound(tmp_path: Path):
    running = Running(tmp_path, "survey")
    (file := tmp_path / "task.json").write_text(json.dumps(task() | {"services": [0, 7]}))
    done = running.leeward("map", str(running.file), str(file), "--secret", str(running.secret))
    assert done.returncode == 2 and "service 7 is hosted nowhere" in done.stderr
