"""JOINs and operators along them, on converged overlays."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.core.errors import LeewardError
from leeward.policies.agiledart.dataflow.application import Application, Operator
from leeward.policies.agiledart.dataflow.joins import join
from leeward.policies.agiledart.dataflow.nodes import ByTables, Draft, Loads
from leeward.policies.agiledart.dataflow.placement import Placed, place
from leeward.policies.agiledart.overlay.ids import common_prefix, hops_bound
from leeward.policies.agiledart.platform.converged import Converged, drawn
from leeward.policies.agiledart.platform.heartbeats import LoadsOfHeartbeats

NODES = drawn(400, Random(1))
OVERLAY = ByTables(NODES)


def loads(network: Converged = NODES, most: int = 4) -> Loads:
    return Loads(dict.fromkeys(network.ids, most))


def chain(source: int, sink: int, inner: int = 8, name: str = "app") -> Application:
    names = [f"o{number}" for number in range(inner)]
    before = ["source", *names]
    middle = [Operator(name=one, upstream=(up,)) for one, up in zip(names, before, strict=False)]
    ends = Operator(name="source", at=source), Operator(name="sink", upstream=(before[-1],), at=sink)
    return Application(name, (ends[0], *middle, ends[1]))


def two_sources(left: int, right: int, sink: int) -> Application:
    """left -> a, right -> b, both -> c -> sink."""
    return Application(
        "two",
        (
            Operator(name="left", at=left), Operator(name="right", at=right),
            Operator(name="a", upstream=("left",)), Operator(name="b", upstream=("right",)),
            Operator(name="c", upstream=("a", "b")), Operator(name="sink", upstream=("c",), at=sink),
        ),
    )  # fmt: skip


def hosted(found: Loads, network: Converged = NODES) -> dict[int, int]:
    return {node: found.hosted(node) for node in network.ids if found.hosted(node)}


# --- JOIN


@given(st.integers(0, 399), st.integers(0, 399), st.integers(0, 1_000))
def test_a_join_ends_at_the_sink_within_the_bound_whatever_the_loads(source: int, sink: int, seed: int):
    rng, found = Random(seed), loads()
    for node in NODES.ids:
        for _ in range(rng.randint(0, 4)):
            found.add(node)
    way = join(OVERLAY, found, NODES.ids[source], NODES.ids[sink])
    assert way.path[0] == NODES.ids[source] and way.path[-1] == NODES.ids[sink]
    assert len(set(way.path)) == len(way.path) and way.hops <= hops_bound(len(NODES))
    assert len(way.asked) == way.hops
    for node, after in zip(way.path[:-2], way.forwarders, strict=True):
        assert common_prefix(after, way.path[-1]) > common_prefix(node, way.path[-1])


def test_the_least_loaded_of_the_eight_nearest_candidates_forwards():
    source, sink = NODES.ids[0], NODES.ids[200]
    found = loads()
    first = join(OVERLAY, found, source, sink)
    hop = first.asked[0]
    digits = common_prefix(hop, sink)
    equal = {hop, *OVERLAY.leaf_set(hop)} - {source, sink}
    able = [node for node in equal if common_prefix(node, sink) >= digits]
    nearest = sorted(able, key=lambda node: (NODES.proximity(source, node), node))
    assert len(nearest) > 8 and first.path[1] == nearest[0], "all are alike: the nearest"
    for node in nearest[:7]:
        found.add(node)
    assert join(OVERLAY, found, source, sink).path[1] == nearest[7]
    found.add(nearest[7])
    assert join(OVERLAY, found, source, sink).path[1] == nearest[0], "the ninth is no candidate"
    for _ in range(3):
        found.add(nearest[0])
    for node in nearest[1:8]:
        found.add(node)
    assert join(OVERLAY, found, source, sink).path[1] == nearest[8], "a full node leaves its place to the next one"


def test_the_load_is_relative_to_the_capacity():
    source, sink = NODES.ids[0], NODES.ids[200]
    near = join(OVERLAY, loads(), source, sink).path[1]
    strong = Loads({node: 100 if node == near else 4 for node in NODES.ids})
    for node in (*NODES.ids, near):
        strong.add(node)
    assert join(OVERLAY, strong, source, sink).path[1] == near


def test_a_join_of_full_nodes_takes_pastrys_way():
    full = loads(most=0)
    way = join(OVERLAY, full, NODES.ids[0], NODES.ids[200])
    assert way.path[1:] == way.asked


class Lost(ByTables):
    """No node knows any other."""

    def next_hop(self, node, key, avoid):
        return None


def test_a_sink_that_cannot_be_reached_is_named_and_nothing_is_placed():
    found = loads()
    with pytest.raises(LeewardError, match=r"application 'app': a JOIN .* ended at .* not at its sink"):
        place(chain(NODES.ids[0], NODES.ids[9]), Lost(NODES), found)
    assert hosted(found) == {}


# --- operators


def test_operators_lie_along_the_path_in_order_and_the_rest_near_it():
    found = loads()
    source, sink = NODES.ids[0], NODES.ids[200]
    application = chain(source, sink)
    placed = place(application, OVERLAY, found)
    way = placed.joins["source", "sink"]
    assert placed.hosts["source"] == source and placed.hosts["sink"] == sink
    deciders = [placed.deciders[f"o{number}"] for number in range(8)]
    assert deciders == sorted(deciders, key=way.path.index) and set(deciders) == set(way.forwarders)
    shares = Counter(deciders).values()
    assert max(shares) - min(shares) <= 1
    for node in way.forwarders:
        first, *others = [placed.hosts[f"o{number}"] for number in range(8) if deciders[number] == node]
        assert first == node and set(others) <= set(OVERLAY.leaf_set(node)) - {node}
    assert hosted(found) == Counter(placed.hosts.values()) and max(hosted(found).values()) == 1
    assert placed.links == frozenset(pairwise(way.path))


def test_an_operator_behind_two_sources_lies_where_their_ways_have_met_or_on_the_first_ones():
    rng, shared = Random(3), 0
    for _ in range(60):
        left, right, sink = rng.sample(NODES.ids, 3)
        placed = place(two_sources(left, right, sink), OVERLAY, loads())
        first, second = placed.joins["left", "sink"], placed.joins["right", "sink"]
        for name, way in (("a", first), ("b", second)):
            assert placed.deciders[name] in (way.forwarders or way.path[:1])
        both = [node for node in first.forwarders if node in second.forwarders]
        shared += bool(both)
        assert placed.deciders["c"] in (both or first.forwarders or first.path[:1])
    assert shared


class Drawn:
    """Ways by hand: each node knows the next one only."""

    def __init__(self, *ways: tuple[int, ...]) -> None:
        self.next = {link[0]: link[1] for way in ways for link in pairwise(way)}

    def next_hop(self, node, key, avoid):
        return self.next[node]

    def leaf_set(self, node):
        return ()

    def proximity(self, a, b):
        return 0.0


def test_an_operator_goes_to_the_node_where_the_ways_meet():
    """Divided over the whole first way, with the operator before it, it would lie on node 3."""
    overlay = Drawn((1, 2, 3, 4, 9), (5, 6, 4, 9))
    placed = place(two_sources(1, 5, 9), overlay, Loads(dict.fromkeys(range(1, 10), 1)))
    assert placed.hosts == {"left": 1, "right": 5, "sink": 9, "a": 2, "b": 6, "c": 4}
    assert placed.links == {(1, 2), (2, 3), (3, 4), (5, 6), (6, 4), (4, 9)}


def test_the_sink_is_no_forwarder_on_the_way_to_itself():
    class Near(Drawn):
        def leaf_set(self, node):
            return (9,)

    found = Loads(dict.fromkeys(range(1, 10), 4))
    found.add(2)
    assert join(Near((1, 2, 9)), found, 1, 9).path == (1, 2, 9)


def test_a_source_that_feeds_two_sinks_joins_both():
    source, *sinks = NODES.ids[0], NODES.ids[100], NODES.ids[300]
    one, two = (
        Operator(name=name, upstream=("work",), at=node) for name, node in zip(("one", "two"), sinks, strict=True)
    )
    made = Application(
        "fork", (Operator(name="source", at=source), Operator(name="work", upstream=("source",)), one, two)
    )
    assert made.joins == (("source", "one"), ("source", "two"))
    placed = place(made, OVERLAY, loads())
    assert [placed.joins["source", name].path[-1] for name in ("one", "two")] == sinks


def random_placement(nodes: int, most: int, seed: int) -> tuple[list[Placed], Loads, Converged]:
    rng = Random(seed)
    network = drawn(nodes, rng)
    found, placed = loads(network, most), []
    for number in range(nodes):
        application = chain(rng.choice(network.ids), rng.choice(network.ids), rng.randint(0, 12), f"app {number}")
        before = hosted(found, network)
        try:
            placed.append(place(application, ByTables(network), found))
        except LeewardError as error:
            assert f"app {number}" in str(error) and hosted(found, network) == before
    return placed, found, network


@settings(max_examples=30)
@given(st.integers(1, 60), st.integers(1, 5), st.integers(0, 1_000))
def test_capacities_hold_and_refusals_change_nothing(nodes: int, most: int, seed: int):
    placed, found, network = random_placement(nodes, most, seed)
    assert hosted(found, network) == Counter(host for one in placed for host in one.hosts.values())
    assert max(hosted(found, network).values(), default=0) <= most
    assert found.free == nodes * most - sum(hosted(found, network).values())
    again, _, _ = random_placement(nodes, most, seed)
    assert again == placed, "the same input gives the same output"


def test_full_leaf_sets_are_passed_over_until_there_is_room():
    found = loads(most=1)
    source, sink, far = NODES.ids[0], NODES.ids[1], NODES.ids[200]
    for node in NODES.ids[2:]:
        if node != far:
            found.add(node)
    assert place(chain(source, sink, inner=1), OVERLAY, found).hosts["o0"] == far


# --- wrong input


def test_more_operators_than_all_nodes_hold_are_refused():
    network = drawn(3, Random(1))
    found = loads(network, 3)
    with pytest.raises(LeewardError, match="'app' has 10 operators, and all nodes together hold 9 more"):
        place(chain(network.ids[0], network.ids[1]), ByTables(network), found)
    assert found.free == 9


def test_unknown_nodes_are_refused():
    for ends in ((NODES.ids[0] + 1, NODES.ids[5]), (NODES.ids[5], NODES.ids[0] + 1)):
        found = loads()
        with pytest.raises(LeewardError, match="is not one of the overlay's 400 nodes"):
            place(chain(*ends), OVERLAY, found)
        assert hosted(found) == {}


def test_a_sensor_on_a_full_node_is_refused():
    found = loads(most=1)
    found.add(NODES.ids[7])
    with pytest.raises(LeewardError, match=r"holds 1 operators, as many as it can"):
        place(chain(NODES.ids[0], NODES.ids[7]), OVERLAY, found)
    assert hosted(found) == {NODES.ids[7]: 1}


def test_an_overlay_of_one_node_holds_what_it_can():
    alone = Converged([7], [(0.0, 0.0)])
    placed = place(chain(7, 7), ByTables(alone), loads(alone, 10))
    assert set(placed.hosts.values()) == {7} and placed.joins["source", "sink"].hops == 0
    with pytest.raises(LeewardError, match="10 operators, and all nodes together hold 9"):
        place(chain(7, 7), ByTables(alone), loads(alone, 9))


def test_operators_stay_on_allowed_nodes():
    allowed = frozenset(NODES.ids[10:13])
    made = Application(
        "pins",
        (
            Operator(name="source", at=NODES.ids[0]),
            *(Operator(name=f"o{k}", upstream=("source",), allowed=allowed) for k in range(3)),
            Operator(name="sink", upstream=("o0", "o1", "o2"), at=NODES.ids[50]),
        ),
    )
    found = loads(most=1)
    placed = place(made, OVERLAY, found)
    assert {placed.hosts[f"o{k}"] for k in range(3)} == allowed
    found = loads(most=1)
    found.add(NODES.ids[10])
    with pytest.raises(LeewardError, match=r"operator 'o2' may run on 3 nodes, and they are full"):
        place(made, OVERLAY, found)
    assert hosted(found) == {NODES.ids[10]: 1}


@pytest.mark.parametrize(
    ("operators", "problem"),
    [
        ((), "it has no operators"),
        ((Operator(name="a", at=1), Operator(name="a", at=1)), "operator 'a' is named twice"),
        ((Operator(name="a", upstream=("b",)), Operator(name="b", at=1)), "'a' reads 'b', which is not before it"),
        ((Operator(name="a"), Operator(name="b", upstream=("a",), at=1)), "'a' is a source or a sink and has no node"),
        ((Operator(name="a", at=1), Operator(name="b", upstream=("a",))), "'b' is a source or a sink and has no node"),
    ],
)
def test_wrong_applications_are_refused(operators, problem):
    with pytest.raises(LeewardError, match=problem):
        Application("bad", operators)


def test_loads_are_checked():
    with pytest.raises(LeewardError, match="-1 is below 0"):
        Loads({1: -1})
    two = Loads({1: 2, 2: 0})
    assert (two.share(1), two.share(1, 1), two.share(2)) == (0.0, 0.5, 1.0)
    with pytest.raises(LeewardError, match="holds 0 operators, as many"):
        two.add(1, 3)
    two.add(1, 2)
    assert two.free == 0 and two.hosted(1) == 2


def test_a_draft_counts_for_its_application_and_is_added_at_its_end():
    found = loads(most=2)
    node = NODES.ids[0]
    draft = Draft(found)
    draft.add(node)
    assert (draft.share(node), draft.room(node), found.hosted(node)) == (0.5, 1, 0)
    draft.add(node)
    with pytest.raises(LeewardError, match="holds 2 operators, as many"):
        draft.add(node)
    draft.commit()
    assert hosted(found) == {node: 2}


def test_an_application_does_not_crowd_one_node_while_loads_are_old():
    """Once all operators of an application beyond its path went to the node that was nearest at the last heartbeat."""
    old, rng = LoadsOfHeartbeats(dict.fromkeys(NODES.ids, 20)), Random(5)
    for number in range(20):
        placed = place(chain(*rng.sample(NODES.ids, 2), name=f"app {number}"), OVERLAY, old)
        assert max(Counter(placed.hosts.values()).values()) == 1
    assert {old.share(node) for node in NODES.ids} == {0.0} and old.free == 20 * 400 - 200
    old.beat()
    assert sum(old.share(node) for node in NODES.ids) == pytest.approx(10)
