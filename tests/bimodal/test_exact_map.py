"""The cheapest map: the search over the network, the exhaustive one by messages, and trying everything, are equal."""

from __future__ import annotations

import random
from itertools import pairwise
from math import inf

import pytest

from leeward.core.fields import FieldError
from leeward.policies.bimodal.exact.search import cheapest
from leeward.policies.bimodal.mapping.play import TooManyError, agents_of, map_task
from leeward.policies.bimodal.mapping.rules import Exhaustive, Method, cost_choice
from leeward.policies.bimodal.model.resources import Account, total
from leeward.policies.bimodal.model.values import Link, Network, Server, Task, check_ends, why_impossible
from leeward.policies.bimodal.model.walk import dedicated_hops, keeps_limits, load_factor, paths_of, servers_of
from tests.helpers.bimodal_builders import best_by_trying, limited, tiny

BLOCK = 100


@pytest.mark.parametrize("block", range(20))
def test_two_thousand_tiny_networks(block: int):
    exhaustive = 0
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        rng = random.Random(seed)
        public = 0.0 if seed % 3 == 0 else None
        network, task = tiny(rng, direction="each" if seed % 2 else "shared", uplinks=public is not None)
        for aggregated in (True, False):
            wanted = best_by_trying(network, task, aggregated=aggregated, public=public)
            assert cheapest(task, network, aggregated=aggregated, public=public).cost == wanted, seed
        wanted = best_by_trying(network, task, aggregated=True, public=public)
        agents = agents_of(network, Method(rule=Exhaustive(), choice=cost_choice, public=public is not None))
        try:
            portal = map_task(agents, task, now=0.0, rng=rng, most=20_000).portal
        except TooManyError:
            continue
        exhaustive += 1
        assert (portal.walk.cost if portal.walk else inf) == wanted, seed
        assert portal.status == ("refused" if wanted == inf else "running")
        assert portal.attempt <= 1, "a map that was found can be reserved, as nothing else is mapped"
    assert exhaustive > BLOCK * 0.9


def test_maps_with_pins_barred_servers_and_places_apart_are_the_cheapest_of_those_that_keep_them():
    found = 0
    for seed in range(600):
        rng = random.Random(seed)
        public = 0.0 if seed % 3 == 0 else None
        network, task = tiny(rng, direction="each" if seed % 2 else "shared", uplinks=public is not None)
        task = limited(network, task, rng)
        if (0, len(task.services) + 1) in task.apart and task.source == task.delivery:
            assert why_impossible(task, network), seed
            continue
        wanted = best_by_trying(network, task, aggregated=True, public=public)
        best = cheapest(task, network, public=public)
        assert best.cost == wanted, seed
        agents = agents_of(network, Method(rule=Exhaustive(), choice=cost_choice, public=public is not None))
        try:
            portal = map_task(agents, task, now=0.0, rng=rng, most=20_000).portal
        except TooManyError:
            continue
        assert (portal.walk.cost if portal.walk else inf) == wanted, seed
        for walk in (best.walk, portal.walk):
            assert walk is None or keeps_limits(walk, task), seed
        found += portal.walk is not None
    assert found > 100


def test_a_task_that_no_server_may_run_is_told_so():
    for changes in ({"pins": ((1,),), "barred": (1,)}, {"apart": ((0, 1), (1, 2))}):
        why = why_impossible(chain(**changes), pair())
        assert "may run on no server that hosts it, by its pin, a drain or leeward.apart" in why
    assert "are to be apart, and are on server 0" in why_impossible(chain(delivery=0, apart=((0, 2),)), pair())


