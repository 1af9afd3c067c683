"""On a real Storm: urgent tuples overtake in front of a slow bolt, none is lost, and each key keeps its order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import pytest

from tests.cluster.builders import scaled
from tests.cluster.harness import LONG_S, Running, Stage, await_

PROJECT = Path(__file__).parent / "urgent"
BURST, URGENT = 40, 8  # as src/urgent_bolts.py has them


class Line(NamedTuple):
    """A result, in the order in which the bolt gave it."""

    key: str
    n: int
    count: int
    last: int
    task: int

    @property
    def burst(self) -> int:
        return (self.n - 1) // BURST


@pytest.fixture(scope="module")
def queue(stage_: Stage) -> Iterator[Running]:
    options = [f"urgent.out={stage_.folder / 'urgent.out'}", "leeward.service_times=emulated"]
    with stage_.submitted("urgent", "urgent", stage_.project_jar(PROJECT), PROJECT, options, 2) as running:
        yield running


def lines(running: Running) -> list[Line]:
    """The tuples that have reached the sink."""
    file = running.stage.folder / "urgent.out"
    text = file.read_text() if file.exists() else ""
    rows = [row.split() for row in text.split("\n")[:-1]]
    return [Line(key, *map(int, rest)) for key, *rest in rows]


def more(running: Running, bursts: int) -> list[Line]:
    """All results, when so many more bursts have come through as a whole."""
    goal = (max((line.n for line in lines(running)), default=0) // BURST + 1 + bursts) * BURST

    def through() -> list[Line]:
        found = lines(running)
        return found if set(range(1, goal + 1)) <= {line.n for line in found} else []

    return await_(through, f"the numbers 1..{goal}", LONG_S)


def exact(found: Sequence[Line]) -> None:
    """Every number came once, and each key's in order."""
    before: dict[str, Line] = {}
    for line in found:
        old = before.get(line.key)
        assert (line.count, line.last) == ((old.count + 1, old.n) if old else (1, 0)), f"{line} behind {old}"
        assert line.n > line.last, line
        before[line.key] = line
    numbers = [line.n for line in found]
    assert len(numbers) == len(set(numbers))


def overtaken(found: Sequence[Line]) -> list[bool]:
    """Of each whole burst: its urgent tuples, which were sent last, came earlier than the others on an average."""
    bursts: dict[int, list[tuple[int, bool]]] = {}
    for place, line in enumerate(found):
        bursts.setdefault(line.burst, []).append((place, line.key.startswith("urgent")))
    whole = [places for places in bursts.values() if len(places) == BURST]
    return [mean(p for p, urgent in one if urgent) < mean(p for p, urgent in one if not urgent) for one in whole]


@pytest.mark.timeout(400)
def test_urgent_tuples_overtake_through_handovers(queue: Running):
    found = more(queue, 8)
    exact(found)
    assert {line.task for line in found} == {queue.tasks("evaluate")[0]}
    # a marker that comes within a burst cuts it in two: calls at the start of a worker, and checkpoints
    assert mean(overtaken(found)) > 0.5, overtaken(found)

    with queue.pilot(mode="live") as pilot:
        pilot.checkpoint()
        for replicas in (2, 1, 2):
            ended = pilot.reconfigure(scaled("evaluate", replicas))
            assert (ended["kind"], ended["result"]) == ("handover", "done"), pilot.events.all
            exact(more(queue, 3))
        assert {line.task for line in lines(queue)} == set(queue.tasks("evaluate"))
        assert not pilot.events.named("reset", "alert", "checkpoint_failed")
    found = more(queue, 4)
    exact(found)
    assert mean(overtaken(found)) > 0.5, overtaken(found)
