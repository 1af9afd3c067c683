"""Readings of the paper that fit its figures (spec of bi-modal links, section 5), and ours, by name."""

from __future__ import annotations

from dataclasses import dataclass, replace

from leeward.policies.bimodal.mapping.rules import PUBLIC_COST, LeastCost, Method, by_public_hops, public_hops_choice
from leeward.policies.bimodal.model.resources import Account, Resource
from leeward.policies.bimodal.model.values import Direction, Network
from leeward.policies.bimodal.platform.run import Reading

#: Fewest hops over the public network first, in pruning and in the choice.
FEWEST_PUBLIC = Method(rule=LeastCost(by_public_hops), choice=public_hops_choice)


def scarcity(network: Network, account: Account, link: int) -> float:
    """Price of a hop over a link: dearer the less of it is free, as tasks to come need it too."""
    one = network.links[link]
    directions = (False, True) if network.direction == "each" else (False,)
    free = min(account.free(Resource("link", link, to_a)) for to_a in directions)
    return 1.0 + one.bandwidth / max(free, 1e-9) / 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A reading of the platform, and whether the paper has it."""

    direction: Direction
    reading: Reading


def _bimodal(method: Method) -> Method:
    return replace(method, public=True)


B = Named(direction="shared", reading=Reading(method=_bimodal(FEWEST_PUBLIC)))
C = Named(direction="each", reading=Reading(method=_bimodal(FEWEST_PUBLIC), allocated="mean"))
D = Named(direction="each", reading=Reading(method=_bimodal(FEWEST_PUBLIC)))

READINGS = {"B": B, "C": C, "D": D}


#: Ours: a search on the network as gossip has it, before the diffusing computation.
SURVEY = replace(FEWEST_PUBLIC, surveys=True, public=True, price=scarcity, public_cost=PUBLIC_COST, limit=3000)


def our_mapping(named: Named) -> Named:
    """Our mapping on the same platform."""
    return replace(named, reading=replace(named.reading, method=SURVEY))


def ours(named: Named) -> Named:
    """Our mapping, the whole uplink and buffers."""
    return buffered(our_mapping(named))


def learned(named: Named) -> Named:
    """Ours: public paths weigh by the quantile that was learned of each."""
    return replace(named, reading=replace(named.reading, method=replace(named.reading.method, learned=True)))


def whole_uplink(named: Named) -> Named:
    """Ours: the flows of an uplink share all of it, also what nobody has reserved."""
    return replace(named, reading=replace(named.reading, whole_uplink=True))


def buffered(named: Named) -> Named:
    """Ours: each hop keeps what comes faster than it can send for when it can."""
    return replace(named, reading=replace(named.reading, whole_uplink=True, buffers=True))


def dedicated_only(named: Named) -> Named:
    """The same platform without the public network."""
    return replace(named, reading=replace(named.reading, method=replace(named.reading.method, public=False)))


def public_only(named: Named) -> Named:
    """The same platform without dedicated links."""
    return replace(named, reading=replace(named.reading, method=replace(named.reading.method, dedicated=False)))
