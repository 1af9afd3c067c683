"""Ids, routing tables and leaf sets, and routes in an overlay where all have joined."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.core.errors import LeewardError
from leeward.policies.agiledart.overlay.ids import (
    BITS,
    DIGITS,
    RING,
    common_prefix,
    digit,
    from_bytes,
    hops_bound,
    id_of,
    logical_ids,
    nearness,
    ring_distance,
    to_bytes,
)
from leeward.policies.agiledart.overlay.tables import LEAF_SET, SIDE, LeafSet, RoutingTable, Tables
from leeward.policies.agiledart.platform.converged import Converged, drawn

IDS = st.integers(0, RING - 1)


@given(IDS, IDS)
def test_the_common_prefix_is_that_of_the_digits(a: int, b: int):
    left, right = f"{a:032x}", f"{b:032x}"
    shared = common_prefix(a, b)
    assert left[:shared] == right[:shared]
    assert shared == DIGITS or left[shared] != right[shared]
    assert [digit(a, at) for at in range(DIGITS)] == [int(one, 16) for one in left]
    assert from_bytes(to_bytes(a)) == a


def test_the_ring_has_no_end():
    assert ring_distance(0, RING - 1) == ring_distance(RING - 1, 0) == 1
    assert ring_distance(0, RING // 2) == RING // 2
    assert min((RING - 2, 2), key=lambda node: nearness(node, 0)) == 2, "of two as near the smaller id"


def test_ids_of_names_are_the_same_everywhere():
    assert id_of("node-1") == 0x8CBB79A8C0130C3DDFF1CBDC9A0DEA0E
    assert len({*logical_ids("node-1", 5), *logical_ids("node-2", 5)}) == 10
    assert logical_ids("node-1", 3)[0] == id_of("node-1")
    with pytest.raises(LeewardError, match="logical nodes of node-1: 0"):
        logical_ids("node-1", 0)
    with pytest.raises(LeewardError, match="it has 3 bytes"):
        from_bytes(b"abc")


def test_proximity_decides_among_candidates_of_one_place():
    table = RoutingTable(0)
    far, near, other = 0x5 << BITS - 4, (0x5 << BITS - 4) + 1, 0x6 << BITS - 4
    assert table.offer(far, 2.0) and table.offer(near, 1.0) and not table.offer(far, 1.5) and table.offer(other)
    assert table.row(0) == (near, other) and far not in table and table.entry(far) == near
    assert not table.offer(0, 0.0), "its owner"
    assert not table.remove(far) and table.remove(near) and table.entry(far) is None


@given(st.sets(IDS, min_size=1, max_size=60))
def test_a_leaf_set_has_the_next_nodes_on_either_side(ids: set[int]):
    me, *others = sorted(ids, key=hash)
    leaves = LeafSet(me)
    for node in others:
        assert leaves.wants(node) == leaves.offer(node)
        assert not leaves.offer(node)
    assert leaves.after == tuple(sorted(others, key=lambda node: (node - me) % RING)[:SIDE])
    assert leaves.before == tuple(sorted(others, key=lambda node: (me - node) % RING)[:SIDE])
    for node in list(leaves):
        assert node in leaves and leaves.remove(node) and node not in leaves
    assert len(leaves) == 0


@given(st.sets(IDS, min_size=2, max_size=LEAF_SET), IDS)
def test_in_a_small_overlay_every_node_knows_the_nearest_to_any_key(ids: set[int], key: int):
    for me in ids:
        tables = Tables(me)
        for node in ids - {me}:
            tables.leaves.offer(node)
        assert tables.leaves.covers(key)
        nearest = min(ids, key=lambda node: nearness(node, key))
        assert tables.next_hop(key) == (None if nearest == me else nearest)


def test_a_node_alone_is_the_root_of_every_key():
    assert Tables(7).next_hop(RING - 1) is None
    alone = Converged([7], [(0.0, 0.0)])
    assert alone.route(7, 3) == (7,) and alone.root(3) == 7


@settings(max_examples=40)
@given(st.integers(2, 120), st.integers(0, 100), st.booleans())
def test_routes_end_at_the_nearest_node_without_a_circle(nodes: int, seed: int, dense: bool):
    """`dense`: ids that share long prefixes, so that many places of the tables stay empty."""
    rng = Random(seed)
    ids = {rng.getrandbits(12 if dense else BITS) for _ in range(nodes)}
    network = Converged(sorted(ids), [(rng.random(), rng.random()) for _ in ids])
    for _ in range(10):
        source, key = rng.choice(network.ids), rng.choice((rng.getrandbits(BITS), rng.getrandbits(12)))
        path = network.route(source, key)
        assert path[-1] == network.root(key) == min(network.ids, key=lambda node: nearness(node, key))
        assert len(set(path)) == len(path)


def test_routes_take_the_hops_of_the_bound():
    """Ids are random, so some of a network have a row more than log_16 N, and take one hop more."""
    network, rng = drawn(1000, Random(1)), Random(2)
    hops = [len(network.route(rng.choice(network.ids), rng.getrandbits(BITS))) - 1 for _ in range(2000)]
    bound = hops_bound(1000)
    assert max(hops) <= bound + 1
    assert sum(one <= bound for one in hops) >= 0.99 * len(hops)


def test_entries_are_the_nearest_candidates():
    network = drawn(300, Random(3))
    me = network.ids[17]
    for node in network.tables(me).routes:
        row = common_prefix(me, node)
        rivals = [
            other for other in network.ids if common_prefix(me, other) == row and digit(other, row) == digit(node, row)
        ]
        assert network.proximity(me, node) == min(network.proximity(me, other) for other in rivals)


def test_nodes_that_do_not_acknowledge_are_passed_by():
    network, rng = drawn(400, Random(4)), Random(5)
    for _ in range(50):
        source, key = rng.choice(network.ids), rng.getrandbits(BITS)
        path = network.route(source, key)
        if len(path) > 2:
            assert network.tables(source).next_hop(key, {path[1]}) not in (None, path[1])


def test_equal_ids_are_refused():
    with pytest.raises(LeewardError, match="two are equal"):
        Converged([3, 3], [(0, 0), (1, 1)])


def test_the_bound_of_hops():
    assert [hops_bound(nodes) for nodes in (1, 2, 16, 17, 256, 10_000)] == [0, 1, 1, 2, 2, 4]
