"""Streams on a real Storm that agents have mapped: the delivered part of the agreed rate, by which ways. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from leeward.core.arrivals import Arrival
from leeward.core.experiment import Curve, Finding, Panel, Row
from leeward.policies.bimodal.experiments.live_setup import Scenario
from leeward.policies.bimodal.model.stream_file import Stream

FIGURE = "Live"
#: Bounds that we set: from submission to plan, s; delivered over agreed rate where all hops have dedicated links; mean
#: difference between measured and modelled share where hops are public, points.
PLAN_S, DEDICATED, POINTS = 2.0, 0.95, 10.0
#: Deviation that a window of measuring has by its edges alone, %: an event more or less.
EDGES = 1.0
#: Bytes on the wire over those of the events: Storm's, TCP's and IP's headers, as seen in these runs.
WIRE = 1.05
#: (from node, to node); how a hop travels, () publicly.
Hop = tuple[str, str]
Way = tuple[str, ...]
#: Metric, unit, ours, low and high bound.
_Figure = tuple[str, str, float, float | None, float | None]


@dataclass(slots=True, kw_only=True)
class Window:
    """One stream in one time of measuring."""

    share: float  #: delivered over agreed rate
    model: float  #: as the rates of its ways, drawn by the relay, allow
    ways: dict[Hop, Way]

    @property
    def public(self) -> int:
        """Hops over the public network."""
        return sum(not way for way in self.ways.values())


@dataclass(slots=True, kw_only=True)
class Lived:
    """Plan, measurements and faults of one stream."""

    stream: Stream
    id: str = ""  #: the topology's
    submitted_to_plan_s: float | None = None
    refused: str = ""
    killed: bool = False
    as_mapped: bool = False  #: its components run where the agents have mapped them
    full: Window | None = None  #: when all streams run
    freed: Window | None = None  #: when others have ended
    moved: int = 0  #: hops that got another way meanwhile
    events: int = 0
    lost: int = 0
    doubled: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Carried:
    """By the emulated network in the whole run, MB."""

    dedicated: float
    public: float


def delivered(arrivals: Iterable[Arrival], stream: Stream, since_us: int, until_us: int) -> float:
    """Delivered over agreed rate in this time: events at the sink over those that were due."""
    count = sum(since_us <= one.written_us < until_us for one in arrivals)
    return count / (stream.rate * (until_us - since_us) / 1e6)


def modelled(
    stream: Stream, ways: dict[Hop, Way], rates_mbps: Callable[[Hop], Sequence[float]], sharing: dict[str, float]
) -> float:
    """Share of the agreed rate that a stream's ways allow: each hop keeps what comes faster than it can send.

    `rates_mbps`: of the public path of a hop, in each interval of the time, at most the uplink.  `sharing`: need of all
    public hops of a sender over its uplink, 1 or less where all have room.
    """
    shares = [1.0]
    for hop, way in ways.items():
        if not way:
            mean = fmean(rates_mbps(hop)) / max(1.0, sharing.get(hop[0], 0.0))
            shares.append(mean / (WIRE * stream.mbps[0]))
    return min(shares)


def conclude(scenario: Scenario, lived: Sequence[Lived], carried: Carried | None) -> Finding:
    """Bounded figures of the run, and those of each stream."""
    where = f"{scenario.streams} streams, {scenario.nodes} servers, {scenario.links} links"
    rows = [*_plans(where, lived), *_rates(where, lived), *_events(where, lived, carried)]
    rows += [row for one in lived for row in _of_one(one)]
    measured = [one for one in lived if one.full is not None]
    curves = (
        Curve(name="model", values=tuple(100 * one.full.model for one in measured if one.full)),
        Curve(name="all run", values=tuple(100 * one.full.share for one in measured if one.full)),
        Curve(
            name="others have ended", values=tuple(100 * (one.freed or one.full).share for one in measured if one.full)
        ),
    )
    panel = Panel(title=where, unit="delivered, % of the agreed rate", kind="dots", along="stream", curves=curves)
    return Finding(rows=tuple(rows), panels=(panel,) if measured else (), notes=NOTES)


def _plans(where: str, lived: Sequence[Lived]) -> list[Row]:
    times = [one.submitted_to_plan_s for one in lived if one.submitted_to_plan_s is not None and not one.refused]
    placed = [one for one in lived if not one.refused and one.id]
    rows: list[_Figure] = [
        ("streams that the agents have mapped", "", len(placed), 1, None),
        ("of these, where the agents have mapped them", "", sum(one.as_mapped for one in placed), len(placed), None),
        ("streams that the agents have refused", "", sum(bool(one.refused) for one in lived), None, None),
    ]
    if times:
        rows += [
            (f"plan after submission, median of {len(times)}", "s", median(times), None, None),
            ("plan after submission, most", "s", max(times), None, PLAN_S),
        ]
    return [_row(where, *row) for row in rows]


def _rates(where: str, lived: Sequence[Lived]) -> list[Row]:
    full = [one.full for one in lived if one.full is not None]
    dedicated, public = ([one for one in full if bool(one.public) is kind] for kind in (False, True))
    both = [(one.full, one.freed) for one in lived if one.full and one.freed and one.full.public]
    rows: list[Row] = []
    for ones, words, low in ((dedicated, "dedicated links alone", DEDICATED), (public, "public hops too", None)):
        if ones:
            shares = 100 * fmean(min(1.0, one.share) for one in ones)
            bound = None if low is None else 100 * low
            model = 100 * fmean(one.model for one in ones)
            which = f"{len(ones)} streams, {words}"
            rows += [
                _row(where, f"delivered of the agreed rate, {which}", "%", shares, bound, None),
                _row(where, f"the same by the model, {which}", "%", model, None, None),
            ]
    if both:
        before, after = (100 * fmean(max(0.0, 1 - pair[i].share) for pair in both) for i in (0, 1))
        rows += [
            _row(where, f"deviation from the agreed rate, {len(both)} with public hops", "%", before, None, None),
            _row(
                where, "the same when others had ended, and their links were free", "%", after, None, max(before, EDGES)
            ),
            _row(where, "public hops of these before", "", sum(one.public for one, _ in both), None, None),
            _row(where, "public hops of these after", "", sum(one.public for _, one in both), None, None),
        ]
    windows = [w for one in lived for w in (one.full, one.freed) if w is not None and w.public]
    if windows:
        apart = 100 * fmean(abs(min(1.0, w.share) - w.model) for w in windows)
        rows.append(_row(where, "measured from modelled share, mean of those", "points", apart, None, POINTS))
    lost = sum(not window.ways for one in lived for window in (one.full, one.freed) if window is not None)
    moved = sum(one.moved for one in lived)
    rows.append(_row(where, "streams without a reservation when they were measured", "", lost, None, 0))
    return [*rows, _row(where, "hops that got another way while tuples flowed", "", moved, 1, None)]


def _events(where: str, lived: Sequence[Lived], carried: Carried | None) -> list[Row]:
    rows: list[_Figure] = [
        ("events at the sinks", "", sum(one.events for one in lived), 1, None),
        ("lost", "", sum(one.lost for one in lived), None, 0),
        ("doubled", "", sum(one.doubled for one in lived), None, 0),
    ]
    if carried is not None:
        rows += [
            ("carried by dedicated links", "MB", carried.dedicated, None, None),
            ("carried by the public network", "MB", carried.public, None, None),
        ]
    return [_row(where, *row) for row in rows]


def _of_one(one: Lived) -> list[Row]:
    rows = []
    for words, window in (("all run", one.full), ("others have ended", one.freed)):
        if window is not None:
            where = f"{one.stream.name}, {window.public} of {len(window.ways)} hops public, {words}"
            rows += [
                _row(where, "delivered of the agreed rate", "%", 100 * window.share, None, None),
                _row(where, "the same by the model", "%", 100 * window.model, None, None),
            ]
    return rows


def _row(where: str, metric: str, unit: str, ours: float, low: float | None, high: float | None) -> Row:
    return Row(figure=FIGURE, setting=where, metric=metric, unit=unit, ours=ours, low=low, high=high)


NOTES = (
    "The model: a hop over dedicated links carries all; a public hop the mean of its path's rates in that time, as the "
    f"relay has drawn them, over {WIRE:g} times the agreed rate (headers); buffers at each hop, as Storm has them. "
    "Over 100 %: a backlog is delivered. The agents' own messages use the same paths.",
)
