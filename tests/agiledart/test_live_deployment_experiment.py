"""The applications and the figures of the run of agents as processes."""

from __future__ import annotations

from random import Random

import pytest

from leeward.policies.agiledart.experiments.live_deployment import FLAT, FULL, OPERATORS, QUICK, batch, conclude


def document(*seconds: float, status: str = "placed") -> dict:
    """`accepted_s`, which Nimbus' documents have, is half of the time."""
    rows = [{"seconds": one, "accepted_s": one / 2, "status": status} for one in seconds]
    return {"seconds": max(seconds), "applications": rows}


def test_applications_have_names_of_their_own_and_two_different_ends():
    found = batch(QUICK, 10, 3, Random(1))
    assert len({one.application for one, _ in found}) == 10 and all(0 <= owner < QUICK.agents for _, owner in found)
    for one, _ in found:
        first, *between, last = one.operators
        assert (
            len(one.operators) == OPERATORS and first.nodes != last.nodes and len(first.nodes) == len(last.nodes) == 1
        )
        assert not any(operator.nodes for operator in between)
    assert batch(QUICK, 10, 3, Random(1)) == found


def test_figures_are_means_of_runs_and_judged_by_their_bounds():
    runs = {1: [document(0.1), document(0.3)], 100: [document(0.2, 0.5)]}
    rows = {(row.setting, row.metric): row for row in conclude(FULL, runs, 0).rows}
    assert rows["60 processes, 1 at once, mean of 2", "until all are placed"].ours == 200
    assert rows["60 processes, 100 at once, mean of 1", "an application"].ours == 350
    flat = rows["60 processes", "until all are placed, 100 over 1"]
    assert (flat.ours, flat.high, flat.met) == (2.5, FLAT, False)
    refused = conclude(FULL, {1: [document(0.1, status="refused")], 10: [document(0.1)]}, 1).rows
    assert [row.met for row in refused if row.metric == "applications that are placed"] == [False, True]
    assert [row.met for row in refused if row.metric == "agents that held more than they can"] == [False]


def test_a_quick_run_has_no_bound_of_time():
    rows = conclude(QUICK, {1: [document(0.1)], 10: [document(0.9)]}, 0).rows
    assert [row.met for row in rows if row.metric.startswith("until all are placed, ")] == [None]


def test_nimbus_grows_more_than_the_agents_or_the_row_is_not_met():
    """Agents: 10 ms each one more. Nimbus: 20 ms, and then 5 ms."""
    agents = {1: [document(0.1)], 101: [document(1.1, 0.1)]}
    for last, growth, met in ((2.5, 20, True), (1.0, 5, False)):
        found = conclude(FULL, agents, 0, {1: [document(0.5)], 101: [document(last)]})
        rows = {(row.setting, row.metric): row for row in found.rows}
        where = "Nimbus beside agents, until all are placed"
        assert rows[where, "Nimbus over agents, 1 at once"].ours == pytest.approx(5)
        assert rows[where, "agents: each one more, 1 to 101"].ours == pytest.approx(10)
        assert rows[where, "Nimbus: each one more, 1 to 101"].ours == pytest.approx(growth)
        assert rows[where, "each one more, Nimbus over agents"].met is met
        first = "Nimbus of 60 nodes, 1 at once, mean of 1"
        assert rows[first, "a topology, from its acceptance on"].ours == pytest.approx(250)
        assert len(found.panels[0].curves) == 4 and len(found.notes) == 5


def test_without_nimbus_there_is_no_row_and_no_note_of_it():
    found = conclude(FULL, {1: [document(0.1)], 100: [document(0.2)]}, 0)
    assert not any("Nimbus" in f"{row.setting} {row.metric}" for row in found.rows) and len(found.notes) == 2
