"""The benchmark of the whole service, at a size for tests: every topology gets plans, and none breaks a rule."""

from __future__ import annotations

import pytest

from tests.helpers.benches import bench_module


@pytest.fixture(scope="module")
def bench():
    with bench_module("service_scale") as module:
        yield module


@pytest.mark.parametrize("policy", ["edrp", "agiledart", "even"])
def test_all_topologies_get_plans_and_no_node_is_over_its_capacity(bench, policy):
    size = bench.Size(nodes=20, topologies=3, components=10, tasks=3, workers=5)
    row = bench.run(policy, size, cycles=2, fill=False, steady_s=1.0)
    assert row["faults"] == []
    assert row["plans"] >= 3 * size.topologies and len(row["cycles_s"]) == 2
    assert [answer["bytes"] > 0 for answer in row["answers"]] == [True] * 5
    assert row["events"]["heard"] > 0
    [verdict] = bench.verdicts([row])
    assert verdict[3] == "2 of 2" and verdict[-1] in ("met", "not met")


def test_cycles_end_with_their_time_and_what_is_late_is_a_fault(bench, monkeypatch):
    size = bench.Size(nodes=8, topologies=2, components=4, tasks=2, workers=2)
    row = bench.run("even", size, cycles=50, fill=False, steady_s=1.0, limit_s=0.0)
    assert row["faults"] == [] and len(row["cycles_s"]) == 1
    monkeypatch.setattr(bench, "PATIENCE_S", 0.0)
    row = bench.run("even", size, cycles=2, fill=False)
    assert "after 0 s" in row["faults"][0] and bench.verdicts([row])[0][-1] == "not met"
    assert "| even | none | none | 0 of 2 |" in bench.markdown(size, [row])


def test_faults_are_found(bench):
    size = bench.Size(nodes=2, slots=1, topologies=2, components=4, tasks=3, workers=1)
    running = bench.Running(size, bench.settings_from({}, ["policy=even"]))
    one, other = running.cluster.tenants.values()
    assert running.faults() == []
    other.slots = dict(one.slots)
    assert any("is used by ['t00', 't01']" in fault for fault in running.faults())
