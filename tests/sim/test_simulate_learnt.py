"""A service learns in a simulated cluster: curves by which plans are nearer to what happens, pauses of restarts."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from leeward.control.registry import make_policy
from leeward.core.learnt import Restart
from leeward.core.model import ClusterView
from leeward.core.placing import carry
from leeward.core.plan import Plan
from leeward.core.settings import Settings
from leeward.policies.edrp.policy import build_problem
from leeward.policies.edrp.settings import EdrpSettings
from leeward.sim.world.description import WorldFile, load_world
from leeward.sim.world.rates import RateTrace, load_rates
from leeward.sim.world.run import simulate

ROOT = Path(__file__).parents[2]
WORLD = load_world(ROOT / "storm_conf/worlds/query1.toml")
WEEK = load_rates(ROOT / "scheduler/leeward/replay/data/rate_by_hour_of_week.csv")
SETTINGS = Settings(period_s=300.0, window_s=300.0)
HOURS = 6.0


def world(variation: float) -> WorldFile:
    """Query 1 whose bolts' service times have this squared coefficient of variation."""
    components = (c if c.kind == "source" else replace(c, variation=variation) for c in WORLD.components)
    return replace(WORLD, components=tuple(components))


def model_error(curve: str, variation: float, settings: Settings = SETTINGS) -> float:
    """Mean relative distance of the response time in plans that keep the deployment from the simulated one."""
    options = {"method": "exact", "gap": 0.05, "seed": 0, "headroom": 0.0, "curve": curve}
    trace = WEEK.scaled(220 / WEEK.peak)
    outcome = simulate(world(variation), trace, make_policy("edrp", options), settings, hours=HOURS)
    figures = outcome.figures
    assert figures.modelled > 50
    print(f"variation {variation:g}, {curve}: {100 * figures.model_error:.2f} % off, {figures.modelled} plans")
    return figures.model_error


class OneNode:
    """Places all on n3, and keeps the views."""

    def __init__(self) -> None:
        self.views: list[ClusterView] = []

    def decide(self, view: ClusterView, *, now: float, rng: random.Random) -> Plan:
        self.views.append(view)
        return carry(view, {component.id: {"node3": 1} for component in view.components})


def test_the_pause_of_a_restart_is_known_to_the_next_plan():
    policy = OneNode()
    trace = RateTrace((0.0, 120.0), (50.0, 50.0))
    settings = Settings(period_s=5.0, window_s=5.0, cool_down_s=2.0)
    outcome = simulate(world(1.0), trace, policy, settings, hours=120 / 3600)
    assert outcome.figures.restarts == 1 and policy.views[0].restarts == ()
    assert policy.views[-1].restarts == (Restart(1, pytest.approx(WORLD.costs.restart_s, abs=0.5)),)
    problem, _ = build_problem(policy.views[-1], EdrpSettings(t_syn_s=2.0))
    assert problem.sync_s + problem.nodes[0].spawn_s == pytest.approx(WORLD.costs.restart_s, abs=0.5)


def test_the_learnt_model_is_nearer_where_service_times_are_equal():
    """M/M/1 takes waits for twice as long as they are; the learnt curve does not."""
    learnt, mm1 = model_error("learnt", 0.0), model_error("mm1", 0.0)
    assert learnt < mm1 / 3


def test_the_learnt_model_is_as_near_where_m_m_1_holds():
    learnt, mm1 = model_error("learnt", 1.0), model_error("mm1", 1.0)
    assert learnt <= mm1 + 0.01
