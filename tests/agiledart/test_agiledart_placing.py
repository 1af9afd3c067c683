"""The policy's first plan by dataflow: on views made by hand, through the service, and in the simulated cluster."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from leeward.control.guard import changes_nothing, check_plan
from leeward.control.registry import make_policy
from leeward.core.errors import ConfigError, LeewardError, PlanError
from leeward.core.model import ClusterView
from leeward.core.network import Link, Network, NetworkNode, Site
from leeward.core.plan import Plan, deployment
from leeward.core.settings import Settings
from leeward.core.table import even_table, replicas
from leeward.policies.agiledart.placement import by_dataflow
from leeward.policies.agiledart.policy import AgileDart
from leeward.policies.agiledart.settings import AgileDartSettings
from leeward.sim.world.description import load_world
from leeward.sim.world.rates import RateTrace
from leeward.sim.world.run import simulate
from tests.helpers.agiledart_views import carried_out, chain
from tests.helpers.control_early_stage import TASKS, serve
from tests.helpers.control_views import node, view

DATAFLOW = AgileDartSettings(place="dataflow", window=1, worth=1.0)


def decide(shown: ClusterView, policy: AgileDart | None = None) -> Plan:
    plan = (policy or AgileDart(DATAFLOW)).decide(shown, now=0.0, rng=random.Random(0))
    check_plan(plan, shown)
    return plan


def hosts(plan: Plan) -> dict[str, str]:
    """Component -> node of its only replica."""
    placed = deployment(plan.tables, plan.placement)
    return {name: node for name, counts in placed.items() for node in counts}


# --- the first plan


def test_a_topology_that_nothing_has_placed_gets_every_task_a_slot():
    shown = chain()
    plan = decide(shown)
    assert len(plan.placement) == 30 and {len(replicas(table)) for table in plan.tables.values()} == {1}
    assert plan.reason == "placed by dataflow: 10 nodes of an overlay, JOINs of at most 1 hops"
    assert max(Counter(hosts(plan).values()).values()) <= 2, "a logical node for each slot hosts one operator"


def test_the_same_view_gives_the_same_plan():
    shown = chain()
    plan = decide(shown)
    backwards = replace(shown, nodes=tuple(reversed(shown.nodes)), components=tuple(reversed(shown.components)))
    assert decide(shown) == plan and deployment(plan.tables, plan.placement) == {
        name: dict(sorted(counts.items())) for name, counts in by_dataflow(backwards)[0].items()
    }


def test_another_name_is_laid_elsewhere():
    assert hosts(decide(chain())) != hosts(decide(chain(topology="other")))


def test_pins_are_kept_at_the_ends_and_between():
    pins = {"c0": ("n3",), "c4": ("n5", "n6"), "c9": ("n7",)}
    placed = hosts(decide(chain(pins=pins)))
    assert placed["c0"] == "n3" and placed["c9"] == "n7" and placed["c4"] in pins["c4"]


def test_pins_find_room_though_others_would_take_it():
    """n0 and n1 have room for one replica each, and three components of ten must share them with no other."""
    nodes = tuple(node(f"n{k}", capacity=1 if k < 3 else 2, ports=(1,)) for k in range(7))
    pins = {"c2": ("n0",), "c5": ("n0", "n1"), "c7": ("n0", "n1", "n2")}
    for name in ("a", "b", "c", "d", "e"):
        placed = hosts(decide(chain(pins=pins, topology=name, nodes=nodes)))
        assert (placed["c2"], placed["c5"], placed["c7"]) == ("n0", "n1", "n2")


def test_pins_that_compete_find_room_whatever_the_names():
    """Of three nodes with room for one each pair is shared; the first to choose may leave the last nothing."""
    nodes = tuple(node(f"n{k}", capacity=1 if k < 3 else 2, ports=(1,)) for k in range(7))
    pins = {"c2": ("n0", "n1"), "c5": ("n0", "n2"), "c7": ("n1", "n2")}
    for number in range(12):
        placed = hosts(decide(chain(pins=pins, topology=f"t{number}", nodes=nodes)))
        assert all(placed[name] in allowed for name, allowed in pins.items())


def test_nodes_that_drain_or_have_no_slot_or_room_are_not_in_the_overlay():
    nodes = (node("n0", draining=True), node("n1", ports=()), node("n2", capacity=0), node("n3", capacity=20))
    placed = by_dataflow(chain(nodes=nodes))[0]
    assert all(counts == {"n3": 1} for counts in placed.values())


def test_a_strong_node_joins_more_often():
    nodes = (*(node(f"n{k}", ports=(1,), capacity=10) for k in range(3)), node("big", ports=range(1, 30), capacity=290))
    counts: Counter[str] = Counter()
    for number in range(20):
        counts.update(hosts(decide(chain(topology=f"t{number}", nodes=nodes))).values())
    assert counts["big"] > 150 and len(counts) > 1


def test_every_replica_is_an_operator():
    shown = chain(5)
    tables = shown.tables | {"c2": even_table((7, 8, 9)), "c0": even_table((1, 2))}
    plan = decide(replace(shown, tables=tables))
    placed = deployment(plan.tables, plan.placement)
    assert [sum(counts.values()) for counts in placed.values()] == [2, 1, 3, 1, 1]


def test_components_in_a_circle_and_one_alone_are_placed():
    shown = chain(5)
    circle = (*shown.streams, ("c3", "c1"), ("c2", "c2"))
    assert len(hosts(decide(replace(shown, streams=circle)))) == 5
    assert len(hosts(decide(replace(shown, streams=(("c1", "c0"), ("c0", "c1")))))) == 5
    assert set(hosts(decide(chain(1)))) == {"c0"}


def test_known_delays_decide_among_nodes_that_are_alike():
    """All else is equal, so with delays between nodes another node is the nearest."""
    shown = chain(nodes=tuple(node(f"n{k}") for k in range(60)))
    ids = [one.id for one in shown.nodes]
    sites = [f"s{k}" for k in range(60)]
    network = Network(
        sites=tuple(Site(id=site) for site in sites),
        links={(a, b): Link(delay_ms=7.0 * (int(a[1:]) + int(b[1:])) % 59) for a in sites for b in sites if a != b},
        nodes=(
            NetworkNode(id="boss", site="s0", role="nimbus"),
            *(NetworkNode(id=name, site=site) for name, site in zip(ids, sites, strict=True)),
        ),
    )
    near = replace(shown, network=network)
    delays = {(a, b): network.pair(a, b).delay_ms / 1_000 for a in ids for b in ids}
    assert hosts(decide(near)) != hosts(decide(shown))
    assert hosts(decide(replace(shown, delay_s=delays))) == hosts(decide(near))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"nodes": tuple(node(f"n{k}", capacity=3) for k in range(3))}, "'chain' has 10 operators, .* hold 9 more"),
        ({"nodes": (node("n0", draining=True),)}, "no machine can host an operator"),
        ({"pins": {"c0": ("n99",)}}, r"'c0#0' finds no room on the 0 nodes"),
        ({"pins": {"c4": ("n99",)}}, r"'c4#0' finds no room on the 0 nodes"),
        ({"pins": {"c0": ("n0",), "c9": ("n0",)}, "nodes": (node("n0", capacity=1), node("n1", capacity=20))},
         r"'c9#0' finds no room on the 2 nodes"),
    ],
)  # fmt: skip
def test_no_room_is_an_error_that_names_it(changes, problem):
    with pytest.raises(LeewardError, match=problem):
        decide(chain(**changes))


def fits(shown: ClusterView) -> bool:
    """Each component finds a room that its pins allow: a matching with the rooms of all nodes."""
    rooms = [one.id for one in shown.nodes if one.ports and not one.draining for _ in range(one.capacity)]
    may = [[not one.pinned or room in one.pinned for room in rooms] for one in shown.components]
    return bool(rooms) and bool((maximum_bipartite_matching(csr_array(may), perm_type="column") >= 0).all())


def test_random_views_give_valid_plans_and_are_refused_only_if_there_is_none():
    rng, placed = random.Random(5), 0
    for number in range(300):
        nodes = tuple(
            node(f"n{k}", ports=range(1, rng.randint(1, 5)), capacity=rng.randint(0, 4), draining=rng.random() < 0.1)
            for k in range(rng.randint(1, 12))
        )
        names = [one.id for one in nodes]
        pins = {f"c{k}": tuple(rng.sample(names, rng.randint(1, len(names)))) for k in range(6) if rng.random() < 0.5}
        shown = chain(6, pins=pins, nodes=nodes, topology=f"t{number}")
        streams = tuple((f"c{a}", f"c{b}") for a in range(6) for b in range(6) if a < b and rng.random() < 0.4)
        shown = replace(shown, streams=streams)
        if not fits(shown):
            with pytest.raises(LeewardError):
                decide(shown)
            continue
        placed += 1
        plan = decide(shown)
        assert plan == decide(shown) and len(hosts(plan)) == 6
    assert 100 < placed < 250


# --- the policy


def test_scaling_goes_on_from_the_plan_in_force():
    policy, shown = AgileDart(DATAFLOW), view(rate=290.0, first=True)
    first = decide(shown, policy)
    assert first.reason.startswith("placed by dataflow") and len(replicas(first.tables["work"])) == 1
    assert decide(shown, policy) == first, "a plan that was refused is made again"
    second = decide(carried_out(shown, first), policy)
    assert len(replicas(second.tables["work"])) == 2 and "scale" in second.reason


def test_a_topology_that_lies_there_already_scales_at_once_and_is_not_laid_again():
    policy, shown = AgileDart(DATAFLOW), view(rate=290.0, first=True)
    lies = replace(carried_out(shown, decide(shown)), first=True)
    plan = decide(lies, policy)
    assert len(replicas(plan.tables["work"])) == 2 and "scale" in plan.reason
    again = decide(replace(carried_out(lies, plan), first=True), policy)
    assert "dataflow" not in again.reason
    other = decide(replace(shown, topology_id="app-2-2"), policy)
    assert other.reason.startswith("placed by dataflow"), "another topology of the name"


def test_a_plan_of_ours_is_not_laid_anew():
    shown = view(rate=100.0)
    assert changes_nothing(decide(shown), shown)


def test_without_the_option_storm_places_and_rates_come_first():
    assert not AgileDart(AgileDartSettings()).at_once and AgileDart(DATAFLOW).at_once
    shown = view(rate=100.0, first=True)
    plan = decide(shown, AgileDart(AgileDartSettings()))
    assert deployment(plan.tables, plan.placement) == deployment(shown.tables, shown.assignment)
    with pytest.raises(ConfigError, match=r"agiledart.place' is 'ring'"):
        AgileDartSettings(place="ring")


def test_a_draining_pin_is_an_error_of_the_policy():
    shown = view(first=True, pinned=("n2",), nodes=(node("n1"), node("n2", draining=True), node("n3")))
    with pytest.raises(PlanError, match="'work#0' finds no room on the 0 nodes"):
        decide(shown)


def test_storms_first_placement_is_that_of_the_dataflow():
    world, sink = serve(AgileDart(DATAFLOW))
    actions = [action for action, _ in sink.events if action != "measured"]
    assert actions[:4] == ["service_started", "leading", "plan_made", "first_record"]
    made = next(fields for action, fields in sink.events if action == "plan_made")
    assert str(made["reason"]).startswith("placed by dataflow") and world.placement is not None
    assert "reconfiguration_started" not in actions and world.placement.slots.keys() == TASKS.keys()


def test_the_simulated_cluster_is_laid_by_dataflow_and_then_scales():
    world = load_world(Path(__file__).parents[2] / "storm_conf/worlds/query1.toml")
    trace = RateTrace((0.0, 300.0, 300.001, 900.0), (80.0, 80.0, 220.0, 220.0))
    settings = Settings(period_s=10.0, scale_down_s=0.0, no_return_s=0.0)

    def run():
        policy = make_policy("leeward.policies.agiledart.policy:AgileDart", {"place": "dataflow"})
        return simulate(world, trace, policy, settings, hours=0.25)

    outcome = run()
    made = [event for event in outcome.events if event.action == "plan_made"]
    assert str(made[0].fields["reason"]).startswith("placed by dataflow")
    assert sum("dataflow" in str(event.fields["reason"]) for event in made) == 1
    figures = outcome.figures
    assert figures.failed == 0 and not figures.refused and figures.undone == 0
    assert figures.restarts == 1, "the first plan moves tasks that Storm has placed"
    assert figures.handovers >= 1 and figures.lost == 0 and figures.waiting < 10
    again = run()
    assert again.events == outcome.events, "the same input, the same output"
