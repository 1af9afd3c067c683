"""The exact method against all placements, one by one, on small instances."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.exact import incumbent, reduce, solve
from leeward.policies.edge_cloud.exact.columns import MOST_ON_ONE
from leeward.policies.edge_cloud.exact.outcome import Infeasible, Optimal, Unproven
from leeward.policies.edge_cloud.exact.programme import Answer
from leeward.policies.edge_cloud.exact.solve import best_placement
from leeward.policies.edge_cloud.methods.topset import topset
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.document import instance_from_json
from leeward.policies.edge_cloud.model.evaluate import Evaluation, evaluate, wrong_class
from leeward.policies.edge_cloud.model.fabric import Fabric
from leeward.policies.edge_cloud.model.instance import Instance
from leeward.policies.edge_cloud.model.values import Edge, Network
from leeward.policies.edge_cloud.planning.board import Board
from tests.helpers.edge_cloud_builders import case_document, dataflows, fabrics

near = pytest.approx
FEW = settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])


@dataclass(frozen=True)
class Case:
    """A board with others on it, and a dataflow that arrives."""

    board: Board
    dataflow: Dataflow

    def evaluations(self) -> Iterator[tuple[tuple[int, ...], Evaluation]]:
        """All placements that keep the constraints where the dataflow comes, and their quantities by the formulas."""
        fabric, running = self.board.fabric, list(self.board.active.values())
        instance = Instance(fabric=fabric, dataflows=(*(one.dataflow for one in running), self.dataflow))
        places = [
            [r for r in range(len(fabric.resources)) if wrong_class(instance, r, query.kind, query.pin) is None]
            for query in self.dataflow.queries
        ]
        for placement in itertools.product(*places):
            everything = [*(one.place for one in running), placement]
            found = evaluate(instance, everything)
            if fits(instance, everything, found):
                yield placement, found

    def least_total(self) -> float:
        """The least total (8), s; infinite if no placement keeps the constraints."""
        return min((found.total for _, found in self.evaluations()), default=math.inf)


def fits(instance: Instance, everything: Sequence[Sequence[int]], found: Evaluation) -> bool:
    """C2 and C3 on the resources of the last dataflow; the example is rejected where a sum's last digit decides."""
    arrived, placement = instance.dataflows[-1], everything[-1]
    used = {r for r, query in zip(placement, arrived.queries, strict=True) if query.kind != "source"}
    shares = []
    for r in used:
        resource, energy = instance.fabric.resources[r], found.energy_mah[r]
        if isinstance(resource, Edge) and energy is not None:
            shares.append(energy / resource.battery_mah)
    for d, where in enumerate(everything):
        for v, r in enumerate(where):
            if r in used and instance.dataflows[d].queries[v].kind != "source":
                shares.append(found.w_in[d][v] * found.service_time[r])
    if any(share == near(1, rel=1e-9) for share in shares):
        reject()
    return max(shares, default=0.0) < 1


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """At most four queries arrive; up to three dataflows run where TopSet or TopSet/P put them."""
    fabric = draw(fabrics())
    board = Board(alike(fabric) if draw(st.booleans()) else fabric)
    for number in range(draw(st.integers(0, 3))):
        topset(board, draw(dataflows(board.fabric, f"d{number}")), penalty=draw(st.booleans()))
    return Case(board=board, dataflow=draw(dataflows(board.fabric, "new", most=4)))


def alike(fabric: Fabric) -> Fabric:
    """The same with equal edges and equal cloud machines, which differ by their sites alone."""
    edge, cloud = fabric.edges[0], fabric.clouds[0]
    first = [edge if isinstance(resource, Edge) else cloud for resource in fabric.resources]
    return replace(
        fabric,
        resources=tuple(fabric.resources[r] for r in first),
        lam_s=tuple(tuple(row[r] for r in first) for row in fabric.lam_s),
        eps_mah=tuple(tuple(row[r] for r in first) for row in fabric.eps_mah),
    )


