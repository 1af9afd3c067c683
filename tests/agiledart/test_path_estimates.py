"""Costs of links against closed forms and brute force."""

from __future__ import annotations

import math
from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.core.errors import ConfigError, ProtocolError
from leeward.policies.agiledart.paths.choices import epsilon_greedy, stride
from leeward.policies.agiledart.paths.estimates import (
    KlCost,
    Record,
    ThompsonCost,
    checked_fade,
    divergence,
    largest_within,
    mean_cost,
)  # fmt: skip
from leeward.policies.agiledart.paths.kernel_estimates import optimistic

RATES = st.integers(1, 1000).flatmap(lambda attempts: st.integers(1, attempts).map(lambda s: s / attempts))
BOUNDS = st.floats(0.0, 30.0)


def test_the_divergence_is_that_of_bernoullis():
    assert divergence(0.3, 0.3) == 0
    assert divergence(0.5, 0.25) == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3))
    assert divergence(1.0, 0.5) == pytest.approx(math.log(2))
    assert divergence(0.5, 1.0) == math.inf and divergence(1.0, 1.0) == 0


@given(RATES, BOUNDS)
def test_the_kl_bound_is_the_largest_of_a_grid(p, bound):
    steps = 2000
    allowed = [u for u in (p + (1 - p) * k / steps for k in range(steps + 1)) if divergence(p, u) <= bound]
    found = largest_within(p, bound)
    assert max(allowed) - 1e-12 <= found <= max(allowed) + (1 - p) / steps + 1e-12


@given(RATES, BOUNDS)
def test_the_compiled_bound_is_that_of_the_bisection(p, bound):
    # where the bound is 0, the divergence is flat around p: floats tell no more than their root
    assert optimistic(p, bound) == pytest.approx(largest_within(p, bound), abs=1e-9 if bound > 1e-6 else 1e-6)


def test_of_a_link_that_never_failed_the_bound_is_certainty():
    assert largest_within(1.0, 5.0) == 1.0 == largest_within(1.0, 0.0)


def test_an_untried_link_has_cost_one_and_exploration_lowers_the_others():
    assert KlCost(0.3)(Record(), 100, Random(0)) == 1.0
    record = Record(10, 40)
    assert KlCost(0.3)(record, 1, Random(0)) == pytest.approx(4.0)
    costs = [KlCost(c)(record, 1000, Random(0)) for c in (0.1, 0.3, 1.0)]
    assert 4.0 > costs[0] > costs[1] > costs[2] > 1.0


@pytest.mark.parametrize("doubt", [0.0, 1.0, 5.0])
def test_thompson_draws_from_the_doubled_posterior(doubt):
    """The mean of Beta(a, b) is a / (a + b), its variance a b / ((a + b)^2 (a + b + 1))."""
    rng, record, draws = Random(3), Record(10, 40), 20_000
    thetas = [1 / ThompsonCost(doubt)(record, 1, rng) for _ in range(draws)]
    a, b = 21, 61 + 2 * doubt
    mean, variance = a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1))
    error = math.sqrt(variance / draws)
    assert abs(fmean(thetas) - mean) < 4 * error
    assert fmean((theta - mean) ** 2 for theta in thetas) == pytest.approx(variance, rel=0.05)


@pytest.mark.parametrize("doubt", [-1.0, math.nan, math.inf])
def test_a_doubt_that_is_none_is_refused(doubt):
    with pytest.raises(ConfigError, match="doubt"):
        ThompsonCost(doubt)


def test_a_fade_forgets():
    record = Record()
    for attempts in (4, 2):
        record.learn(attempts, fade=0.5)
    assert (record.delivered, record.attempts) == (1.5, 4.0)
    assert mean_cost(record) == pytest.approx(4 / 1.5) and mean_cost(Record()) == 0


def test_epsilon_greedy_explores_with_probability_one_over_visits():
    rng, draws = Random(1), 20_000
    worst = sum(epsilon_greedy([7, 8, 9], 4, {7: 2.0, 8: 1.0, 9: 3.0}.__getitem__, rng) == 9 for _ in range(draws))
    expected = draws / 4 / 3
    assert abs(worst - expected) < 4 * math.sqrt(expected)


@given(st.integers(1, 3000))
def test_a_stride_meets_every_place_once(size):
    assert len({n * stride(size) % size for n in range(size)}) == size


@pytest.mark.parametrize("wrong", [0.0, -0.1, 1.5, math.nan])
def test_what_is_no_probability_is_refused(wrong):
    with pytest.raises(ConfigError, match="exploration"):
        KlCost(wrong)
    with pytest.raises(ConfigError, match="fade"):
        checked_fade(wrong)
    with pytest.raises(ProtocolError, match="rate of success"):
        largest_within(wrong, 1.0)


@pytest.mark.parametrize("attempts", [0, -1, math.nan, math.inf])
def test_attempts_below_one_are_refused(attempts):
    with pytest.raises(ProtocolError, match="attempts"):
        Record().learn(attempts)
