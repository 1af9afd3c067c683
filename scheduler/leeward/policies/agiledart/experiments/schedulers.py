"""Fig. 10(c): schedulers of zones and the hops to find one, and the overlay under churn.

Hops are measured in converged overlays; schedulers, anycasts and churn by the protocol itself, in virtual time.  An
independent simulation of hops is in the specification of AgileDART, section 6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import hypot
from random import Random
from statistics import fmean

from leeward.core.experiment import Curve, Finding, Panel, Part, Row
from leeward.policies.agiledart.overlay.directory import wanted
from leeward.policies.agiledart.overlay.ids import hops_bound, id_of
from leeward.policies.agiledart.overlay.messages import contact
from leeward.policies.agiledart.overlay.neighbours import Times
from leeward.policies.agiledart.overlay.peer import Peer
from leeward.policies.agiledart.platform.converged import Converged, drawn
from leeward.policies.agiledart.platform.play import Network, Play, settle
from leeward.policies.agiledart.platform.watch import Alone, reach, schedulers_of

ZONES = 20
NODES, QUICK_NODES = 10_000, 500
APPLICATIONS, QUICK_APPLICATIONS = (250, 500, 750, 1000), (250, 1000)
#: Routes that are drawn, and the mean of their hops in the independent simulation of 10,000 nodes.
ROUTES, KNOWN_HOPS = 10_000, 3.1
#: Delay of a message: a part that all have, and one for the distance over a square of side 1, s.
BASE_S, ACROSS_S, LOSS = 0.005, 0.03, 0.01
#: Heartbeats until each zone has its scheduler, over which applications are launched, and until they are served.
BEFORE, LAUNCHING, AFTER = 4, 4, 3
#: Nodes under churn; the parts of them that die in an hour and at once; keys that are looked up each time.
CHURN_NODES, QUICK_CHURN_NODES, HOURLY, AT_ONCE, KEYS = 1000, 200, 0.1, 0.3, 100
#: Of the churn by the hour: slow heartbeats, so that many die in few of them, and how many: an hour, or a third of it.
SLOW, CHURN_BEATS, QUICK_BEATS = Times(heartbeat=30.0, ack=3.0), 120, 40
WITHIN, ALONE = 10, 2.0
CHURN_APPLICATIONS = 0.1  #: of the nodes
#: Schedules of the loss at once.
DRAWS, QUICK_DRAWS = 5, 2


class Schedulers:
    """A study whose parts are routes of a size, applications of a size, and schedules of churn."""

    def parts(self, *, seed: int, quick: bool) -> Sequence[Part]:
        """`quick`: a twentieth of the nodes, routes apart."""
        nodes, churning = (QUICK_NODES, QUICK_CHURN_NODES) if quick else (NODES, CHURN_NODES)
        found = [_part("routes", seed, nodes=NODES)]
        found += [
            _part("schedulers", seed, nodes=nodes, applications=count)
            for count in (QUICK_APPLICATIONS if quick else APPLICATIONS)
        ]
        found.append(_part("hourly", seed, nodes=churning, beats=QUICK_BEATS if quick else CHURN_BEATS))
        found += [_part("at once", seed, nodes=churning, draw=draw) for draw in range(QUICK_DRAWS if quick else DRAWS)]
        return found

    def measure(self, part: Part) -> Mapping[str, float]:
        """By the kind of the part."""
        rng = Random(f"{part.seed} {part.name}")
        network = drawn(int(part.option("nodes")), rng)
        match part.option("kind"):
            case "routes":
                return _routes(network, rng)
            case "schedulers":
                return _schedulers(network, int(part.option("applications")), rng)
            case "hourly":
                return _hourly(network, int(part.option("beats")), rng)
            case _:
                return _at_once(network, rng)

    def conclude(self, measured: Mapping[Part, Mapping[str, float]]) -> Finding:
        """Rows by figure, and the schedulers over the applications."""
        by_kind: dict[str, list[tuple[Part, Mapping[str, float]]]] = {}
        for part, one in measured.items():
            by_kind.setdefault(str(part.option("kind")), []).append((part, one))
        rows = [row for part, one in by_kind["routes"] for row in _route_rows(part, one)]
        rows += [row for part, one in by_kind["schedulers"] for row in _scheduler_rows(part, one)]
        rows += [row for part, one in by_kind["hourly"] for row in _churn_rows("10 % of nodes an hour", part, [one])]
        once = by_kind["at once"]
        rows += _churn_rows("30 % at once", once[0][0], [one for _, one in once])
        return Finding(rows=tuple(rows), panels=_panels(by_kind["schedulers"]), notes=NOTES)


def _part(kind: str, seed: int, **options: int) -> Part:
    words = ", ".join(f"{name} {value}" for name, value in options.items())
    return Part(name=f"{kind}, {words}", seed=seed, options=(("kind", kind), *options.items()))


# --- measurements


def _routes(network: Converged, rng: Random) -> Mapping[str, float]:
    """JOINs of sources to the ids of sinks."""
    hops = [len(network.route(rng.choice(network.ids), rng.choice(network.ids))) - 1 for _ in range(ROUTES)]
    return {"mean": fmean(hops), "most": max(hops)}


def _schedulers(network: Converged, applications: int, rng: Random) -> Mapping[str, float]:
    """Applications come one after the other; each is launched by a node drawn by chance, in the node's zone."""
    play = _settled(network, rng, loss=0.0)
    play.beats(BEFORE)
    _launch(play, applications, rng, beats=LAUNCHING)
    play.beats(AFTER)
    owned = [one for peer in play.peers.values() for one in peer.schedulers.owned.values()]
    zones, hops = Counter(one.zone for one in owned), [one.hops for one in owned if one.served]
    found = schedulers_of(play)
    return {
        "schedulers": sum(found.values()),
        "wanted": sum(wanted(zones[zone]) for zone in found),
        "wrong zones": sum(found[f"zone-{zone}"] != wanted(zones[f"zone-{zone}"]) for zone in range(ZONES)),
        "served": len(hops) / applications,
        "most in a zone": max(found.values()),
        "mean hops": fmean(hops),
        "most hops": max(hops),
    }