@FEW
@given(cases(), st.sampled_from([0, solve.RELAX_ABOVE]), st.booleans())
def test_no_placement_is_better_than_the_optimum(case, relax_above, known):
    """With the linear relaxation and without, and also where no placement is known to begin with."""
    before, expected = case.board.total(), case.least_total()
    start = reduce.of_topset if known else lambda board, dataflow: []
    with mock.patch.object(solve, "RELAX_ABOVE", relax_above), mock.patch.object(reduce, "of_topset", start):
        found = best_placement(case.board, case.dataflow)
    assert case.board.total() == before and case.dataflow.name not in case.board.active
    if math.isinf(expected):
        assert isinstance(found, Infeasible)
        return
    assert isinstance(found, Optimal)
    assert dict(case.evaluations())[found.placement].total == near(found.total, rel=1e-12)
    assert found.total == near(expected, rel=1e-6)
    assert found.total * (1 - 1e-6) <= found.bound <= found.total


@FEW
@given(cases())
def test_the_optimum_is_between_bound_and_total_if_the_solver_finds_nothing(case):
    expected = case.least_total()
    nothing = Answer(status="user_limit", bound_s=None, q=None)
    with mock.patch.object(solve, "solve", lambda rest, **options: nothing):
        found = best_placement(case.board, case.dataflow)
    if isinstance(found, Infeasible):
        assert math.isinf(expected)
        return
    assert found.bound <= expected * (1 + 1e-12)
    if isinstance(found, Unproven) and found.total is None:
        assert found.placement is None
    else:
        assert expected <= found.total * (1 + 1e-12)
        assert isinstance(found, Unproven) or found.total == near(expected, rel=1e-6)


def test_a_query_without_room_is_named():
    document = case_document()["instance"]
    document["dataflows"][0]["queries"][0]["rate"] = 9000.0
    instance = instance_from_json(document)
    assert best_placement(Board(instance.fabric), instance.dataflows[0]) == Infeasible(
        reason="queries[1] = 'query': no resource has room for it"
    )


@pytest.mark.parametrize("clouds", [1, 2])
def test_queries_that_fit_alone_but_not_together_are_infeasible(clouds):
    """A sink more than there are cloud machines: each takes 0.25 ms for an event, and 3000 events/s come."""
    document = case_document(clouds=clouds)["instance"]
    source, _, sink = document["dataflows"][0]["queries"]
    document["dataflows"][0] |= {
        "queries": [dict(source, rate=3000.0), *[sink for _ in range(clouds + 1)]],
        "edges": [[0, v] for v in range(1, clouds + 2)],
    }
    instance = instance_from_json(document)
    assert best_placement(Board(instance.fabric), instance.dataflows[0]) == Infeasible(
        reason="every placement breaks a bound on throughput or energy"
    )


def test_no_place_has_a_set_that_fits():
    """Two queries fit on the one edge, and two sinks in the cloud, but neither pair fits together."""
    document = case_document(edges=1)["instance"] | {"lam": [[0.0002, 0.02], [0.02, 0.00025]]}
    source, work, sink = document["dataflows"][0]["queries"]
    document["dataflows"][0] |= {
        "queries": [dict(source, rate=3000.0), dict(work, sigma=1.0), dict(work, sigma=1.0), sink, sink],
        "edges": [[0, 1], [0, 2], [1, 3], [2, 4]],
    }
    instance = instance_from_json(document)
    assert best_placement(Board(instance.fabric), instance.dataflows[0]) == Infeasible(
        reason="every placement breaks a bound on throughput or energy"
    )


def pair(**changes: object) -> Instance:
    """source -> query -> query -> sink; three edges without a sensor are 0.1 ms apart, the cloud machine is 5 ms."""
    document = case_document(edges=4)["instance"] | changes
    source, work, sink = document["dataflows"][0]["queries"]
    document["dataflows"][0] |= {
        "queries": [source, work, work, sink],
        "edges": [[0, 1], [1, 2], [2, 3]],
    }
    instance = instance_from_json(document)
    sites = [[0.0, 0.0001, 0.005], [0.0001, 0.0001, 0.005], [0.005, 0.005, 0.0]]
    network = Network(site=(0, 1, 1, 1, 2), latency_s=tuple(map(tuple, sites)), bandwidth_bps=((1e10,) * 3,) * 3)
    return Instance(fabric=replace(instance.fabric, network=network), dataflows=instance.dataflows)


