"""The benchmark of models predicts each span by those before it alone."""

from __future__ import annotations

import pytest

from tests.helpers.benches import bench_module

with bench_module("models") as models:
    errors_of, path_errors = models.errors_of, models.path_errors


def event(t: float, busy: float, growth: float) -> dict:
    measured_s = 0.01 * (1 + growth * busy / (1 - busy))
    model = {"utilisation": busy, "measured_s": measured_s, "mm1_s": 0.01 / (1 - busy)}
    return {"t": t, "action": "learnt", "models": {"work": model}}


def test_a_span_is_predicted_by_those_before_it():
    spans = [event(10.0 * at, 0.2 + 0.05 * (at % 10), 0.5) for at in range(40)]
    errors = errors_of([{"t": 0.0, "action": "measured"}, *spans])["work"]
    assert errors.unsure >= 5 and len(errors.learnt) + errors.unsure == 40
    assert max(errors.learnt) < 0.1 < max(errors.mm1)
    jump = errors_of([*spans, event(401.0, 0.5, 4.0)])["work"]
    assert jump.learnt[-1] == pytest.approx(1 - 0.015 / 0.05, abs=0.03), "it had not been seen before"


def test_a_new_term_learns_anew():
    spans = [event(10.0 * at, 0.4, 0.5) for at in range(20)]
    once, twice = errors_of(spans)["work"], errors_of([*spans, {"t": 200.0, "action": "leading"}, *spans])["work"]
    assert twice.unsure == 2 * once.unsure


def test_a_path_is_told_by_the_rest_that_was_known_and_left_out_where_the_plan_changes_it():
    learnt = {"t": 0.0, "action": "learnt", "rest": {"seconds": 0.05}}
    plan = {"action": "plan_made", "response_s": 0.06}
    started = {"t": 101.0, "action": "reconfiguration_started"}
    seen = [{"t": float(t), "action": "measured", "response_s": 0.1 if t <= 70 else 9.0} for t in range(61, 200)]
    later = [*seen, {**plan, "t": 100.0}, started]
    found = path_errors([{**plan, "t": -1.0}, learnt, {**plan, "t": 60.0}, *sorted(later, key=lambda one: one["t"])])
    assert (found.parts, found.told, found.measured) == ([0.06], [pytest.approx(0.11)], [pytest.approx(0.1)])
    assert found.off(found.told) == pytest.approx(10.0) and found.off(found.parts) == pytest.approx(40.0)
