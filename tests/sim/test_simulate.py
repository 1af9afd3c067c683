"""A policy in the simulated cluster: it grows and shrinks with the rate, the guard refuses, equal seeds equal bytes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from leeward.control.registry import make_policy
from leeward.core.placing import carry
from leeward.core.plan import Estimate, Plan
from leeward.core.settings import Settings
from leeward.core.table import even_table
from leeward.sim.world.description import load_world, parse_world
from leeward.sim.world.picture import draw
from leeward.sim.world.rates import RateTrace
from leeward.sim.world.report import document_of, events_text
from leeward.sim.world.run import simulate

ROOT = Path(__file__).parents[2]
QUERY1 = ROOT / "storm_conf/worlds/query1.toml"
#: A source, a bolt of 100 tuples/s for each of up to four replicas, a sink.
CHAIN = {
    "name": "chain",
    "nodes": [{"id": "n1"}, {"id": "n2"}, {"id": "n3"}],
    "components": [
        {"id": "source", "kind": "source", "rate": 1000},
        {"id": "work", "kind": "stateful", "rate": 100, "tasks": 4, "state_bytes": 1_000_000},
        {"id": "sink", "kind": "stateful", "rate": 1000},
    ],
    "streams": [{"from": "source", "to": "work", "keyed": True}, {"from": "work", "to": "sink", "keyed": True}],
}
QUICK = Settings(period_s=5.0, window_s=5.0, cool_down_s=2.0, scale_down_s=0.0, no_return_s=0.0)


def chain(**changes):
    return parse_world({**CHAIN, **changes})


def steps(*pieces):
    """A trace of (seconds, tuples/s) pieces, with a jump between two."""
    times, rates, at = [], [], 0.0
    for seconds, rate in pieces:
        times += [at, at + seconds - 1e-6]
        rates += [rate, rate]
        at += seconds
    return RateTrace(tuple(times), tuple(rates))


class Wishes:
    """A policy that wants what a function of the view says."""

    def __init__(self, want):
        self.want, self.views = want, []

    def decide(self, view, *, now, rng):
        self.views.append(view)
        return self.want(view)


def keep(view):
    return Plan(tables=view.tables, placement=view.assignment)


def replicas_of(samples, at_s):
    return next(sample.replicas for sample in samples if sample.at_s >= at_s)


def run(policy, trace, *, hours, world=None, settings=QUICK):
    return simulate(world or chain(), trace, policy, settings, hours=hours)


def by_load(view):
    """Replicas of `work` for what the source sends, at 70 % of their rate, among the tasks where they are."""
    needed = math.ceil(view.measured["source"].arrival_rate / 70)
    tasks = view.component("work").tasks[: max(1, min(4, needed))]
    return Plan(tables={**view.tables, "work": even_table(tasks)}, placement=view.assignment)


def test_a_topology_grows_with_the_rate_stays_catches_up_and_shrinks():
    outcome = run(Wishes(by_load), steps((60, 50), (60, 250), (60, 50)), hours=0.05)
    samples, figures = outcome.figures.samples, outcome.figures
    assert {s.replicas for s in samples if s.at_s < 60} == {3}  # one of each component
    assert {s.replicas for s in samples if 66 < s.at_s < 120} == {6}  # it grows with the next plan, and stays
    assert {s.replicas for s in samples if s.at_s > 126} == {3}  # and it shrinks again
    behind = [s.waiting for s in samples if 60 < s.at_s < 66]
    assert max(behind) == pytest.approx(5 * (250 - 100), rel=0.2)  # one replica could not keep up for one period
    assert {s.waiting for s in samples if 80 < s.at_s < 120} == {0.0}  # four have caught up: 750 at 150 tuples/s
    assert figures.offered == pytest.approx(60 * (50 + 250 + 50), rel=0.02)
    assert (figures.lost, figures.resets, figures.waiting, figures.undone) == (0.0, 0, 0.0, 0)
    assert (figures.handovers, figures.restarts) == (2, 0)


def test_one_policy_of_the_papers_grows_and_shrinks_too():
    trace = steps((300, 50), (300, 250), (300, 50))
    policy = make_policy("edrp", {"method": "exact"})
    calm = Settings(period_s=20.0, window_s=20.0, scale_down_s=60.0, no_return_s=60.0)
    outcome = run(policy, trace, hours=0.25, settings=calm)
    samples = outcome.figures.samples
    assert replicas_of(samples, 280) == 3
    assert replicas_of(samples, 500) >= 5
    assert replicas_of(samples, 880) == 3
    assert outcome.figures.handovers >= 2


def test_a_handover_costs_what_was_measured():
    world = chain(costs={"handover_s": 0.04, "per_byte_s": 1e-6})
    figures = run(Wishes(by_load), steps((60, 100)), hours=60 / 3600, world=world).figures
    assert (figures.handovers, figures.restarts) == (1, 0)
    assert figures.handover_wait_s == pytest.approx(0.04 + 500_000 * 1e-6)  # half of the state moved


def test_a_restart_stops_the_stream_and_what_came_meanwhile_is_not_lost():
    def one_node(view):
        return carry(view, {c.id: {"n3": 1} for c in view.components})

    outcome = run(Wishes(one_node), steps((120, 50)), hours=120 / 3600)
    figures = outcome.figures
    assert (figures.handovers, figures.restarts, figures.undone) == (0, 1, 0)
    assert figures.restart_stop_s == pytest.approx(10.0)
    assert figures.most_waiting == pytest.approx(500, rel=0.2)  # ten seconds of 50 tuples/s
    assert figures.longest_response_s > 9.0
    assert (figures.lost, figures.waiting, figures.resets) == (0.0, 0.0, 0)


def test_the_view_is_the_one_that_storm_gives():
    policy = Wishes(keep)
    run(policy, steps((60, 80)), hours=60 / 3600)
    view = policy.views[-1]
    assert view.measured["work"].arrival_rate == pytest.approx(80, rel=0.15)
    assert view.measured["work"].service_rate == pytest.approx(100, rel=0.01)
    assert view.measured["work"].state_bytes == 1_000_000
    assert view.stream_rate["source", "work"] == pytest.approx(80, rel=0.15)
    assert len(view.component("work").tasks) == 4


def test_the_guard_refuses_here_as_on_storm():
    def too_many(view):
        return replace(keep(view), tables={**view.tables, "sink": even_table(view.component("work").tasks[:1])})

    def no_gain(view):
        tables = {**view.tables, "work": even_table(view.component("work").tasks)}
        return Plan(tables=tables, placement=view.assignment, estimate=Estimate(objective=1.0, objective_now=1.0))

    for want, why in ((too_many, "which is none of its tasks"), (no_gain, "the gain is below minimum_gain")):
        outcome = run(Wishes(want), steps((60, 50)), hours=60 / 3600)
        assert all(why in reason for reason in outcome.figures.refused), outcome.figures.refused
        assert sum(outcome.figures.refused.values()) == outcome.figures.plans > 5
        assert outcome.figures.handovers + outcome.figures.restarts == 0


def test_a_policy_that_returns_nonsense_is_refused():
    def nonsense(view):
        return Plan(tables={"nobody": (1, 2)}, placement={99: view.assignment[1]})

    outcome = run(Wishes(nonsense), steps((60, 50)), hours=60 / 3600)
    assert ["unknown component 'nobody'" in why for why in outcome.figures.refused] == [True]
    assert outcome.figures.kept == 0


@pytest.mark.long
def test_equal_seeds_give_equal_bytes_and_others_do_not(tmp_path):
    def bytes_of(seed, name):
        policy = make_policy("edrp", {"method": "exact"})
        settings = Settings(period_s=30.0, window_s=30.0, seed=seed)
        outcome = run(policy, steps((300, 60), (300, 220)), hours=600 / 3600, settings=settings)
        draw(tmp_path / name, outcome.figures, title="chain")
        text = json.dumps(document_of(outcome.figures, {})) + events_text(outcome.events)
        return text, (tmp_path / name).read_bytes()

    assert bytes_of(1, "a.svg") == bytes_of(1, "b.svg")
    assert bytes_of(1, "a.svg") != bytes_of(2, "c.svg")


def test_events_are_json_lines_with_their_time():
    outcome = run(make_policy("even", {}), steps((30, 50), (60, 250)), hours=90 / 3600)
    events = [json.loads(line) for line in events_text(outcome.events).splitlines()]
    assert [event["t"] for event in events] == sorted(event["t"] for event in events)
    assert {"plan_made", "reconfiguration_started", "reconfiguration_ended"} <= {event["action"] for event in events}
    assert not any("solve_s" in event for event in events)


def test_the_example_is_query_1_of_the_reference_application():
    from bolts.query1.service_times import TABLE2_RATE
    from topologies.query1 import MAX_REPLICAS, SPARE

    world = load_world(QUERY1)
    assert {c.id: c.rate for c in world.components} == TABLE2_RATE
    assert {c.id: c.max_replicas or c.tasks for c in world.components} == MAX_REPLICAS
    assert {c.id: c.tasks for c in world.components} == {n: k + SPARE.get(n, 0) for n, k in MAX_REPLICAS.items()}
