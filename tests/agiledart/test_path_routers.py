"""The routers of one node."""

from __future__ import annotations

import math
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from random import Random

import pytest

from leeward.core.errors import ConfigError, ProtocolError
from leeward.policies.agiledart.paths.routers import KlRouter, NextHopRouter, ThompsonRouter

ROUTERS = (KlRouter, ThompsonRouter, NextHopRouter)
SLOT_S = 0.05
ROOT = Path(__file__).parents[2]
PATHS = {"PYTHONPATH": str(ROOT / "scheduler")}


def delay_s(theta: float, rng: Random) -> float:
    attempts = 1
    while rng.random() >= theta:
        attempts += 1
    return attempts * SLOT_S


@pytest.mark.parametrize("router", ROUTERS)
def test_a_router_learns_the_better_hop(router):
    chosen, thetas, now, rng = router(), {3: 0.3, 5: 0.8, 8: 0.4}, 0.0, Random(1)
    hops = []
    for _ in range(600):
        hops.append(chosen.next_hop([3, 5, 8], now=now, rng=rng))
        took = delay_s(thetas[hops[-1]], rng)
        chosen.learn(hops[-1], took)
        now += took
    assert hops[300:].count(5) > 270


@pytest.mark.parametrize("router", [KlRouter, ThompsonRouter])
def test_the_way_beyond_a_hop_counts(router):
    chosen, rng = router(), Random(2)
    chosen.next_hop([1, 2], now=0.0, rng=rng)
    for _ in range(200):
        chosen.learn(1, 1 * SLOT_S)
        chosen.learn(2, 3 * SLOT_S)
    chosen.hear(1, 1.0)
    chosen.hear(2, 0.5)
    assert {chosen.next_hop([1, 2], now=10.0, rng=rng) for _ in range(50)} == {2}
    assert chosen.ahead_s([1, 2], now=10.0, rng=rng) == pytest.approx(0.65, abs=0.05)


def test_with_fade_a_router_follows_a_change():
    def after_change(fade: float) -> int:
        router, rng, right = ThompsonRouter(fade=fade), Random(4), 0
        for packet in range(1000):
            thetas = {1: 0.9, 2: 0.3} if packet < 500 else {1: 0.3, 2: 0.9}
            hop = router.next_hop([1, 2], now=0.0, rng=rng)
            router.learn(hop, delay_s(thetas[hop], rng))
            right += packet >= 500 and hop == 2
        return right

    assert after_change(0.95) > after_change(1.0) and after_change(0.95) > 400


def test_a_hop_that_became_better_is_found_again_by_age():
    def found(**settings: float) -> int:
        """Of the last 100 tuples of 3,000, those that take the better hop, which was a bad one for long."""
        router, rng, right, now = ThompsonRouter(fade=0.98, **settings), Random(4), 0, 0.0
        router.next_hop([1, 2], now=now, rng=rng)
        for _ in range(300):
            router.learn(2, 5 * SLOT_S)
        for packet in range(3000):
            hop = router.next_hop([1, 2], now=now, rng=rng)
            took = delay_s({1: 0.6, 2: 0.9}[hop], rng)
            router.learn(hop, took)
            now += took
            right += packet >= 2900 and hop == 2
        return right

    assert found(age=0.999, doubt=1.0) > 90 and found() < 10


def test_a_hop_that_was_far_from_the_sink_long_ago_is_tried_again():
    def chosen(age: float) -> set[int]:
        router, rng = ThompsonRouter(age=age), Random(3)
        router.next_hop([1, 2], now=0.0, rng=rng)
        for hop, ahead_s in ((1, 1.0), (2, 9.0)):
            router.learn(hop, SLOT_S)
            router.hear(hop, ahead_s)
        return {router.next_hop([1, 2], now=now, rng=rng) for now in range(0, 1000, 10)}

    assert chosen(0.999) == {1, 2} and chosen(1.0) == {1}


def test_a_hop_that_was_asked_twice_at_once_ages_once():
    router, rng = ThompsonRouter(age=0.5), Random(0)
    router.next_hop([1], now=0.0, rng=rng)
    for _ in range(64):
        router.learn(1, SLOT_S)
    costs = [router.ahead_s([1], now=0.0, rng=rng) for _ in range(200)]
    assert max(costs) < 1.2 * SLOT_S
    assert max(router.ahead_s([1], now=20 * SLOT_S, rng=rng) for _ in range(200)) > 2 * SLOT_S
    router.ahead_s([1], now=0.0, rng=rng)  # a clock that goes back does not refresh it
    assert max(router.ahead_s([1], now=0.0, rng=rng) for _ in range(200)) > 2 * SLOT_S


@pytest.mark.parametrize("router", ROUTERS)
def test_hops_and_delays_that_are_none_are_refused(router):
    chosen = router()
    with pytest.raises(ProtocolError, match="no hop to choose"):
        chosen.next_hop([], now=0.0, rng=Random(0))
    with pytest.raises(ProtocolError, match="Hop 4 was never offered"):
        chosen.learn(4, 0.1)
    chosen.next_hop([4], now=0.0, rng=Random(0))
    chosen.learn(4, 0.0)  # faster than a slot: one attempt
    for wrong in (-0.1, math.nan, math.inf):
        with pytest.raises(ProtocolError, match="delay of"):
            chosen.learn(4, wrong)
        with pytest.raises(ConfigError, match="slot"):
            router(slot_s=wrong)


def test_a_distance_that_is_none_is_refused():
    router = ThompsonRouter()
    router.next_hop([4], now=0.0, rng=Random(0))
    with pytest.raises(ProtocolError, match="never offered"):
        router.hear(5, 1.0)
    with pytest.raises(ProtocolError, match="from the sink"):
        router.hear(4, -1.0)


def test_routers_import_nothing_that_a_worker_has_not():
    code = (
        "import sys, leeward.policies.agiledart.paths.routers; "
        "print(*sorted({name.split('.')[0] for name in sys.modules} - sys.stdlib_module_names))"
    )
    bare = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True, env=PATHS)
    assert bare.stdout.split() == ["__main__", "leeward"] or bare.stdout.split() == ["leeward"]


def test_routers_are_found_by_name():
    text = (ROOT / "pyproject.toml").read_text()
    named = tomllib.loads(text)["project"]["entry-points"]["leeward.routers"]
    assert sorted(named) == ["agiledart-kl", "agiledart-next-hop", "agiledart-replicas", "agiledart-thompson"]
    for where in named.values():
        module, _, name = where.partition(":")
        assert getattr(import_module(module), name)().next_hop([6], now=0.0, rng=Random(0)) == 6
