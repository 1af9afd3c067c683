"""The simulated platform: rates over the public network, flows and their re-allocation, and whole runs."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.policies.bimodal.exact.search import cheapest
from leeward.policies.bimodal.experiments.readings import B, D, buffered, dedicated_only, ours, public_only
from leeward.policies.bimodal.mapping.flows import Flow, Ways, amounts, flows_of, reallocate, shortest
from leeward.policies.bimodal.model.resources import Account, total
from leeward.policies.bimodal.model.values import Link, Network, Server
from leeward.policies.bimodal.platform import run as running
from leeward.policies.bimodal.platform.public import MEAN_OVER_MEDIAN, factor, share
from leeward.policies.bimodal.platform.setup import Platform, arrivals, network
from tests.helpers.bimodal_builders import tiny

#: 10 ms draws of a task of 100 MB at 1 Mbit/s.
DRAWS = 80_000


@pytest.mark.parametrize("factors", [(1.0,), (1.0, 1.0), (1.0,) * 9, (0.5, 1.7), (1.2,), (factor("mean"),) * 3])
def test_the_mean_share_is_that_of_ten_millisecond_draws(factors: tuple[float, ...]):
    rng = np.random.default_rng(1)
    rates = np.array(factors) * 2.0 ** rng.normal(0, 1, (4 * DRAWS, len(factors)))
    assert share(factors) == pytest.approx(np.minimum(1.0, rates.min(axis=1)).mean(), abs=0.002)


def test_a_task_without_public_hops_runs_at_its_rate():
    assert share(()) == 1.0


@pytest.mark.parametrize("factors", [(1.0, 1.0, 1.0), (1.5,), (0.5, 1.0)])
def test_with_buffers_the_slowest_mean_rate_counts(factors: tuple[float, ...]):
    """A fluid goes through queues without a bound: what has left a hop by t is min over s of what had come by s, and
    what the hop could send since.
    """
    rng = np.random.default_rng(2)
    out = np.arange(1, 4 * DRAWS + 1, dtype=float)
    for one in factors:
        could = np.cumsum(one * 2.0 ** rng.normal(0, 1, len(out)))
        out = np.minimum(out, could + np.minimum.accumulate(out - could))
    wanted = min(1.0, min(factors) * MEAN_OVER_MEDIAN)
    assert out[-1] / len(out) == pytest.approx(wanted, abs=0.01)


def test_networks_have_the_links_and_servers_that_are_asked_for():
    for links in (30, 99, 130):
        made = network(Platform(links=links), random.Random(links))
        degree = {v: len(made.neighbours[v]) for v in made.servers}
        assert len(made.links) == links and len({(min(o.a, o.b), max(o.a, o.b)) for o in made.links.values()}) == links
        assert all(len(server.services) == min(25, 1 + degree[v]) for v, server in made.servers.items())
        assert all(server.cpu == 2 * len(server.services) for server in made.servers.values())
        without = sum(not count for count in degree.values())
        assert without == max(0, 99 - links), "growth stops, and the others have no link"
    times = [at for at, _, _ in arrivals(Platform(tasks=2000), random.Random(1))]
    assert times[-1] / 2000 == pytest.approx(60, rel=0.1)


def test_flows_of_a_map_use_what_the_map_uses():
    for seed in range(300):
        made, task = tiny(random.Random(seed), uplinks=True, direction="each" if seed % 2 else "shared")
        walk = cheapest(task, made, public=0.0).walk
        if walk is None:
            continue
        found: dict[object, float] = {}
        for flow in flows_of(walk, task):
            assert flow.sender != flow.receiver
            for resource, amount in amounts(flow, made).items():
                found[resource] = found.get(resource, 0.0) + amount
        used = {r: v for r, v in total(walk, task, made).items() if r.kind != "cpu"}
        assert found == pytest.approx(used)


def line() -> Network:
    """0 - 1 - 2, and 0 - 2 directly; room for one flow on the direct link, for two on the others."""
    servers = [Server(id=v, cpu=1.0, services=frozenset(), uplink=1.0) for v in range(3)]
    links = [Link(a=0, b=1, bandwidth=2.0), Link(a=1, b=2, bandwidth=2.0), Link(a=0, b=2, bandwidth=1.0)]
    return Network(servers, links)


def flow(name: str, way: tuple[int, ...] = ()) -> Flow:
    return Flow(task=name, hop=0, sender=0, receiver=2, need=1.0, way=way)


def test_the_direct_link_goes_to_the_flow_that_lags_most():
    net = line()
    account, flows = Account(net), [flow("a", (2,)), flow("b")]
    for one in flows:
        account.take(amounts(one, net))
    moved = reallocate(flows, lambda one: 1.0 + (one.task == "b"), account, net, Ways(hop_limit=1))
    assert {one.task: one.way for one in flows} == {"a": (), "b": (2,)} and len(moved) == 2
    assert reallocate(flows, lambda one: 1.0 + (one.task == "b"), account, net, Ways(hop_limit=1)) == []


def test_the_next_get_a_longer_way_and_only_then_the_public_network():
    net = line()
    account, flows = Account(net), [flow("a")]
    account.take(amounts(flows[0], net))
    for name in ("b", "c"):
        flows.append(flow(name, (0, 1)))
        account.take(amounts(flows[-1], net))
    reallocate(flows, lambda one: {"a": 3.0, "b": 2.0, "c": 1.0}[one.task], account, net, Ways())
    assert {one.task: one.way for one in flows} == {"a": (2,), "b": (0, 1), "c": (0, 1)}


def test_a_group_stays_if_one_of_it_would_have_no_way():
    net = Network([Server(id=v, cpu=1.0, services=frozenset()) for v in (0, 2)], [Link(a=0, b=2, bandwidth=1.0)])
    account, only = Account(net), flow("a", (0,))
    account.take(amounts(only, net))
    other = flow("b")  # nothing is free for it, and the public network cannot be used
    account.take(amounts(other, net))
    before = dict(account.used)
    assert reallocate([only, other], lambda one: 1.0 + (one.task == "b"), account, net, Ways(public=False)) == []
    assert (only.way, other.way, account.used) == ((0,), (), before)


@settings(max_examples=200)
@given(seed=st.integers(0, 100_000), public=st.booleans(), limit=st.sampled_from([None, 1, 2]))
def test_re_allocation_keeps_every_bound_and_every_flow(seed: int, public: bool, limit: int | None):
    rng = random.Random(seed)
    net, _ = tiny(rng, uplinks=True, direction="each" if seed % 2 else "shared")
    account, flows = Account(net), list[Flow]()
    for number in range(8):
        sender, receiver = rng.sample(sorted(net.servers), 2)
        one = Flow(task=f"t{number}", hop=0, sender=sender, receiver=receiver, need=float(rng.randint(1, 3)), way=())
        way = shortest(one, account, net) if rng.random() < 0.6 else ()
        if way is not None and account.fits(amounts(one, net, way)):
            one.way = way
            account.take(amounts(one, net))
            flows.append(one)
    for server in sorted(net.servers):
        mine = [one for one in flows if one.sender == server]
        reallocate(mine, lambda one: rng.random(), account, net, Ways(public=public, hop_limit=limit))
    used: dict[object, float] = {}
    for one in flows:
        for resource, amount in amounts(one, net).items():
            used[resource] = used.get(resource, 0.0) + amount
        at = one.sender
        for number in one.way:
            at = net.links[number].other(at)
        assert not one.way or at == one.receiver
    assert used == pytest.approx({r: v for r, v in account.used.items() if v})
    assert all(value <= account.capacity(r) * (1 + 1e-9) for r, value in used.items())


SMALL = Platform(servers=30, links=32, tasks=40, per_hour=120.0)


@pytest.mark.parametrize(
    "named",
    [B, D, dedicated_only(B), public_only(B), buffered(D), ours(D)],
    ids=["B", "D", "dedicated", "public", "buffers", "ours"],
)
def test_a_run_keeps_every_bound_and_gives_everything_back(named, monkeypatch: pytest.MonkeyPatch):
    runs: list[running._Run] = []
    advance = running._Run._advance

    def looked_at(self, to: float) -> None:
        runs[:] = [self]
        for resource, used in self.account.used.items():
            assert -1e-9 <= used <= self.account.capacity(resource) * (1 + 1e-9), resource
        advance(self, to)

    monkeypatch.setattr(running._Run, "_advance", looked_at)
    platform = replace(SMALL, direction=named.direction)
    outcome = running.play(platform, named.reading, 3)
    assert 0 < outcome.accepted <= outcome.offered == SMALL.tasks
    assert len(outcome.deviations) == outcome.accepted and all(-1e-9 <= one < 1 for one in outcome.deviations)
    assert runs[0].account.used == {} and runs[0].running == {}
    assert running.play(platform, named.reading, 3) == outcome, "the same seed, the same run"


def test_dedicated_links_alone_never_deviate_and_public_ones_do():
    assert running.play(SMALL, dedicated_only(B).reading, 5).deviation == pytest.approx(0)
    assert running.play(SMALL, public_only(B).reading, 5).deviation > 0.3
