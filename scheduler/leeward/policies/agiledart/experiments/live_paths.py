"""Forwarding live: the network and the runs, the same runs in virtual time, and the figures of both.

Sites are the nodes of a one-way grid.  A link takes half a slot each way and loses packets on the way to the sink
alone, so a packet that is tried until it is acknowledged has the paper's geometric delay, except that a timeout lasts
longer than a round trip.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from statistics import fmean, stdev
from typing import Any

from leeward.core.experiment import Curve, Finding, Panel, Row
from leeward.core.policy import Router
from leeward.policies.agiledart.forwarding.forwarder import Forwarder
from leeward.policies.agiledart.forwarding.play import Link, World
from leeward.policies.agiledart.paths.estimates import DRIFT_AGE, DRIFT_DOUBT, DRIFT_FADE
from leeward.policies.agiledart.paths.network import Network, grid
from leeward.policies.agiledart.paths.planners import along
from leeward.policies.agiledart.paths.routers import KlRouter, NextHopRouter, ThompsonRouter
from leeward.policies.agiledart.paths.simulation import drawn_thetas

FIGURE = "Live"
SLOT_MS, DELAYS_MS, TICK_S = 50.0, (50.0, 250.0), 0.005
SLOT_S = SLOT_MS / 1000
KL, THOMPSON, NEXT_HOP, BEST, DRIFT = "KL, c = 0.3", "Thompson", "next-hop", "optimal", "Thompson for drift"
STEADY, CHANGED = (KL, THOMPSON, NEXT_HOP, BEST), (THOMPSON, DRIFT)
#: The link of the best path that matters most delivers so rarely after the change.
WORSE = 0.1
#: Paths count that are expected to take so many times the optimum at most.
BOUND = 1.25
#: A live run may be so many standard deviations of the simulated ones away from their mean.
DEVIATIONS = 3.0
#: Packets of a mean in the picture.
WINDOW = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How large it is."""

    side: int
    links: int
    packets: int
    gap_s: float  #: from one packet to the next
    played: int  #: runs in virtual time for each live one
    changed: int  #: live runs of each router in which a link gets worse after half of the packets; 0: none


