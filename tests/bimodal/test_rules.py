"""Rules of what a server passes on, and the orders in which feasible maps are tried."""

from __future__ import annotations

import random

from leeward.policies.bimodal.mapping.messages import Map
from leeward.policies.bimodal.mapping.play import agents_of
from leeward.policies.bimodal.mapping.rules import (
    Annealed,
    Exhaustive,
    LeastCost,
    Method,
    by_public_hops,
    cost_choice,
    printed_choice,
    public_hops_choice,
)
from leeward.policies.bimodal.model.walk import PUBLIC, START, Walk
from tests.helpers.bimodal_builders import tiny


def whole(load: float, links: tuple[int, ...], cost: float = 0.0) -> Walk:
    """A map of one service on one server, with these links on the way."""
    walk = Walk(at=0, link=START, done=1, ran=1, load=load, loads=load, hosts=1)
    for at, link in enumerate(links, 1):
        public = walk.public + (link == PUBLIC)
        walk = Walk(at, link, 1, 0, 0, cost, public, float(public), 0.0, load, 1, walk)
    return walk


def test_the_printed_order_is_load_in_tenths_then_dedicated_hops_then_public_ones():
    light, dedicated = whole(0.50, (PUBLIC,)), whole(0.58, (1, 2))
    mixed, heavy = whole(0.55, (1, 2, PUBLIC)), whole(0.70, (1, 2, 3))
    assert printed_choice([heavy, light, mixed, dedicated]) == [dedicated, mixed, light, heavy]
    assert printed_choice([]) == []


def test_the_other_orders_are_fewest_public_hops_and_least_cost():
    none, one = whole(0.9, (1, 2), cost=5.0), whole(0.1, (PUBLIC,), cost=0.0)
    assert public_hops_choice([one, none]) == [none, one]
    assert cost_choice([none, one]) == [one, none]
    cheap, dear = whole(0.9, (1,), cost=1.0), whole(0.1, (1,), cost=2.0)
    assert public_hops_choice([dear, cheap]) == [cheap, dear], "the cost of links comes before the load"
    assert by_public_hops(cheap) < by_public_hops(dear)


def test_least_cost_passes_what_is_better_than_all_before_with_as_many_services():
    table: dict[int, float] = {}
    passed = [LeastCost().passes(whole(0.5, (1,), cost), table, random.Random(1)) for cost in (5.0, 5.0, 4.0, 4.5)]
    assert passed == [True, False, True, False]


def test_annealing_passes_some_of_the_others_and_fewer_the_more_services_are_done():
    def share(done: int) -> float:
        walk, rng = whole(0.5, (1,), 9.0)._replace(done=done), random.Random(1)
        return sum(Annealed(chance=0.8, decay=0.5).passes(walk, {done: 1.0}, rng) for _ in range(4000)) / 4000

    assert abs(share(0) - 0.8) < 0.03 and abs(share(2) - 0.2) < 0.03


def test_random_neighbours_get_a_walk_and_no_more_of_them_than_that():
    for seed in range(50):
        network, task = tiny(random.Random(seed))
        for count in (1, 2):
            agents = agents_of(network, Method(rule=Exhaustive(), neighbours=count))
            root = agents[task.delivery]
            ((to, message),) = root.submit(task, 0.0)
            sends = agents[to].receive(root.me, message, 0.0, random.Random(seed))
            walks = [send for send in sends if isinstance(send.message, Map)]
            starts = {send.message.walk.done for send in walks}
            assert len(walks) <= count * max(1, len(starts))
            assert {send.to for send in walks} <= {neighbour for neighbour, _ in network.neighbours[to]}
