"""TopSet and TopSet/P: by hand, and against a slow twin that knows the formulas alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from leeward.policies.edge_cloud.methods.outcome import Placed, Refused
from leeward.policies.edge_cloud.methods.topset import topset, visits
from leeward.policies.edge_cloud.model.document import instance_from_json
from leeward.policies.edge_cloud.model.evaluate import evaluate
from leeward.policies.edge_cloud.model.instance import Instance
from leeward.policies.edge_cloud.model.values import Edge
from leeward.policies.edge_cloud.planning.board import Board
from tests.helpers.edge_cloud_builders import case_document, instances
from tests.helpers.edge_cloud_by_hand import board_of, hosted, keeps, slow_path, ways

FEW = settings(max_examples=40)


def chain(queries: int = 1, **changes: object):
    """source -> `queries` queries -> sink on two edges and a cloud machine."""
    document = case_document()["instance"] | changes
    source, work, sink = document["dataflows"][0]["queries"]
    size = queries + 2
    document["dataflows"][0] |= {
        "queries": [source, *[dict(work, sigma=1.0)] * queries, sink],
        "edges": [[v, v + 1] for v in range(size - 1)],
    }
    return instance_from_json(document)


def run(instance: Instance, *, penalty: bool):
    board = Board(instance.fabric)
    return board, [topset(board, dataflow, penalty=penalty) for dataflow in instance.dataflows]


@pytest.mark.parametrize("penalty", [False, True])
def test_a_query_stays_on_the_edge_of_its_source_while_the_network_costs_more(penalty):
    _, (found,) = run(chain(), penalty=penalty)
    assert found == Placed(placement=(0, 0, 2))


def test_a_query_leaves_an_edge_that_is_slower_than_the_network():
    near_cloud = [[0.0, 0.005, 0.0001], [0.005, 0.0, 0.005], [0.0001, 0.005, 0.0]]
    _, (found,) = run(chain(latency=near_cloud, bandwidth=[[1e10] * 3] * 3), penalty=False)
    assert found == Placed(placement=(0, 2, 2))


def test_the_penalty_counts_the_queries_that_slow_down():
    """The second query has 3.2 ms on the first one's edge and 3.65 in the cloud, but slows the first by 1.2 ms."""
    instance = chain(3, latency=[[0.0 if r == s else 0.002 for s in range(3)] for r in range(3)])
    plain, (one,) = run(instance, penalty=False)
    careful, (other,) = run(instance, penalty=True)
    assert (one.placement[1:3], other.placement[1:3]) == ((0, 0), (0, 2))
    assert careful.total() < plain.total()


def test_each_set_is_visited_by_decreasing_latency():
    document = case_document()["instance"]
    source, work, sink = document["dataflows"][0]["queries"]
    document["lam"] = [[0.001, 0.001, 0.0003], [0.002, 0.002, 0.0006]]
    document["dataflows"][0]["queries"] = [source, work, dict(work, type=1), work, sink]
    document["dataflows"][0]["edges"] = [[0, 1], [0, 2], [0, 3], [1, 4], [2, 4], [3, 4]]
    instance = instance_from_json(document)
    assert visits(Board(instance.fabric), instance.dataflows[0]) == [0, 2, 1, 3, 4]


def test_a_query_that_fits_nowhere_is_refused_with_the_reason_and_the_others_go_on():
    document = case_document()["instance"]
    fast = dict(document["dataflows"][0], name="fast")
    fast["queries"] = [dict(fast["queries"][0], rate=9000.0), *fast["queries"][1:]]
    document["dataflows"] = [document["dataflows"][0], fast, dict(document["dataflows"][0], name="last")]
    board, (first, refused, last) = run(instance_from_json(document), penalty=True)
    assert isinstance(refused, Refused) and refused.query == 1
    assert "no resource processes 9000 events/s of type 0 within its bounds" in refused.reason
    assert isinstance(first, Placed) and isinstance(last, Placed)
    assert list(board.active) == ["chain", "last"]


def test_a_sink_without_room_is_refused_with_the_reason():
    document = case_document()["instance"]
    document["lam"] = [document["lam"][0], [0.01, 0.01, 0.012]]
    document["dataflows"].append(dict(document["dataflows"][0], name="second"))
    board, (first, refused) = run(instance_from_json(document), penalty=False)
    assert isinstance(first, Placed)
    assert refused == Refused(
        query=2, reason="queries[2] = 'sink': no cloud machine has room for it beside the queries that run there."
    )
    assert list(board.active) == ["chain"] and board.loads.count.sum() == 2


