"""On a real Storm: a domain hands its subtasks to a topology; each is answered once and right through its changes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from bolts.sensing.sense import reading
from leeward.core.asks import answers_of, asks_of
from leeward.core.table import replicas
from leeward.local.places import checkout
from tests.cluster.asking import CALIBRATE, LEAST, NODES
from tests.cluster.builders import scaled
from tests.cluster.harness import LONG_S, Running, Stage, await_
from tests.helpers.servers import port_block

STREAM = "greenhouse"


@pytest.fixture
def sensing(stage_: Stage) -> Iterator[Running]:
    options = [f"sensing.stream={STREAM}", "leeward.service_times=emulated"]
    with stage_.submitted("sensing", "sensing", stage_.query1_jar(), checkout(), options, workers=2) as running:
        yield running


class Asking:
    """The domain and the queries, as `tests.cluster.asking` runs them."""

    def __init__(self, stage: Stage, out: Path) -> None:
        self.out = out
        command = [sys.executable, "-m", "tests.cluster.asking", stage.cluster.redis_url, STREAM, str(port_block())]
        secrets = {"LEEWARD_SECRETS": str(stage.cluster.secrets_file)}
        with (out / "asking.log").open("w") as log:
            self.process = subprocess.Popen(
                [*command, str(out)], stdout=log, stderr=log, cwd=checkout(), env=os.environ | secrets
            )  # fmt: skip

    def answers(self) -> list[dict]:
        file = self.out / "answers.jsonl"
        text = file.read_text() if file.exists() else ""
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def await_more(self, count: int) -> None:
        """So many answers from now on."""
        goal = len(self.answers()) + count

        def come() -> bool:
            assert self.process.poll() is None, (self.out / "asking.log").read_text()
            return len(self.answers()) >= goal

        await_(come, f"{goal} answers", LONG_S)

    def ended(self) -> list[dict]:
        """All answers, after the last query."""
        (self.out / "stop").touch()
        assert self.process.wait(LONG_S) == 0, (self.out / "asking.log").read_text()
        return self.answers()


@pytest.fixture
def asking(stage_: Stage, sensing: Running, tmp_path: Path) -> Iterator[Asking]:
    asking = Asking(stage_, tmp_path)
    try:
        yield asking
    finally:
        if asking.process.poll() is None:
            asking.process.send_signal(signal.SIGINT)
            asking.process.wait(60)


def once_and_right(answers: list[dict], client: redis.Redis) -> None:
    """Each query got both readings, and each ask one answer."""
    assert len(answers) >= LEAST
    assert not [one for one in answers if one["missing"] or one["failed"] or one["count"] != NODES]
    assert sorted(one["mean"] for one in answers) == pytest.approx(sorted(map(reading, range(len(answers)))))
    assert all(one["least"] == one["most"] for one in answers)
    ids = Counter(fields[b"id"] for _, fields in client.xrange(answers_of(STREAM)))
    assert len(ids) == ids.total() == NODES * (CALIBRATE + len(answers))


@pytest.mark.timeout(500)
def test_subtasks_flow_through_a_handover_and_a_restart(sensing: Running, asking: Asking, stage_: Stage):
    with sensing.pilot(mode="live") as pilot:
        asking.await_more(30)
        assert len(replicas(sensing.record().tables["sense"])) == 1
        ended = pilot.reconfigure(scaled("sense", 2))
        assert (ended["kind"], ended["result"]) == ("handover", "done"), pilot.events.all
        assert replicas(sensing.record().tables["sense"]) == tuple(sensing.tasks("sense")[:2])
        assert not pilot.events.named("reset", "alert", "checkpoint_failed")
        asking.await_more(30)

        os.kill(sensing.owner_pid("sense"), signal.SIGKILL)
        pilot.await_event("reset")
        asking.await_more(30)
        with stage_.cluster.open_redis() as client:
            once_and_right(asking.ended(), client)
            await_(lambda: not client.xlen(asks_of(STREAM)), "a checkpoint to remove the asks", 60)
