"""Query 1 on an hour of the real taxi data: what the sink wrote equals the reference, row by row, in spite of
reconfigurations and of processes that died. Spark's replay has tests of its own; here rows are written directly."""

from __future__ import annotations

import gzip
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from bolts.query1.reference import reference_rows
from bolts.reference import Result
from leeward.adapters.results import Results
from leeward.core.table import replicas
from leeward.dashboard.verdict import compare
from leeward.local.places import checkout
from leeward.replay.rows import judge
from tests.cluster.builders import moved, scaled, scaled_and_moved, swapped
from tests.cluster.harness import Running, Stage, await_
from tests.helpers.shared_folder import RIDES, needs

pytestmark = [pytest.mark.timeout(400), needs(RIDES)]
SOURCE, RESULTS = "real:in", "real:out"
#: Rows/s: the whole file in about half a minute, a hundred times as fast as it was driven.
RATE = 250


class Feed:
    """The file's rows, by dropoff, into the topology's stream."""

    def __init__(self, client: redis.Redis, file: Path) -> None:
        with gzip.open(RIDES, "rt") as rows:
            timed = [(judge(line), line) for line in map(str.rstrip, rows)]
        self.rows = sorted(((t, line) for t, line in timed if type(t) is int), key=lambda row: row[0])
        file.write_text("".join(f"{line}\n" for _, line in self.rows))
        self.reference: list[Result] = list(reference_rows([file], per="pulse"))
        self._redis = client
        self.sent = self._goal = 0
        self._thread = threading.Thread(target=self._send, daemon=True)
        self.error: Exception | None = None

    def send_to(self, share: float) -> None:
        """From now on send up to this share of the rows, at RATE."""
        self._goal = int(share * len(self.rows))
        if not self._thread.is_alive():
            self._thread.start()

    def await_share(self, share: float) -> None:
        """Until this share of the rows was sent."""
        await_(lambda: self.error or self.sent >= int(share * len(self.rows)), f"{share:.0%} of the rows to be sent")
        assert self.error is None, self.error

    def _send(self) -> None:
        try:
            for number, (dropoff, line) in enumerate(self.rows, start=1):
                time.sleep(1 / RATE)
                while number > self._goal:
                    time.sleep(0.05)
                self._redis.xadd(SOURCE, {"r": line, "t": dropoff, "w": time.time()}, id=f"{number}-0")
                self.sent = number
            self._redis.xadd(SOURCE, {"end": b"1"}, id=f"{self.sent + 1}-0")
        except Exception as error:
            self.error = error


@pytest.fixture
def feed(stage_: Stage, tmp_path: Path) -> Feed:
    with stage_.cluster.open_redis() as client:
        client.delete(SOURCE, RESULTS, f"{SOURCE}:progress", f"{SOURCE}:source")
    return Feed(stage_.cluster.open_redis(), tmp_path / "sorted.csv")


@pytest.fixture
def query1(stage_: Stage, feed: Feed) -> Iterator[Running]:
    options = [f"query1.in={SOURCE}", f"query1.out={RESULTS}", "leeward.service_times=none"]
    with stage_.submitted("query1", "real", stage_.query1_jar(), checkout(), options, workers=3) as running:
        yield running


def equals_the_reference(stage: Stage, feed: Feed) -> None:
    """Everything came, in order, once."""
    secrets = stage.cluster.secrets()
    results = Results(stage.cluster.redis_url, secrets=secrets, source=SOURCE, results=RESULTS)
    last = feed.reference[-1].number
    await_(lambda: (newest := results.newest(1)) and newest[-1].number >= last, f"result {last}")
    rows = results.all()
    verdict = compare([row.number for row in rows], [row.text for row in rows], [row.row for row in feed.reference])
    assert verdict.good, verdict
    assert [row.number for row in rows] == [row.number for row in feed.reference]


@pytest.mark.slow  # tests/cluster/test_migration.py restarts for each kind of change, in the pipeline too
def test_scale_out_and_move_in_the_middle(query1: Running, feed: Feed, stage_: Stage):
    with query1.pilot() as pilot:
        feed.send_to(0.6)
        feed.await_share(0.3)
        out = pilot.reconfigure(scaled_and_moved("count_by_window", 2))
        feed.send_to(0.9)
        feed.await_share(0.6)
        move = pilot.reconfigure(moved("partial_rank"))
        feed.send_to(1.0)
        assert [(event["result"], event["changes"][0]["kind"]) for event in (out, move)] == [
            ("done", "scale-out"),
            ("done", "move"),
        ]
        assert move["bytes_exported"] > 1000
        equals_the_reference(stage_, feed)
        assert not pilot.events.named("reset", "alert")


def test_handovers_all_the_way(query1: Running, feed: Feed, stage_: Stage):
    """Derived structures follow the groups, pulses cut as before, and nothing is restarted."""
    components = ("count_by_window", "partial_rank", "parser", "compute_route_id")
    single = ("metronome", "global_rank")
    with query1.pilot(mode="live") as pilot:
        feed.send_to(1.0)
        feed.await_share(0.1)
        while feed.sent < 0.9 * len(feed.rows):
            for component in (*components, *single):
                count = len(replicas(query1.record().tables[component])) % 3 + 1
                change = swapped(component) if component in single else scaled(component, count)
                ended = pilot.reconfigure(change)
                assert (ended["kind"], ended["result"]) == ("handover", "done")
        assert len(pilot.events.named("reconfiguration_ended")) >= 12
        equals_the_reference(stage_, feed)
        assert not pilot.events.named("reset", "alert")


@pytest.mark.slow  # tests/cluster/test_faults.py kills more of them, in the pipeline too
def test_a_task_and_a_worker_die_in_the_middle(query1: Running, feed: Feed, stage_: Stage):
    with query1.pilot() as pilot:
        feed.send_to(0.5)
        feed.await_share(0.3)
        pilot.checkpoint()
        os.kill(query1.owner_pid("count_by_window"), signal.SIGKILL)
        pilot.await_event("reconfiguration_ended")
        feed.send_to(0.9)
        feed.await_share(0.6)
        pilot.checkpoint()
        mark = len(pilot.events.all)
        os.kill(query1.owner_worker("global_rank"), signal.SIGKILL)
        pilot.await_event("reconfiguration_ended", since=mark)
        feed.send_to(1.0)
        equals_the_reference(stage_, feed)
        assert len(pilot.events.named("reset")) >= 2
