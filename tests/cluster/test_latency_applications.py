"""The applications of the comparison of latencies on a real Storm, with made rows: their results equal the reference's
though components were scaled and moved in the middle, and each result has the time of its last input beside it."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bolts.latency.taxi import taxi_lines
from bolts.query1.reference import reference_rows as routes
from bolts.query2.reference import reference_rows as areas
from bolts.reference import Result
from bolts.urban.reference import made_lines
from bolts.urban.reference import reference_rows as cities
from leeward.core.table import replicas
from leeward.local.places import checkout
from tests.cluster.builders import scaled, scaled_and_moved, swapped
from tests.cluster.harness import LONG_S, Running, Stage, await_

pytestmark = pytest.mark.timeout(400)
RATE, SECONDS, SEED, PULSE_S = 150, 40, 11, 5


class Notes:
    """The sink's file while it grows."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def lines(self) -> list[dict]:
        text = self._path.read_text() if self._path.exists() else ""
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def first_lines(self) -> list[tuple[int, str]]:
        """(seq, row) of the first line of each seq: after a restore results may come again."""
        first = {line["seq"]: line["row"] for line in reversed(self.lines())}
        return sorted(first.items())

    def await_share(self, share: float, reference: list[Result]) -> None:
        """Until so many of the results are there."""
        goal = max(1, int(share * len(reference)))
        await_(lambda: len(self.first_lines()) >= goal, f"{goal} of {len(reference)} results", LONG_S)


@contextmanager
def submitted(stage: Stage, topology: str, notes: Path, *options: str) -> Iterator[Running]:
    times = [f"latency.rate={RATE}", f"latency.seconds={SECONDS}", f"latency.seed={SEED}", f"latency.out={notes}"]
    jar = stage.query1_jar()
    with stage.submitted(topology, topology, jar, checkout(), [*times, *options], workers=3) as running:
        yield running


def equal_through_handovers(
    running: Running, notes: Notes, reference: list[Result], components: dict[str, int]
) -> None:
    """Scale each component to so many replicas, 1: another task; the results, once and in order, and their times."""
    with running.pilot(mode="live") as pilot:
        notes.await_share(0.1, reference)
        for component, count in components.items():
            ended = pilot.reconfigure(scaled(component, count) if count > 1 else swapped(component))
            assert (ended["kind"], ended["result"]) == ("handover", "done"), pilot.events.all
            assert len(replicas(running.record().tables[component])) == count
        assert len(notes.lines()) < len(reference), "the handovers came too late"
        notes.await_share(1.0, reference)
        lines = notes.lines()
        assert [(line["seq"], line["row"]) for line in lines] == reference
        assert not pilot.events.named("reset", "alert")
    sent = [line["sent"] for line in lines]
    assert sent == sorted(sent) and all(line["received"] >= line["sent"] for line in lines)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """The rows that the source makes."""
    file = tmp_path / "rows.csv"
    file.write_text("".join(f"{line}\n" for line in taxi_lines(SEED, RATE * SECONDS)))
    return file


@pytest.mark.slow  # test_migration_query1 moves the same components on the pipeline
def test_frequent_routes(stage_: Stage, rows: Path, tmp_path: Path):
    reference = list(routes([rows], per="pulse", pulse_s=PULSE_S))
    with submitted(stage_, "query1", tmp_path / "notes", f"query1.pulse_s={PULSE_S}") as running:
        components = {"count_by_window": 2, "partial_rank": 2, "global_rank": 1}
        equal_through_handovers(running, Notes(tmp_path / "notes"), reference, components)


@pytest.mark.slow  # test_migration_query1 goes through the same handovers
def test_profitable_areas(stage_: Stage, rows: Path, tmp_path: Path):
    reference = list(areas([rows], per="pulse", pulse_s=PULSE_S))
    with submitted(stage_, "query2", tmp_path / "notes", f"query2.pulse_s={PULSE_S}") as running:
        components = {"profit_by_area": 2, "empty_taxis": 3, "rank_areas": 2, "metronome": 1, "top_areas": 1}
        equal_through_handovers(running, Notes(tmp_path / "notes"), reference, components)


@pytest.mark.slow  # the same
def test_urban_sensing(stage_: Stage, tmp_path: Path):
    """70 sensors report twice a second each, so that an order that changed would show in what is smoothed."""
    sensors, pulse_s, window_s = 70, 60, 180
    reports = made_lines(SEED, sensors, RATE * SECONDS)
    reference = [Result(*one) for one in cities(reports, pulse_s=pulse_s, window_s=window_s)]
    options = [f"urban.sensors={sensors}", f"urban.pulse_s={pulse_s}", f"urban.window_s={window_s}"]
    with submitted(stage_, "urban", tmp_path / "notes", *options) as running:
        components = {"parser": 2, "smooth": 3, "stats": 2, "city_index": 2, "city_board": 1}
        equal_through_handovers(running, Notes(tmp_path / "notes"), reference, components)


@pytest.mark.slow  # test_migration_query1 loses a task and a worker, too
def test_areas_after_a_task_and_a_worker_died_and_a_restart(stage_: Stage, rows: Path, tmp_path: Path):
    """The source makes the lost rows again, each by its number."""
    reference = list(areas([rows], per="pulse", pulse_s=PULSE_S))
    notes = Notes(tmp_path / "notes")
    with (
        submitted(stage_, "query2", tmp_path / "notes", f"query2.pulse_s={PULSE_S}") as running,
        running.pilot() as pilot,
    ):
        notes.await_share(0.1, reference)
        pilot.checkpoint()
        os.kill(running.owner_pid("empty_taxis"), signal.SIGKILL)
        pilot.await_event("reconfiguration_ended")
        mark = len(pilot.events.all)
        pilot.checkpoint()
        os.kill(running.owner_worker("rank_areas"), signal.SIGKILL)
        pilot.await_event("reconfiguration_ended", since=mark)
        ended = pilot.reconfigure(scaled_and_moved("profit_by_area", 2))
        assert ended["result"] == "done" and ended["changes"][0]["kind"] == "scale-out"
        assert len(notes.first_lines()) < len(reference), "all of that came too late"
        notes.await_share(1.0, reference)
        assert notes.first_lines() == reference
        assert len(pilot.events.named("reset")) >= 2
