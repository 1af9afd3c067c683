"""Learned quantiles of public paths, and maps and searches that go by them."""

from __future__ import annotations

import random

import pytest

from leeward.policies.bimodal.exact.search import cheapest
from leeward.policies.bimodal.mapping.paths import LEAST, SAMPLES, UNKNOWN, PathRates, weight_of
from leeward.policies.bimodal.mapping.rules import METHODS
from leeward.policies.bimodal.model.values import Network, Server, Task
from tests.helpers.bimodal_bag import Bag
from tests.helpers.bimodal_builders import best_by_trying, tiny


def test_a_path_is_known_by_the_lower_quartile_of_its_newest_samples():
    rates, rng = PathRates(), random.Random(1)
    for _ in range(LEAST - 1):
        rates.learn(7, 0.5)
    assert rates.quantiles() == {}
    rates.learn(7, 0.5)
    assert rates.quantiles() == {7: 0.5}
    for _ in range(SAMPLES):
        rates.learn(7, 2 ** rng.gauss(0, 1))
    assert rates.quantiles()[7] == pytest.approx(UNKNOWN, abs=0.2)
    for _ in range(SAMPLES):
        rates.learn(7, 3.0)
    assert rates.quantiles() == {7: 1.0}, "more than is wanted counts no more than what is wanted"


def test_a_hop_weighs_by_the_inverse_within_bounds():
    assert weight_of(1.0) == 1.0 and weight_of(0.5) == 2.0 and weight_of(0.0) == 8.0
    assert weight_of(None) == pytest.approx(1 / UNKNOWN)


def fan() -> tuple[Network, Task]:
    """Servers 1 and 2 host the service; all are joined by the public network alone."""
    servers = [Server(id=v, cpu=9.0, services=frozenset({0} if v else ()), uplink=9.0) for v in (0, 1, 2)]
    task = Task(name="t", source=0, delivery=0, services=(0,), cpu=(1.0,), bandwidth=(1.0, 1.0), max_null=1)
    return Network(servers, []), task


@pytest.mark.parametrize("method", ["survey", "least-cost"])
@pytest.mark.parametrize("slow", [1, 2])
def test_a_task_avoids_the_path_that_is_known_to_be_slow(method: str, slow: int):
    network, task = fan()
    chosen = METHODS[method]
    bag = Bag(network, chosen, 1)
    for _ in range(LEAST):
        bag.agents[0].learn(slow, 0.1)
        bag.agents[0].learn(3 - slow, 1.0)
    for _ in range(3):
        bag.gossip()
        bag.deliver_all()
    bag.send(0, bag.agents[0].submit(task, 0.0))
    bag.deliver_all()
    walk = bag.agents[0].portals["t"].walk
    assert walk is not None
    ran = [visit.at for visit in walk.visits if visit.ran]
    assert ran == ([3 - slow] if chosen.learned else [1])


def test_the_search_is_exact_with_weights_too():
    public = 0
    for seed in range(200):
        network, task = tiny(random.Random(seed), uplinks=True)

        def weight(here: int, there: int, seed: int = seed) -> float:
            return 1.0 + (3 * here + there + seed) % 4

        found = cheapest(task, network, public=2.0, weight=weight)
        assert found.cost == best_by_trying(network, task, aggregated=True, public=2.0, weight=weight), seed
        if found.walk is not None:
            assert found.walk.cost + 2.0 * found.walk.strain == found.cost
            public += found.walk.public
    assert public > 20
