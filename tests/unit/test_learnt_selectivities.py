"""Selectivities with their errors, and the rates that they predict for silent streams."""

from __future__ import annotations

import random

import pytest

from leeward.control.learning.selectivities import HALF_LIFE_S, LEAST_WINDOWS, SelectivityLearner, completed, in_order
from leeward.control.monitor import Rates
from leeward.core.learnt import Selectivity

STREAMS = (("source", "filter"), ("filter", "count"), ("count", "rank"))


def test_the_ratio_is_that_of_all_tuples():
    learner = SelectivityLearner()
    assert learner.fit() is None
    learner.add(1000, 500, 0.0)
    learner.add(10, 0, 0.0)
    ratio = learner.fit()
    assert ratio.ratio == pytest.approx(500 / 1010) and ratio.windows == 2.0


def test_the_error_says_how_far_the_ratio_may_be_off():
    rng, learner = random.Random(2), SelectivityLearner()
    for _ in range(100):
        learner.add(200, sum(rng.random() < 0.3 for _ in range(200)), 0.0)
    ratio = learner.fit()
    assert ratio.ratio == pytest.approx(0.3, abs=0.01)
    assert 0.001 < ratio.error < 0.01  # sqrt(0.3 x 0.7 / 20000) = 0.0032


def test_a_window_without_input_says_nothing_and_what_was_is_forgotten():
    learner = SelectivityLearner()
    learner.add(0, 0, 0.0)
    assert learner.fit() is None
    for _ in range(10):
        learner.add(100, 100, 0.0)
    for at in range(10):
        learner.add(100, 0, 5 * HALF_LIFE_S + at)
    assert learner.fit().ratio < 0.05


def known(**ratios: float) -> dict[tuple[str, str], Selectivity]:
    return {stream: Selectivity(ratios.get(stream[0], 1.0), 0.0, LEAST_WINDOWS) for stream in STREAMS}


def test_a_silent_stream_gets_the_predicted_rate_and_so_does_what_lies_behind_it():
    rates = Rates(span_s=10.0, emitted={"source": 100.0}, streams={("source", "filter"): 100.0})
    found = completed(rates, known(filter=0.5, count=0.1), STREAMS)
    assert found.streams == pytest.approx(
        {("source", "filter"): 100.0, ("filter", "count"): 50.0, ("count", "rank"): 5.0}
    )
    assert rates.streams == {("source", "filter"): 100.0}, "the measurement itself stays"


def test_a_component_that_lags_has_the_rate_that_it_is_sent_and_so_has_all_downstream():
    """Table V's run: 250 tuples/s were sent, the parser took 233, and the plan saw 233 until the rate fell."""
    rates = Rates(
        emitted={"source": 250.0},
        streams={("source", "filter"): 233.0, ("filter", "count"): 116.0, ("count", "rank"): 11.6},
    )
    ratios = known(filter=0.5, count=0.1)
    found = completed(rates, ratios, STREAMS, {"filter"})
    assert found.streams == pytest.approx(
        {("source", "filter"): 250.0, ("filter", "count"): 125.0, ("count", "rank"): 12.5}
    )
    assert completed(rates, ratios, STREAMS) is rates, "without a component that lags the measurement counts"


def test_a_component_that_catches_up_needs_what_it_receives():
    rates = Rates(emitted={"source": 200.0}, streams=dict.fromkeys(STREAMS, 233.0))
    assert completed(rates, known(), STREAMS, {"filter"}) is rates


def test_measured_rates_stay_and_what_is_not_known_is_not_predicted():
    rates = Rates(emitted={"source": 100.0}, streams=dict.fromkeys(STREAMS, 7.0))
    assert completed(rates, known(), STREAMS) is rates
    silent = Rates(emitted={"source": 100.0})
    few = {stream: Selectivity(1.0, 0.0, LEAST_WINDOWS - 1) for stream in STREAMS}
    assert completed(silent, few, STREAMS) is silent


def test_nothing_is_predicted_of_a_topology_that_stands():
    found = completed(Rates(emitted={"source": 0.0}), known(), STREAMS)
    assert set(found.streams.values()) == {0.0}


def test_streams_are_taken_in_the_order_of_the_tuples():
    assert in_order([("b", "c"), ("a", "b"), ("a", "c")]) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert sorted(in_order([("a", "b"), ("b", "a")])) == [("a", "b"), ("b", "a")]
