# ruff: noqa: SIM300  (R is a metric, not a constant)
"""Curves fitted to measurements: exact where they can be, increasing always, nothing beyond the range."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.core.fields import FieldError
from leeward.policies.edrp.methods import solve
from leeward.policies.edrp.problem.document import problem_from_json, problem_to_json
from leeward.policies.edrp.problem.polynomial import Polynomial, fit_polynomial
from tests.helpers.solve_builders import chain_document


def test_an_increasing_polynomial_is_found_again():
    rates = [20, 60, 100, 150, 220, 300]
    curve = fit_polynomial(rates, [0.01 + 1e-7 * x**2 for x in rates], 3)
    assert curve.response_s(200, 1) == pytest.approx(0.014, rel=1e-9)
    assert curve.response_s(200, 2) == pytest.approx(0.011, rel=1e-9)
    assert curve.residual_s == pytest.approx(0.0, abs=1e-12)
    assert (curve.low_tps, curve.high_tps) == (20, 300)


def test_beyond_the_measured_range():
    curve = Polynomial(coefficients=(0.0, 1e-4), low_tps=50.0, high_tps=100.0)
    assert curve.response_s(101, 1) == math.inf
    assert curve.response_s(100, 1) == pytest.approx(0.01)
    assert curve.response_s(10, 1) == pytest.approx(0.005)  # as at the lowest rate measured


def test_the_residual_is_the_root_mean_square():
    curve = fit_polynomial([0, 0, 1, 1], [0.0, 2.0, 1.0, 3.0], 1)
    assert curve.residual_s == pytest.approx(1.0)
    assert curve.response_s(1, 1) == pytest.approx(2.0)


def test_noise_that_falls_gives_a_flat_curve():
    curve = fit_polynomial([1, 2, 3, 4], [4.0, 3.0, 2.0, 1.0], 2)
    assert curve.response_s(1, 1) == pytest.approx(2.5)
    assert curve.response_s(4, 1) == pytest.approx(2.5)
    assert curve.residual_s == pytest.approx(math.sqrt(1.25))


MEASUREMENTS = st.lists(st.tuples(st.integers(0, 60), st.floats(0.0, 0.5)), min_size=6, max_size=25)


@settings(max_examples=300)
@given(points=MEASUREMENTS, degree=st.integers(1, 5))
def test_a_fit_increases_and_no_increasing_polynomial_is_nearer(points, degree):
    rates = [5.0 * rate for rate, _ in points]
    if len(set(rates)) <= degree:
        with pytest.raises(FieldError, match="do not determine"):
            fit_polynomial(rates, [value for _, value in points], degree)
        return
    x, y = np.array(rates), np.array([value for _, value in points])
    curve = fit_polynomial(x, y, degree)
    grid = np.linspace(curve.low_tps, curve.high_tps, 400)
    values = np.array([curve.response_s(rate, 1) for rate in grid])
    assert (np.diff(values) >= -1e-9).all() and values[0] >= 0

    def error(other) -> float:
        return float(np.sqrt(np.mean((other - y) ** 2)))

    fitted = np.array([curve.response_s(rate, 1) for rate in x])
    assert curve.residual_s == pytest.approx(error(fitted), abs=1e-7)
    # the feasible set is convex, so it is enough that no step towards an increasing polynomial improves
    unit = (x - curve.low_tps) / (curve.high_tps - curve.low_tps)
    for power in range(degree + 1):
        assert error(fitted + 1e-3 * unit**power) >= curve.residual_s - 1e-9
    assert error(np.full(len(y), y.mean())) >= curve.residual_s - 1e-9
    if degree > 1:
        assert fit_polynomial(x, y, degree - 1).residual_s >= curve.residual_s - 1e-7


@pytest.mark.parametrize(
    ("rates", "responses", "degree", "field"),
    [
        ([1, 2], [1.0], 1, "responses"),
        ([1, math.nan], [1.0, 1.0], 1, "rates[1]"),
        ([1, 2], [1.0, -1.0], 1, "responses[1]"),
        ([1, 2], [1.0, 1.0], 0, "degree"),
        ([1, 1, 1], [1.0, 1.0, 2.0], 1, "rates"),
    ],
)
def test_measurements_that_are_none_are_refused(rates, responses, degree, field):
    with pytest.raises(FieldError) as caught:
        fit_polynomial(rates, responses, degree)
    assert caught.value.field == field


def fitted_document(**changes: object) -> dict:
    document = chain_document()
    del document["operators"][1]["mu"]
    curve = {"coefficients": [0.005, 0.0, 1e-6], "range": [10, 120], "residual": 0.0004}
    document["operators"][1]["polynomial"] = curve | changes
    return document


def test_the_format_reads_writes_and_solves_it():
    problem = problem_from_json(fitted_document())
    assert problem.operators[1].curve.response_s(100, 1) == pytest.approx(0.015)
    assert problem_from_json(json.loads(json.dumps(problem_to_json(problem)))) == problem
    outcome = solve(problem, method="ilp")
    assert outcome.metrics.R == pytest.approx(0.005 + 0.015 + 0.01 + 0.01)


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"coefficients": []}, "operators[1].polynomial.coefficients", "empty"),
        ({"coefficients": [0.1, math.nan]}, "operators[1].polynomial.coefficients[1]", "finite"),
        ({"coefficients": [0.1, -1e-4]}, "operators[1].polynomial", "falls between the rates 10 and 120"),
        ({"coefficients": [-0.1, 1e-4]}, "operators[1].polynomial", "negative at the lowest rate"),
        ({"range": [10]}, "operators[1].polynomial.range", "not a range"),
        ({"range": [10, 10]}, "operators[1].polynomial.range[1]", "exceed"),
        ({"range": [-1, 10]}, "operators[1].polynomial.range[0]", "0 or more"),
        ({"residual": -1}, "operators[1].polynomial.residual", "0 or more"),
        ({"degree": 2}, "operators[1].polynomial.degree", "unknown key"),
    ],
)
def test_a_wrong_curve_is_named(changes, field, reason):
    with pytest.raises(FieldError) as caught:
        problem_from_json(fitted_document(**changes))
    assert caught.value.field == field
    assert reason in caught.value.reason
