"""Response-time curves from noisy stays: queues of known form are found, and no fit is absurd."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from leeward.control.learning.curves import HALF_LIFE_S, LEAST_GROWTH, CurveLearner, Stay
from leeward.control.learning.winsorizing import SHIFTED

SERVICE_S = 0.004


def pollaczek_khinchine(rate: float, service_s: float, variation: float) -> float:
    """Mean sojourn time of an M/G/1 queue, s."""
    rho = rate * service_s
    return service_s + rate * service_s**2 * (1 + variation) / 2 / (1 - rho)


def stays_of_a_queue(rate: float, draw, tuples: int, rng: random.Random) -> Stay:
    """One span of a first-in-first-out queue with Poisson arrivals, by Lindley's recursion."""
    waits = arrives = busy = total = free_at = 0.0
    for _ in range(tuples):
        arrives += rng.expovariate(rate)
        begins, service = max(arrives, free_at), draw(rng)
        free_at, busy, waits = begins + service, busy + service, begins - arrives
        total += waits + service
    return Stay(tuples=tuples, sojourn_s=total / tuples, service_s=busy / tuples, busy=busy / max(arrives, free_at))


DRAWS = {
    "equal": (lambda rng: SERVICE_S, 0.0),
    "exponential": (lambda rng: rng.expovariate(1 / SERVICE_S), 1.0),
    "one in ten is slow": (lambda rng: SERVICE_S * (5.5 if rng.random() < 0.1 else 0.5), 2.25),
}


@pytest.mark.parametrize("name", DRAWS)
def test_queues_are_learnt_from_their_tuples(name):
    """60 spans of 500 tuples: within 10 % of the exact time between the rates that were seen."""
    (draw, variation), rng, learner = DRAWS[name], random.Random(5), CurveLearner()
    for span in range(60):
        learner.add(stays_of_a_queue(rng.uniform(0.2, 0.8) / SERVICE_S, draw, 500, rng), 10.0 * span)
    curve = learner.fit(SERVICE_S)
    for rho in (0.3, 0.5, 0.7):
        exact = pollaczek_khinchine(rho / SERVICE_S, SERVICE_S, variation)
        assert curve.response_s(rho / SERVICE_S) == pytest.approx(exact, rel=0.1)
        assert curve.error(rho / SERVICE_S) < 0.1
    assert curve.seen(0.5 / SERVICE_S) and not curve.seen(0.95 / SERVICE_S)


def line(rho: float, rest: float, growth: float, *, service_s: float = SERVICE_S) -> Stay:
    response = service_s * (rest + growth * rho / (1 - rho))
    return Stay(tuples=1000, sojourn_s=response, service_s=service_s, busy=rho)


def test_before_any_sample_there_is_no_curve_and_then_the_prior_gives_way():
    learner = CurveLearner()
    assert learner.fit(SERVICE_S) is None
    learner.add(line(0.5, 1.0, 0.5), 0.0)
    first = learner.fit(SERVICE_S)
    assert 0.5 < first.growth < 1.0 and first.error(0.5 / SERVICE_S) > 0.05
    for at in range(50):
        learner.add(line(0.2 + 0.01 * at, 1.0, 0.5), float(at))
    assert learner.fit(SERVICE_S).growth == pytest.approx(0.5, abs=0.02)


def test_a_curve_is_not_sure_of_rates_that_were_not_seen():
    learner = CurveLearner()
    for at in range(100):
        learner.add(line(0.05, 1.0, 0.5), float(at))
    curve = learner.fit(SERVICE_S)
    assert curve.error(0.05 / SERVICE_S) < 0.05
    assert curve.error(0.9 / SERVICE_S) > 0.2
    assert curve.growth == pytest.approx(1.0, abs=0.3), "no sample shows it: M/M/1's stays"


def test_tuples_that_come_in_bursts_are_learnt_however_far_from_the_prior():
    """Query 1's partial ranks get all tuples of a second at its pulse: at 14 % use they stay for 160 service times."""
    learner = CurveLearner()
    for at in range(12):
        learner.add(line(0.02 + 0.01 * at, 1.0, 1000.0), 10.0 * at)
    curve = learner.fit(SERVICE_S)
    exact = SERVICE_S * (1 + 1000 * 0.1 / 0.9)
    assert curve.response_s(0.1 / SERVICE_S) == pytest.approx(exact, rel=0.05)
    assert curve.error(0.1 / SERVICE_S) < 0.2


def seen(growth: float, spans: int, rng: random.Random) -> CurveLearner:
    """After so many spans of a component whose tuples stay as M/M/1 has it, `growth` times as long at full use."""
    learner = CurveLearner()
    for at in range(spans):
        rho = rng.uniform(0.2, 0.7)
        learner.add(line(rho, rng.gauss(1.0, 0.1), rng.gauss(growth, 0.1)), 10.0 * at)
    return learner


