"""Networks, planners and their compiled twins."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from leeward.core.errors import ConfigError, ProtocolError
from leeward.policies.agiledart.paths.estimates import DRIFT_AGE, DRIFT_DOUBT, DRIFT_FADE
from leeward.policies.agiledart.paths.kernel_draws import attempts, beta, share
from leeward.policies.agiledart.paths.network import Network, grid
from leeward.policies.agiledart.paths.planners import EndToEnd, Kl, NextHop, Optimal, Thompson
from leeward.policies.agiledart.paths.simulation import RULES, drawn_thetas, simulate

DIAMOND = Network(4, ((0, 1), (0, 2), (1, 3), (2, 3)))


class Stream(Random):
    """The kernels' stream behind the methods of `random`."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.word = np.array([seed], np.uint64)

    def random(self) -> float:
        return share(self.word)


def planner_of(name: str, network: Network, thetas) -> object:
    return {
        "KL, c = 0.3": lambda: Kl(network), "KL, c = 0.1": lambda: Kl(network, c=0.1),
        "2 hops": lambda: Kl(network, hops=2), "1 hop": lambda: Kl(network, hops=1),
        "next-hop": lambda: NextHop(network), "end-to-end": lambda: EndToEnd(network),
        "Thompson": lambda: Thompson(network), "Thompson, fade 0.98": lambda: Thompson(network, fade=0.98),
        "Thompson for drift": lambda: Thompson(network, fade=DRIFT_FADE, age=DRIFT_AGE, doubt=DRIFT_DOUBT),
        "optimal": lambda: Optimal(network, thetas),
    }[name]()  # fmt: skip


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize(("side", "links"), [(3, 12), (4, 21), (5, 32)])
def test_the_readable_planners_choose_as_the_compiled_ones(name, side, links):
    packets, rng = 150, Random(side)
    network = grid(side, links, rng)
    thetas = drawn_thetas(links, (50.0, 250.0), 50.0, rng)
    sent = simulate(RULES[name], network, thetas, packets=packets, every=packets, seed=(11, 12))
    planner, world, own, slots = planner_of(name, network, thetas[0]), np.array([11], np.uint64), Stream(12), 0
    best = Optimal(network, thetas[0]).delay
    for packet in range(packets):
        path = planner.path(slots + 1, own)
        assert path == tuple(link for link in sent.paths[packet] if link >= 0), f"packet {packet}"
        assert sum(1 / thetas[0][link] for link in path) - best == pytest.approx(sent.excess[packet], abs=1e-9)
        took = [attempts(world, thetas[0][link]) for link in path]
        planner.learn(path, took)
        slots += sum(took)


def test_draws_are_those_of_the_standard_library():
    for seed in range(200):
        one, other = 1.0 + seed % 7, 1.0 + 0.37 * (seed % 11)
        stream = np.array([seed], np.uint64)
        assert beta(stream, one, other) == Stream(seed).betavariate(one, other)


@pytest.mark.parametrize("theta", [0.2, 0.5, 1.0])
def test_attempts_are_geometric(theta):
    draws, stream = 20_000, np.array([5], np.uint64)
    found = np.array([attempts(stream, theta) for _ in range(draws)])
    assert abs(found.mean() - 1 / theta) <= 4 * math.sqrt((1 - theta) / theta**2 / draws)
    assert abs((found == 1).mean() - theta) <= 4 * math.sqrt(theta * (1 - theta) / draws)


@pytest.mark.parametrize("seed", range(10))
def test_j_is_the_least_over_all_paths(seed):
    rng = Random(seed)
    network = grid(4, rng.choice([18, 24, 30]), rng)
    costs = [rng.uniform(1, 5) for _ in network.links]
    assert network.to_sink(costs)[0] == pytest.approx(min(sum(costs[link] for link in p) for p in network.paths()))


def test_j_over_hops_is_the_least_over_so_many_links():
    costs = [1.0, 2.0, 5.0, 3.0]
    assert DIAMOND.over_hops(costs, 1) == [1.0, 5.0, 3.0, 0.0]
    assert DIAMOND.over_hops(costs, 2) == [5.0, 5.0, 3.0, 0.0]
    assert DIAMOND.to_sink(costs) == [5.0, 5.0, 3.0, 0.0]


