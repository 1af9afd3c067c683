"""A topology on a real Storm whose checkpoints are in fragments at agents: what was lost comes back from them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from leeward.core.control import Phase
from tests.cluster.harness import COUNTING, Pilot, Running, Stage, await_
from tests.cluster.tally import KEYS, Stream
from tests.helpers import overlay_agents
from tests.helpers.fragment_agents import Agents, fragments
from tests.helpers.servers import port_block

pytestmark = pytest.mark.timeout(400)


def cuts(agents: Agents) -> set[str]:
    """That the agents which no test kills have fragments of."""
    return {path.parent.name for number in range(2, 7) for path in agents.files(number)}


@contextmanager
def counting(stage_: Stage, name: str, out: Path, agents: str) -> Iterator[tuple[Running, Pilot]]:
    """The counting topology, with its checkpoints at these agents."""
    options = [
        "counting.rate=200", f"counting.keys={KEYS}", f"counting.out={out}", "leeward.state.store=agiledart",
        f"leeward.state.agents={agents}",
    ]  # fmt: skip
    with stage_.submitted("counting", name, stage_.project_jar(COUNTING), COUNTING, options, 3) as running:
        running.stream = Stream(out)
        running.stream.flow(100, timeout_s=150)
        with running.pilot() as pilot:
            yield running, pilot


def lose_the_count(running: Running, pilot: Pilot) -> None:
    """Its process is killed, and all tasks restore a cut."""
    mark = len(pilot.events.all)
    os.kill(running.owner_pid("count"), signal.SIGKILL)
    assert pilot.await_event("reset", since=mark)["cut"] > 0
    await_(lambda: pilot.idle and running.record().phase is Phase.RUN, "the topology to run")
    running.stream.settled(400)


def test_state_comes_back_from_fragments_when_k_agents_have_failed(stage_: Stage, tmp_path):
    redis = stage_.cluster.open_redis()
    with (
        Agents(tmp_path / "agents", 7, secrets_file=stage_.cluster.secrets_file) as agents,
        counting(stage_, "fragments", tmp_path / "fragments.out", ",".join(agents.addresses)) as (running, pilot),
    ):
        pilot.checkpoint()
        first = cuts(agents)
        assert first and not redis.keys(f"leeward:{running.id}:cut:*:count")
        agents.kill(0)
        agents.kill(1)
        lose_the_count(running, pilot)
        pilot.checkpoint(4)
        await_(lambda: not first & cuts(agents), "the first cuts to be deleted at the agents")


@pytest.mark.slow  # tests/contract/test_fragments_nearby.py does it with processes
def test_state_comes_back_from_the_leaf_set_of_an_agent_and_goes_to_one_that_joins(stage_: Stage, tmp_path):
    overlay = overlay_agents.Agents(
        tmp_path, heartbeat_s=0.5, secrets=stage_.cluster.secrets_file, base_port=port_block()
    )

    def start(name: str) -> int:
        return overlay.start(name, capacity=1, options=("--fragments", str(tmp_path / f"{name}.kept")))

    def keeps(number: int) -> list[Path]:
        return fragments(tmp_path / f"{overlay.names[number]}.kept")

    try:
        asked, *others = (start(f"agent-{number}") for number in range(9))
        overlay.ask(lambda client: overlay_agents.joined(client, overlay))
        near = f"near:{overlay.address(asked)}"
        with counting(stage_, "nearby", tmp_path / "nearby.out", near) as (running, pilot):
            pilot.checkpoint()
            holders = [number for number in others if keeps(number)]
            assert len(holders) == 6 and not keeps(asked)
            for number in holders[:2]:
                overlay.end(number)
            lose_the_count(running, pilot)
            for number in others:  # the next checkpoint has no one but the new ones and the four that are left
                if number not in holders:
                    overlay.end(number)
            fresh = [start(f"new-{number}") for number in range(2)]
            overlay.ask(lambda client: overlay_agents.joined(client, overlay))
            pilot.checkpoint(2)
            assert all(keeps(number) for number in fresh)
            lose_the_count(running, pilot)
    finally:
        overlay.end_all()
