"""Random schedules of applications: messages are lost and overtake, nodes die, applications come, end and meet."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from leeward.policies.agiledart.deployment.agent import HELD
from leeward.policies.agiledart.deployment.messages import Over, Wanted
from leeward.policies.agiledart.overlay.ids import to_bytes
from leeward.policies.agiledart.platform.play import Network
from tests.helpers.agiledart_field import Field

#: Heartbeats between two deaths, as a leaf set has to notice the first one.
BETWEEN = 4


class Deployments(RuleBasedStateMachine):
    """No node holds more than it can.  In the end each application is placed, each operator once, or refused."""

    @initialize(
        seed=st.integers(0, 10_000), nodes=st.integers(3, 40), capacity=st.integers(1, 3),
        loss=st.sampled_from([0.0, 0.02, 0.1]),
    )  # fmt: skip
    def start(self, seed: int, nodes: int, capacity: int, loss: float) -> None:
        jitter, self.rng = Random(seed), Random(seed)
        network = Network(delay_s=lambda a, b: 0.002 + 0.03 * jitter.random(), loss=loss)
        self.field = Field(nodes, capacity=capacity, seed=seed, network=network)
        self.owned: dict[str, int] = {}
        self.died_at, self.next = self.field.play.now, 0

    @rule(operators=st.integers(1, 12), pinned=st.booleans(), wide=st.booleans())
    def announce(self, operators: int, pinned: bool, wide: bool) -> None:
        at = self.rng.choice(sorted(self.field.agents))
        ids = [to_bytes(agent.contact.id) for agent in self.field.agents.values()]
        made = tuple(
            Wanted(
                name=f"o{number}",
                upstream=tuple(sorted({self.rng.randrange(number) for _ in range(2 if wide else 1)})) if number else (),
                nodes=tuple(self.rng.sample(ids, min(2, len(ids)))) if pinned and number % 3 == 0 else (),
            )
            for number in range(operators)
        )  # fmt: skip
        self.owned[f"app-{self.next}"] = at
        self.field.announce(at, f"app-{self.next}", made)
        self.next += 1

    @rule(beats=st.sampled_from([0.02, 0.1, 0.5, 2.0]))
    def pass_time(self, beats: float) -> None:
        self.field.play.beats(beats)

    @precondition(lambda self: self.owned)
    @rule()
    def end(self) -> None:
        application = self.rng.choice(sorted(self.owned))
        self.field.tell(self.owned.pop(application), Over(application=application))

    @precondition(lambda self: len(self.field.agents) > 3 and self.beats_since_death() >= BETWEEN)
    @rule(scheduler=st.booleans())
    def one_dies(self, scheduler: bool) -> None:
        active = [at for at, agent in self.field.agents.items() if agent.schedulers.active]
        victim = self.rng.choice(sorted(active if scheduler and active else self.field.agents))
        self.field.play.kill([victim])
        self.owned = {name: at for name, at in self.owned.items() if at != victim}
        self.died_at = self.field.play.now

    def beats_since_death(self) -> float:
        return (self.field.play.now - self.died_at) / self.field.play.times.heartbeat

    @invariant()
    def no_node_over_its_capacity(self) -> None:
        if hasattr(self, "field"):
            self.field.check()

    def teardown(self) -> None:
        if not hasattr(self, "field"):
            return
        self.field.play.network = Network(delay_s=self.field.play.network.delay_s)
        self.field.play.beats(BETWEEN)
        self.field.until(self.settled, beats=150)
        wanted: dict[tuple[str, str], int] = {}
        for name, at in self.owned.items():
            told = self.field.placement(at, name)
            if told.status == "placed":
                assert len({one.operator for one in told.hosts}) == len(
                    self.field.agents[at].owners.all[name].operators
                )
                for one in told.hosts:
                    assert (name, one.operator) in self.field.agents[one.host.at].rooms.operators(), told
                    wanted[name, one.operator] = 1
            else:
                assert told.status == "refused" and told.why
        assert self.field.held() == wanted

    def settled(self) -> bool:
        """All are decided, and have been for as long as rooms are held without a renewal."""
        told = [self.field.placement(at, name).status for name, at in self.owned.items()]
        if not all(status in ("placed", "refused") for status in told):
            self.since = self.field.play.now
            return False
        since = getattr(self, "since", None)
        if since is None:
            self.since = since = self.field.play.now
        return self.field.play.now - since > (HELD + 2) * self.field.play.times.heartbeat


TestDeployments = pytest.mark.long(Deployments.TestCase)
TestDeployments.settings = settings(max_examples=40, stateful_step_count=14)
