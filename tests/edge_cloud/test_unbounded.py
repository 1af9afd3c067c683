"""Edge-only and Cloud-only: the bounds by hand and against placements, and the crowded placement."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.methods.outcome import Placed, Refused
from leeward.policies.edge_cloud.methods.unbounded import bound_s, crowded
from leeward.policies.edge_cloud.model.document import instance_from_json
from leeward.policies.edge_cloud.model.evaluate import evaluate
from leeward.policies.edge_cloud.planning.board import Board
from tests.helpers.edge_cloud_builders import case_document, instances, placements

near = pytest.approx
FEW = settings(max_examples=60)


def test_the_bounds_by_hand():
    """Two queries in a row; the second edge and the second machine are the faster ones."""
    document = case_document(edges=2, clouds=2)["instance"]
    source, work, sink = document["dataflows"][0]["queries"]
    document["dataflows"][0] |= {
        "queries": [source, work, dict(work, delta=250.0), sink],
        "edges": [[0, 1], [1, 2], [2, 3]],
    }
    document["lam"] = [[0.002, 0.001, 0.0005, 0.00025]] * 2
    instance = instance_from_json(document)
    (dataflow,) = instance.dataflows
    # two queries on edges, 5 ms and 250 bytes at 10 Mbit/s to a machine, the sink
    assert bound_s(instance.fabric, dataflow, "edge") == near(0.001 + 0.001 + 0.005 + 8 * 250 / 1e7 + 0.00025)
    # 5 ms and the source's 1,000 bytes, then three queries on machines
    assert bound_s(instance.fabric, dataflow, "cloud") == near(0.005 + 8 * 1000 / 1e7 + 3 * 0.00025)


def test_a_source_sends_from_where_its_sensor_is():
    document = case_document(edges=2)["instance"]
    document["latency"][0][2] = 0.009
    pinned = instance_from_json(document)
    del document["dataflows"][0]["queries"][0]["pin"]
    anywhere = instance_from_json(document)
    ways = [bound_s(one.fabric, one.dataflows[0], "cloud") for one in (pinned, anywhere)]
    assert ways[0] - ways[1] == near(0.004)
    # the query before the sink may be on any edge
    assert bound_s(pinned.fabric, pinned.dataflows[0], "edge") == bound_s(
        anywhere.fabric, anywhere.dataflows[0], "edge"
    )


@FEW
@given(instances(most=1), st.data())
def test_no_placement_of_that_kind_is_shorter_than_the_bound(instance, data):
    fabric, (dataflow,) = instance.fabric, instance.dataflows
    (drawn,) = data.draw(placements(instance))
    for where in ("edge", "cloud"):
        some = {
            "source": fabric.edges,
            "sink": fabric.clouds,
            "query": fabric.edges if where == "edge" else fabric.clouds,
        }
        row = [
            some[query.kind][r % len(some[query.kind])] if query.pin is None else query.pin
            for query, r in zip(dataflow.queries, drawn, strict=True)
        ]
        found = evaluate(instance, [row]).makespans[0]
        assert bound_s(fabric, dataflow, where) <= found * (1 + 1e-12)


def test_a_bound_needs_both_classes():
    instance = instance_from_json(case_document()["instance"])
    (dataflow,) = instance.dataflows
    alone = instance_from_json(case_document(clouds=0)["instance"] | {"dataflows": []}).fabric
    with pytest.raises(FieldError, match="there is no cloud machine"):
        bound_s(alone, dataflow, "edge")
    with pytest.raises(FieldError, match="there are 2 types"):
        bound_s(
            instance.fabric,
            replace(dataflow, queries=(*dataflow.queries[:2], replace(dataflow.queries[2], type=7))),
            "edge",
        )


@FEW
@given(instances())
def test_a_crowd_takes_the_emptiest_resource_of_its_class(instance):
    fabric = instance.fabric
    for where in ("edge", "cloud"):
        board = Board(fabric)
        for dataflow in instance.dataflows:
            count = board.loads.count.copy()
            outcome = crowded(board, dataflow, where)
            assert isinstance(outcome, Placed) and outcome.placement == board.placement(dataflow.name)
            for v in dataflow.order:
                query, r = dataflow.queries[v], outcome.placement[v]
                on_edge = query.kind == "source" or (where == "edge" and query.kind == "query")
                some = fabric.edges if on_edge else fabric.clouds
                if query.pin is not None:
                    assert r == query.pin
                else:
                    assert (count[r], r) == min((count[s], s) for s in some)
                count[r] += query.kind != "source"
        rows = [board.placement(dataflow.name) for dataflow in instance.dataflows]
        kinds = {name for name, *_ in evaluate(instance, rows).violations}
        assert kinds <= {"throughput", "energy"}


def test_a_crowd_breaks_constraints_and_says_so():
    document = case_document(edges=1)["instance"]
    document["dataflows"][0]["queries"][0]["rate"] = 900.0
    document["dataflows"].append(dict(document["dataflows"][0], name="second"))
    instance = instance_from_json(document)
    board = Board(instance.fabric)
    rows = [crowded(board, dataflow, "edge").placement for dataflow in instance.dataflows]
    assert rows == [(0, 0, 1)] * 2
    assert ("throughput", 0, 1) in evaluate(instance, rows).violations


def test_without_a_machine_a_crowd_is_refused():
    fabric = instance_from_json(case_document(clouds=0)["instance"] | {"dataflows": []}).fabric
    (dataflow,) = instance_from_json(case_document()["instance"]).dataflows
    board = Board(fabric)
    outcome = crowded(board, dataflow, "edge")
    assert outcome == Refused(query=2, reason="queries[2] = 'sink': there is no resource of its class.")
    assert not board.active and not board.loads.count.any()
