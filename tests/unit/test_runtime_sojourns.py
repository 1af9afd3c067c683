"""Sojourn times that a bolt takes from its reads, beside those of each tuple."""

from __future__ import annotations

import random

import pytest

from leeward.runtime.pipe.loop import SAMPLED
from leeward.runtime.pipe.sojourns import Sojourns


def bolt(rate: float, service, tuples: int, rng: random.Random, every: int = 1) -> tuple[float, float]:
    """(mean sojourn time as the bolt takes it, exact mean) of a bolt that reads all that is there; Poisson arrivals.

    `every`: of so many reads the tuples of one are timed.
    """
    sojourns, exact, now, arrivals = Sojourns(), 0.0, 0.0, []
    at = 0.0
    for _ in range(tuples):
        at += rng.expovariate(rate)
        arrivals.append(at)
    first = reads = 0
    while first < tuples:
        there = arrivals[first] <= now
        now = max(now, arrivals[first])
        last = first
        while last < tuples and arrivals[last] <= now:
            last += 1
        reads = (reads + 1) % every
        if reads < 2:
            sojourns.read(now, there=there)
        began = now
        for arrived in arrivals[first:last]:
            now += service(rng)
            exact += now - arrived
        if reads == 1 % every:
            sojourns.processed(last - first, now - began)
        first = last
    return sojourns.seconds / sojourns.tuples, exact / tuples


@pytest.mark.parametrize("used", [0.1, 0.5, 0.8, 0.9])
@pytest.mark.parametrize(
    "service", [lambda rng: 0.001, lambda rng: rng.expovariate(1000.0)], ids=["equal", "exponential"]
)
def test_the_mean_is_that_of_the_tuples(used, service):
    taken, exact = bolt(1000.0 * used, service, 40_000, random.Random(7))
    assert taken == pytest.approx(exact, rel=0.05)


@pytest.mark.parametrize("used", [0.3, 0.7])
def test_a_sample_of_the_reads_has_the_same_mean(used):
    taken, exact = bolt(1000.0 * used, lambda rng: rng.expovariate(1000.0), 200_000, random.Random(3), SAMPLED)
    assert taken == pytest.approx(exact, rel=0.05)


def test_a_tuple_that_was_waited_for_has_not_waited():
    sojourns = Sojourns()
    sojourns.read(5.0, there=True)  # the first read: nothing is known of the time before
    sojourns.processed(1, 0.25)
    assert (sojourns.tuples, sojourns.seconds) == (1, 0.25)
    sojourns.read(9.0, there=False)
    sojourns.processed(1, 0.25)
    assert sojourns.seconds == 0.5
    sojourns.read(10.0, there=True)
    sojourns.processed(2, 0.5)
    assert sojourns.seconds == pytest.approx(0.5 + 2 * 0.5 + 0.25 + 0.5)


def test_a_tuple_of_a_queue_is_timed_by_itself():
    sojourns = Sojourns()
    sojourns.one(0.75)
    assert (sojourns.tuples, sojourns.seconds) == (1, 0.75)
