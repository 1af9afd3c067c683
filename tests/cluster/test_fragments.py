"""A topology on a real Storm whose checkpoints are in fragments at agents: what was lost comes back from them."""

from __future__ import annotations

import os
import signal

import pytest

from leeward.core.control import Phase
from tests.cluster.harness import COUNTING, Stage, await_
from tests.cluster.tally import KEYS, Stream
from tests.fragment_agents import Agents

pytestmark = pytest.mark.timeout(400)


def cuts(agents: Agents) -> set[str]:
    """That the agents which no test kills have fragments of."""
    return {path.parent.name for number in range(2, 7) for path in agents.files(number)}


def test_state_comes_back_from_fragments_when_k_agents_have_failed(stage_: Stage, tmp_path):
    out, redis = tmp_path / "fragments.out", stage_.cluster.open_redis()
    with Agents(tmp_path / "agents", 7, secrets_file=stage_.cluster.secrets_file) as agents:
        options = [
            "counting.rate=200", f"counting.keys={KEYS}", f"counting.out={out}", "leeward.state.store=agiledart",
            f"leeward.state.agents={','.join(agents.addresses)}",
        ]  # fmt: skip
        with stage_.submitted("counting", "fragments", stage_.project_jar(COUNTING), COUNTING, options, 3) as running:
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
