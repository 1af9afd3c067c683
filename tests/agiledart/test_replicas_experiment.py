"""Routers among the replicas of a bolt, in virtual time: the model, and the study's figures and bounds."""

from __future__ import annotations

import pytest

from leeward.core.route import RoutePacing
from leeward.policies.agiledart.experiments.replicas import CHANGING, EQUAL, LOADS, OURS, ROTATION, SLOW, WAYS, Replicas
from leeward.policies.agiledart.paths.replicas import Load, play
from leeward.policies.agiledart.paths.routers import ReplicaRouter


@pytest.mark.parametrize("rate", [120, 176])
def test_a_slow_replica_gets_few_tuples_and_none_waits_long(rate):
    """Even rotation gives it more than it can serve."""
    load = Load(rate=rate, services_s=SLOW, seconds=60)
    even = play(load, None, seed=1)
    assert even.mean_s > 3 and even.shares[2] == pytest.approx(1 / 3, abs=0.01)
    routed = play(load, ReplicaRouter(), seed=1)
    assert routed.mean_s < 0.2 and routed.shares[2] < 0.2


@pytest.mark.parametrize(("rate", "times"), [(75, 1.5), (120, 3)])
def test_where_no_replica_is_slow_a_router_costs_little(rate, times):
    load = Load(rate=rate, services_s=EQUAL, seconds=60)
    even, routed = play(load, None, seed=1), play(load, ReplicaRouter(), seed=1)
    assert routed.mean_s < times * even.mean_s and min(routed.shares) > 0.28


def test_a_replica_that_becomes_slow_is_left_and_one_that_recovers_is_found_again():
    load = Load(rate=120, services_s=SLOW, seconds=80, change=(40.0, (0.05, 0.01, 0.01)))
    routed = play(load, ReplicaRouter(), seed=1)
    assert routed.mean_s < 0.3 and routed.shares[2] > routed.shares[0]


def test_a_sender_that_learns_late_swings():
    """The reason for a short `every_s` and a low fade. Once it swings it goes on, but not each run begins to."""
    load = Load(rate=120, services_s=EQUAL)
    slow = RoutePacing(every_s=0.25, turns=4)
    soon = sum(play(load, ReplicaRouter(), seed=seed).mean_s for seed in (0, 2, 4))
    late = sum(play(load, ReplicaRouter(fade=0.8), seed=seed, pacing=slow).mean_s for seed in (0, 2, 4))
    assert late > 3 * soon


def test_no_way_beats_the_shortest_queue():
    for services in (EQUAL, SLOW):
        load = Load(rate=120, services_s=services, seconds=40)
        least = play(load, None, seed=3, shortest=True)
        assert least.mean_s < min(play(load, None, seed=3).mean_s, play(load, ReplicaRouter(), seed=3).mean_s)


def test_the_same_seed_gives_the_same_run():
    load = Load(rate=120, services_s=SLOW, seconds=20)
    assert play(load, ReplicaRouter(), seed=5) == play(load, ReplicaRouter(), seed=5)
    assert play(load, ReplicaRouter(), seed=5) != play(load, ReplicaRouter(), seed=7)


def measured(mean):
    parts = Replicas().parts(seed=0, quick=True)
    return {part: {"mean": mean(part.option("way")), "p99": 500.0, "share": 5.0} for part in parts}


def test_a_part_is_measured():
    parts = Replicas().parts(seed=0, quick=True)
    assert {part.option("way") for part in parts} == set(WAYS) and {part.option("load") for part in parts} == set(LOADS)
    part = next(part for part in parts if part.option("way") == OURS and part.option("load") == CHANGING)
    found = Replicas().measure(part)
    assert 10 < found["mean"] < found["p99"] and 0 < found["share"] < 100


def test_bounds_are_on_ours_alone():
    rows = Replicas().conclude(measured(lambda way: 50.0)).rows
    assert {row.met for row in rows} == {True, None}
    assert all(OURS in row.metric for row in rows if row.met)
    assert sum(row.met is True for row in rows) == len(LOADS) - 1


def test_a_router_that_lets_tuples_wait_meets_none():
    rows = Replicas().conclude(measured(lambda way: 50.0 if way == ROTATION else 250.0)).rows
    assert {row.met for row in rows} == {False, None}
