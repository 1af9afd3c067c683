"""Generated clusters and dataflows: within the paper's ranges, the same for the same seed, and facts of a view."""

from __future__ import annotations

import random

import pytest
from edge_cloud_views import flow_of, view_of

from leeward.core.fields import FieldError
from leeward.core.model import ClusterView, Node
from leeward.policies.edge_cloud.benchmark import TYPES
from leeward.policies.edge_cloud.facts import fabric_of
from leeward.policies.edge_cloud.model.formulas import rates, service_time_s
from leeward.policies.edge_cloud.model.instance import check_places
from leeward.policies.edge_cloud.settings import EdgeCloudSettings
from leeward.policies.edge_cloud.workload.catalogue import RIOTBENCH, at_sensors, catalogue, riotbench
from leeward.policies.edge_cloud.workload.setup import REF, TH, cluster

SEEDS = range(5)


@pytest.mark.parametrize("seed", SEEDS)
def test_39_dataflows_within_the_ranges_of_the_paper(seed: int):
    found = catalogue(REF, random.Random(seed))
    assert len(found) == 39 and len({dataflow.name for dataflow in found}) == 39
    assert [len(dataflow.queries) for dataflow in found] == sorted(len(dataflow.queries) for dataflow in found)
    assert (len(found[0].queries), len(found[-1].queries)) == (4, 50)
    for dataflow in found:
        kinds = [query.kind for query in dataflow.queries]
        assert 1 <= kinds.count("source") <= 4 and 1 <= kinds.count("sink") <= 3
        assert sum(query.rate or 0.0 for query in dataflow.queries) == pytest.approx(100.0)
        assert all(query.rate >= 25.0 for query in dataflow.queries if query.rate is not None)
        assert max(map(len, dataflow.children)) <= 5
    assert {query.type for dataflow in found for query in dataflow.queries} == set(range(21))


@pytest.mark.parametrize("flavour", [REF, TH])
def test_every_dataflow_fits_an_empty_cluster(flavour):
    rng = random.Random(0)
    nodes, network = cluster(100, flavour, rng)
    fabric = fabric_of(nodes, network, EdgeCloudSettings())
    for dataflow in (*catalogue(flavour, rng), *map(riotbench, RIOTBENCH)):
        check_places(fabric, dataflow)


def test_a_seed_gives_the_same_again_and_another_seed_something_else():
    def drawn(seed: int):
        rng = random.Random(seed)
        return cluster(50, REF, rng), catalogue(REF, rng)

    assert drawn(3) == drawn(3) != drawn(4)