def test_a_network_with_links_back_has_loop_free_paths():
    network = Network(4, ((0, 1), (0, 2), (1, 2), (1, 3), (2, 1), (2, 3)))
    assert network.paths() == [(0, 3), (1, 5), (0, 2, 5), (1, 4, 3)]
    assert network.to_sink([1, 1, 1, 9, 1, 1]) == [2, 2, 1, 0]


@pytest.mark.parametrize(("side", "links"), [(5, 32), (6, 64), (8, 128), (12, 256)])
def test_grids_have_the_papers_numbers_and_every_node_on_a_path(side, links):
    network = grid(side, links, Random(1))
    assert (network.nodes, len(network.links)) == (side * side, links)
    assert {head for _, head in network.links} == set(range(1, network.nodes))
    assert all(tail < head for tail, head in network.links) and all(a < b for a, b in pairwise(network.links))


def test_end_to_end_tries_every_path_before_it_repeats_one():
    network, rng = grid(4, 27, Random(2)), Random(0)
    planner = EndToEnd(network)
    tried = []
    for _ in network.paths():
        tried.append(planner.path(1, rng))
        planner.learn(tried[-1], [1] * len(tried[-1]))
    assert sorted(tried) == sorted(network.paths())
    assert [len(path) for path in tried] == sorted(len(path) for path in tried)


def test_links_that_drift_are_drawn_anew():
    thetas = drawn_thetas(500, (50.0, 250.0), 50.0, Random(0), changes=3, share=0.1)
    assert ((thetas >= 0.2) & (thetas <= 1.0)).all()
    assert 20 < (thetas[0] != thetas[1]).sum() < 90


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Network(3, ((0, 1), (1, 3))), "not between two of 3 nodes"),
        (lambda: Network(3, ((1, 2), (0, 1))), "not in order"),
        (lambda: Network(3, ((0, 2),)), "no path to the sink"),
        (lambda: grid(3, 7, Random(0)), "cannot have 7 links"),
        (lambda: grid(3, 17, Random(0)), "cannot have 17 links"),
        (lambda: Optimal(DIAMOND, [0.5, 0.5, 0.5]), "Not every link"),
        (lambda: Optimal(DIAMOND, [0.5, 0.5, 0.5, 0.0]), "Not every link"),
        (lambda: sent_over(DIAMOND, [[0.5, 0.5, 0.5, 1.1]]), "no chance of success"),
        (lambda: sent_over(DIAMOND, [[0.5, 0.5, 0.5, math.nan]]), "no chance of success"),
        (lambda: sent_over(DIAMOND, [[0.5, 0.5, 0.5]]), "Probabilities are"),
        (lambda: sent_over(Network(4, ((0, 2), (1, 3), (2, 1))), [[0.5] * 3]), "leads back"),
    ],
)
def test_networks_and_probabilities_that_are_none_are_refused(make, text):
    with pytest.raises(ConfigError, match=text):
        make()


def sent_over(network: Network, thetas: list[list[float]]):
    return simulate(RULES["Thompson"], network, np.array(thetas), packets=1, every=1, seed=(1, 2))


def test_links_that_no_packet_takes_age_with_the_slots():
    planner = Thompson(DIAMOND, age=0.9)
    planner.learn((0, 2), (1, 2))
    assert planner.records[0].attempts == pytest.approx(0.9**3)
    planner.learn((1, 3), (1, 1))
    assert planner.records[2].attempts == pytest.approx(2 * 0.9**5)
    assert planner.records[2].delivered == pytest.approx(0.9**5)
    with pytest.raises(ConfigError, match="age"):
        Thompson(DIAMOND, age=0.0)


def test_a_link_that_the_network_has_not_is_refused():
    for link in (4, -1):
        with pytest.raises(ProtocolError, match="no link"):
            Thompson(DIAMOND).learn((link,), (1,))
    with pytest.raises(ProtocolError, match="attempts"):
        Thompson(DIAMOND).learn((0,), (0,))