def test_what_a_map_uses_fits_and_is_what_it_says():
    for seed in range(300):
        network, task = tiny(random.Random(seed))
        walk = cheapest(task, network).walk
        if walk is None:
            continue
        assert Account(network).fits(total(walk, task, network))
        paths = paths_of(walk, task)
        ends = (task.source, *servers_of(walk), task.delivery)
        for (a, b), path in zip(pairwise(ends), paths, strict=True):
            assert [a, *(to for _, to in path)][-1] == b and (not path or path[0][0] == a)
        assert sum(map(len, paths)) == dedicated_hops(walk)
        assert 0 < load_factor(walk) <= 1
        assert all(
            service in network.servers[v].services for service, v in zip(task.services, servers_of(walk), strict=True)
        )


def test_a_search_that_is_cut_off_says_so():
    found = cheapest(chain(), pair(), limit=0)
    assert found.walk is None and not found.proven


def chain(**changes: object) -> Task:
    facts = {
        "name": "t", "source": 0, "delivery": 1, "services": (0,), "cpu": (1.0,), "bandwidth": (1.0, 1.0),
        "max_null": 1,
    } | changes  # fmt: skip
    return Task(**facts)  # type: ignore[arg-type]


def pair(bandwidth: float = 5.0, cpu: float = 2.0, uplink: float = 0.0) -> Network:
    servers = [Server(id=v, cpu=cpu, services=frozenset({0}), uplink=uplink) for v in (0, 1)]
    return Network(servers, [Link(a=0, b=1, bandwidth=bandwidth)])


def test_source_and_delivery_may_be_one_server():
    found = cheapest(chain(delivery=0), pair())
    assert found.cost == 0 and found.walk is not None and servers_of(found.walk) == (0,)


@pytest.mark.parametrize(
    ("task", "network", "says"),
    [
        (chain(services=(7,)), pair(), "service 7 is hosted nowhere"),
        (chain(cpu=(3.0,)), pair(), "needs 3 CPU, the largest server that hosts it has 2"),
        (chain(bandwidth=(9.0, 8.0)), pair(uplink=6.0), "each hop needs 8 or more, the widest link has 6"),
        (chain(bandwidth=(9.0, 8.0), delivery=0), pair(), ""),
        (chain(), pair(), ""),
    ],
)
def test_a_task_that_no_map_can_carry_is_told_by_its_tightest_bound(task: Task, network: Network, says: str):
    why = why_impossible(task, network)
    assert says in why and bool(says) == bool(why)
    if why:
        assert cheapest(task, network, public=0.0).walk is None


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"services": ()}, "task.services"),
        ({"cpu": (1.0, 2.0)}, "task.cpu"),
        ({"bandwidth": (1.0,)}, "task.bandwidth"),
        ({"bandwidth": (1.0, -1.0)}, "task.bandwidth[1]"),
        ({"max_null": -1}, "task.max_null"),
        ({"price": 0.0}, "task.price"),
        ({"pins": ((0,), (1,))}, "task.pins"),
        ({"apart": ((1, 1),)}, "task.apart[0]"),
        ({"apart": ((0, 1), (1, 3))}, "task.apart[1]"),
    ],
)
def test_a_task_with_a_wrong_field_is_refused_by_its_name(changes: dict[str, object], field: str):
    with pytest.raises(FieldError) as caught:
        chain(**changes)
    assert caught.value.field == field


def test_a_network_with_a_wrong_field_is_refused_by_its_name():
    servers = [Server(id=0, cpu=1.0, services=frozenset())]
    for links, field in (
        ([Link(a=0, b=3, bandwidth=1.0)], "links[0]"),
        ([Link(a=0, b=0, bandwidth=1.0)], "links[0]"),
        ([Link(a=0, b=1, bandwidth=-1.0)], "links[0].bandwidth"),
    ):
        with pytest.raises(FieldError) as caught:
            Network([*servers, Server(id=1, cpu=1.0, services=frozenset())], links)
        assert caught.value.field == field
    with pytest.raises(FieldError, match="given twice"):
        Network(servers * 2, [])
    with pytest.raises(FieldError, match="no such server"):
        check_ends(chain(source=5), pair())