def _hourly(network: Converged, beats: int, rng: Random) -> Mapping[str, float]:
    """Nodes die one by one, and as many join; keys are looked up all the time."""
    play, alone = _settled(network, rng, times=SLOW), Alone()
    play.beats(BEFORE)
    _launch(play, round(len(network) * CHURN_APPLICATIONS), rng, beats=LAUNCHING)
    play.beats(AFTER)
    per_beat = len(network) * HOURLY / 3600 * play.times.heartbeat
    lookups, due, born = [], 0.0, len(network)
    for beat in range(beats):
        due += per_beat
        for _ in range(int(due)):
            play.kill([rng.choice(sorted(play.peers))])
            me = contact(id_of(f"born {born}"), born)
            zone = f"zone-{born % ZONES}"
            play.add(Peer(me, times=play.times, seeds=rng.sample(_joined(play), 3), zone=zone, capacity=8))
            born += 1
        due %= 1
        if beat % WITHIN:
            alone.beats(play, 1.0)
        else:
            lookups.append(reach(play, KEYS, rng, rounds=WITHIN, alone=alone))
    right = sum(one.right for one in lookups) / sum(one.asked for one in lookups)
    return {
        "reached": right,
        "circles": sum(one.circles for one in lookups),
        "alone": alone.longest,
        "died": born - len(network),
        "rounds": max(one.rounds for one in lookups),
    }


def _at_once(network: Converged, rng: Random) -> Mapping[str, float]:
    """A part of the nodes dies in one moment, all schedulers among them."""
    play, alone = _settled(network, rng), Alone()
    play.beats(BEFORE)
    _launch(play, round(len(network) * CHURN_APPLICATIONS), rng, beats=LAUNCHING)
    play.beats(AFTER)
    active = [address for address, peer in play.peers.items() if peer.schedulers.active]
    others = sorted(play.peers.keys() - active)
    play.kill([*active, *rng.sample(others, round(len(network) * AT_ONCE) - len(active))])
    found = reach(play, KEYS * 5, rng, rounds=WITHIN, alone=alone)
    alone.beats(play, max(0, WITHIN - found.rounds))
    return {
        "reached": found.right / found.asked, "circles": found.circles, "alone": alone.longest,
        "died": len(network) - len(play.peers), "rounds": found.rounds,
    }  # fmt: skip


def _settled(network: Converged, rng: Random, *, loss: float = LOSS, times: Times | None = None) -> Play:
    places = network.places.tolist()

    def delay_s(a: int, b: int) -> float:
        (x, y), (u, v) = places[a % len(places)], places[b % len(places)]
        return BASE_S + ACROSS_S * hypot(x - u, y - v)

    play = Play(Network(delay_s=delay_s, loss=loss), rng, times)
    settle(play, network, zones=ZONES)
    return play


def _launch(play: Play, applications: int, rng: Random, *, beats: float) -> None:
    owners = sorted(play.peers)
    for number in range(applications):
        owner = play.peers[rng.choice(owners)]
        play.send(owner.me, owner.launch(f"application-{number}", owner.schedulers.zone, play.now))
        play.beats(beats / applications)


