"""A peer whose tick fails ends its process with that error: without a clock it would be there and do nothing."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from leeward.adapters.datagrams import DatagramProcess, number_of
from leeward.adapters.peers import PeerProcess
from leeward.core.secrets import Secrets
from leeward.wire.secrets import write_secrets
from tests.helpers.bimodal_agents import SECRET, document
from tests.helpers.servers import port_block

LONG_S = 60


class Failing:
    """Its third tick fails, of all that would follow."""

    def __init__(self, me: int) -> None:
        self.me, self.ticks = me, 0

    def tick(self, now, rng):
        self.ticks += 1
        if self.ticks == 3:
            raise KeyError("one bad tick")
        return []


def over_udp(port: int) -> DatagramProcess:
    return DatagramProcess(Failing(number_of("127.0.0.1", port)), (), SECRET.encode(), seed=1, tick_s=0.001)


def over_tcp(port: int) -> PeerProcess:
    return PeerProcess(Failing(1), (), {1: ("127.0.0.1", port)}, SECRET.encode(), seed=1, tick_s=0.001)


@pytest.mark.parametrize("process", [over_udp, over_tcp])
def test_a_tick_that_fails_ends_the_process_and_frees_its_address(process):
    async def work() -> None:
        port = port_block()
        for _ in range(2):
            with pytest.raises(KeyError, match="one bad tick"):
                await asyncio.wait_for(process(port).run(asyncio.Event()), LONG_S)
        assert len(asyncio.all_tasks()) == 1, "this one alone"

    asyncio.run(work())


@pytest.mark.parametrize("process", [over_udp, over_tcp])
def test_a_process_that_is_told_to_end_makes_no_more_ticks(process):
    async def work() -> None:
        stop, begun = asyncio.Event(), process(port_block())
        stop.set()
        await asyncio.wait_for(begun.run(stop), LONG_S)
        assert begun.peer.ticks == 0

    asyncio.run(work())


BIMODAL, OVERLAY = "leeward.policies.bimodal.mapping.agent", "leeward.policies.agiledart.deployment.agent"
#: The command, with an agent that is at fault.
FAULTY = "from {} import Agent; Agent.tick = lambda *about: 1 / 0; from leeward.cli import app; app()"


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (BIMODAL, ["agent", "run", "agents.json", "--secret", "secret", "--server", "3"]),
        (OVERLAY, ["overlay", "serve", "127.0.0.1:PORT", "--secrets", "secrets.json"]),
    ],
)
def test_a_command_whose_agent_fails_ends_with_the_error(tmp_path: Path, agent: str, words: list[str]):
    port = port_block()
    (tmp_path / "agents.json").write_text(json.dumps(document(port)))
    (tmp_path / "secret").write_text(SECRET)
    write_secrets(tmp_path / "secrets.json", Secrets(agent_secret=SECRET))
    command = [sys.executable, "-c", FAULTY.format(agent), *(word.replace("PORT", str(port)) for word in words)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=LONG_S)
    assert done.returncode == 1 and "ZeroDivisionError: division by zero" in done.stderr, done.stderr