def test_queries_that_slow_each_other_go_to_two_resources_that_are_alike():
    """On one edge of 3 ms a query both take 6.6 ms; the programme starts from there, and no move was tried before."""
    instance = pair(lam=[[0.01, 0.003, 0.003, 0.003, 0.02], [0.001] * 5])
    board, dataflow, start = Board(instance.fabric), instance.dataflows[0], [(0, 1, 1, 4)]
    with mock.patch.object(reduce, "of_topset", lambda *_: start), mock.patch.object(incumbent, "TOGETHER", 0):
        found = best_placement(board, dataflow)
    assert isinstance(found, Optimal)
    assert found.placement == (0, 1, 2, 4)
    assert found.total == near(0.0001 + 0.003 + 0.0001 + 0.003 + 0.005 + 0.001, rel=1e-3)


def test_an_edge_of_the_dataflow_starts_where_its_query_is():
    """The source's edge is 5 ms from the cloud, the other one 1 ms: the direct ways to two sinks still take 5."""
    document = case_document()["instance"]
    latency = [[0.0, 0.001, 0.005], [0.001, 0.0, 0.001], [0.005, 0.001, 0.0]]
    document |= {"latency": latency, "bandwidth": [[1e10] * 3] * 3}
    source, work, sink = document["dataflows"][0]["queries"]
    document["dataflows"][0] |= {
        "queries": [source, work, sink, sink],
        "edges": [[0, 1], [0, 2], [0, 3], [1, 2]],
    }
    instance = instance_from_json(document)
    with mock.patch.object(reduce, "of_topset", lambda *_: []):
        found = best_placement(Board(instance.fabric), instance.dataflows[0])
    assert isinstance(found, Optimal)
    assert found.total == near(0.005 + 1.02 * 2 * 0.00025, rel=1e-3)


def test_a_battery_that_holds_for_one_query_does_not_get_two():
    """The source's edge is the best one for both; they take 30 and 15 mAh of the 40 that its battery has for them."""
    day, rate = 24 * 3600.0, 100.0
    slow_cloud = [[0.001] * 4 + [0.02], [0.001] * 5]
    instance = pair(lam=slow_cloud, eps=[[30 / (day * rate)] * 4 + [0.0]] * 2)
    edge = Edge(battery_mah=24 * 230.0 + 40.0, base_ma=230.0, recharge_s=day)
    fabric = replace(instance.fabric, resources=(*[edge] * 4, *instance.fabric.resources[4:]), pi_edge=(0.0,))
    dataflow = instance.dataflows[0]
    found = best_placement(Board(replace(fabric, mode="exclusive")), dataflow)
    assert isinstance(found, Optimal)
    assert sorted(found.placement[1:3]) == [0, 1]
    with_room = replace(edge, battery_mah=24 * 230.0 + 50.0)
    fabric = replace(fabric, resources=(*[with_room] * 4, *fabric.resources[4:]), mode="exclusive")
    found = best_placement(Board(fabric), dataflow)
    assert isinstance(found, Optimal)
    assert found.placement[1:3] == (0, 0)


def test_a_dataflow_of_too_many_queries_is_refused():
    document = case_document()["instance"]
    source, work, sink = document["dataflows"][0]["queries"]
    middle = range(1, MOST_ON_ONE + 1)
    document["dataflows"][0] |= {
        "queries": [source, *[work for _ in middle], sink],
        "edges": [[v, v + 1] for v in range(MOST_ON_ONE + 1)],
    }
    instance = instance_from_json(document)
    with pytest.raises(FieldError, match="too many for a proof"):
        best_placement(Board(instance.fabric), instance.dataflows[0])