def _joined(play: Play) -> list[int]:
    return sorted(address for address, peer in play.peers.items() if peer.state == "joined")


# --- rows


def _route_rows(part: Part, one: Mapping[str, float]) -> list[Row]:
    nodes = int(part.option("nodes"))
    setting = f"{nodes} nodes, {ROUTES} routes"
    return [
        Row(figure="section III", setting=setting, metric="hops of a JOIN, mean", unit="hops", independent=KNOWN_HOPS,
            ours=one["mean"], low=KNOWN_HOPS - 0.1, high=KNOWN_HOPS + 0.1),
        Row(figure="section III", setting=setting, metric="hops of a JOIN, most", unit="hops",
            paper=hops_bound(nodes), independent=4, ours=one["most"], high=hops_bound(nodes)),
    ]  # fmt: skip


def _scheduler_rows(part: Part, one: Mapping[str, float]) -> list[Row]:
    nodes, applications = int(part.option("nodes")), int(part.option("applications"))
    setting, bound = f"{nodes} nodes, {ZONES} zones, {applications} applications", hops_bound(nodes)
    at_full_size = nodes == NODES
    return [
        Row(figure="Fig. 10(c)", setting=setting, metric="schedulers", unit="nodes", ours=one["schedulers"],
            low=one["wanted"], high=one["wanted"]),
        Row(figure="Fig. 10(c)", setting=setting, metric="zones with more or fewer than wanted", unit="zones",
            ours=one["wrong zones"], high=0.0),
        Row(figure="Fig. 10(c)", setting=setting, metric="applications that are served", unit="1", ours=one["served"],
            low=1.0),
        Row(figure="Fig. 10(c)", setting=setting, metric="hops of an anycast, mean", unit="hops",
            independent=2 if at_full_size else None, ours=one["mean hops"]),
        Row(figure="Fig. 10(c)", setting=setting, metric="hops of an anycast, most", unit="hops", paper=bound,
            ours=one["most hops"], high=bound if at_full_size else None),
    ]  # fmt: skip


def _churn_rows(name: str, part: Part, found: Sequence[Mapping[str, float]]) -> list[Row]:
    setting = f"{part.option('nodes')} nodes, {name}"
    return [
        Row(figure="churn", setting=setting, metric="nodes that die", unit="nodes",
            ours=fmean(one["died"] for one in found)),
        Row(figure="churn", setting=setting, metric=f"keys reached within {WITHIN} heartbeats", unit="1",
            ours=min(one["reached"] for one in found), low=1.0),
        Row(figure="churn", setting=setting, metric="heartbeats until every key is reached", unit="heartbeats",
            ours=max(one["rounds"] for one in found), high=WITHIN),
        Row(figure="churn", setting=setting, metric="messages that passed a node twice", unit="messages",
            ours=sum(one["circles"] for one in found), high=0.0),
        Row(figure="churn", setting=setting, metric="longest time of an application without a scheduler",
            unit="heartbeats", ours=max(one["alone"] for one in found), high=ALONE),
    ]  # fmt: skip


def _panels(found: Sequence[tuple[Part, Mapping[str, float]]]) -> tuple[Panel, ...]:
    at = tuple(float(part.option("applications")) for part, _ in found)
    schedulers = Curve(name="schedulers", values=tuple(one["schedulers"] for _, one in found))
    hops = [
        Curve(name=name, values=tuple(one[f"{name} hops"] for _, one in found)) for name in ("mean", "most")
    ]  # fmt: skip
    return (
        Panel(title="schedulers of all zones", unit="nodes", kind="dots", along="applications", at=at,
              curves=(schedulers,)),
        Panel(title="hops to find one", unit="hops", kind="dots", along="applications", at=at, curves=tuple(hops)),
    )  # fmt: skip


NOTES = (
    "Applications are launched by nodes drawn by chance, each in the zone of its node, so zones have unequal numbers. "
    "An anycast ends at the first node on the way to the zone's topic that knows a scheduler with room.",
    "Heartbeats are 2 s, and 30 s for churn by the hour; a node waits a tenth of that for an answer. A message takes "
    "5 ms, and 30 ms for the side of the square on which nodes are placed by chance; 1 % are lost under churn.",
    "At once: three of ten nodes, all schedulers among them. By the hour: as many join as die; keys are looked up "
    "while nodes die, at once from the moment of the loss. A key whose root has not answered in a heartbeat is "
    "looked up again, from another node.",
)
