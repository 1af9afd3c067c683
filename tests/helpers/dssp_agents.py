"""Domains and providers by hand: areas, terms, and the messages that they send."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from leeward.core.members import To
from leeward.policies.dssp.agents.domain import Domain, DomainSettings, Node, Start
from leeward.policies.dssp.agents.messages import Ask, Negotiate, Offer, Provision, Terms
from leeward.policies.dssp.agents.pools import Service
from leeward.policies.dssp.disciplines import QueueingDeadline
from leeward.policies.dssp.model.area import Area

HERE, THERE, NOWHERE = Area(0, 0, 10, 10), Area(20, 0, 30, 10), Area(-50, -50, -40, -40)
RNG = Random(0)
OFFER = Offer(service="s", accepted=True)
AGREED = replace(OFFER, provisioned=True)


def terms(**changes):
    of = {"service": "s", "capability": "air", "areas": (HERE,), "rate": 1.0, "percent": 99.0, "objective_s": 2.0}
    return Terms(**of | changes)


def ask(query="1", **changes):
    of = {"query": query, "service": "s", "areas": (HERE,), "percent": 99.0, "objective_s": 2.0}
    return Ask(**of | changes)


def messages(found, kind):
    return [one.message for one in found if isinstance(one, To) and isinstance(one.message, kind)]


def domain(nodes=2, *, area=HERE, measured=200, **options):
    made = Domain(
        "d", ["air"], [Node(areas=(area,), execution_s=0.1)] * nodes,
        DomainSettings(discipline=options.pop("discipline", QueueingDeadline()), **options),
    )  # fmt: skip
    rng = Random(1)
    for node in range(nodes):
        for _ in range(measured):
            seconds = rng.expovariate(10)
            made.windows.add(node, seconds)
            made.queues[node].paced.add(seconds)
    return made


def offer_of(made, wanted):
    (sent,) = made.receive("p", Negotiate(terms=wanted), 0.0, RNG)
    return sent.message


def provisioned(*args, **options):
    made = domain(*args, **options)
    assert made.receive("p", Provision(terms=terms()), 0.0, RNG)[-1].message.accepted
    return made


def starts(found):
    return [one.subtask for one in found if isinstance(one, Start)]


def service(**changes):
    of = {"name": "s", "capability": "air", "areas": (HERE, THERE), "rate": 1.0, "percent": 99.0, "objective_s": 2.0}
    return Service(**of | changes)