FULL = Scale(side=4, links=24, packets=400, gap_s=0.1, played=20, changed=3)
QUICK = Scale(side=3, links=12, packets=30, gap_s=0.1, played=10, changed=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The links of a run."""

    scale: Scale
    network: Network
    thetas: tuple[float, ...]  #: probability that an attempt on a link is delivered
    later: tuple[float, ...] | None  #: the same after half of the packets; None: no change

    @property
    def runs(self) -> int:
        """Live ones of each router."""
        return 1 if self.later is None else self.scale.changed

    @property
    def name(self) -> str:
        """For people."""
        size = f"{self.network.nodes} sites, {len(self.network.links)} links, {self.scale.packets} packets"
        return size if self.later is None else f"{size}, one link gets worse"

    def at(self, packet: int) -> tuple[float, ...]:
        """Probabilities when this packet is sent."""
        return self.thetas if self.later is None or packet < self.scale.packets // 2 else self.later

    def document(self, thetas: Sequence[float], seed: int) -> dict[str, Any]:
        """A network document: site and node v are called sv and nv."""
        links = []
        for (tail, head), theta in zip(self.network.links, thetas, strict=True):
            ends = {"from": f"s{tail}", "to": f"s{head}"}
            links.append(ends | {"delay_ms": SLOT_MS / 2, "loss": 1.0 - theta})
            links.append({"from": ends["to"], "to": ends["from"], "delay_ms": SLOT_MS / 2})
        sites = [{"id": f"s{v}"} for v in range(self.network.nodes)]
        nodes = [{"id": f"n{v}", "site": f"s{v}"} for v in range(self.network.nodes)]
        nodes[0]["role"] = "nimbus"
        return {"seed": seed, "site": sites, "node": nodes, "link": links}

    def router(self, name: str) -> Router:
        """A new one, for any of the nodes."""
        match name:
            case "KL, c = 0.3":
                return KlRouter(slot_s=SLOT_S)
            case "next-hop":
                return NextHopRouter(slot_s=SLOT_S)
            case "optimal":
                return Best(self)
            case "Thompson for drift":
                return ThompsonRouter(slot_s=SLOT_S, fade=DRIFT_FADE, age=DRIFT_AGE, doubt=DRIFT_DOUBT)
        return ThompsonRouter(slot_s=SLOT_S)

    def forwarders(self, name: str) -> dict[int, Forwarder]:
        """Of all nodes."""
        net = self.network
        return {
            v: Forwarder(v, net.sink, [net.links[link][1] for link in net.out[v]], self.router(name))
            for v in range(net.nodes)
        }


class Best:
    """The router that knows the links, without a change."""

    def __init__(self, setting: Setting) -> None:
        costs = [1.0 / theta for theta in setting.thetas]
        self._path = along(setting.network, costs, setting.network.to_sink(costs))
        self._next = {setting.network.links[link][1] for link in self._path}

    def next_hop(self, hops: Sequence[int], *, now: float, rng: Random) -> int:
        """See Router; hops off the best path are for packets that it was silent for."""
        return next((hop for hop in hops if hop in self._next), hops[0])

    def learn(self, hop: int, delay_s: float) -> None:
        """It has nothing to learn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """A packet that was delivered."""

    number: int
    path: tuple[int, ...]  #: without the sink
    delay_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Packets of one run."""

    came: tuple[Came, ...]  #: by number
    reported: frozenset[int]  #: numbers of the packets that their source reported as not delivered, or not confirmed

    @property
    def numbers(self) -> set[int]:
        """Of the packets that were delivered."""
        return {one.number for one in self.came}


def settings(scale: Scale, seed: int) -> list[tuple[Setting, tuple[str, ...]]]:
    """The settings that are run, and their routers."""
    rng = Random(f"live {seed}")
    network = grid(scale.side, scale.links, rng)
    thetas = tuple(float(theta) for theta in drawn_thetas(scale.links, DELAYS_MS, SLOT_MS, rng)[0])
    found: list[tuple[Setting, tuple[str, ...]]] = []
    found.append((Setting(scale=scale, network=network, thetas=thetas, later=None), STEADY))
    if scale.changed:
        later = worse(network, thetas)
        found.append((Setting(scale=scale, network=network, thetas=thetas, later=later), CHANGED))
    return found


def worse(network: Network, thetas: tuple[float, ...]) -> tuple[float, ...]:
    """That link of the best path is worse by which the best path of before then loses most over the best one."""

    def changed(link: int) -> tuple[float, ...]:
        return tuple(WORSE if number == link else theta for number, theta in enumerate(thetas))

    def regret(link: int) -> float:
        after = [1.0 / theta for theta in changed(link)]
        return sum(after[one] for one in path) - network.to_sink(after)[0]

    costs = [1.0 / theta for theta in thetas]
    path = along(network, costs, network.to_sink(costs))
    return changed(max(path, key=regret))


def play(setting: Setting, name: str, seed: int) -> Trace:
    """A run in virtual time."""

    def links(thetas: Sequence[float]) -> dict[tuple[int, int], Link]:
        found = {}
        for (tail, head), theta in zip(setting.network.links, thetas, strict=True):
            found[tail, head] = Link(delay_s=SLOT_S / 2, loss=1.0 - theta)
            found[head, tail] = Link(delay_s=SLOT_S / 2)
        return found

    nodes = setting.forwarders(name)
    world, sent = World(nodes, links(setting.thetas), Random(seed), tick_s=TICK_S), {}
    for number in range(setting.scale.packets):
        world.links = links(setting.at(number))
        sent[world.submit(0)] = world.now
        world.run(world.now + setting.scale.gap_s)
    until = world.now + 2 * nodes[0].limits.lifetime_s
    while len(nodes[0].outcomes) < setting.scale.packets and world.now < until:
        world.run(world.now + 1.0)
    came = [
        Came(number=one.name.number, path=one.path, delay_s=one.at_s - sent[one.name])
        for one in nodes[setting.network.sink].deliveries
    ]
    reported = frozenset(one.name.number for one in nodes[0].outcomes if one.why)
    return Trace(came=tuple(sorted(came, key=lambda one: one.number)), reported=reported)


def ratios(setting: Setting, trace: Trace) -> list[float]:
    """Expected delay of each packet's path over that of the best one, by the links when it was sent."""
    found = []
    for one in trace.came:
        cost = dict(zip(setting.network.links, (1.0 / theta for theta in setting.at(one.number)), strict=True))
        way = (*one.path, setting.network.sink)
        best = setting.network.to_sink(list(cost.values()))[0]
        found.append(sum(cost[hop] for hop in pairwise(way)) / best)
    return found


def conclude(
    setting: Setting, live: Mapping[str, Sequence[Trace]], played: Mapping[str, Sequence[Trace]]
) -> tuple[list[Row], Panel]:
    """Rows of one setting: figures of each router's live runs, and of the same in virtual time."""
    rows: list[Row] = []
    runs = len(next(iter(live.values())))
    where = setting.name if runs == 1 else f"{setting.name}, {runs} runs"
    mean = {name: fmean(mean_ms(setting, one) for one in traces) for name, traces in live.items()}
    means = {name: [mean_ms(setting, one) for one in traces] for name, traces in played.items()}

    def row(metric: str, unit: str, ours: float, low: float | None = None, high: float | None = None) -> None:
        rows.append(Row(figure=FIGURE, setting=where, metric=metric, unit=unit, ours=ours, low=low, high=high))

    for name, traces in live.items():
        middle, spread = fmean(means[name]), DEVIATIONS * stdev(means[name]) / runs**0.5
        row(f"mean delay, {name}", "ms", mean[name], middle - spread, middle + spread)
        row(f"the same in virtual time, mean of {len(means[name])}, {name}", "ms", middle)
        row(f"paths within {BOUND} times the optimum, {name}", "%", _close(setting, traces))
        row(f"the same in virtual time, {name}", "%", _close(setting, played[name]))
        lost = sum(len({*range(setting.scale.packets)} - trace.reported - trace.numbers) for trace in traces)
        row(f"packets neither delivered nor reported, {name}", "", lost, high=0)
    if setting.later is None:
        for name in (name for name in live if name != BEST):
            row(f"optimal's mean delay over that of {name}", "1", mean[BEST] / mean[name])
    else:
        row("mean delay with fade over without, after the change", "1", mean[DRIFT] / mean[THOMPSON], high=1.0)
        row("the same in virtual time", "1", fmean(means[DRIFT]) / fmean(means[THOMPSON]))
    return rows, _panel(setting, live)


def _close(setting: Setting, traces: Sequence[Trace]) -> float:
    """Share of paths that are expected to take little longer than the best one, %."""
    return 100 * fmean(fmean(ratio <= BOUND for ratio in ratios(setting, trace)) for trace in traces)


def mean_ms(setting: Setting, trace: Trace) -> float:
    """Mean delay of the packets that were delivered; with a change, of those that were sent after it."""
    begin = 0 if setting.later is None else setting.scale.packets // 2
    return 1000 * fmean(one.delay_s for one in trace.came if one.number >= begin)


def _panel(setting: Setting, live: Mapping[str, Sequence[Trace]]) -> Panel:
    starts = range(0, setting.scale.packets, WINDOW)
    curves = []
    for name, traces in live.items():
        came = [one for trace in traces for one in trace.came]
        blocks = [[one.delay_s for one in came if start <= one.number < start + WINDOW] for start in starts]
        curves.append(Curve(name=name, values=tuple(1000 * fmean(block) if block else 0.0 for block in blocks)))
    at = tuple(float(start + WINDOW) for start in starts)
    title = f"delay, mean of {WINDOW}" + ("" if setting.later is None else ", one link gets worse at half")
    return Panel(title=title, unit="ms", kind="lines", along="packets", at=at, curves=tuple(curves))


def finding(parts: Sequence[tuple[list[Row], Panel]]) -> Finding:
    """Of all settings."""
    return Finding(rows=tuple(row for rows, _ in parts for row in rows), panels=tuple(p for _, p in parts), notes=NOTES)


NOTES = (
    "Each site is a process in a network namespace of its own; datagrams between them pass the relay of the emulated "
    "network, which delays and loses them. A link takes 25 ms each way, and loses packets on the way to the sink, so "
    "that a packet needs 50 to 250 ms for it in the mean, one slot of 50 ms for each attempt.",
    "In virtual time the same forwarders meet the same links. A live mean is wanted within three standard deviations "
    "of those runs, over the root of the number of live ones. A timeout lasts at least 20 ms longer than a round trip, "
    "so all delays are above the model's.",
    "With a change means are over the packets that were sent after it.",
)
