"""Budgets from objectives: the paper's formulas, conservation between tiers, and what is refused."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.core.fields import FieldError
from leeward.policies.dssp.model.budgets import affordable_s, allowance_s, deadline_s, task_percent, unloaded_s


def exponential(mean: float):
    return lambda t: -math.expm1(-t / mean)


@given(st.floats(1, 99.9), st.integers(1, 1000))
def test_tasks_that_keep_their_percentile_keep_that_of_the_query(percent: float, domains: int):
    each = task_percent(percent, domains)
    assert percent <= each * (1 + 1e-12) and each < 100
    assert 100 * (each / 100) ** domains == pytest.approx(percent)


@given(st.floats(1, 99.9), st.integers(1, 200), st.floats(1e-3, 10))
def test_the_unloaded_time_of_equal_nodes_is_the_inverse(percent: float, nodes: int, mean: float):
    wanted = -mean * math.log1p(-((percent / 100) ** (1 / nodes)))
    assert unloaded_s(percent, [exponential(mean)] * nodes) == pytest.approx(wanted, rel=1e-9)


def test_the_unloaded_time_is_the_percentile_of_the_slowest_node():
    means = [0.05, 0.1, 0.2, 0.2]
    found = unloaded_s(95.0, [exponential(mean) for mean in means])
    rng = random.Random(1)
    draws = 40_000
    within = sum(max(rng.expovariate(1 / mean) for mean in means) <= found for _ in range(draws))
    assert within / draws == pytest.approx(0.95, abs=0.005)


def test_a_deadline_is_the_arrival_and_what_the_objective_leaves():
    assert deadline_s(10.0, 1.2, 0.5) == pytest.approx(10.7)
    assert deadline_s(10.0, 1.2, 0.5, spent_s=0.1) == pytest.approx(10.6)
    assert allowance_s(1.2, 0.5, spent_s=0.1) == pytest.approx(0.6)


def test_what_idle_nodes_cannot_keep_is_refused_with_the_least_objective():
    with pytest.raises(FieldError, match=r"idle nodes already take 0\.6 s\. Give 0\.6 or more"):
        allowance_s(0.5, 0.5, spent_s=0.1)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: task_percent(100.0, 3), "percent"),
        (lambda: task_percent(99.0, 0), "domains"),
        (lambda: unloaded_s(99.0, []), "nodes"),
        (lambda: unloaded_s(99.0, [lambda t: 0.5]), "nodes"),
        (lambda: affordable_s(-1.0, 99.0, 3, 1.0), "rate"),
        (lambda: affordable_s(1.0, 99.0, 3, 0.0), "objective_s"),
    ],
)
def test_impossible_values_are_named(call, field):
    with pytest.raises(FieldError, match=field):
        call()


@given(st.floats(0.1, 20), st.floats(50, 99.9), st.integers(1, 50), st.floats(0.05, 5))
def test_nodes_that_are_as_fast_as_is_affordable_just_keep_the_objective(rate, percent, nodes, objective):
    """M/M/1: the response time is exponential with mean 1 / (1 / t_e - lambda)."""
    execution = affordable_s(rate, percent, nodes, objective)
    response = 1 / (1 / execution - rate)
    assert (-math.expm1(-objective / response)) ** nodes == pytest.approx(percent / 100, rel=1e-6)
