"""What handovers are expected to cost, from what they did."""

from __future__ import annotations

import random

import pytest

from leeward.control.costs import KEEP, PRIOR, HandoverCosts, estimate
from leeward.core.model import HandoverCost


def test_the_prior_holds_until_something_was_measured():
    assert estimate([], prior=HandoverCost(1.0, 2.0)) == (1.0, 2.0)
    assert HandoverCosts().fit() == PRIOR


def test_a_line_is_found():
    seen = [(size, 0.02 + 3e-8 * size) for size in (0, 1e5, 5e6, 1e6)]
    assert estimate(seen) == (pytest.approx(0.02), pytest.approx(3e-8))


def test_one_in_four_may_be_off():
    rng = random.Random(1)
    seen = [(size * 1e5, 0.02 + 3e-8 * size * 1e5) for size in range(16)]
    for at in rng.sample(range(16), 4):
        seen[at] = (seen[at][0], rng.choice([0.0, 5.0]))
    constant, slope = estimate(seen)
    assert constant == pytest.approx(0.02, abs=0.01) and slope == pytest.approx(3e-8, rel=0.2)


def test_while_all_moved_as_much_a_byte_costs_the_prior_but_no_more_than_was_waited():
    assert estimate([(1000, 0.5)], prior=HandoverCost(9.0, 1e-4)) == (pytest.approx(0.4), 1e-4)
    assert estimate([(1000, 0.5), (1000, 0.7)], prior=HandoverCost(9.0, 1e-4)) == (pytest.approx(0.5), 1e-4)
    assert estimate([(1000, 0.05)], prior=HandoverCost(9.0, 1e-4)) == (0.0, pytest.approx(5e-5))
    assert estimate([(0, 0.5)], prior=HandoverCost(9.0, 1e-4)) == (0.5, 1e-4)


def test_neither_part_is_negative():
    assert estimate([(0, 0.3), (1000, 0.2), (2000, 0.1)]) == (0.2, 0.0)
    constant, slope = estimate([(1000, 0.0), (2000, 0.3), (3000, 0.6)])
    assert constant == 0.0 and slope == pytest.approx(3e-4)


def test_they_say_how_far_off_the_estimate_is():
    costs = HandoverCosts()
    assert costs.off_s() is None and len(costs) == 0
    for size, off in ((0, 0.01), (1e6, -0.01), (2e6, 0.01), (3e6, -0.01)):
        costs.add(size, 0.1 + 1e-8 * size + off)
    assert costs.off_s() == pytest.approx(0.01, abs=0.005) and len(costs) == 4


def test_only_the_newest_count():
    costs = HandoverCosts()
    for _ in range(KEEP):
        costs.add(0, 9.0)
    for size in range(KEEP):
        costs.add(size, 1.0 + size)
    assert costs.fit() == (pytest.approx(1.0), pytest.approx(1.0))
