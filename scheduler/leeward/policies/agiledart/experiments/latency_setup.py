"""A network of sites, and the applications with their rates, for the comparison of latency with plain Storm. Pure.

The paper (section VII-A) has 10 task managers of 4 slots each, on a local network whose links `tc` slows down, and
gives no delay.  Here each site has a few gateways, and each pair of sites a delay of its own.  The sensors of an
application are at one node, the users of its results at a node of another site.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import combinations
from random import Random
from typing import Any

from leeward.core.fields import FieldError, check_number, each, mapping, number, text, whole
from leeward.core.network import NIMBUS, Link, Network, NetworkNode, Site

#: Input rates, as Fig. 9 has them on its axis without numbers.
LOW, MEDIUM, HIGH = RATES = "low", "medium", "high"
HOST = "nimbus"
#: Of the nodes that a local cluster may have.
MOST_NODES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A topology of the checkout, and the rates at which it is measured."""

    topology: str  #: name of its file
    title: str
    source: str  #: the component that the sensors send to
    sink: str  #: the component that sends results to the users
    rates: Mapping[str, float]  #: by `RATES`, tuples/s; those that are left out are not measured
    options: Mapping[str, Any] = field(default_factory=dict)  #: its own keys of the topology's configuration


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """See `storm_conf/scenarios/agiledart-latency.toml`."""

    seed: int
    sites: int
    nodes: int  #: of each site
    slots: int  #: of each node
    inside_ms: float  #: one way, between two nodes of a site
    least_ms: float  #: one way, between two sites
    most_ms: float
    speed: float  #: of all operators, of the rates that their topologies give them
    settle_s: float  #: without a reconfiguration before latency is measured
    window_s: float  #: over which it is measured
    applications: tuple[Application, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Where the data of an application begin, and where its results are used: names of nodes."""

    sensors: str
    users: str


def scenario_of(document: object) -> Scenario:
    """The scenario of a parsed file; raises `FieldError` naming the first wrong field."""
    plain = {entry.name: entry.type for entry in fields(Scenario) if entry.name != "applications"}
    names = (*plain, "application")
    top = mapping("scenario", document, frozenset(names), required=names)
    values: dict[str, Any] = {
        name: (whole if kind == "int" else number)(name, top[name]) for name, kind in plain.items()
    }
    found = Scenario(**values, applications=each("application", top["application"], _application))
    for name in plain:
        check_number(name, getattr(found, name), positive=name not in ("seed", "inside_ms", "least_ms"))
    _check(found)
    return found


def _application(where: str, document: object) -> Application:
    names = ("topology", "title", "source", "sink", "rates")
    entry = mapping(where, document, frozenset((*names, "options")), required=names)
    rates = mapping(f"{where}.rates", entry["rates"], frozenset(RATES))
    if not rates:
        raise FieldError(f"{where}.rates", rates, "names no rate", remedy=f"give one of {', '.join(RATES)}")
    found = {name: number(f"{where}.rates.{name}", rates[name]) for name in RATES if name in rates}
    for name, rate in found.items():
        check_number(f"{where}.rates.{name}", rate, positive=True)
    words = {name: text(f"{where}.{name}", entry[name]) for name in names[:-1]}
    return Application(**words, rates=found, options=mapping(f"{where}.options", entry.get("options", {})))


def _check(scenario: Scenario) -> None:
    """Raises `FieldError` for fields that do not fit each other."""
    if scenario.sites < 2:
        raise FieldError("sites", scenario.sites, "sensors and users are at two sites", remedy="give 2 or more")
    if scenario.sites * scenario.nodes > MOST_NODES:
        total = scenario.sites * scenario.nodes
        raise FieldError("nodes", scenario.nodes, f"makes {total} nodes in all", remedy=f"have at most {MOST_NODES}")
    if scenario.most_ms < scenario.least_ms:
        raise FieldError("most_ms", scenario.most_ms, f"is below least_ms, {scenario.least_ms:g}", remedy="raise it")
    names = [one.topology for one in scenario.applications]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated or not names:
        why = "is there twice" if repeated else "there is none"
        raise FieldError("application", repeated, why, remedy="name each topology once, and at least one")


def only(scenario: Scenario, topologies: list[str]) -> tuple[Application, ...]:
    """The applications of these topologies, all if none is named; raises `FieldError` for one that is not there."""
    known = [one.topology for one in scenario.applications]
    for name in topologies:
        if name not in known:
            raise FieldError("only", name, "is no topology of the scenario", remedy=f"name one of {', '.join(known)}")
    return tuple(one for one in scenario.applications if not topologies or one.topology in topologies)


def network_of(scenario: Scenario) -> Network:
    """Sites that are all joined with each other, by delays drawn evenly from `least_ms` to `most_ms`.

    Nimbus has a site of its own, which no tuple passes.
    """
    rng = Random(f"{scenario.seed} network")
    sites = [f"s{number}" for number in range(1, scenario.sites + 1)]
    links: dict[tuple[str, str], Link] = {}
    for a, b in combinations(sites, 2):
        link = Link(delay_ms=round(rng.uniform(scenario.least_ms, scenario.most_ms), 1))
        links |= {(a, b): link, (b, a): link}
    away = Link(delay_ms=scenario.most_ms)
    links |= {pair: away for site in sites for pair in ((site, HOST), (HOST, site))}
    inside = Link(delay_ms=scenario.inside_ms)
    return Network(
        sites=(*(Site(id=site, inside=inside) for site in sites), Site(id=HOST)),
        nodes=(
            *(NetworkNode(id=f"{s}-n{n}", site=s) for s in sites for n in range(1, scenario.nodes + 1)),
            NetworkNode(id=HOST, site=HOST, role=NIMBUS),
        ),
        links=links,
        seed=scenario.seed,
    )


def ends_of(scenario: Scenario, application: Application) -> Ends:
    """At the first nodes of two sites, drawn for this application."""
    rng = Random(f"{scenario.seed} {application.topology}")
    one, other = rng.sample(range(1, scenario.sites + 1), 2)
    return Ends(sensors=f"s{one}-n1", users=f"s{other}-n1")
