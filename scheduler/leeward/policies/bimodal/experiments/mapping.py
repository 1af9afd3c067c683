"""Figure 7: cost and messages of the mapping heuristics, and of ours, on networks of 20 to 120 servers.

The networks are ours, as the paper's are not public (BRITE's, and capacities of a volunteer project): servers join by
preferential attachment with two links each; bandwidths are from a power law of exponent 1, cut off at 10 Mbit/s and
1 Gbit/s; capacities are lognormal; a link costs 1 to 10; every server hosts every service.  Needs are normal around
half of the mean capacity, with a quarter of that as deviation.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean

from leeward.core.experiment import Curve, Finding, Panel, Part, Row
from leeward.policies.bimodal.exact.bound import bound
from leeward.policies.bimodal.exact.search import cheapest
from leeward.policies.bimodal.mapping.play import agents_of, gossip_round, map_task
from leeward.policies.bimodal.mapping.rules import Annealed, LeastCost, Method
from leeward.policies.bimodal.model.resources import Account
from leeward.policies.bimodal.model.values import Link, Network, Server, Task

FIGURE = "Fig. 7"
SIZES, QUICK_SIZES = (20, 30, 60, 90, 120), (20, 30)
NETWORKS, QUICK_NETWORKS = 10, 4
#: With more servers the exact search may take long, and annealing takes millions of messages.
EXACT_UP_TO, ANNEALED_UP_TO = 30, 60
CHAIN, JOINS, MAX_NULL = 10, 2, 1
BANDWIDTH_MBPS, COST = (10.0, 1000.0), (1.0, 10.0)
LOAD, SPREAD = 0.5, 0.25
#: Tasks that are drawn for a network until one can be mapped.
TRIES = 30
LIMIT = 300_000

METHODS = {
    "LeastCostMap": Method(rule=LeastCost()),
    "AnnealedLeastCostMap": Method(rule=Annealed()),
    "RandomNeighbor(1)": Method(rule=LeastCost(), neighbours=1),
    "ours": Method(surveys=True),
}


#: Cost over the optimum: servers -> of LeastCostMap, by the independent implementation; method -> bound.
INDEPENDENT, HIGH = {20: 1.11, 30: 1.02}, {"LeastCostMap": 1.15, "ours": 1.02}
#: Method, metric, low and high bound, and the independent figure of messages over LeastCostMap's.
RATIOS = (
    ("AnnealedLeastCostMap", "annealed: messages over LeastCostMap's", 3.0, None, 4.0),
    ("ours", "ours: messages over LeastCostMap's, gossip from nothing included", None, 1.0, None),
)


class Mapped:
    """See the module."""

    def parts(self, *, seed: int, quick: bool) -> Sequence[Part]:
        """A network and a task each."""
        sizes, networks = (QUICK_SIZES, QUICK_NETWORKS) if quick else (SIZES, NETWORKS)
        return [
            Part(name=f"{n} servers, network {number}", seed=1000 * seed + number, options=(("servers", n),))
            for n in sizes
            for number in range(networks)
        ]

    def measure(self, part: Part) -> Mapping[str, float]:
        """Cost, and messages in all, of each method; the bound, and the optimum where it was looked for."""
        servers = int(part.option("servers"))
        rng = random.Random(f"{part.seed}:{servers}")
        network = made_network(servers, rng)
        for _ in range(TRIES):
            task = made_task(network, rng)
            found = {
                name: _by(method, network, task, part.seed)
                for name, method in METHODS.items()
                if servers <= ANNEALED_UP_TO or not isinstance(method.rule, Annealed)
            }
            if math.isfinite(found["LeastCostMap"][0]):
                break
        figures = {f"{name}: cost": cost for name, (cost, _) in found.items()}
        figures |= {f"{name}: messages": messages for name, (_, messages) in found.items()}
        figures["bound"] = bound(task, network, Account(network), lambda link: network.links[link].cost, None)[0][
            task.source
        ]
        if servers <= EXACT_UP_TO:
            exact = cheapest(task, network, limit=LIMIT)
            figures |= {"optimum": exact.cost, "proven": float(exact.proven)}
        return {name: value for name, value in figures.items() if math.isfinite(value)}

    def conclude(self, measured: Mapping[Part, Mapping[str, float]]) -> Finding:
        """Means over the networks of each size."""
        rows: list[Row] = []
        sizes = sorted({int(part.option("servers")) for part in measured})
        for servers in sizes:
            rows += _rows(servers, [one for part, one in measured.items() if part.option("servers") == servers])
        panels = (
            _panel(measured, sizes, "cost over the lower bound", "ratio", "cost"),
            _panel(measured, sizes, "messages of one task", "", "messages"),
        )
        return Finding(rows=tuple(rows), panels=panels, notes=NOTES)


def made_network(servers: int, rng: random.Random) -> Network:
    """Preferential attachment, two links for each server that joins."""
    ends: list[int] = [0, 1]
    pairs = {(0, 1)}
    for joining in range(2, servers):
        chosen: set[int] = set()
        while len(chosen) < min(JOINS, joining):
            chosen.add(rng.choice(ends))
        for other in sorted(chosen):
            pairs.add((other, joining))
            ends += [other, joining]
    low, high = BANDWIDTH_MBPS
    links = [
        Link(a=a, b=b, bandwidth=low * (high / low) ** rng.random(), cost=float(rng.randint(*map(int, COST))))
        for a, b in sorted(pairs)
    ]
    hosted = frozenset(range(CHAIN))
    return Network([Server(id=v, cpu=rng.lognormvariate(0, 0.5), services=hosted) for v in range(servers)], links)


def made_task(network: Network, rng: random.Random) -> Task:
    """Needs around half of the mean capacities; source and delivery are two servers."""
    cpu = fmean(server.cpu for server in network.servers.values())
    mbps = fmean(link.bandwidth for link in network.links.values())
    source, delivery = rng.sample(sorted(network.servers), 2)

    def need(mean: float) -> float:
        return max(0.05 * mean, rng.gauss(LOAD * mean, SPREAD * LOAD * mean))

    return Task(
        name="task", source=source, delivery=delivery, services=tuple(range(CHAIN)),
        cpu=tuple(need(cpu) for _ in range(CHAIN)), bandwidth=tuple(need(mbps) for _ in range(CHAIN + 1)),
        max_null=MAX_NULL,
    )  # fmt: skip


def _by(method: Method, network: Network, task: Task, seed: int) -> tuple[float, float]:
    """Cost of the map, and messages; ours pays for every round of gossip, as if there had been no task before."""
    agents, rng = agents_of(network, method), random.Random(seed)
    messages = 0
    while method.surveys and (round_ := gossip_round(agents, now=0.0, rng=rng)):
        messages += round_
        if all(len(agent.knowledge) == len(network.servers) for agent in agents.values()):
            break
    mapped = map_task(agents, task, now=0.0, rng=rng)
    walk = mapped.portal.walk
    return (math.inf if walk is None else walk.cost), float(messages + mapped.messages.total())


def _panel(
    measured: Mapping[Part, Mapping[str, float]], sizes: Sequence[int], title: str, unit: str, kind: str
) -> Panel:
    curves = tuple(
        Curve(name=name, values=tuple(_mean(_of(measured, servers), name, kind) for servers in sizes))
        for name in METHODS
    )
    return Panel(
        title=title, unit=unit, kind="lines", along="servers", at=tuple(map(float, sizes)), curves=curves,
        logarithmic=kind == "messages",
    )  # fmt: skip


def _of(measured: Mapping[Part, Mapping[str, float]], servers: int) -> list[Mapping[str, float]]:
    return [one for part, one in measured.items() if part.option("servers") == servers]


def _ratios(found: Sequence[Mapping[str, float]], over: str, under: str) -> list[float]:
    return [one[over] / one[under] for one in found if over in one and one.get(under)]


def _mean(found: Sequence[Mapping[str, float]], name: str, kind: str) -> float:
    """Of the messages, or of the cost over the bound; NaN where there is none."""
    key = f"{name}: messages"
    values = (
        [one[key] for one in found if key in one] if kind == "messages" else _ratios(found, f"{name}: cost", "bound")
    )
    return fmean(values) if values else math.nan


def _rows(servers: int, found: Sequence[Mapping[str, float]]) -> list[Row]:
    row = partial(Row, figure=FIGURE, setting=f"{servers} servers, {len(found)} networks")
    ran = [name for name in METHODS if any(f"{name}: messages" in one for one in found)]
    rows = [
        row(metric=f"{name}: mapped", unit="%", ours=100 * fmean(f"{name}: cost" in one for one in found))
        for name in ran
    ]
    rows += [
        row(metric=f"{name}: cost over the bound", unit="ratio", ours=fmean(ratios))
        for name in ran
        if (ratios := _ratios(found, f"{name}: cost", "bound"))
    ]
    proven = [one for one in found if one.get("proven")]
    for name in ran:
        ratios = _ratios(proven, f"{name}: cost", "optimum")
        if name in HIGH:
            metric = f"{name}: networks with a known optimum that it mapped"
            rows.append(row(metric=metric, unit="", low=1, ours=len(ratios)))
        if ratios:
            independent = INDEPENDENT.get(servers) if name == "LeastCostMap" else None
            metric, high = f"{name}: cost over the optimum", HIGH.get(name)
            rows.append(row(metric=metric, unit="ratio", high=high, independent=independent, ours=fmean(ratios)))
    rows += [row(metric=f"{name}: messages", unit="", ours=_mean(found, name, "messages")) for name in ran]
    if annealed := _ratios(found, "AnnealedLeastCostMap: cost", "LeastCostMap: cost"):
        metric = "annealed: cost over LeastCostMap's"
        rows.append(row(metric=metric, unit="ratio", low=0.98, independent=1.0, ours=fmean(annealed)))
    for name, metric, low, high, independent in RATIOS:
        if ratios := _ratios(found, f"{name}: messages", "LeastCostMap: messages"):
            rows.append(
                row(metric=metric, unit="ratio", low=low, high=high, independent=independent, ours=fmean(ratios))
            )
    return rows


NOTES = (
    "Lower bound: a link has to be wide enough for each hop alone, and a server for each service alone; it is at least "
    "the paper's, which leaves bandwidth out. Tasks that LeastCostMap cannot map are drawn anew, up to "
    f"{TRIES} times for a network. The paper prints curves and no numbers.",
)
