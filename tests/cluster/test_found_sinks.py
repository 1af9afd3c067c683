"""Faults that an independent harness has found, on real processes: what sinks write outside of the topology."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.harness import COUNTING, Pilot, Running, Stage, await_
from tests.cluster.tally import KEYS

pytestmark = pytest.mark.timeout(400)


class Sinks:
    """The topology with both sinks, and what they have written to Redis."""

    def __init__(self, running: Running, hold: Path) -> None:
        self.running, self.hold = running, hold
        self.redis = running.cluster.open_redis(decode_responses=True)
        self._prefix = f"sinks:{running.id}:"

    def written(self, name: str) -> dict[int, str]:
        """number -> result, of the hash of this name."""
        return {int(n): result for n, result in self.redis.hgetall(self._prefix + name).items()}

    def listed(self, name: str) -> list[str]:
        """Entries of the list of this name."""
        return self.redis.lrange(self._prefix + name, 0, -1)

    def writers(self) -> list[int]:
        """The process that made each write of the fenced sink, in the order of Redis' clock."""
        return [int(fields["pid"]) for _, fields in self.redis.xrange(self._prefix + "writes")]

    def flow(self, name: str, more: int = 300) -> int:
        """Wait until all numbers up to `more` beyond the greatest one are there; that number."""
        goal = max(self.written(name), default=0) + more
        await_(lambda: set(range(1, goal + 1)) <= self.written(name).keys(), f"{name}: all of 1..{goal}", 60)
        return goal


@pytest.fixture(scope="module")
def sinks(stage_: Stage) -> Iterator[Sinks]:
    """A stopped process is not killed by its worker, so that it can wake up after it was replaced."""
    hold = stage_.folder / "sinks.hold"
    options = ["counting.rate=200", f"counting.keys={KEYS}", f"counting.hold={hold}", "leeward.away.secs=0"]
    jar = stage_.project_jar(COUNTING)
    with stage_.submitted("sinks", "found_sinks", jar, COUNTING, options, workers=3) as running:
        mine = Sinks(running, hold)
        yield mine
        mine.redis.close()


def right(n: int) -> str:
    """What the count emits for number n."""
    count = (n - 1) // KEYS + 1
    return f"{count} {n - KEYS if count > 1 else 0}"


def wrong_of(written: dict[int, str]) -> dict[int, str]:
    """Results that no undisturbed run would have."""
    return {n: result for n, result in written.items() if result != right(n)}


def ended_reset(pilot: Pilot, since: int) -> dict:
    """The first reset that is over."""

    def over() -> list[dict]:
        pilot.check()
        return [e for e in pilot.events.named("reconfiguration_ended", since=since) if e["kind"] == "reset"]

    return await_(over, "the reset to end")[0]


def test_a_sink_process_that_wakes_up_after_it_was_replaced_writes_nothing(sinks: Sinks):
    """D7. A sink's process was stopped with a tuple in its hands, and another task took over. When the process went on
    it wrote that result once more, after its successor had, and nothing refused it.
    """
    with sinks.running.pilot(mode="live") as pilot:
        pilot.checkpoint()
        sinks.flow("results")
        mark, old = len(pilot.events.all), sinks.running.owner_pid("fenced")
        sinks.hold.touch()
        held = sinks.hold.with_suffix(".held")
        await_(lambda: held.exists() and held.read_text() == str(old), "the sink to hold a tuple", 20)
        os.kill(old, signal.SIGSTOP)
        try:
            sinks.hold.unlink()
            ended = ended_reset(pilot, mark)
            assert ended["result"].startswith("reset: silent: ")
            new = sinks.running.owner_pid("fenced")
            assert new != old
            sinks.flow("results")
        finally:
            os.kill(old, signal.SIGCONT)
        refused = await_(lambda: sinks.listed("refused"), "the write of the process that woke up to be refused", 30)
        sinks.flow("results")
        assert {int(entry.split()[0]) for entry in refused} == {old}
        writers = sinks.writers()
        assert set(writers) == {old, new}
        assert writers == [old] * writers.count(old) + [new] * writers.count(new), "the old process wrote again"
        assert wrong_of(sinks.written("results")) == {}
        await_(lambda: pilot.check() and not sinks.running.record().absent, "the process that woke up to be a spare")
        assert len(ended := pilot.events.named("reset", since=mark)) == 1, ended


