"""Fig. 8(b): time until concurrent applications are deployed, by dataflows and by one centre, in virtual time.

The paper measures a testbed of one centre; here both are the model of `platform/deploying.py`, at the same cost of a
decision.  The paper prints no figures, only that the centre's time grows linearly.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from statistics import fmean

from leeward.core.experiment import Curve, Finding, Panel, Part, Row
from leeward.policies.agiledart.dataflow.nodes import ByTables, Loads
from leeward.policies.agiledart.dataflow.placement import place
from leeward.policies.agiledart.experiments.placement import CAPACITY, NODES, OPERATORS, ZONES
from leeward.policies.agiledart.platform.deploying import Costs, Launched, Machines, by_centre, by_dataflow
from leeward.policies.agiledart.platform.zones import Zoned, chain, zoned

FIGURE = "Fig. 8(b)"
CONCURRENT = (1, 10, 25, 50, 75, 100)
#: Of a network, and so applications of a mean: at one at a time 200 runs, at a hundred two.
APPLICATIONS, NETWORKS, QUICK_NETWORKS = 200, 10, 1
#: Proximity is 1 for the side of the square, where a hop takes 2 ms and 20 ms more.
HOP_S, ACROSS_S = 0.002, 0.020
FAST, SLOW = "0.05 ms", "100 ms"
COSTS = {
    FAST: Costs(decision_s=0.000_05, message_s=0.000_05, hop_s=HOP_S, across_s=ACROSS_S),
    SLOW: Costs(decision_s=0.1, message_s=0.001, hop_s=HOP_S, across_s=ACROSS_S),
}
DATAFLOW, CENTRE = WAYS = "dataflow", "centre"
#: Bounds of ours, as nobody prints any: of the dataflow's time for 100 at once over that for 1, of an application's
#: mean and until the last one is placed; the latter over the slowest of the same dataflows, as the slowest of 100
#: random ways is longer than one of them whatever else is launched.
MEAN_FLAT, LAST_FLAT = 1.2, 1.5


class Deployment:
    """A study whose parts are networks of 10,000 nodes."""

    def parts(self, *, seed: int, quick: bool) -> list[Part]:
        """One network where it is quick."""
        numbers = range(QUICK_NETWORKS if quick else NETWORKS)
        return [Part(name=f"network {number}", seed=1_000 * seed + number) for number in numbers]

    def measure(self, part: Part) -> Mapping[str, float]:
        """Times, s, means of runs: an application's by `cost; way; N`, until all N are placed by `...; last`.

        `cost; alone`: of the same dataflows as many as at most, each launched alone, the slowest one's.
        """
        rng = Random(part.seed)
        network = zoned(NODES, ZONES, rng)
        found: dict[str, float] = {}
        for concurrent in CONCURRENT:
            batches = [batch(network, concurrent, rng) for _ in range(APPLICATIONS // concurrent)]
            centre = rng.choice(network.overlay.ids)
            for cost, costs in COSTS.items():
                for way in WAYS:
                    times = [_times(network, one, costs, centre if way == CENTRE else None) for one in batches]
                    found[f"{cost}; {way}; {concurrent}"] = fmean(fmean(one) for one in times)
                    found[f"{cost}; {way}; {concurrent}; last"] = fmean(max(one) for one in times)
                alone = [[_times(network, [one], costs, None)[0] for one in launched] for launched in batches]
                found[f"{cost}; alone"] = fmean(max(one) for one in alone)
        return found

    def conclude(self, measured: Mapping[Part, Mapping[str, float]]) -> Finding:
        """Means over the networks."""
        names = next(iter(measured.values()))
        found = {name: fmean(figures[name] for figures in measured.values()) for name in names}
        rows = [row for cost in COSTS for row in _rows(cost, found)]
        return Finding(rows=tuple(rows), panels=tuple(_panel(cost, found) for cost in COSTS), notes=NOTES)


def batch(network: Zoned, concurrent: int, rng: Random) -> list[Launched]:
    """Applications of random zones on an overlay without others; each zone has one scheduler, as 50 need one."""
    overlay, loads = ByTables(network.overlay), Loads(dict.fromkeys(network.overlay.ids, CAPACITY))
    schedulers = [rng.choice(zone) for zone in network.zones]
    launched = []
    for number in range(concurrent):
        zone = rng.randrange(len(network.zones))
        application = chain(f"{number}", network.zones[zone], rng, operators=OPERATORS)
        placed = place(application, overlay, loads)
        owner = application.node_of(application.joins[0][0])
        launched.append(Launched(application=application, placed=placed, owner=owner, scheduler=schedulers[zone]))
    return launched


def _times(network: Zoned, launched: list[Launched], costs: Costs, centre: int | None) -> list[float]:
    machines = Machines(costs, network.overlay.proximity)
    return by_dataflow(machines, launched) if centre is None else by_centre(machines, launched, centre)


def _rows(cost: str, found: Mapping[str, float]) -> Iterator[Row]:
    setting, (one, *_, most) = f"{cost} for a decision", CONCURRENT

    def time(way: str, concurrent: int, last: str = "; last") -> float:
        return found[f"{cost}; {way}; {concurrent}{last}"]

    def row(metric: str, unit: str, ours: float, high: float | None = None) -> Row:
        return Row(figure=FIGURE, setting=setting, metric=metric, unit=unit, ours=ours, high=high)

    for concurrent in (one, most):
        for way in WAYS:
            yield row(f"until all of {concurrent} are placed, {way}", "ms", 1_000 * time(way, concurrent))
    mean = time(DATAFLOW, most, "") / time(DATAFLOW, one, "")
    yield row("dataflow: mean of an application, 100 over 1", "1", mean, high=MEAN_FLAT)
    yield row("dataflow: until all are placed, 100 over 1", "1", time(DATAFLOW, most) / time(DATAFLOW, one))
    alone = time(DATAFLOW, most) / found[f"{cost}; alone"]
    yield row("dataflow: until all are placed, 100 at once over the slowest of them alone", "1", alone, high=LAST_FLAT)
    yield row("centre: until all are placed, 100 over 1", "1", time(CENTRE, most) / time(CENTRE, one))
    growth = {way: (time(way, most) - time(way, one)) / (most - one) for way in WAYS}
    work = COSTS[cost].decision_s * (1 + OPERATORS)
    yield row("centre: growth for each application over its work", "1", growth[CENTRE] / work)
    yield row("growth of the dataflow over that of the centre", "1", growth[DATAFLOW] / growth[CENTRE])


def _panel(cost: str, found: Mapping[str, float]) -> Panel:
    curves = tuple(
        Curve(name=way, values=tuple(1_000 * found[f"{cost}; {way}; {number}; last"] for number in CONCURRENT))
        for way in WAYS
    )
    return Panel(
        title=f"until all are placed, {cost} for a decision", unit="ms", kind="lines", along="applications",
        at=tuple(float(number) for number in CONCURRENT), curves=curves, logarithmic=cost == SLOW,
    )  # fmt: skip


NOTES = (
    "A model in virtual time: 10,000 nodes in 20 zones, no other application, loads of leaf sets known by heartbeats, "
    "applications of 10 operators with both ends in one zone, all launched at time 0. A hop takes 2 ms and 20 ms more "
    "for the side of the square, assumed. A decision is on the host of one operator, on a forwarder, or to read an "
    "application; the centre needs as long for each, and reads too.",
    "0.05 ms is what a decision of ours takes in Python, measured once (docs/agiledart.md), with as much assumed for a "
    "message. 100 ms is assumed, for a decision that also hands an operator over, with 1 ms for a message. Nothing is "
    "started: times of workers and of code on its way are the same for both and left out.",
    "Two things make the last of 100 later than one application by itself. It is the slowest of 100 draws of ways, as "
    "slow as the slowest of the same dataflows, each launched alone. And dataflows meet at forwarders and hosts, where "
    "one waits for the other's decision: at 100 ms that counts. Owners read their own applications; if the one "
    "scheduler of each zone read them, they would wait there, too (a mean of 1.29 at 100 ms).",
    "The issue and the paper name no bounds in numbers; those here are ours.",
)
