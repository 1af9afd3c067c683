"""The policy through views and plans alone: arrivals, departures, restarts of the service, changes of the cluster."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from edge_cloud_views import carried_out, flow_of, places, view_of

from leeward.control.registry import load, make_policy
from leeward.core.fields import FieldError
from leeward.core.model import ClusterView
from leeward.core.plan import Plan, Refusal
from leeward.policies.edge_cloud.facts import fabric_of
from leeward.policies.edge_cloud.model.evaluate import evaluate
from leeward.policies.edge_cloud.model.instance import Instance
from leeward.policies.edge_cloud.policy import EdgeCloud
from leeward.policies.edge_cloud.settings import METHODS, EdgeCloudSettings
from leeward.policies.edge_cloud.workload.catalogue import at_sensors, catalogue, riotbench
from leeward.policies.edge_cloud.workload.setup import REF, cluster

NODES, NETWORK = cluster(30, REF, random.Random(7))
NUMBERS = {node.id: number for number, node in enumerate(NODES)}
EDGES = 29
DRAWN = catalogue(REF, random.Random(7))[:12]


def arriving(count: int, seed: int = 0) -> list[ClusterView]:
    rng = random.Random(seed)
    flows = [at_sensors(DRAWN[k % len(DRAWN)], f"app-{k}", EDGES, rng) for k in range(count)]
    return [view_of(flow, NODES, NETWORK) for flow in flows]


class Cluster:
    """Shows the policy the views of all topologies, and carries out its plans at once."""

    def __init__(self, **settings: str) -> None:
        self.policy = EdgeCloud(EdgeCloudSettings(**settings))
        self.views: dict[str, ClusterView] = {}
        self.rng = random.Random(0)

    def ask(self) -> dict[str, Plan | Refusal]:
        answers = dict(self.policy.decide_all(list(self.views.values()), now=0.0, rng=self.rng))
        for name, answer in answers.items():
            if isinstance(answer, Plan):
                self.views[name] = carried_out(self.views[name], answer)
        return answers

    def arrive(self, view: ClusterView) -> dict[str, Plan | Refusal]:
        self.views[view.topology] = view
        return self.ask()

    def violations(self) -> tuple[object, ...]:
        flows = [flow_of(view, NUMBERS) for view in self.views.values()]
        where = [[NUMBERS[node] for node in places(view).values()] for view in self.views.values()]
        fabric = fabric_of(NODES, NETWORK, EdgeCloudSettings())
        return evaluate(Instance(fabric=fabric, dataflows=tuple(flows)), where).violations


@pytest.mark.parametrize("method", ["polished", "topset-p", "topset"])
def test_arrivals_get_plans_that_break_no_constraint_and_others_stay(method: str):
    cluster = Cluster(method=method)
    for view in arriving(8):
        answers = cluster.arrive(view)
        assert list(answers) == [view.topology]
        plan = answers[view.topology]
        assert isinstance(plan, Plan) and "arrived: makespan" in plan.reason
        assert plan.estimate.response_s is not None and plan.estimate.response_s > 0.02
        assert not cluster.violations()
    assert not cluster.ask()


def test_the_same_object_gives_the_same_plans_again():
    def plans() -> list[object]:
        cluster = Cluster()
        return [cluster.arrive(view) for view in arriving(5)]

    assert plans() == plans()


def test_a_departure_frees_its_resources():
    """One machine of the cloud and a rate that leaves room for one: the second fits when the first has gone."""
    cluster = Cluster(method="topset")
    nodes = (NODES[0], NODES[EDGES])
    fast = {"rate": 1500.0}
    flows = [at_sensors(riotbench("pred"), name, 1, random.Random(0)) for name in ("one", "two")]
    for flow in flows:
        flow = replace(flow, queries=(replace(flow.queries[0], rate=fast["rate"]), *flow.queries[1:]))
        cluster.views[flow.name] = view_of(flow, nodes, NETWORK)
    answers = cluster.ask()
    assert isinstance(answers["one"], Plan) and isinstance(answers["two"], Refusal)
    assert cluster.ask().keys() == {"two"}
    del cluster.views["one"]
    assert isinstance(cluster.ask()["two"], Plan)


def test_a_service_that_starts_anew_takes_topologies_as_they_run():
    cluster = Cluster()
    for view in arriving(4):
        cluster.arrive(view)
    before = {name: places(view) for name, view in cluster.views.items()}
    cluster.policy = EdgeCloud(EdgeCloudSettings())
    late = arriving(5)[4]
    assert list(cluster.arrive(late)) == [late.topology]
    assert {name: places(cluster.views[name]) for name in before} == before and not cluster.violations()


def test_a_plan_that_was_not_carried_out_is_given_again():
    cluster = Cluster()
    view = arriving(1)[0]
    first = cluster.arrive(view)[view.topology]
    cluster.views[view.topology] = view
    assert cluster.ask() == {view.topology: first}


def test_a_topology_submitted_anew_under_its_name_arrives_again():
    cluster = Cluster()
    view = arriving(1)[0]
    cluster.arrive(view)
    answers = cluster.arrive(replace(view, topology_id=f"{view.topology}-2"))
    assert isinstance(answers[view.topology], Plan)


def test_queries_leave_a_node_that_drains_and_other_dataflows_stay():
    cluster = Cluster()
    for view in arriving(6):
        cluster.arrive(view)
    hosts = [node for view in cluster.views.values() for node in places(view).values() if node.startswith("edge")]
    pinned = {node for view in cluster.views.values() for one in view.components for node in one.pinned}
    lost = next(node for node in sorted(hosts) if node not in pinned)
    using = {name for name, view in cluster.views.items() if lost in places(view).values()}
    nodes = tuple(replace(node, draining=node.id == lost) for node in NODES)
    cluster.views = {name: replace(view, nodes=nodes) for name, view in cluster.views.items()}
    assert set(cluster.ask()) == using
    assert all(lost not in places(view).values() for view in cluster.views.values())


def test_wrong_facts_of_one_topology_leave_the_others_alone():
    cluster = Cluster()
    good, bad = arriving(2)
    facts = {**bad.components[1].facts, "selectivity": -1.0}
    wrong = replace(bad.components[1], facts=facts)
    cluster.views = {
        bad.topology: replace(bad, components=(bad.components[0], wrong, *bad.components[2:])),
        good.topology: good,
    }
    answers = cluster.ask()
    assert isinstance(answers[good.topology], Plan)
    assert isinstance(refused := answers[bad.topology], Refusal) and "sigma" in refused.reason


def test_a_cycle_and_a_sensor_that_does_not_exist_are_refused_with_the_reason():
    cluster = Cluster()
    one, two = arriving(2)
    ids = [component.id for component in one.components]
    cycle = replace(one, streams=(*one.streams, (ids[2], ids[1])))
    lost = replace(two.components[0], pinned=("edge-99",))
    cluster.views = {"app-0": cycle, "app-1": replace(two, components=(lost, *two.components[1:]))}
    answers = cluster.ask()
    assert "cycle" in answers["app-0"].reason and "'edge-99'" in answers["app-1"].reason


def test_a_source_in_the_cloud_is_refused_with_the_reason_each_time_and_leaves_the_others_alone():
    cluster = Cluster()
    good, bad = arriving(2)
    above = replace(bad.components[0], pinned=(NODES[EDGES].id,))
    cluster.views = {bad.topology: replace(bad, components=(above, *bad.components[1:])), good.topology: good}
    answers = cluster.ask()
    assert isinstance(answers[good.topology], Plan) and "no edge" in answers[bad.topology].reason
    assert "no edge" in cluster.ask()[bad.topology].reason


def test_a_battery_of_zero_is_an_error_that_names_the_node():
    nodes = (replace(NODES[0], meta={**NODES[0].meta, "battery_mAh": "0"}), *NODES[1:])
    with pytest.raises(FieldError, match=f"node {NODES[0].id}: meta.battery_mAh"):
        EdgeCloud(EdgeCloudSettings()).decide_all([replace(arriving(1)[0], nodes=nodes)], now=0.0, rng=random.Random(0))


def test_the_policy_is_found_by_its_name_and_its_settings_are_checked():
    assert load("edge-cloud") is EdgeCloud
    for method in METHODS:
        make_policy("edge-cloud", {"method": method})
    with pytest.raises(Exception, match=r"edge-cloud\.method"):
        make_policy("edge-cloud", {"method": "best"})


def test_preparing_leaves_the_policy_as_it_was():
    policy = EdgeCloud(EdgeCloudSettings())
    policy.prepare()
    assert policy.decide_all([], now=0.0, rng=random.Random(0)) == {}


def chain_view(name: str, pins: dict[str, tuple[str, ...]], apart: tuple[tuple[str, ...], ...] = ()) -> ClusterView:
    """PRED of RIoTBench with its sensor on edge 0; `pins` of components that are no source."""
    view = view_of(at_sensors(riotbench("pred"), name, 1, random.Random(0)), NODES, NETWORK)
    components = tuple(replace(one, pinned=pins.get(one.id, one.pinned)) for one in view.components)
    return replace(view, components=components, apart=apart)


def test_a_query_runs_on_a_node_of_its_pin_and_the_others_of_its_dataflow_beside_it():
    cluster = Cluster()
    view = chain_view("app", {})
    free = places(carried_out(view, cluster.arrive(view)["app"]))
    query = next(one.id for one in view.components if one.facts["kind"] == "query")
    elsewhere = tuple(node.id for node in NODES if node.id != free[query])[:2]
    cluster = Cluster()
    cluster.arrive(chain_view("app", {query: elsewhere}))
    assert places(cluster.views["app"])[query] in elsewhere and not cluster.violations()
    assert not cluster.ask(), "it stays there"


@pytest.mark.parametrize("rebalance", ["none", "vertex-edge"])
def test_rivals_share_no_node_and_a_service_that_starts_anew_moves_those_that_do(rebalance: str):
    cluster = Cluster(rebalance=rebalance)
    view = chain_view("app", {})
    cluster.arrive(view)
    together = places(cluster.views["app"])
    one = next(a for a in together if list(together.values()).count(together[a]) > 1)
    rivals = tuple(a for a in together if together[a] == together[one])[:2]
    cluster.policy = EdgeCloud(EdgeCloudSettings(rebalance=rebalance))
    cluster.views["app"] = replace(cluster.views["app"], apart=(rivals,))
    plan = cluster.ask()["app"]
    assert isinstance(plan, Plan) and "moved" in plan.reason
    after = places(cluster.views["app"])
    assert after[rivals[0]] != after[rivals[1]] and not cluster.violations() and not cluster.ask()


def test_a_topology_whose_limits_cannot_hold_is_refused_with_the_query_and_leaves_the_board_as_it_was():
    cluster = Cluster()
    good = chain_view("good", {})
    cluster.arrive(good)
    kinds = {one.facts["kind"]: one.id for one in good.components}
    sink, query = kinds["sink"], kinds["query"]
    bad = chain_view("bad", {sink: (NODES[EDGES].id,), query: (NODES[EDGES].id,)}, apart=((sink, query),))
    refused = cluster.arrive(bad)["bad"]
    assert isinstance(refused, Refusal) and refused.reason.startswith("bad, ") and "leeward.apart" in refused.reason
    del cluster.views["bad"]
    assert not cluster.ask()
    assert set(cluster.arrive(chain_view("more", {}))) == {"more"}


def test_a_topology_for_which_a_node_has_no_slot_leaves_the_others_their_plans():
    cluster = Cluster()
    full = tuple(replace(node, ports=()) for node in NODES)
    cluster.views = {"one": replace(chain_view("one", {}), nodes=full), "two": chain_view("two", {})}
    answers = cluster.ask()
    assert isinstance(answers["one"], Refusal) and isinstance(answers["two"], Plan)
