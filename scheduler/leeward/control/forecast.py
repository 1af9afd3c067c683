"""Rates that are to come, from those that were measured. Pure: times are seconds of one clock.

A policy that plans for the rates of the last window has the capacity for them when they are over. A forecast gives it
a view in which every rate is the one expected `ahead_forecast_s` from now; all grow by the same factor, that of the
sources, so that the selectivities stay as they are.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from leeward.core.model import ClusterView
from leeward.core.settings import Settings

DAY_S = 86_400.0
#: Rates are kept as means over so long.
GRAIN_S = 60.0
#: Between two means further apart nothing is known: a policy that is asked each five minutes leaves such gaps.
GAP_S = 900.0
#: The trend is that of the last so many times the forecast's time, and of at least so many means.
TREND, LEAST = 2.0, 3
#: No forecast is over so many times the present rate, or under the same part of it: a policy plans again soon.
MOST = 3.0

Point = tuple[float, float]  #: (time in s, tuples/s)


class History:
    """Means of a rate over GRAIN_S, of the last day and a little more; for `ahead_s` of forecast."""

    def __init__(self, ahead_s: float = 0.0) -> None:
        self._kept_s = DAY_S + ahead_s + GAP_S
        self._points: deque[Point] = deque()
        self._open: list[Point] = []  # measurements of the present grain

    def add(self, now: float, rate: float) -> None:
        """A measurement; those of one grain become one point, at their mean time."""
        if self._open and _grain(now) != _grain(self._open[0][0]):
            self._points.append(_mean(self._open))
            self._open = []
        self._open.append((now, rate))
        while self._points and self._points[0][0] < now - self._kept_s:
            self._points.popleft()

    def points(self) -> list[Point]:
        """All of them, the newest last."""
        return [*self._points, *([_mean(self._open)] if self._open else [])]


def _grain(time: float) -> int:
    return math.floor(time / GRAIN_S)


def _mean(points: Sequence[Point]) -> Point:
    times, rates = zip(*points, strict=True)
    return sum(times) / len(times), sum(rates) / len(rates)


def last(points: Sequence[Point], now: float, ahead_s: float) -> float | None:
    """The newest mean; None if there is none. The same of the other forecasts: None where they know too little."""
    return points[-1][1] if points else None


def linear(points: Sequence[Point], now: float, ahead_s: float) -> float | None:
    """The straight line of least squares through the newest means, at `now + ahead_s`."""
    newest = points[-LEAST:]
    if len(newest) < LEAST or newest[-1][0] - newest[0][0] > LEAST * GAP_S:
        return None
    recent = [point for point in points if point[0] >= min(now - TREND * ahead_s, newest[0][0])]
    time, rate = _mean(recent)
    spread = sum((t - time) ** 2 for t, _ in recent)
    slope = sum((t - time) * (r - rate) for t, r in recent) / spread if spread else 0.0
    return max(0.0, rate + slope * (now + ahead_s - time))


def yesterday(points: Sequence[Point], now: float, ahead_s: float) -> float | None:
    """The mean of the same time of yesterday (seasonal naive)."""
    return _at(points, now + ahead_s - DAY_S)


def blended(points: Sequence[Point], now: float, ahead_s: float) -> float | None:
    """The mean of two: today's rate changed by the factor by which yesterday's changed, and the straight line."""
    trend, today = linear(points, now, ahead_s), last(points, now, ahead_s)
    then, later = _at(points, now - DAY_S), _at(points, now + ahead_s - DAY_S)
    if today is None or not then or later is None:
        return trend
    changed = today * later / then
    return changed if trend is None else (changed + trend) / 2.0


def _at(points: Sequence[Point], time: float) -> float | None:
    """Between the two means around `time`; None if they are further apart than GAP_S."""
    after = bisect_left(points, (time, -math.inf))
    if after in (0, len(points)):
        return None
    (t0, r0), (t1, r1) = points[after - 1], points[after]
    if t1 - t0 > GAP_S:
        return None
    return r0 + (r1 - r0) * (time - t0) / (t1 - t0)


METHODS: Mapping[str, Callable[[Sequence[Point], float, float], float | None]] = {
    "last": last, "linear": linear, "yesterday": yesterday, "blended": blended,
}  # fmt: skip


class Forecast:
    """Learns from each view, and gives the view of a later time. A new leader knows nothing of the day before."""

    def __init__(self, settings: Settings) -> None:
        self._ahead_s = settings.ahead_forecast_s
        self._method = None if settings.forecast == "last" else METHODS[settings.forecast]
        self._history = History(self._ahead_s)

    def ahead(self, view: ClusterView, now: float) -> ClusterView:
        """The same view with the rates to come; as it is while too little is known, or nothing arrives."""
        rate = source_rate(view)
        if self._method is None or rate <= 0:
            return view
        self._history.add(now, rate)
        expected = self._method(self._history.points(), now, self._ahead_s)
        return view if expected is None else scaled(view, min(max(expected / rate, 1.0 / MOST), MOST))


def source_rate(view: ClusterView) -> float:
    """All sources together, tuples/s."""
    sources = {component.id for component in view.components if component.source}
    return sum(measured.arrival_rate for name, measured in view.measured.items() if name in sources)


def scaled(view: ClusterView, factor: float) -> ClusterView:
    """Every rate times `factor`; service rates and queues stay."""
    measured = {
        name: replace(
            one, arrival_rate=one.arrival_rate * factor,
            group_load={group: load * factor for group, load in one.group_load.items()},
        )
        for name, one in view.measured.items()
    }  # fmt: skip
    streams = {stream: rate * factor for stream, rate in view.stream_rate.items()}
    return replace(view, measured=measured, stream_rate=streams)
