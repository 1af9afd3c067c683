"""The applications and the figures of the run of agents as processes."""

from __future__ import annotations

from random import Random

import pytest

from leeward.core.experiment import Finding
from leeward.core.network_document import parse_network
from leeward.policies.agiledart.experiments.live_deployment import (
    FAR,
    FLAT,
    FULL,
    LOOPBACK,
    NEAR,
    OPERATORS,
    QUICK,
    Documents,
    batch,
    conclude,
    name_of,
)


def document(*seconds: float, status: str = "placed") -> dict:
    """`accepted_s`, which Nimbus' documents have, is half of the time."""
    rows = [{"seconds": one, "accepted_s": one / 2, "status": status} for one in seconds]
    return {"seconds": max(seconds), "applications": rows}


def found(
    loopback: Documents, *, far: Documents | None = None, over: int = 0, nimbus: Documents | None = None
) -> Finding:
    """Of a full run."""
    return conclude(FULL, {"loopback": loopback} | ({"25 to 125 ms": far} if far else {}), over, nimbus)


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
    runs = {1: [document(0.1), document(0.3)], 10: [document(0.2)], 100: [document(0.2, 0.5)]}
    flatter = {1: [document(1.0)], 10: [document(1.0)], 100: [document(1.5)]}
    rows = {(row.setting, row.metric): row for row in found(runs, far=flatter).rows}
    assert rows["60 processes, loopback, 1 at once, mean of 2", "until all are placed"].ours == 200
    assert rows["60 processes, loopback, 100 at once, mean of 1", "an application"].ours == 350
    flat = rows["60 processes, loopback", "until all are placed, 100 over 1"]
    assert (flat.ours, flat.high, flat.met) == (2.5, FLAT, False)
    assert rows["60 processes, 25 to 125 ms", "until all are placed, 100 over 1"].met is True
    refused = found({1: [document(0.1, status="refused")], 10: [document(0.1)], 100: [document(0.1)]}, over=1).rows
    assert [row.met for row in refused if row.metric == "applications that are placed"] == [False, True, True]
    assert [row.met for row in refused if row.metric == "agents that held more than they can"] == [False]


def test_a_quick_run_has_no_bound_of_time():
    rows = conclude(QUICK, {"loopback": {1: [document(0.1)], 10: [document(0.9)]}}, 0).rows
    assert [row.met for row in rows if row.metric.startswith("until all are placed, ")] == [None]


def test_nimbus_grows_more_than_the_agents_or_the_row_is_not_met():
    """Agents: 10 ms each one more. Nimbus: 20 ms, and then 5 ms."""
    agents = {1: [document(0.1)], 10: [document(0.2)], 100: [document(1.09, 0.1)]}
    for last, growth, met in ((2.48, 20, True), (0.995, 5, False)):
        finding = found(agents, nimbus={1: [document(0.5)], 10: [document(0.5)], 100: [document(last)]})
        rows = {(row.setting, row.metric): row for row in finding.rows}
        where = "Nimbus beside agents, loopback, until all are placed"
        assert rows[where, "Nimbus over agents, 1 at once"].ours == pytest.approx(5)
        assert rows[where, "agents: each one more, 1 to 100"].ours == pytest.approx(10)
        assert rows[where, "Nimbus: each one more, 1 to 100"].ours == pytest.approx(growth)
        assert rows[where, "each one more, Nimbus over agents"].met is met
        first = "Nimbus of 60 nodes, 1 at once, mean of 1"
        assert rows[first, "a topology, from its acceptance on"].ours == pytest.approx(250)
        assert [curve.name for curve in finding.panels[0].curves] == ["agents, loopback", "Nimbus"]


def test_without_nimbus_there_is_no_row_and_no_note_of_it():
    finding = found({1: [document(0.1)], 10: [document(0.1)], 100: [document(0.2)]})
    assert "Nimbus" not in "".join(f"{row.setting} {row.metric}" for row in finding.rows)
    assert not any("Nimbus" in note for note in finding.notes)


def test_each_pair_of_agents_has_one_delay_of_the_range_in_both_directions():
    network = parse_network(FAR.document(5, seed=3))
    delays = {
        (a, b): network.pair(name_of(a), name_of(b)).delay_ms for a in range(5) for b in range(5) if a != b
    }  # fmt: skip
    assert all(25 <= delay <= 125 and delays[b, a] == delay for (a, b), delay in delays.items())
    assert len(set(delays.values())) == 10
    assert FAR.document(5, seed=3) == FAR.document(5, seed=3) != FAR.document(5, seed=4)
    assert [one.emulated for one in (LOOPBACK, NEAR, FAR)] == [False, True, True]
