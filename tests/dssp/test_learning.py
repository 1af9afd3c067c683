"""A provider learns weights while queries run: domain and provider are the live objects, in virtual time."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from leeward.policies.dssp.agents.domain import Domain, DomainSettings, Node
from leeward.policies.dssp.agents.play import Play, Weather
from leeward.policies.dssp.agents.pools import Service
from leeward.policies.dssp.agents.provider import Provider, ProviderSettings
from leeward.policies.dssp.disciplines import Salvage
from leeward.policies.dssp.model.area import Area

NODES, MEAN_S, RATE, QUERIES = 8, 0.1, 19.0, 24_000
AREAS = [Area(10 * n, 0, 10 * n + 9, 9) for n in range(NODES)]
EVERYWHERE = Area(0, 0, 10 * NODES, 9)
#: Service -> its objective, s, and its part of the queries. A wide one needs all nodes, a narrow one any of them.
SERVICES = {"narrow": (1.0, 0.8), "wide": (1.2, 0.2)}


def late(learn: int, seed: int) -> tuple[dict[str, float], Provider]:
    """Service -> late queries over those that its objective allows, of the last two thirds; and the provider."""
    rng, rates = Random(seed), {"narrow": RATE * 0.8 / NODES, "wide": RATE * 0.2}
    came, missed = Counter(), Counter()

    def over(_name, result) -> None:
        if result.ticket > QUERIES / 3:
            came[result.service] += 1
            missed[result.service] += result.seconds > SERVICES[result.service][0]

    play = Play(rng, Weather(), over)
    provider = Provider("p", ProviderSettings(learn=learn, repeat=1e6), incarnation=1)
    nodes = [Node(areas=(area,), execution_s=MEAN_S) for area in AREAS]
    domain = Domain("d", ["air"], nodes, DomainSettings(discipline=Salvage(), busy=0.99), 0.0)
    for node in range(NODES):
        for _ in range(2000):
            domain.measured(node, rng.expovariate(1 / MEAN_S))
    play.add(domain)
    play.add(provider)
    for name, (objective_s, _) in SERVICES.items():
        service = Service(
            name=name, capability="air", areas=(EVERYWHERE,), rate=rates[name], percent=99.0, objective_s=objective_s
        )
        play.take("p", provider.open(service, [("d", (EVERYWHERE,))], 0.0))

    def ask(number: int) -> None:
        wide = rng.random() < SERVICES["wide"][1]
        name, area = ("wide", EVERYWHERE) if wide else ("narrow", rng.choice(AREAS))
        play.take("p", provider.query(number, name, (area,), play.now))
        if number < QUERIES:
            play.at(play.now + rng.expovariate(RATE), lambda: ask(number + 1))

    play.at(5.0, lambda: ask(1))
    play.run(5.0 + 1.1 * QUERIES / RATE)
    return {name: missed[name] / came[name] / 0.01 for name in SERVICES}, provider


@pytest.mark.parametrize("seed", [1, 2])
def test_services_become_late_alike(seed: int):
    steady, _ = late(0, seed)
    learned, provider = late(2000, seed)
    assert steady["wide"] > 4 * steady["narrow"], "without weights the wide service decides alone"
    assert max(learned.values()) < 2.5 * min(learned.values()) and learned["wide"] < 0.6 * steady["wide"]
    assert provider.weights.of("wide") == 1.0 and provider.weights.of("narrow") < 0.5