def test_a_sink_that_flushes_before_each_checkpoint_loses_nothing(sinks: Sinks):
    """Hooks of bolts. A bolt was not told when its state became part of a cut, nor when that cut was committed. What it
    had buffered before a cut was lost with its process, as the source sends again only what came after the cut.
    """
    with sinks.running.pilot(mode="live") as pilot:
        pilot.checkpoint()
        sinks.flow("flushed")
        before = max(sinks.written("results"))
        await_(lambda: max(sinks.written("results")) > before + 100, "numbers to be buffered", 20)
        mark = len(pilot.events.all)
        os.kill(sinks.running.owner_pid("buffered"), signal.SIGKILL)
        ended_reset(pilot, mark)
        pilot.checkpoint()
        sinks.flow("flushed", max(sinks.written("results")) - max(sinks.written("flushed")) + 200)
        assert wrong_of(sinks.written("flushed")) == {}
        told: dict[str, list[int]] = {}
        for entry in sinks.listed("final"):
            process, cut = entry.split()
            told.setdefault(process, []).append(int(cut))
        for process, cuts in told.items():
            assert cuts == sorted(set(cuts)), f"a cut was told twice to process {process}"
        oldest = min(sinks.running.record().committed)
        assert max(cuts[-1] for cuts in told.values()) <= oldest, "told before a fallback to an older one was ruled out"


def longest_silence(sinks: Sinks, until: Callable[[], object]) -> float:
    """The longest time without a new result, in seconds, while `until()` is false."""
    seen, since, longest = max(sinks.written("results")), time.monotonic(), 0.0

    def over() -> object:
        nonlocal seen, since, longest
        newest, now = max(sinks.written("results")), time.monotonic()
        longest = max(longest, now - since)
        if newest > seen:
            seen, since = newest, now
        return until()

    await_(over, "the node to be back")
    return longest


@pytest.mark.slow  # tests/cluster/test_node_lost_and_added.py brings a node back, in the pipeline too
def test_a_node_that_comes_back_disturbs_nobody(sinks: Sinks):
    """A node was lost, and 24.7 s of silence followed when it came back: its tasks asked for a reset. They stand aside
    now, and return at a route marker.
    """
    running, cluster = sinks.running, sinks.running.cluster
    with running.pilot(mode="live") as pilot:
        pilot.checkpoint()
        slots = running.snapshot().assigned.slots
        (source,) = running.tasks("numbers")
        gone = min(slots[task].node for task in slots if slots[task].node != slots[source].node)
        supervisor = next(node.daemon for node in cluster.nodes if node.name == gone)
        mark = len(pilot.events.all)
        cluster.stop_daemon(supervisor)
        for (node, _), pid in cluster.worker_pids().items():
            if node == gone:
                os.kill(pid, signal.SIGKILL)
        await_(lambda: pilot.check() and running.record().absent, "its tasks to be left out", 30)
        sinks.flow("results")
        lost = len(pilot.events.named("reset", since=mark))
        cluster.start_daemon(supervisor)
        silence = longest_silence(sinks, lambda: pilot.check() and not running.record().absent)
        sinks.flow("results")
        assert pilot.events.named("tasks_returned", since=mark)
        assert len(pilot.events.named("reset", since=mark)) == lost, "its return restored everybody"
        assert silence < 2.0, f"{silence:.1f} s without a result"
        assert wrong_of(sinks.written("results")) == {}
