"""Health, need, and both rules: closed forms, and what holds for every load."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.policies.agiledart.scaling.health import Load, health, need, solution, whole
from leeward.policies.agiledart.scaling.rules import GuardedRule, Rule, SecantRule

RATES = st.floats(0.01, 1e5)
QUEUES = st.one_of(st.just(0.0), st.floats(0.01, 1e6))
WORTHS = st.floats(0.1, 1e3)
DRAIN_S = 30.0


def search(rule: Rule, x: int, load, most: int = 60) -> list[int]:
    """All numbers until it rests; `load`: x -> measurement."""
    numbers = [x]
    for _ in range(most):
        answer = rule.tell(load(numbers[-1]))
        if answer == "rest":
            return numbers
        if answer != "measure":
            numbers.append(answer)
    raise AssertionError(f"no rest: {numbers}")


def of(r: float, R: float, Q: float):
    return lambda x: Load(x=x, r=r, R=R, Q=Q)


# --- health


def test_health_and_its_solution_are_those_of_the_paper():
    load = Load(x=10, r=30.0, R=600.0, Q=50.0)
    assert health(10, load, q=10.0, a=0.5) == pytest.approx(0.5 * 300 / 600 + 0.5 * 100 / 50)
    assert solution(load, q=10.0, a=0.5) == pytest.approx(8.0), "the harmonic mean of 20 and 5"
    assert health(8, load, q=10.0, a=0.5) == pytest.approx(1.0)
    assert need(load, drain_s=10.0) == pytest.approx((600 + 5) / 30)


def test_an_empty_queue_has_the_solution_0():
    empty = Load(x=5, r=30.0, R=600.0, Q=0.0)
    assert health(5, empty, q=10.0, a=0.5) == math.inf and solution(empty, q=10.0, a=0.5) == 0
    assert health(0, empty, q=10.0, a=0.5) == 0
    assert health(5, empty, q=10.0, a=1.0) == pytest.approx(0.25), "a term without weight does not count"


@pytest.mark.parametrize(("x", "number"), [(0.0, 0), (2.0, 2), (2.0000000001, 2), (2.01, 3), (-1.0, 0)])
def test_numbers_are_rounded_up(x, number):
    assert whole(x) == number


# --- the paper's rule


@pytest.mark.parametrize("guesses", [(0, 10), (10, 20), (1, 100), (7, 3)])
@pytest.mark.parametrize(("r", "q"), [(30.0, 10.0), (10.0, 30.0)])
def test_the_secant_finds_the_solution_after_two_guesses(guesses, r, q):
    load = of(r, 900.0, 400.0)
    rule = SecantRule(q=q, second=guesses[1])
    numbers = search(rule, guesses[0], load)
    assert numbers[-1] == whole(solution(load(1), q=q, a=0.5)) and rule.evaluations <= 4


@given(
    r=WORTHS, q=WORTHS, R=RATES, Q=QUEUES, a=st.floats(0.05, 0.95), x=st.integers(0, 500), second=st.integers(0, 500)
)
def test_the_secant_needs_at_most_four_evaluations(r, q, R, Q, a, x, second):
    rule = SecantRule(q=q, a=a, second=second)
    numbers = search(rule, x, of(r, R, Q))
    assert rule.evaluations <= 4 and all(number >= 0 for number in numbers)


def test_the_secant_rests_until_a_new_phase():
    rule = SecantRule(q=10.0)
    x = search(rule, 5, of(30.0, 900.0, 300.0))[-1]
    assert rule.tell(Load(x=x, r=30.0, R=905.0, Q=301.0)) == "rest"
    assert rule.tell(Load(x=x, r=30.0, R=1_800.0, Q=600.0)) == x + 1 and rule.evaluations == 1


def test_the_secant_rests_where_it_cannot_have_its_guess():
    rule = SecantRule(q=10.0)
    assert [rule.tell(Load(x=3, r=30.0, R=900.0, Q=300.0)) for _ in range(3)] == [4, "rest", "rest"]


def test_without_any_load_the_secant_goes_to_0():
    assert search(SecantRule(q=10.0), 4, of(30.0, 0.0, 0.0))[-1] == 0


# --- the guarded rule


@given(r=WORTHS, R=RATES, Q=QUEUES, x=st.integers(0, 10_000))
def test_without_noise_two_evaluations_serve_the_rate_and_the_queue(r, R, Q, x):
    rule = GuardedRule(drain_s=DRAIN_S)
    numbers = search(rule, x, of(r, R, Q))
    assert rule.evaluations <= 2 and numbers[-1] * r >= R * (1 - 1e-8)
    least = max(1, whole(need(Load(x=1, r=r, R=R, Q=Q), drain_s=DRAIN_S)))
    assert len(numbers) == 1 or numbers[-1] == least, "it rests, or goes to the least that serves"
    assert numbers[-1] >= 0.98 * least - 1


@given(r=WORTHS, R=RATES, Q=QUEUES, x=st.integers(1, 1_000))
def test_at_rest_it_stays_at_rest(r, R, Q, x):
    rule, load = GuardedRule(drain_s=DRAIN_S), of(r, R, Q)
    rested = search(rule, x, load)[-1]
    assert [rule.tell(load(rested)) for _ in range(4)] == ["rest"] * 4


@given(R=RATES, Q=QUEUES, x=st.integers(1, 500), power=st.floats(0.3, 1.0), r=WORTHS)
def test_it_never_oscillates_where_each_further_instance_is_worth_less(R, Q, x, power, r):
    """f(x) grows as x^power, its slope is under f/x, and each move after the first is by half or twice at most.

    It comes back to a number at most once: with few instances one fewer may not serve, though one is too many.
    """
    rule = GuardedRule(drain_s=DRAIN_S)
    top = max(1.0, ((R + Q / DRAIN_S) / r) ** (1 / power))
    if top > 1e6:
        return
    numbers = search(rule, x, lambda n: Load(x=n, r=r * n ** (power - 1), R=R, Q=Q))
    assert max(Counter(numbers).values()) <= 2
    for before, after in pairwise(numbers[1:]):
        assert before / 2 - 1 <= after <= 2 * before
    assert numbers[-1] ** power * r >= R * (1 - 1e-8)


@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6), WORTHS), min_size=1, max_size=60), st.integers(0, 2**32)
)
def test_bounds_hold_whatever_it_is_told(told, seed):
    rng, rule, x, moved = Random(seed), GuardedRule(drain_s=DRAIN_S, window=3), 4, False
    for R, Q, r in told:
        answer = rule.tell(Load(x=x, r=r, R=R, Q=Q))
        if answer == "rest":
            moved = False
        elif answer != "measure":
            assert answer >= 1 and answer != x
            if moved:
                assert x / 2 <= answer <= 2 * x
            if rng.random() < 0.7:  # else it was refused
                x, moved = answer, True
        if rng.random() < 0.1:  # replicas were lost, or a person has changed them, and then back
            x, moved = (x + 1 if rng.random() < 0.5 else max(1, x - 1)), False


def test_with_no_load_one_instance_stays():
    assert search(GuardedRule(drain_s=DRAIN_S), 9, of(30.0, 0.0, 0.0)) == [9, 1]
    assert search(GuardedRule(drain_s=DRAIN_S), 1, of(30.0, 0.0, 0.0)) == [1]
    assert search(GuardedRule(drain_s=DRAIN_S), 0, of(30.0, 100.0, 0.0)) == [0, 4]


def test_a_window_is_of_one_number_of_instances():
    rule = GuardedRule(drain_s=DRAIN_S, window=3)
    load = of(10.0, 200.0, 0.0)
    assert [rule.tell(load(5)) for _ in range(2)] == ["measure"] * 2
    assert [rule.tell(load(6)) for _ in range(4)] == ["measure", "measure", 20, 20], "said again until it is there"
    assert [rule.tell(load(20)) for _ in range(3)] == ["measure", "measure", "rest"] and rule.evaluations == 2


def test_a_number_that_is_back_before_another_was_evaluated_is_evaluated_anew():
    rule = GuardedRule(drain_s=DRAIN_S, window=3)
    answers = [rule.tell(Load(x=x, r=10.0, R=80.0, Q=0.0)) for x in (4, 4, 4, 8, 4, 4, 4)]
    assert answers == ["measure", "measure", 8, "measure", "measure", "measure", 8]


def test_it_rests_in_the_band_of_the_spec():
    for x, answer in ((97, 100), (98, "rest"), (105, "rest"), (106, 100)):
        # a queue that makes a thirtieth of the need, so that the rate is served below 1
        assert GuardedRule(drain_s=DRAIN_S).tell(Load(x=x, r=10.0, R=970.0, Q=900.0)) == answer
    assert GuardedRule(drain_s=DRAIN_S).tell(Load(x=99, r=10.0, R=1_000.0, Q=0.0)) == 100, "the rate is not served"
    assert GuardedRule(drain_s=DRAIN_S).tell(Load(x=4, r=10.0, R=32.5, Q=0.0)) == "rest", "1/x"


def test_under_noise_it_settles_and_serves():
    rng, evaluations = Random(3), []
    for _ in range(500):
        rule, x = GuardedRule(drain_s=DRAIN_S, window=25), 3
        answer: object = "measure"
        while answer != "rest":
            for _ in range(25):
                noise = max(0.0, rng.gauss(1, 0.1))
                answer = rule.tell(Load(x=x, r=10.0, R=500 * noise, Q=600 * noise))
            x = answer if isinstance(answer, int) else x
        assert x * 10 >= 500
        evaluations.append(rule.evaluations)
    assert max(evaluations) <= 6 and sum(count <= 4 for count in evaluations) >= 498