@pytest.mark.parametrize("nodes", [100, 1000])
def test_a_cluster_has_the_paper_s_shares_and_the_network_s_ranges(nodes: int):
    found, network = cluster(nodes, REF, random.Random(1))
    fabric = fabric_of(found, network, EdgeCloudSettings())
    assert len(fabric.clouds) == nodes * 4 // 100 and len(fabric.edges) == nodes * 96 // 100
    site, latency, bandwidth = fabric.network.site, fabric.network.latency_s, fabric.network.bandwidth_bps
    cloud = site[fabric.clouds[0]]
    for r in fabric.edges[:: nodes // 50]:
        assert 0.022 <= latency[site[r]][cloud] <= 0.028 and 5e6 <= bandwidth[site[r]][cloud] <= 20e6
        for s in fabric.edges[:: nodes // 50]:
            assert 0.002 <= latency[site[r]][site[s]] <= 0.006 and bandwidth[site[r]][site[s]] == 100e6
    times = [fabric.lam_s[kind][r] for kind in range(21) for r in fabric.edges]
    assert min(times) > 0.17e-3 and max(times) < 1.07e-3


def test_facts_of_a_view_give_the_dataflow_again():
    rng = random.Random(2)
    nodes, _ = cluster(20, REF, rng)
    numbers = {node.id: number for number, node in enumerate(nodes)}
    for number, drawn in enumerate(catalogue(REF, rng)):
        dataflow = at_sensors(drawn, f"app-{number}", 19, rng)
        again = flow_of(view_of(dataflow, nodes), numbers)
        assert again.queries == dataflow.queries and again.edges == tuple(sorted(dataflow.edges))
        assert rates(again) == rates(dataflow)


def changed(name: str, value: object) -> ClusterView:
    """A view whose second component has another fact; None: it has none."""
    nodes, _ = cluster(5, REF, random.Random(0))
    view = view_of(riotbench("train"), nodes)
    facts = dict(view.components[1].facts)
    facts.pop(name, None)
    if value is not None:
        facts[name] = value
    components = list(view.components)
    components[1] = type(components[1])(
        id=components[1].id, tasks=components[1].tasks, stateful=True, max_replicas=1, facts=facts
    )
    return ClusterView(
        topology=view.topology, topology_id=view.topology_id, epoch=0, nodes=nodes, components=tuple(components),
        streams=view.streams, tables={}, assignment={},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("type", None, "component q1: type = None: is missing"),
        ("type", "sorter", "component q1: type = 'sorter'"),
        ("kind", "spout", "kind"),
        ("selectivity", "half", "component q1: selectivity = 'half': is no number"),
        ("selectivity", -1.0, "sigma"),
        ("event_bytes", None, "component q1: event_bytes = None: is missing"),
    ],
)
def test_a_wrong_fact_of_a_component_is_named(name: str, value: object, said: str):
    with pytest.raises(FieldError) as told:
        flow_of(changed(name, value), {})
    assert said in str(told.value)


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        ({}, "node a: meta.class = ''"),
        ({"class": "fog"}, "node a: meta.class = 'fog'"),
        ({"class": "edge"}, "node a: meta.battery_mAh = None: is missing"),
        ({"class": "edge", "battery_mAh": "0", "base_mA": "1", "recharge_s": "1"}, "node a: meta.battery_mAh"),
        ({"class": "cloud", "speed": "fast"}, "node a: meta.speed = 'fast': is no number"),
        ({"class": "cloud", "speed": "0"}, "node a: meta.speed"),
    ],
)
def test_a_wrong_fact_of_a_node_is_named(meta: dict[str, str], said: str):
    with pytest.raises(FieldError) as told:
        fabric_of((Node(id="a", ports=(1,), capacity=1, meta=meta),), None, EdgeCloudSettings())
    assert said in str(told.value)


def test_a_sensor_s_edge_has_to_exist_and_nodes_have_to_be_in_the_network():
    nodes, network = cluster(5, REF, random.Random(0))
    dataflow = at_sensors(riotbench("pred"), "pred", 1, random.Random(0))
    view = view_of(dataflow, nodes)
    with pytest.raises(FieldError, match="there is no such node"):
        flow_of(view, {})
    with pytest.raises(FieldError, match="no such node is in it"):
        fabric_of(
            (*nodes, Node(id="other", ports=(1,), capacity=1, meta={"class": "cloud"})), network, EdgeCloudSettings()
        )
    with pytest.raises(FieldError, match="the cluster has none"):
        fabric_of((), network, EdgeCloudSettings())


def test_types_are_21_with_names_of_their_own():
    assert len({one.name for one in TYPES}) == 21
    assert all(one.cloud_s == pytest.approx(one.edge_s / 3) for one in TYPES)


def test_interference_stays_within_the_limits_of_the_benchmark():
    """A query alone has the benchmark's peak rate; m together take m times as long and up to `most` of it more."""
    settings = EdgeCloudSettings()
    meta = {"battery_mAh": "1000", "base_mA": "1", "recharge_s": "1000"}
    nodes = [
        Node(id="pi", ports=(), capacity=0, meta={"class": "edge", **meta}),
        Node(id="vm", ports=(), capacity=0, meta={"class": "cloud"}),
    ]
    fabric = fabric_of(nodes, None, settings)
    for r, most in enumerate((settings.pi_edge_most, settings.pi_cloud_most)):
        for kind, one in enumerate(TYPES):
            alone = (one.edge_s, one.cloud_s)[r]
            assert service_time_s(fabric, r, [kind]) == pytest.approx(alone)
            before = 0.0
            for m in (2, 3, 5, 10, 20, 1000):
                share = service_time_s(fabric, r, [kind] * m) / (m * alone) - 1
                assert before - 1e-9 <= share <= most + 1e-9 and share > 0
                before = share
            assert before == pytest.approx(most), "many reach the limit, and stay there"
