"""The worth of a replica is found although plans add it when the load is high, and outliers do not rule it."""

import random

import pytest

from tests.bench.replica_worth import LEAST, RESULT, SETTLED_S, Sample, common, samples_of, saved_s

SAVED_S = 0.018


def measured(t: float, replicas: int, rate: float, response_s: float, state: str = "idle") -> dict:
    return {
        "action": "measured", "t": t, "state": state, "rates": {"source": rate, "rank": 2 * rate},
        "deployment": {"source": {"a": 1}, "rank": {"a": replicas}}, "response_s": response_s,
    }  # fmt: skip


def seconds(replicas: int, rates: range, rng: random.Random) -> list[Sample]:
    def time_s(rate: float) -> float:
        queued = 1.0 if rng.random() < 0.1 else 0.0
        return 0.01 + 4e-4 * rate + queued - SAVED_S * (replicas - 2) + rng.gauss(0, 0.003)

    return [Sample(rate, 2 * rate, time_s(rate)) for rate in rates for _ in range(4)]


def test_the_load_of_the_seconds_with_more_replicas_is_not_held_against_them():
    rng = random.Random(0)
    fewer, more = seconds(2, range(100, 180), rng), seconds(3, range(140, 220), rng)
    assert saved_s(*common(fewer, more)) == pytest.approx(SAVED_S, abs=0.003)


def test_only_rates_that_both_had_are_compared():
    fewer, more = common([Sample(1, own, 0) for own in range(100)], [Sample(1, own, 0) for own in range(50, 150)])
    assert {one.own for one in fewer} == {one.own for one in more} == set(range(52, 98))


def test_seconds_soon_after_a_change_and_within_one_are_left_out():
    events = [measured(t, 2, 100, 0.1) for t in range(100)]
    events += [measured(t, 2, 100, 9.9, state="migrating") for t in range(100, 103)]
    events += [measured(t, 3, 100, 9.9) for t in range(103, 103 + int(SETTLED_S))]
    events += [measured(t, 3, 100, 0.08) for t in range(103 + int(SETTLED_S), 200)]
    (((others, whose), found),) = samples_of(events, "source", "rank").items()
    assert (others, whose) == ((("source", 1),), RESULT)
    assert [{one.time_s for one in found[k]} for k in (2, 3)] == [{0.1}, {0.08}]
    assert len(found[2]) == 100 - SETTLED_S and len(found[3]) < LEAST[RESULT]
