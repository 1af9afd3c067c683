"""The policy on views made by hand: scale up, out, in, move, leave; and in the simulated cluster."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from leeward.control.guard import changes_nothing, check_plan
from leeward.control.registry import make_policy
from leeward.core.errors import ConfigError, PlanError
from leeward.core.model import ClusterView, Component, Measured
from leeward.core.network import Link, Network, NetworkNode, Site
from leeward.core.plan import Plan, Slot, deployment
from leeward.core.settings import Settings
from leeward.core.table import even_table
from leeward.policies.agiledart.policy import AgileDart
from leeward.policies.agiledart.settings import AgileDartSettings
from leeward.sim.world.description import load_world
from leeward.sim.world.rates import RateTrace
from leeward.sim.world.run import simulate
from tests.helpers.control_views import node, view

#: One measurement decides, and a replica is worth all of its service rate.
SHARP = AgileDartSettings(window=1, worth=1.0)


def decide(shown: ClusterView, policy: AgileDart | None = None) -> Plan:
    plan = (policy or AgileDart(SHARP)).decide(shown, now=0.0, rng=random.Random(0))
    check_plan(plan, shown)
    return plan


def counts(plan: Plan, name: str = "work") -> dict[str, int]:
    return deployment(plan.tables, plan.placement)[name]


def carried_out(shown: ClusterView, plan: Plan) -> ClusterView:
    return replace(shown, tables=plan.tables, assignment=plan.placement)


def stuck(**changes) -> ClusterView:
    """The source sends 100 tuples/s, of which 60 arrive at replicas that are busy for under half of the time."""
    shown = view(rate=60.0, mu=150.0, **changes)
    return replace(shown, measured={**shown.measured, "source": Measured(arrival_rate=100.0, service_rate=1000.0)})


def stateless(shown: ClusterView) -> ClusterView:
    made = tuple(replace(c, stateful=False) if c.id == "work" else c for c in shown.components)
    return replace(shown, components=made)


# --- how many


def test_nothing_to_do_is_the_plan_in_force():
    shown = view(rate=140.0)
    plan = decide(shown)
    assert changes_nothing(plan, shown) and plan.reason == "every component rests"


@pytest.mark.parametrize(("rate", "number"), [(140.0, 1), (160.0, 2), (290.0, 2), (310.0, 3), (10_000.0, 3)])
def test_replicas_follow_the_rate_up_to_their_most(rate, number):
    assert sum(counts(decide(view(rate=rate))).values()) == number


def test_replicas_go_when_the_rate_falls_and_one_stays():
    assert sum(counts(decide(view(rate=20.0, work=(2, 3, 4)))).values()) == 1
    assert sum(counts(decide(view(rate=0.0, work=(2, 3, 4)))).values()) == 1


def test_a_backlog_at_the_source_counts_as_far_as_it_comes_here():
    assert sum(counts(decide(view(rate=140.0, queued=3_000))).values()) == 2, "100/s more for 30 s"


def test_a_replica_is_worth_less_than_its_service_rate():
    policy = AgileDart(AgileDartSettings(window=1))
    assert sum(counts(decide(view(rate=140.0), policy)).values()) == 2


def test_a_window_of_measurements_comes_before_a_plan():
    policy, shown = AgileDart(AgileDartSettings(window=3, worth=1.0)), view(rate=290.0)
    assert [changes_nothing(decide(shown, policy), shown) for _ in range(4)] == [True, True, False, False]


def test_a_component_without_a_service_rate_stays():
    shown = view(rate=1000.0)
    shown = replace(shown, measured={**shown.measured, "work": Measured(arrival_rate=1000.0)})
    assert changes_nothing(decide(shown), shown)
    assert changes_nothing(decide(replace(shown, measured={})), replace(shown, measured={}))


def test_another_topology_of_the_name_is_measured_anew():
    policy, shown = AgileDart(AgileDartSettings(window=2, worth=1.0)), view(rate=290.0)
    decide(shown, policy)
    again = replace(shown, topology_id="app-2-2")
    assert changes_nothing(decide(again, policy), again)


def test_the_papers_rule_guesses_twice_and_keeps_one_replica_for_an_empty_queue():
    policy = AgileDart(AgileDartSettings(rule="secant", worth=1.0))
    shown = view(rate=290.0)
    first = decide(shown, policy)
    assert sum(counts(first).values()) == 2, "the second guess"
    assert sum(counts(decide(carried_out(shown, first), policy)).values()) == 1, "f is infinite without a queue"


# --- where


def test_up_is_on_the_node_while_it_has_room_then_out():
    nodes = (node("n1", capacity=4), node("n2"), node("n3"))
    plan = decide(view(rate=290.0, nodes=nodes))
    assert counts(plan) == {"n1": 2} and plan.reason == "work: scale up, 1 to 2 replicas"
    full = (node("n1", capacity=3), node("n2", capacity=3), node("n3"))
    plan = decide(view(rate=290.0, nodes=full))
    assert counts(plan) == {"n1": 1, "n2": 1} or counts(plan) == {"n1": 1, "n3": 1}
    assert plan.reason == "work: scale out, 1 to 2 replicas"


def test_no_room_is_said():
    plan = decide(view(rate=290.0, nodes=(node("n1", capacity=3), node("n2", capacity=0), node("n3", capacity=0))))
    assert counts(plan) == {"n1": 1} and plan.reason == "work: 1 more find no room"


def test_pins_hold():
    shown = view(rate=10_000.0, work=(3,), pinned=("n2",))
    assert counts(decide(shown)) == {"n2": 3}


def test_replicas_leave_a_node_that_drains():
    nodes = (node("n1", draining=True), node("n2"), node("n3"))
    plan = decide(view(rate=100.0, nodes=nodes))
    assert set(counts(plan)) <= {"n2", "n3"} and "work: leave nodes" in plan.reason
    assert {slot.node for slot in plan.placement.values()} <= {"n1", "n2", "n3"}


def test_replicas_whose_node_is_gone_are_placed_again():
    plan = decide(view(rate=290.0, work=(2, 4), nodes=(node("n1"), node("n2"))))
    assert sum(counts(plan).values()) == 2 and set(counts(plan)) <= {"n1", "n2"}


def test_a_node_with_more_than_its_capacity_is_relieved():
    plan = decide(view(rate=290.0, work=(2, 3), nodes=(node("n1", capacity=2), node("n2"), node("n3"))))
    assert "n1" not in counts(plan)


def test_a_component_that_fits_nowhere_is_refused():
    with pytest.raises(PlanError, match="'work' fits on no node"):
        decide(view(pinned=("n9",)))


# --- the network


def test_a_stateless_component_goes_to_other_nodes_and_stays_there():
    policy = AgileDart(SHARP)
    shown = stateless(stuck())
    shown = replace(shown, measured={**shown.measured, "source": replace(shown.measured["source"], queued=1_000)})
    plan = decide(shown, policy)
    assert counts(plan) == {"n1": 1, "n2": 1} and plan.reason == "work: scale out, 1 to 2 replicas"
    relieved = stateless(carried_out(view(rate=100.0), plan))
    assert changes_nothing(decide(relieved, policy), relieved), "one would do for a processor, not for the link"


def test_a_stateful_component_moves_to_nodes_that_were_not_slow():
    policy, shown = AgileDart(SHARP), stuck()
    plan = decide(shown, policy)
    assert counts(plan) == {"n2": 1} and plan.reason == "work: bound by bandwidth: move from n1 to n2"
    shown = carried_out(shown, plan)
    plan = decide(shown, policy)
    assert counts(plan) == {"n3": 1}
    shown = carried_out(shown, plan)
    plan = decide(shown, policy)
    assert changes_nothing(plan, shown) and "no other node has room" in plan.reason


def sites(**places: str) -> Network:
    """`places`: node -> site, a or b."""
    nodes = [NetworkNode(id=node, site=site) for node, site in places.items()]
    return Network(
        sites=(Site(id="a"), Site(id="b")), links={("a", "b"): Link(), ("b", "a"): Link()},
        nodes=(NetworkNode(id="boss", site="a", role="nimbus"), *nodes),
    )  # fmt: skip


def test_it_moves_to_another_site_where_sites_are_known():
    assert counts(decide(stuck(network=sites(n1="a", n2="a", n3="b")))) == {"n3": 1}


def test_replicas_for_compute_stay_in_the_site_while_it_has_room():
    nodes = (node("n1", capacity=3), node("n2"), node("n3"))
    assert counts(decide(view(rate=290.0, nodes=nodes, network=sites(n1="a", n2="b", n3="a")))) == {"n1": 1, "n3": 1}
    assert counts(decide(view(rate=290.0, nodes=nodes, network=sites(n1="a", n2="b", n3="b")))) == {"n1": 1, "n2": 1}


def test_the_network_is_blamed_after_a_whole_window():
    policy, shown = AgileDart(AgileDartSettings(window=3)), stuck()
    assert [changes_nothing(decide(shown, policy), shown) for _ in range(3)] == [True, True, False]


def test_a_bolt_behind_that_is_busy_is_no_fault_of_the_network():
    """The backlog at the source is that of the sink, and all before it wait."""
    shown = view(rate=60.0, queued=10_000)
    shown = replace(shown, measured={**shown.measured, "sink": Measured(arrival_rate=10.0, service_rate=10.0)})
    assert "bandwidth" not in decide(shown).reason


def test_a_backlog_that_falls_is_no_fault_of_the_network():
    policy = AgileDart(AgileDartSettings(window=2))
    for queued in (10_000, 8_000, 6_000):
        assert "bandwidth" not in decide(view(rate=60.0, queued=queued), policy).reason
    for _ in range(2):
        plan = decide(view(rate=60.0, queued=6_000), policy)
    assert "bandwidth" in plan.reason


# --- settings, and the loop


@pytest.mark.parametrize(
    "wrong",
    [{"rule": "newton"}, {"drain_s": 0.0}, {"window": 0}, {"worth": 1.5}, {"a": 2.0}, {"busy": -1.0}, {"q": 0.0}],
)
def test_bad_settings_are_refused(wrong):
    with pytest.raises(ConfigError, match=f"agiledart.{next(iter(wrong))}"):
        AgileDartSettings(**wrong)


def test_components_are_kept_apart():
    shown = view(rate=290.0, apart=(("sink", "work"),))  # all are on n1
    plan = decide(shown)
    assert "n1" not in counts(plan) and sum(counts(plan).values()) == 2 and counts(plan, "sink") == {"n1": 1}
    with pytest.raises(PlanError, match=r"find no nodes of their own"):
        decide(replace(shown, nodes=(node("n1"),), assignment=dict.fromkeys(shown.assignment, Slot("n1", 1))))


def test_the_first_placement_by_dataflow_keeps_components_apart():
    apart = (("sink", "work"), ("source", "sink"))
    plan = decide(view(first=True, apart=apart), AgileDart(AgileDartSettings(place="dataflow")))
    assert not counts(plan, "sink").keys() & (counts(plan).keys() | counts(plan, "source").keys())


@pytest.mark.parametrize("apart", [(), (("sink", "work"),)])
@pytest.mark.parametrize("rule", ["guarded", "secant"])
def test_every_plan_of_random_views_passes_the_guard(rule, apart):
    rng = random.Random(4)
    for _ in range(150):
        policy, names = AgileDart(AgileDartSettings(rule=rule, window=1)), ("n1", "n2", "n3")
        nodes = tuple(node(n, capacity=rng.randint(3, 5), draining=n != "n2" and rng.random() < 0.2) for n in names)
        if apart and sum(not one.draining for one in nodes) < 2:
            continue
        shown = view(nodes=nodes, rate=rng.uniform(0, 600), queued=rng.choice([0, 5_000]), first=rng.random() < 0.3)
        shown = replace(shown, apart=apart)
        for _ in range(3):
            made = tuple(replace(c, stateful=rng.random() < 0.5) for c in shown.components)
            shown = replace(shown, components=made)
            shown = carried_out(shown, decide(shown, policy))


def test_one_component_alone_is_never_touched():
    source = Component(id="source", tasks=(1,), stateful=False, source=True, max_replicas=1)
    shown = replace(
        view(), components=(source,), streams=(), tables={"source": even_table([1])}, assignment={1: Slot("n1", 1)},
        measured={"source": Measured(arrival_rate=1e6, service_rate=1.0)},
    )  # fmt: skip
    assert changes_nothing(decide(shown), shown)


def test_it_follows_the_rate_in_the_simulated_cluster():
    world = load_world(Path(__file__).parents[2] / "storm_conf/worlds/query1.toml")
    trace = RateTrace((0.0, 300.0, 300.001, 900.0), (80.0, 80.0, 220.0, 220.0))
    policy = make_policy("leeward.policies.agiledart.policy:AgileDart", {})
    settings = Settings(period_s=10.0, scale_down_s=0.0, no_return_s=0.0)
    outcome = simulate(world, trace, policy, settings, hours=0.25)
    figures = outcome.figures
    assert figures.handovers + figures.restarts >= 1 and figures.failed == 0 and not figures.refused
    assert figures.restarts == 0, "warm tasks are there"
    assert figures.waiting < 10 and figures.lost == 0 and figures.mean_response_s < 0.15