def test_a_queue_that_is_left_over_moves_no_curve():
    """While replicas are too few a queue grows; after the plan that added some, it is worked off at moderate use."""
    learner = seen(1.0, 30, random.Random(5))
    for at in range(5):
        learner.add(line(0.65, 1.0, 20.0), 300.0 + 10.0 * at)
    exact = SERVICE_S / (1.0 - 0.6)
    assert learner.fit(SERVICE_S).response_s(0.6 / SERVICE_S) == pytest.approx(exact, rel=0.1)


def test_times_that_stay_long_become_the_curve():
    rng = random.Random(6)
    learner = seen(1.0, 60, rng)
    for at in range(4 * SHIFTED):
        learner.add(line(rng.uniform(0.2, 0.7), 1.0, rng.gauss(50.0, 5.0)), 600.0 + 10.0 * at)
    assert learner.fit(SERVICE_S).growth > 15


def test_bursts_of_seconds_are_learnt_once_they_last():
    """A window that emits all at once: its tuples stay for seconds at next to no use, in each span."""
    learner = CurveLearner()
    for at in range(2 * SHIFTED):
        learner.add(Stay(tuples=500, sojourn_s=2.0, service_s=SERVICE_S, busy=0.2), 10.0 * at)
    assert learner.fit(SERVICE_S).response_s(0.2 / SERVICE_S) == pytest.approx(2.0, rel=0.1)


def test_what_was_is_forgotten():
    learner = CurveLearner()
    for at in range(100):
        learner.add(line(0.3 + 0.005 * at, 1.0, 2.0), float(at))
    for at in range(100):
        learner.add(line(0.3 + 0.005 * at, 1.0, 0.5), 10 * HALF_LIFE_S + at)
    assert learner.fit(SERVICE_S).growth == pytest.approx(0.5, abs=0.05)


def test_it_has_the_limit_of_a_queue_even_if_no_tuple_ever_waited():
    learner = CurveLearner()
    for at in range(100):
        learner.add(line(0.5 + 0.004 * at, 1.0, 0.0), float(at))
    curve = learner.fit(SERVICE_S)
    assert curve.growth >= LEAST_GROWTH
    assert curve.response_s(1 / SERVICE_S) == math.inf and curve.response_s(2 / SERVICE_S) == math.inf


def test_stays_that_say_nothing_are_left_out():
    learner = CurveLearner()
    for change in (
        {"tuples": 3},
        {"sojourn_s": 2.0},
        {"busy": 0.99},
        {"busy": 0.0},
        {"sojourn_s": math.nan},
        {"service_s": 0.0},
    ):
        stay = {"tuples": 100, "sojourn_s": 0.01, "service_s": 0.004, "busy": 0.5} | change
        learner.add(Stay(**stay), 0.0)
    assert learner.fit(SERVICE_S) is None


figures = st.floats(min_value=1e-9, max_value=1e9)


@given(
    stays=st.lists(st.tuples(figures, figures, st.floats(0.001, 0.95), st.floats(0.0, 1e6)), min_size=1, max_size=30),
    service_s=st.floats(1e-6, 10.0),
)
@settings(max_examples=100)
def test_every_fit_rises_and_is_a_number_that_is_not_negative(stays, service_s):
    learner, now = CurveLearner(), 0.0
    for sojourn_s, service, busy, passed in stays:
        now += passed
        learner.add(Stay(tuples=100, sojourn_s=sojourn_s, service_s=service, busy=busy, span_s=math.inf), now)
    curve = learner.fit(service_s)
    before = 0.0
    for rho in (0.0, 0.1, 0.5, 0.9, 0.99):
        response, error = curve.response_s(rho / service_s), curve.error_s(rho / service_s)
        assert 0.0 <= before <= response < math.inf
        assert 0.0 <= error < math.inf
        before = response


@given(rest=st.floats(0.2, 3.0), growth=st.floats(0.2, 5.0), seed=st.integers(0, 1000))
@example(rest=0.25, growth=5.0, seed=322)  # noise that grows ninefold with the utilisation: the error is told too small
@settings(max_examples=50)
def test_a_known_curve_is_recovered_from_noisy_samples(rest, growth, seed):
    rng, learner = random.Random(seed), CurveLearner()
    for at in range(200):
        stay = line(rng.uniform(0.05, 0.9), rest, growth)
        noisy = Stay(
            tuples=stay.tuples, sojourn_s=stay.sojourn_s * rng.uniform(0.8, 1.2), service_s=stay.service_s,
            busy=stay.busy,
        )  # fmt: skip
        learner.add(noisy, float(at))
    curve = learner.fit(SERVICE_S)
    # The error is told too small where b and g are far apart (see the module). The worst of 12,000 draws with b and g
    # alike was 8 % off, and 1.5 % beyond five errors; of 21,000 of all kinds 15 % off, and 3.2 % beyond.
    alike = 0.2 <= growth / rest <= 5
    worst, beyond = (0.15, 0.02) if alike else (0.2, 0.05)
    for rho in (0.1, 0.5, 0.85):
        exact = SERVICE_S * (rest + growth * rho / (1 - rho))
        response = curve.response_s(rho / SERVICE_S)
        assert response == pytest.approx(exact, rel=worst)
        assert abs(response - exact) < 5 * curve.error_s(rho / SERVICE_S) + beyond * exact
