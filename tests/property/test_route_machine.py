"""A route on random schedules: it asks and weighs replicas only, and learns of each sample once."""

from __future__ import annotations

from random import Random

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from leeward.core.rotation import LONGEST, rotation
from leeward.core.route import Route, RoutePacing

TASKS = (3, 5, 7, 9)
PACING = RoutePacing(samples=3, patience_s=1.0)
tables = st.lists(st.sampled_from(TASKS), min_size=1, max_size=4, unique=True).map(
    lambda tasks: tuple(tasks[group % len(tasks)] for group in range(128))
)


class Strict:
    """A router that chooses anyhow, and refuses what no sender may tell it."""

    def __init__(self) -> None:
        self.offered: set[int] = set()
        self.learnt: list[tuple[int, float]] = []

    def next_hop(self, hops, *, now, rng):
        assert hops == tuple(sorted(hops)) and len(hops) > 1
        self.offered.update(hops)
        return hops[int(rng.random() ** 2 * len(hops))]

    def learn(self, hop, delay_s):
        assert hop in self.offered
        assert delay_s >= 0
        self.learnt.append((hop, delay_s))


class Routing(RuleBasedStateMachine):
    @initialize(table=tables)
    def begin(self, table):
        self.router = Strict()
        self.route = Route(self.router, Random(1), PACING)
        self.now, self.number = 0.0, 0
        self.under_way: dict[tuple[int, int], float] = {}  # (task, number) -> when it was sent
        self.told = 0
        self.weights: dict[int, int] | None = None  # as the grouping has them
        self.follow(table)

    @rule(table=tables)
    def follow(self, table):
        self.route.follow(table)
        self.replicas, self.weights = set(table), None

    @rule(after=st.floats(0, 2), busy=st.booleans())
    def turn(self, after, busy):
        self.now += after
        self.number += 1
        before = len(self.router.learnt)
        turn = self.route.turn(self.number, self.now, busy=busy)
        assert all(delay == PACING.patience_s for _, delay in self.router.learnt[before:])
        if turn.weights is not None:
            assert turn.weights != self.weights
            self.weights = dict(turn.weights)
        assert len(set(turn.samples)) == len(turn.samples) <= PACING.samples
        assert busy or not (turn.samples or turn.weights)
        assert set(turn.samples) <= self.replicas
        if self.weights:
            assert all(self.weights[task] for task in turn.samples), "a sample goes where tuples go"
        for task in turn.samples:
            self.under_way[task, self.number] = self.now

    @rule(data=st.data(), after=st.floats(0, 2), service_s=st.floats(-1, 1) | st.just(float("nan")))
    def answer(self, data, after, service_s):
        if not self.under_way:
            return
        task, number = data.draw(st.sampled_from(sorted(self.under_way)))
        sent, before = self.under_way[task, number], len(self.router.learnt)
        if service_s >= 0:  # a senseless answer is none: another one may come
            del self.under_way[task, number]
        taken = self.route.answered(task, number, sent + after, service_s=service_s)
        learnt = self.router.learnt[before:]
        assert learnt == ([(task, sent + after - sent + service_s)] if taken else [])
        assert not taken or service_s >= 0
        if taken:
            assert not self.route.answered(task, number, sent + after, service_s=0.0), "it counts once"

    @rule(task=st.sampled_from(TASKS), number=st.integers(0, 50))
    def forged(self, task, number):
        if (task, number) not in self.under_way:
            assert not self.route.answered(task, number, self.now, service_s=0.0)

    @rule()
    def rest(self):
        self.route.rest()
        assert not self.route.waits

    @invariant()
    def weights_are_of_replicas_and_fit_a_round(self):
        if self.weights:
            assert set(self.weights) == self.replicas
            assert 0 < sum(self.weights.values()) <= LONGEST
            assert set(rotation(self.weights)) <= self.replicas
        assert dict(self.route.weights) == (self.weights or {})
        assert len(self.router.learnt) <= len(TASKS) * self.number


TestRouting = Routing.TestCase
