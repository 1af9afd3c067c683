"""Spares in the simulated cluster: the next scale-out there begins no worker, and plans do not wait for a spare."""

from __future__ import annotations

import pytest

from leeward.core.placing import carry, present_deployment
from leeward.core.plan import Plan
from leeward.core.settings import Settings
from leeward.sim.world.description import parse_world
from leeward.sim.world.rates import RateTrace
from leeward.sim.world.run import simulate

#: Storm deals six tasks over two workers, on n1 and n2; n3 has two free slots. Starting a worker takes 8 s.
WORLD = {
    "name": "chain",
    "workers": 2,
    "nodes": [{"id": "n1"}, {"id": "n2"}, {"id": "n3"}],
    "costs": {"handover_s": 0.05, "per_byte_s": 1e-8, "worker_start_s": 8.0},
    "components": [
        {"id": "source", "kind": "source", "rate": 1000},
        {"id": "work", "kind": "stateful", "rate": 100, "tasks": 4, "state_bytes": 1_000_000},
        {"id": "sink", "kind": "stateful", "rate": 1000},
    ],
    "streams": [{"from": "source", "to": "work", "keyed": True}, {"from": "work", "to": "sink", "keyed": True}],
}
STEADY = RateTrace((0.0, 600.0), (60.0, 60.0))


class LaterMore:
    """Takes the warm tasks apart first; from `at_s` on wants a second replica of `work`, on n3."""

    def __init__(self, at_s):
        self.at_s, self.began, self.views = at_s, None, []

    def decide(self, view, *, now, rng):
        self.began = now if self.began is None else self.began
        self.views.append(view)
        present = present_deployment(view)
        if view.first:
            return carry(view, present, reason="apart")
        if now - self.began < self.at_s or "n3" in present["work"]:
            return Plan(tables=view.tables, placement=view.assignment)
        return carry(view, present | {"work": present["work"] | {"n3": 1}}, reason="one more on n3")


def run(*, at_s=120.0, **changes):
    settings = Settings(**({"period_s": 10.0, "window_s": 10.0, "warm_apart": True} | changes))
    policy = LaterMore(at_s)
    outcome = simulate(parse_world(WORLD), STEADY, policy, settings, hours=300 / 3600)
    assert (outcome.figures.lost, outcome.figures.resets, outcome.figures.undone) == (0.0, 0, 0)
    return outcome, policy


def ended(outcome, reason):
    begun = [e.fields["reason"] for e in outcome.events if e.action == "reconfiguration_started"]
    done = [e for e in outcome.events if e.action == "reconfiguration_ended"]
    return [end for why, end in zip(begun, done, strict=True) if why.startswith(reason)]


def test_the_next_scale_out_to_the_node_starts_no_worker():
    (without,) = ended(run()[0], "one more on n3")
    assert without.fields["phases"]["prepare_s"] == pytest.approx(8.0)
    outcome, _ = run(spares=True)
    (brought,) = ended(outcome, "a spare of work to n3")
    assert brought.fields["changes"] == [] and brought.fields["phases"]["prepare_s"] == pytest.approx(8.0)
    (grown,) = ended(outcome, "one more on n3")
    assert "prepare_s" not in grown.fields["phases"]
    assert sum(grown.fields["phases"].values()) < 0.1, "a handover alone"


def test_no_cool_down_follows_a_spare_and_the_rates_are_still_known():
    outcome, policy = run(spares=True)
    (brought,) = ended(outcome, "a spare of work to n3")
    assert not [e for e in outcome.events if e.action == "cool_down" and e.at_s == brought.at_s]
    after = [view for view in policy.views if view.epoch >= brought.fields["epoch"]]
    assert after and after[0].measured["work"].arrival_rate == pytest.approx(60.0, rel=0.2)


@pytest.mark.parametrize("changes", [{}, {"spares": True, "mode": "restart"}])
def test_none_is_brought_where_none_is_wanted_or_workers_would_stop(changes):
    assert ended(run(**changes)[0], "a spare") == []


class AtRandom:
    """Mostly wants no change, else one to three replicas of `work` on random nodes."""

    def __init__(self):
        self.views = []

    def decide(self, view, *, now, rng):
        self.views.append(view)
        present = present_deployment(view)
        if view.first:
            return carry(view, present, reason="apart")
        if rng.random() < 0.8:
            return Plan(tables=view.tables, placement=view.assignment)
        nodes = [rng.choice(view.nodes).id for _ in range(rng.randint(1, 3))]
        return carry(view, present | {"work": {node: nodes.count(node) for node in nodes}}, reason="at random")


@pytest.mark.parametrize("seed", range(5))
def test_beside_a_policy_that_moves_at_random_spares_change_no_table(seed):
    settings = Settings(
        period_s=10.0, window_s=10.0, cool_down_s=0.0, scale_down_s=0.0, no_return_s=0.0, spares=True, seed=seed
    )
    policy = AtRandom()
    outcome = simulate(parse_world(WORLD), STEADY, policy, settings, hours=600 / 3600)
    assert (outcome.figures.lost, outcome.figures.resets) == (0.0, 0)
    slots = {(node.id, port) for node in policy.views[0].nodes for port in node.ports}
    assert all((slot.node, slot.port) in slots for view in policy.views for slot in view.assignment.values())
    brought = ended(outcome, "a spare")
    assert brought and ended(outcome, "at random")
    for end in brought:
        assert (end.fields["kind"], end.fields["result"], end.fields["changes"]) == ("handover", "done", [])
        assert (end.fields["steps"], end.fields["bytes_exported"]) == (0, 0)
