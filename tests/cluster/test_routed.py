"""On a real Storm: a sender's router leaves a slow replica, through handovers, and no tuple is lost or doubled."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import pytest

from tests.cluster.builders import scaled
from tests.cluster.harness import LONG_S, Running, Stage, await_

PROJECT = Path(__file__).parent / "routed"
WAYS = "routed", "plain"


class Line(NamedTuple):
    """A tuple that has reached the sink."""

    n: int
    task: int
    delay_ms: int


@pytest.fixture(scope="module")
def routed(stage_: Stage) -> Iterator[Running]:
    options = [f"routed.out={stage_.folder / 'routed.out'}", "leeward.away.secs=0"]  # a stopped process stays
    with stage_.submitted("routed", "routed", stage_.project_jar(PROJECT), PROJECT, options, 3) as running:
        yield running


def lines(running: Running) -> dict[str, list[Line]]:
    """The numbers that the sink has, by way."""
    found: dict[str, list[Line]] = {way: [] for way in WAYS}
    file = running.stage.folder / "routed.out"
    for row in (file.read_text() if file.exists() else "").split("\n")[:-1]:
        way, *numbers = row.split()
        found[way].append(Line(*map(int, numbers)))
    return found


def more(running: Running, tuples: int) -> dict[str, list[Line]]:
    """The next tuples of each way, when so many have come; all until then came once."""
    before = {way: len(found) for way, found in lines(running).items()}

    def came() -> dict[str, list[Line]] | None:
        found = lines(running)
        return found if all(len(found[way]) >= before[way] + tuples for way in WAYS) else None

    found = await_(came, f"{tuples} more tuples on each way", LONG_S)
    for way in WAYS:
        exact(running, way)
    return {way: found[way][before[way] :] for way in WAYS}


def exact(running: Running, way: str) -> None:
    """Once the newest number until now has come, all before it have, and none twice."""
    newest = max(line.n for line in lines(running)[way])

    def whole() -> bool:
        return set(range(1, newest + 1)) <= {line.n for line in lines(running)[way]}

    await_(whole, f"the numbers 1..{newest} on the way {way}", LONG_S)
    numbers = [line.n for line in lines(running)[way]]
    assert len(numbers) == len(set(numbers)), f"twice on the way {way}: {Counter(numbers).most_common(3)}"


def shares(found: Sequence[Line]) -> dict[int, float]:
    """Of each task, by id."""
    counts = Counter(line.task for line in found)
    return {task: round(counts[task] / len(found), 3) for task in sorted(counts)}


def told(running: Running, what: str, found: dict[str, list[Line]]) -> None:
    """For people: `pytest -s`."""
    for way in WAYS:
        delay = mean(line.delay_ms for line in found[way])
        print(f"\n{what}, {way}: shares {shares(found[way])}, mean delay {delay:.0f} ms of {len(found[way])} tuples")


def weights(running: Running) -> dict[str, int]:
    """As the sender says them."""
    (numbers,) = running.tasks("numbers")
    return json.loads(running.stage.snapshots.metrics(running.id)[numbers])["weights"].get("routed", {})


@pytest.mark.timeout(500)
def test_a_router_leaves_a_slow_replica_through_handovers(routed: Running):
    slow = {way: min(routed.tasks(way)) for way in WAYS}
    with routed.pilot(mode="live") as pilot:
        await_(lambda: weights(routed), "the router's first weights", 30)
        more(routed, 200)
        found = more(routed, 600)
        told(routed, "three replicas", found)
        assert shares(found["plain"])[slow["plain"]] == pytest.approx(1 / 3, abs=0.05)
        assert shares(found["routed"]).get(slow["routed"], 0.0) < 0.2

        for replicas in (4, 2, 3):
            ended = pilot.reconfigure(scaled("routed", replicas))
            assert (ended["kind"], ended["result"]) == ("handover", "done"), pilot.events.all
            more(routed, 100)
        found = more(routed, 600)
        told(routed, "after three handovers", found)
        assert shares(found["routed"]).get(slow["routed"], 0.0) < 0.2
        assert set(shares(found["routed"])) <= set(routed.tasks("routed"))
        assert not pilot.events.named("reset", "alert", "checkpoint_failed"), pilot.events.all


def pid(running: Running, task: int) -> int:
    """Of its Python process."""
    number: int = json.loads(running.stage.snapshots.metrics(running.id)[task])["pid"]
    assert number in running.cluster.python_pids()
    return number


@pytest.mark.timeout(400)
def test_a_silent_replica_is_left_until_it_answers_again(routed: Running):
    """It keeps the tuples that it got; no service runs that would replace it."""
    silent = max(routed.record().tables["routed"])
    await_(lambda: weights(routed).get(str(silent)), "tuples for the replica", 60)
    process = pid(routed, silent)
    os.kill(process, signal.SIGSTOP)
    try:
        await_(lambda: weights(routed).get(str(silent)) == 0, "the sender to leave it", 60)
        before = lines(routed)["routed"]
        await_(lambda: len(lines(routed)["routed"]) > len(before) + 50, "tuples by the others", 60)
        found = lines(routed)["routed"][len(before) :]
        print(f"\nwhile task {silent} is stopped: shares {shares(found)}")
        assert silent not in shares(found)
    finally:
        os.kill(process, signal.SIGCONT)
    await_(lambda: weights(routed).get(str(silent)), "the sender to try it again", 120)
    exact(routed, "routed")
