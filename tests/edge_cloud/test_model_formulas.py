"""Each formula against a direct, slow evaluation on random instances."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.policies.edge_cloud.model import formulas
from leeward.policies.edge_cloud.model.evaluate import change, evaluate
from leeward.policies.edge_cloud.model.values import Cloud, Edge
from tests.helpers.edge_cloud_builders import instances, placed, placements
from tests.helpers.edge_cloud_by_hand import slow_latency, slow_path, slow_service, source_rate, ways

near = pytest.approx
FEW = settings(max_examples=60)


@FEW
@given(instances(most=1))
def test_an_input_rate_is_the_sum_over_all_ways_of_the_selectivities_on_them(instance):
    (dataflow,) = instance.dataflows
    w_in, w_out = formulas.rates(dataflow)
    for v, query in enumerate(dataflow.queries):
        if query.kind == "source":
            assert (w_in[v], w_out[v]) == (0.0, near(source_rate(dataflow, v)))
            continue
        slow = sum(
            source_rate(dataflow, path[0]) * math.prod(dataflow.queries[u].selectivity for u in path[1:-1])
            for path in ways(dataflow, v)
        )
        assert w_in[v] == near(slow, rel=1e-9, abs=1e-12)
        assert w_out[v] == near(slow * query.selectivity, rel=1e-9, abs=1e-12)


@FEW
@given(placed())
def test_lengths_and_makespans_are_those_of_the_longest_of_all_ways(case):
    instance, all_placed = case
    found = evaluate(instance, all_placed)
    for d, dataflow in enumerate(instance.dataflows):
        for v in range(len(dataflow.queries)):
            slow = max(slow_path(instance, all_placed, d, path) for path in ways(dataflow, v))
            assert found.lengths[d][v] == near(slow, rel=1e-9, abs=1e-15)
        to_sinks = [path for path in ways(dataflow) if dataflow.queries[path[-1]].kind == "sink"]
        longest = max(slow_path(instance, all_placed, d, path) for path in to_sinks)
        assert found.makespans[d] == near(longest, rel=1e-9)
    assert found.total == near(sum(found.makespans), rel=1e-12)


@FEW
@given(placed(), st.data())
def test_the_latency_of_a_path_is_the_sum_of_its_parts(case, data):
    instance, all_placed = case
    d = data.draw(st.integers(0, len(instance.dataflows) - 1))
    dataflow = instance.dataflows[d]
    path = data.draw(st.sampled_from(list(ways(dataflow))))
    lam = [slow_latency(instance, all_placed, d, v) for v in range(len(dataflow.queries))]
    found = formulas.path_latency_s(instance.fabric, dataflow, all_placed[d], lam, path)
    assert found == near(slow_path(instance, all_placed, d, path), rel=1e-9, abs=1e-15)


@FEW
@given(placed())
def test_loads_and_violations_follow_from_the_constraints(case):
    instance, all_placed = case
    found = evaluate(instance, all_placed)
    expected = []
    for r, resource in enumerate(instance.fabric.resources):
        assert found.service_time[r] == near(slow_service(instance, all_placed, r), rel=1e-9)
        if isinstance(resource, Cloud):
            assert found.energy_mah[r] is None
            continue
        charge = resource.recharge_s * resource.base_ma / 3600 + sum(
            resource.recharge_s * found.w_in[d][v] * instance.fabric.eps_mah[query.type][r]
            for d, dataflow in enumerate(instance.dataflows)
            for v, query in enumerate(dataflow.queries)
            if all_placed[d][v] == r and query.kind != "source"
        )
        assert found.energy_mah[r] == near(charge, rel=1e-9)
        expected += [("energy", r)] if found.energy_mah[r] > resource.battery_mah else []
    for d, dataflow in enumerate(instance.dataflows):
        for v, query in enumerate(dataflow.queries):
            r = all_placed[d][v]
            on_edge = isinstance(instance.fabric.resources[r], Edge)
            if query.kind == "sink" and on_edge:
                expected.append(("sink_not_in_cloud", d, v))
            if query.kind == "source" and query.pin is not None and query.pin != r:
                expected.append(("source_not_on_its_edge", d, v))
            if query.kind == "source" and query.pin is None and not on_edge:
                expected.append(("source_not_on_edge", d, v))
            if query.kind != "source" and found.w_in[d][v] * found.service_time[r] >= 1:
                expected.append(("throughput", d, v))
    assert found.violations == tuple(sorted(expected))


@FEW
@given(placed(), st.data())
def test_a_change_is_priced_by_its_slowest_move(case, data):
    instance, before = case
    after = data.draw(placements(instance))
    found = change(instance, before, after, 2.0)
    moves = [
        (d, v)
        for d, dataflow in enumerate(instance.dataflows)
        for v in range(len(dataflow.queries))
        if before[d][v] != after[d][v]
    ]
    shared, exclusive = [0.0], [0.0]
    for d, v in moves:
        query, r = instance.dataflows[d].queries[v], after[d][v]
        w_in = evaluate(instance, after).w_in[d][v]
        if query.kind == "source" or w_in == 0:
            continue
        for times, latency in (
            (shared, slow_service(instance, after, r)),
            (exclusive, instance.fabric.lam_s[query.type][r]),
        ):
            throughput = 1 / latency
            times.append(2.0 * w_in / (throughput - w_in) if throughput > w_in else math.inf)
    assert found.migrations == len(moves)
    assert found.stabilization_shared == near(max(shared), rel=1e-6)
    assert found.stabilization_exclusive == near(max(exclusive), rel=1e-6)


@FEW
@given(instances(most=1))
def test_each_topological_set_has_the_queries_whose_parents_are_all_in_earlier_ones(instance):
    (dataflow,) = instance.dataflows
    seen: set[int] = set()
    for one in dataflow.sets:
        expected = {
            v
            for v in range(len(dataflow.queries))
            if v not in seen and all(u in seen for u, w in dataflow.edges if w == v)
        }
        assert list(one) == sorted(expected)
        seen |= expected
    assert seen == set(range(len(dataflow.queries)))
