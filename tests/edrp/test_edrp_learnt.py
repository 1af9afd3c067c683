"""S-EDRP plans by what the service has learnt, where that is sure enough, and else by its settings."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from leeward.core.learnt import LearntCurve, Restart, StoreLink
from leeward.policies.edrp.policy import LEAST_SAMPLES, build_problem
from leeward.policies.edrp.problem.document import problem_from_json, problem_to_json
from leeward.policies.edrp.problem.latency import MG1, MM1
from leeward.policies.edrp.settings import EdrpSettings
from tests.helpers.control_views import view

SETTINGS = EdrpSettings(headroom=0.0, link_delay_s=0.0)
SURE = LearntCurve(
    service_s=1 / 150, rest=1.1, growth=0.5, samples=100.0, low=0.3, high=0.8, covariance=(0.001, 0.0, 0.001)
)


def learnt_view(curve: LearntCurve | None = None, **changes):
    before = view(**changes)
    work = replace(before.measured["work"], curve=curve)
    return replace(before, measured={**before.measured, "work": work})


def curve_of(before, settings=SETTINGS):
    problem, _ = build_problem(before, settings)
    return problem.operators[2].curve


def test_a_sure_curve_is_used_with_the_service_rate_of_now():
    assert curve_of(learnt_view(SURE)) == MG1(mu=150.0, rest=1.1, growth=0.5)
    assert curve_of(learnt_view(SURE, mu=300.0)) == MG1(mu=300.0, rest=1.1, growth=0.5)


@pytest.mark.parametrize(
    ("curve", "settings"),
    [
        (None, SETTINGS),
        (SURE, replace(SETTINGS, curve="mm1")),
        (replace(SURE, samples=LEAST_SAMPLES / 2), SETTINGS),
        (replace(SURE, covariance=(0.25, 0.0, 0.25)), SETTINGS),
        (SURE, replace(SETTINGS, curve_error=0.001)),
        (replace(SURE, service_s=1.0), SETTINGS),  # the present rate is beyond what a replica can do
    ],
)
def test_else_the_curve_is_m_m_1(curve, settings):
    assert curve_of(learnt_view(curve), settings) == MM1(mu=150.0)


def test_an_overloaded_operator_keeps_its_learnt_form():
    problem, remarks = build_problem(learnt_view(SURE, rate=140.0, mu=40.0), SETTINGS)
    assert problem.operators[2].curve == MG1(mu=pytest.approx(140 / 3 / 0.95), rest=1.1, growth=0.5)
    assert remarks and "work is overloaded" in remarks[0]


def test_the_queue_of_a_curve():
    exponential = MG1(mu=100.0)
    assert exponential.response_s(150.0, 2) == pytest.approx(MM1(mu=100.0).response_s(150.0, 2))
    equal = MG1(mu=100.0, growth=0.5)
    assert equal.response_s(75.0, 1) == pytest.approx(0.01 + 0.5 * 0.03)  # M/D/1 waits half as long
    assert equal.response_s(100.0, 1) == equal.response_s(300.0, 2) == math.inf


def test_a_queue_is_written_and_read_again():
    problem, _ = build_problem(learnt_view(SURE), SETTINGS)
    assert problem_from_json(problem_to_json(problem)) == problem


def test_restarts_that_were_done_price_the_next_one():
    before = replace(view(live=False), restarts=tuple(Restart(n, 9.0 + 1.0 * n) for n in (1, 2, 3, 1, 2, 3)))
    problem, _ = build_problem(before, SETTINGS)
    assert problem.sync_s == pytest.approx(9.0, abs=0.5) and problem.nodes[0].spawn_s == pytest.approx(1.0, abs=0.25)
    asked, _ = build_problem(before, replace(SETTINGS, downtime_model="storm"))
    assert (asked.sync_s, asked.nodes[0].spawn_s) == (6.0, 0.5), "only `auto` learns"


def test_links_to_the_datastore_are_those_measured():
    nodes = view().nodes
    link = StoreLink(up_rate=5e6, down_rate=7e6, trip_s=0.004, ups=3, downs=3)
    problem, _ = build_problem(replace(view(), nodes=(replace(nodes[0], store=link), *nodes[1:])), SETTINGS)
    first, other = problem.nodes[:2]
    assert (first.store_up_rate, first.store_down_rate) == (5e6, 7e6)
    assert (first.store_up_s, first.store_down_s) == (0.002, 0.002)
    assert (other.store_up_rate, other.store_up_s) == (12.5e6, 0.005), "until it is measured, 100 Mbit/s and 5 ms"
