"""Reconfigurations a day, returns and forecasts: counted on known events, and in small simulations."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from leeward.cli import _build
from leeward.cli._experiment_service import cut, generated, study_of
from leeward.control.registry import policy_of
from leeward.core.errors import ConfigError
from leeward.core.plan import Plan
from leeward.core.settings import Chosen, Settings
from leeward.core.table import even_table
from leeward.sim.world.description import load_world
from leeward.sim.world.ledger import Event
from leeward.sim.world.rates import RateTrace
from leeward.sim.world.restless import COOL_DOWN_S, GUARDS, Restless, changes_of, errors_of, returns
from leeward.sim.world.run import simulate

ROOT = Path(__file__).parents[2]
WORLD = load_world(ROOT / "storm_conf/worlds/query1.toml")


def events(*steps):
    """(begin, end, component, before, after) as the service tells them."""
    for begin, end, component, before, after in steps:
        yield Event(begin, "reconfiguration_started", {})
        change = {"component": component, "kind": "move", "before": {"n1": before}, "after": {"n1": after}}
        yield Event(end, "reconfiguration_ended", {"result": "done", "changes": [change]})


def test_returns_are_counted_by_component():
    spans = changes_of(
        [*events((10, 11, "a", 1, 2), (20, 21, "b", 1, 2), (111, 112, "a", 2, 1), (300, 301, "a", 1, 3))]
    )
    assert [span[:2] for span in spans] == [(10, 11), (20, 21), (111, 112), (300, 301)]
    assert returns(spans) == [100], "a went back after 100 s, b never did"
    assert returns(changes_of([*events((0, 1, "a", 1, 2), (5, 6, "a", 2, 3), (9, 10, "a", 3, 1))])) == []


def test_reconfigurations_that_were_given_up_do_not_count():
    given_up = Event(5, "reconfiguration_ended", {"result": "aborted: a deadline", "changes": []})
    assert changes_of([Event(1, "reconfiguration_started", {}), given_up]) == []


@given(st.lists(st.integers(1, 3), min_size=2, max_size=30))
def test_as_many_returns_as_a_count_says(counts):
    path = [counts[0], *(b for a, b in pairwise(counts) if a != b)]
    steps = [(10 * at, 10 * at + 1, "a", path[at], path[at + 1]) for at in range(len(path) - 1)]
    back = sum(path[at] == path[at + 2] for at in range(len(path) - 2))
    assert returns(changes_of([*events(*steps)])) == [9] * back


def test_errors_of_forecasts_on_a_trace_that_repeats_and_grows():
    times = tuple(60.0 * at for at in range(60 * 60))
    day = RateTrace(times, tuple(100.0 + 50.0 * math.sin(2 * math.pi * t / 86_400.0) for t in times))
    errors = errors_of(day, 48.0, ("last", "linear", "yesterday", "blended"))
    for ahead_s in (300, 900, 3600):
        assert errors[f"yesterday {ahead_s}"] < 0.001 < errors[f"last {ahead_s}"]
        assert errors[f"linear {ahead_s}"] < errors[f"last {ahead_s}"]
    line = errors_of(RateTrace(times, tuple(1.0 + t for t in times)), 30.0, ("linear", "last"))
    assert line["linear 900"] < 1e-6 < line["last 900"]
    assert errors_of(day, 20.0, ("last",)) == {}, "yesterday is not over"


class Toggle:
    """Wants two replicas of the parser in every other minute, and one in between, whatever the load."""

    def __init__(self, settings):
        pass

    def decide(self, view, *, now, rng):
        tasks = view.component("parser").tasks[: 1 + int(now // 60) % 2]
        return Plan(tables={**view.tables, "parser": even_table(tasks)}, placement=view.assignment)


TOGGLE = "tests.sim.test_restless:Toggle"


def study(hours, policy=TOGGLE):
    trace = generated(hours).from_hour(10.0)
    return Restless(
        world=WORLD, trace=trace.scaled(220.0 / trace.peak), source="generated", hours=hours, forecast_hours=hours,
        policies={policy: (policy, {})}, forecast_policies={}, methods=(),
    )  # fmt: skip


def test_guards_keep_a_restless_policy_from_going_back_and_forth():
    mine = study(3.0)
    measured = {part: mine.measure(part) for part in mine.parts(seed=1, quick=True)}
    by = {part.name: figures for part, figures in measured.items()}
    assert by[f"{TOGGLE}, none"]["within the cool-down"] > 10, "else this shows nothing"
    assert by[f"{TOGGLE}, default"]["within the cool-down"] == 0 == by[f"{TOGGLE}, calm"]["within the cool-down"]
    assert by[f"{TOGGLE}, calm"]["least time between"] >= COOL_DOWN_S
    assert by[f"{TOGGLE}, calm"]["reconfigurations"] < by[f"{TOGGLE}, none"]["reconfigurations"] / 3
    finding = mine.conclude(measured)
    assert {row.setting for row in finding.rows} == {f"{TOGGLE}, guards: {guards}" for guards in GUARDS}
    assert all(row.met in (True, None) for row in finding.rows)
    assert [curve.name for curve in finding.panels[0].curves] == list(GUARDS)


def test_a_part_gives_the_same_figures_again_and_other_figures_for_another_seed():
    part, other = (study(0.5, "agiledart").parts(seed=seed, quick=True)[2] for seed in (1, 2))
    first = study(0.5, "agiledart").measure(part)
    assert first == study(0.5, "agiledart").measure(part) != study(0.5, "agiledart").measure(other)


def test_the_command_goes_on_from_its_rows_and_writes_its_files(tmp_path, monkeypatch):
    monkeypatch.setattr("leeward.cli._experiment_service.study_of", lambda *_, **__: study(0.5))
    done = CliRunner().invoke(_build(), ["experiment", "service-guards", "--quick", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert {file.name for file in tmp_path.iterdir()} == {
        f"service-guards.{kind}" for kind in ("json", "csv", "svg", "md")
    }
    document = json.loads((tmp_path / "service-guards.json").read_text())
    assert document["command"] == "leeward experiment service-guards --seed 0 --quick"


def test_quick_and_whole_studies(tmp_path):
    quick = study_of(None, 312.0, 168.0, 220.0, None, quick=True)
    assert quick.trace.peak == pytest.approx(220.0) and len(quick.parts(seed=0, quick=True)) == 3 * 3 + 2 + 1
    whole = study_of(None, 312.0, 168.0, 220.0, None, quick=False)
    assert len(whole.parts(seed=0, quick=False)) == 3 * 3 + 4 * 4 + 1 and whole.hours == 168.0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--rate", "/missing.csv"], "rate file '/missing.csv' does not exist"),
        (["--topology", "/missing.toml"], "/missing.toml"),
        (["--rate", str(ROOT / "scheduler/leeward/replay/data/trips.json")], "the header is"),
    ],
)
def test_what_is_wrong_is_named(arguments, text):
    done = CliRunner().invoke(_build(), ["experiment", "service-guards", *arguments])
    assert done.exit_code == 2 and text in done.output and "Traceback" not in done.output


def test_a_trace_that_is_too_short_is_refused():
    with pytest.raises(ConfigError, match=r"--hours is 168, the rate file has 24\.0 h from --start on"):
        cut(RateTrace((0.0, 86_400.0), (1.0, 1.0)), 168.0)
    assert cut(generated(48.0), 24.0).times[-1] == 26 * 3600.0


def test_refusals_are_counted_without_their_numbers():
    mine = study(3.0)
    (calm,) = (part for part in mine.parts(seed=0, quick=True) if part.name == f"{TOGGLE}, calm")
    settings = Settings(policy=TOGGLE, period_s=60.0, window_s=60.0, cool_down_s=0.0, scale_down_s=900.0, most_moves=1)
    outcome = simulate(WORLD, mine.trace, policy_of(Chosen(service=settings, policies={})), settings, hours=3.0)
    assert sum(outcome.figures.refused.values()) > 3
    assert set(outcome.figures.refused) <= {"wanted for less than scale_down_s", "over most_moves"}
    assert mine.measure(calm)["refused"] > 0
