"""The benchmark of models predicts each span by those before it alone."""

from __future__ import annotations

import pytest

from tests.benches import bench_module

with bench_module("models") as models:
    errors_of = models.errors_of


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
