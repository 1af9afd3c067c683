"""Hours of virtual time in which domains die, come back, leave and join, while queries of all styles run."""

from __future__ import annotations

import gc
from random import Random

import pytest

from leeward.core.fields import FieldError
from leeward.policies.dssp.agents.domain import Domain, DomainSettings, Node
from leeward.policies.dssp.agents.play import Play, Weather
from leeward.policies.dssp.agents.pools import Service
from leeward.policies.dssp.agents.provider import Provider, Result
from leeward.policies.dssp.agents.scaling import ScalingSettings
from leeward.policies.dssp.agents.subscriptions import Round, Subscription, Subscriptions
from leeward.policies.dssp.disciplines import QueueingDeadline
from leeward.policies.dssp.model.area import Area

AREAS = {name: Area(10 * n, 0, 10 * n + 9, 9) for n, name in enumerate("abcd")}
EVERYWHERE = Area(0, 0, 180, 90)
RATE = 0.4


class Churn:
    """Four domains and a provider; about every ten minutes something happens to a domain."""

    def __init__(self, seed: int) -> None:
        self.rng, self.results, self.asked, self.refused = Random(seed), {}, 0, 0
        weather = Weather(lost=0.002, doubled=0.002, failed=0.002, stuck=0.0005)
        self.play = Play(self.rng, weather, self.on_effect)
        self.provider = Provider("p", incarnation=1)
        self.rounds, self.reported = Subscriptions(self.provider), 0
        self.play.add(self.provider)
        for name in AREAS:
            self.start(name)
        service = Service(
            name="s", capability="air", areas=(EVERYWHERE,), rate=RATE, percent=99.0, objective_s=2.0
        )  # fmt: skip
        self.play.take("p", self.provider.open(service, [(name, (area,)) for name, area in AREAS.items()], 0.0))
        self.rounds.add("stream", Subscription(service="s", areas=(AREAS["a"],), period_s=30.0), 60.0)
        self.ask()
        self.turn()
        self.beat()

    def start(self, name: str) -> None:
        made = Domain(
            name, ["air"], [Node(areas=(AREAS[name],), execution_s=0.05)] * 2,
            DomainSettings(discipline=QueueingDeadline(), patience_s=2.0, scaling=ScalingSettings(), samples=200),
            self.play.now,
        )  # fmt: skip
        for node in range(2):
            for _ in range(100):
                made.windows.add(node, self.rng.expovariate(20))
        self.play.add(made)

    def on_effect(self, name, effect) -> None:
        if isinstance(effect, Result) and isinstance(effect.ticket, Round):
            self.reported += self.rounds.report(effect)
        elif isinstance(effect, Result):
            assert effect.ticket not in self.results, "a query is answered twice"
            self.results[effect.ticket] = effect

    def ask(self) -> None:
        area = self.rng.choice([EVERYWHERE, *AREAS.values()])
        try:
            self.play.take("p", self.provider.query(self.asked, "s", (area,), self.play.now))
            self.asked += 1
        except FieldError:
            self.refused += 1
        self.play.at(self.play.now + self.rng.expovariate(RATE), self.ask)

    def beat(self) -> None:
        self.play.take("p", self.rounds.tick(self.play.now))
        self.play.at(self.play.now + 1.0, self.beat)

    def turn(self) -> None:
        """Something happens to a domain: it dies and is back later, or leaves and joins again."""
        name = self.rng.choice(sorted(AREAS))
        if name in self.play.members:
            back = self.play.now + self.rng.expovariate(1 / 60)
            if self.rng.random() < 0.5:
                self.play.remove(name)
                self.play.at(back, lambda: self.start(name))
            else:
                self.play.take(name, self.play.members[name].leave())
                self.play.at(back, lambda: self.join(name))
        self.play.at(self.play.now + self.rng.expovariate(1 / 600), self.turn)

    def join(self, name: str) -> None:
        self.play.take("p", self.provider.follow("s", {one: (area,) for one, area in AREAS.items()}, self.play.now))


@pytest.mark.parametrize("hours", [0.5, 24])
def test_no_query_is_lost_and_nothing_is_left_behind(hours):
    churn = Churn(int(hours * 10))
    churn.play.run(3600 * hours)
    churn.ask = churn.turn = lambda: None
    asked = churn.asked
    churn.rounds.end("stream")
    churn.play.run(churn.play.now + 30)
    assert sorted(churn.results)[:asked] == list(range(asked))
    assert churn.asked > 0.5 * 3600 * hours * RATE and churn.reported > 60 * hours
    complete = sum(not one.missing and not one.failed for one in churn.results.values())
    assert complete > 0.9 * asked, (complete, asked)
    everything_ends(churn)


def everything_ends(churn: Churn) -> None:
    """No table of a member grows with time."""
    gc.collect()
    assert churn.provider.open_queries == 0
    for name in AREAS:
        made = churn.play.members.get(name)
        if isinstance(made, Domain):
            assert made.open_tasks == 0
            assert len(made._answered) <= 2 * RATE * made.settings.remembered_s + 20
            assert len(made._running) <= 4 and not any(queue.waiting for queue in made.queues)
            assert len(made._matched) <= 64
