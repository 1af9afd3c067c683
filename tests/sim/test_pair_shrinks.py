"""The pair again, with Hypothesis in the seed's place: what fails is made small."""

from __future__ import annotations

import random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from leeward.sim.faults import FAULTS
from leeward.sim.pair import Pair
from leeward.sim.rest import come_to_rest, go_round

#: Hypothesis draws what a step needs, and makes it small with the rest.
CHANCE = st.randoms(use_true_random=False)
STEPS = [
    Pair.deliver, Pair.deliver, Pair.work, Pair.work, Pair.let_emit, Pair.carry, Pair.coordinate, Pair.coordinate,
    Pair.tell_silence, Pair.time, Pair.supervise, Pair.connect, Pair.plan,
]  # fmt: skip


class Machine(RuleBasedStateMachine):
    """Rules are the steps of a pair."""

    pair: Pair | None = None

    @initialize(seed=st.integers(0, 30))
    def begin(self, seed: int) -> None:
        self.pair = Pair(seed)
        self.pair.faults = FAULTS  # Hypothesis chooses among all, also where the seed would have none

    @rule(step=st.sampled_from(STEPS), times=st.integers(1, 6), chance=CHANCE)
    def takes_steps(self, step, times: int, chance: random.Random) -> None:
        self.pair.rng = chance
        for _ in range(times):
            step(self.pair)
            self.pair.check()

    @rule(rounds=st.integers(1, 4))
    def goes_on(self, rounds: int) -> None:
        """As it would without anything that disturbs it, so that a run comes far in few rules."""
        self.pair.rng = random.Random(0)
        for _ in range(rounds):
            if self.pair.coordinator is not None:
                go_round(self.pair)

    @rule(fault=st.sampled_from(sorted(set(FAULTS), key=lambda fault: fault.__name__)), chance=CHANCE)
    def fails(self, fault, chance: random.Random) -> None:
        self.pair.rng = chance
        fault(self.pair)
        self.pair.check()

    def teardown(self) -> None:
        if self.pair is not None:
            self.pair.rng = random.Random(0)
            come_to_rest(self.pair)


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=25, stateful_step_count=40, suppress_health_check=list(HealthCheck))