@FEW
@given(instances())
def test_without_interference_both_are_the_same(instance):
    alone = Instance(fabric=replace(instance.fabric, mode="exclusive"), dataflows=instance.dataflows)
    assert run(alone, penalty=False)[1] == run(alone, penalty=True)[1]


@FEW
@given(instances())
def test_no_bound_is_broken_and_no_dataflow_moves_when_others_come(instance):
    for penalty in (False, True):
        board, outcomes = run(instance, penalty=penalty)
        pairs = [(d, o.placement) for d, o in zip(instance.dataflows, outcomes, strict=True) if isinstance(o, Placed)]
        running = Instance(fabric=instance.fabric, dataflows=tuple(dataflow for dataflow, _ in pairs))
        found = evaluate(running, [placement for _, placement in pairs])
        # an edge whose base load alone is too much has no query, and breaks its bound without anybody
        assert all(name == "energy" and found.service_time[r] == 0 for name, r, *_ in found.violations)
        assert board.total() == pytest.approx(found.total, rel=1e-12)


@FEW
@given(instances(most=2))
def test_each_query_goes_where_its_path_is_shortest_by_the_formulas(instance):
    for penalty in (False, True):
        board, placed = board_of(instance), {}
        for dataflow in instance.dataflows:
            board.remove(dataflow.name)
        for d, dataflow in enumerate(instance.dataflows):
            outcome = topset(board, dataflow, penalty=penalty)
            if isinstance(outcome, Placed):
                check_each_visit(instance, placed, d, outcome.placement, visits(board, dataflow), penalty)


def check_each_visit(instance, placed, d, placement, order, penalty) -> None:
    """Each query of a placed dataflow, with the queries before it: no resource that it may have costs less."""
    dataflow = instance.dataflows[d]
    for v in order:
        query = dataflow.queries[v]
        if query.kind != "source":
            costs = {}
            for r, resource in enumerate(instance.fabric.resources):
                there = placed | {(d, v): r}
                held, close = keeps(instance, there, r)
                if (held or close) and not (query.kind == "sink" and isinstance(resource, Edge)):
                    costs[r] = cost(instance, placed, there, d, v, penalty)
            assert costs[placement[v]] == pytest.approx(min(costs.values()), rel=1e-9, abs=1e-15)
        placed[d, v] = placement[v]


def cost(instance, before, there, d, v, penalty) -> float:
    """The longest way to v: its parents' lengths as they are, then v as it would be; and the slow-down of others."""
    dataflow, r = instance.dataflows[d], there[d, v]

    def length(placed, u) -> float:
        only = [[placed.get((e, w), -1) for w in range(len(f.queries))] for e, f in enumerate(instance.dataflows)]
        return max(slow_path(instance, only, d, path) for path in ways(dataflow, u))

    own = arrival(instance, before, there, d, v, length) + own_latency(instance, there, d, v)
    if not penalty:
        return own
    slowed = [u for (e, u), s in before.items() if e == d and s == r and dataflow.queries[u].kind != "source"]
    return own + sum(length(there, u) - length(before, u) for u in slowed)


def arrival(instance, before, there, d, v, length) -> float:
    net, dataflow = instance.fabric.network, instance.dataflows[d]
    found = []
    for u in dataflow.parents[v]:
        r, s = before[d, u], there[d, v]
        here, onward = net.site[r], net.site[s]
        bits = 8 * dataflow.queries[u].event_bytes
        way = 0.0 if r == s else net.latency_s[here][onward] + bits / net.bandwidth_bps[here][onward]
        found.append(length(before, u) + way)
    return max(found)


def own_latency(instance, there, d, v) -> float:
    fabric, kind, r = instance.fabric, instance.dataflows[d].queries[v].type, there[d, v]
    types = [other for other, _ in hosted(instance, there, r)]
    table = fabric.pi_edge if isinstance(fabric.resources[r], Edge) else fabric.pi_cloud
    share = 1 + table[min(len(types), len(table) - 1)]
    alone = fabric.lam_s[kind][r]
    return {"shared": share * sum(fabric.lam_s[o][r] for o in types), "overhead": share * alone, "exclusive": alone}[
        fabric.mode
    ]
