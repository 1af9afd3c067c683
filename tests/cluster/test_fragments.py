"""A topology on a real Storm whose checkpoints are in fragments at agents: what was lost comes back from them."""

from __future__ import annotations

import os
import signal
from importlib.metadata import EntryPoint, entry_points

import pytest

from leeward.core.control import Phase
from leeward.local import topology_jar
from tests.cluster.harness import COUNTING, Stage, await_
from tests.cluster.tally import KEYS, Stream
from tests.fragment_agents import Agents

SCHEME = "leeward.policies.agiledart.recovery.scheme:Fragments"
pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def jar(stage_: Stage, monkeypatch: pytest.MonkeyPatch):
    """With the modules of the scheme, as of an installed package."""

    def points(group, **which):
        return (
            [EntryPoint("scheme", SCHEME, group)] if group == "leeward.stores" else entry_points(group=group, **which)
        )

    monkeypatch.setattr(topology_jar, "entry_points", points)
    topology_jar.store_files.cache_clear()
    path = stage_.project_jar(COUNTING)
    path.unlink()
    yield stage_.project_jar(COUNTING)
    path.unlink()
    topology_jar.store_files.cache_clear()


def cuts(agents: Agents) -> set[str]:
    """That the agents which no test kills have fragments of."""
    return {path.parent.name for number in range(2, 7) for path in agents.files(number)}


def test_state_comes_back_from_fragments_when_k_agents_have_failed(stage_: Stage, jar, tmp_path):
    out, redis = tmp_path / "fragments.out", stage_.cluster.open_redis()
    with Agents(tmp_path / "agents", 7, secrets_file=stage_.cluster.secrets_file) as agents:
        options = [
            "counting.rate=200", f"counting.keys={KEYS}", f"counting.out={out}", f"leeward.state.store={SCHEME}",
            f"leeward.state.agents={','.join(agents.addresses)}",
        ]  # fmt: skip
        with stage_.submitted("counting", "fragments", jar, COUNTING, options, 3) as running:
            running.stream = Stream(out)
            running.stream.flow(100, timeout_s=150)
            with running.pilot() as pilot:
                pilot.checkpoint()
                first = cuts(agents)
                assert first and not redis.keys(f"leeward:{running.id}:cut:*:count")
                agents.kill(0)
                agents.kill(1)
                mark = len(pilot.events.all)
                os.kill(running.owner_pid("count"), signal.SIGKILL)
                assert pilot.await_event("reset", since=mark)["cut"] > 0
                await_(lambda: pilot.idle and running.record().phase is Phase.RUN, "the topology to run")
                running.stream.settled(400)
                pilot.checkpoint(4)
                await_(lambda: not first & cuts(agents), "the first cuts to be deleted at the agents")
