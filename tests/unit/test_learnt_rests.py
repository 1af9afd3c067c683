"""The time from source to sink that no modelled part has: learnt, told, and never part of a decision."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.control.dry_run import plan_document
from leeward.control.learning.rests import HALF_LIFE_S, LEAST_SAMPLES, RestLearner
from leeward.control.ports import StreamFacts
from leeward.control.report.knowledge import Knowledge
from leeward.core.learnt import Rest
from leeward.core.plan import Estimate, Plan
from leeward.core.settings import Settings
from tests.helpers.control_figures import Figures
from tests.helpers.control_stage import Script, stage
from tests.helpers.control_twins import ID, NAME, Cluster
from tests.helpers.control_views import view


def test_scattered_measurements_give_the_rest_and_its_error():
    rng, learner = random.Random(1), RestLearner()
    for at in range(60):
        learner.add(0.08 + rng.gauss(0.07, 0.02), 0.08, 10.0 * at)
    rest = learner.fit()
    assert rest.seconds == pytest.approx(0.07, abs=3 * rest.error_s) and 0.001 < rest.error_s < 0.005
    assert abs(0.08 + rest.seconds - 0.15) < 0.2 * 0.15


def test_results_that_waited_for_replicas_move_the_rest_little():
    """Three spans of 5 s each, as the source's rate had outrun a component before a plan came."""
    rng, learner = random.Random(2), RestLearner()
    for at in range(60):
        late = 5.0 if at in (30, 31, 32) else 0.0
        learner.add(0.08 + rng.gauss(0.07, 0.01) + late, 0.08, 10.0 * at)
    assert learner.fit().seconds == pytest.approx(0.07, abs=0.01)


def test_nothing_is_added_before_enough_was_measured():
    learner = RestLearner()
    for at in range(int(LEAST_SAMPLES) - 1):
        learner.add(0.15, 0.08, float(at))
    assert learner.fit() is None
    learner.add(math.nan, 0.08, 6.0)
    learner.add(0.15, math.inf, 6.0)
    learner.add(-0.15, 0.08, 6.0)
    assert learner.fit() is None, "figures that cannot be are no samples"
    for at in (6.0, 7.0):
        learner.add(0.15, 0.08, at)
    assert learner.fit().seconds == pytest.approx(0.07) and learner.fit().error_s < 1e-6


def test_a_load_of_long_ago_is_forgotten():
    learner = RestLearner()
    for at in range(100):
        learner.add(0.5, 0.1, float(at))
    for at in range(100):
        learner.add(0.2, 0.1, 10 * HALF_LIFE_S + at)
    assert learner.fit().seconds == pytest.approx(0.1, abs=0.001)


@given(st.lists(st.tuples(st.floats(0.001, 10.0), st.floats(0.0, 10.0), st.floats(0.0, 2000.0)), max_size=60))
def test_the_rest_lies_among_its_samples(samples: list[tuple[float, float, float]]):
    learner, now = RestLearner(), 0.0
    for measured_s, modelled_s, passed in samples:
        now += passed
        learner.add(measured_s, modelled_s, now)
    rest, offs = learner.fit(), [measured_s - modelled_s for measured_s, modelled_s, _ in samples]
    if rest is not None:
        assert min(offs) - 1e-6 <= rest.seconds <= max(offs) + 1e-6 and 0.0 <= rest.error_s < 20.0
    again = RestLearner.of(learner.kept(), now).fit()
    assert again == (rest if rest is None else pytest.approx(rest))


def keeps(modelled_s: float):
    return lambda seen: Plan(tables=seen.tables, placement=seen.assignment, estimate=Estimate(response_s=modelled_s))


def test_a_service_tells_the_whole_modelled_time_after_a_minute():
    """Its model says 80 ms, its results 150 ms."""
    cluster, policy = Cluster(), Script(keeps(0.08))
    cluster.world.metrics[ID] = Figures(cluster)

    def known(sink, cluster):
        cluster.world.streams = StreamFacts(results=((clock.time - 0.15, clock.time),))
        return sink.of("learnt") and sink.of("learnt")[-1]["rest"]

    slow = Settings(period_s=20.0, window_s=5.0, cool_down_s=0.0)
    service, clock, sink, _ = stage(policy, until=known, cluster=cluster, settings=slow, limit=60_000)
    service.run(clock.stop)
    assert sink.of("learnt")[-1]["rest"]["seconds"] == pytest.approx(0.07, abs=0.001)
    assert clock.time - 1000.0 < 150.0
    knowledge = Knowledge(clock)
    for action, fields in sink.events:
        knowledge.emit(action, fields)
    report = knowledge.report(NAME)
    assert report.response_s == pytest.approx(0.15) and report.modelled_response_s == pytest.approx(0.15, abs=0.001)
    assert report.rest.seconds == pytest.approx(0.07, abs=0.001)


def test_a_plan_tells_both_times():
    plan = keeps(0.08)(view())
    told = plan_document(plan, view(rest=Rest(0.07, 0.002, 30.0)), Settings(), frozen=False)
    assert (told["response_s"], told["response_with_rest_s"]) == (0.08, pytest.approx(0.15))
    assert "response_with_rest_s" not in plan_document(plan, view(), Settings(), frozen=False)
