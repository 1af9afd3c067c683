"""Urban sensing in one process, plainly, to compare the topology's output with.

It shares with the operators only how a report is read and made (`reports`), the bands of the kinds, and how a result is
written. All smoothed values are kept, and each result is computed from all of them anew.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from math import floor
from typing import NamedTuple

from bolts.reference import Result
from bolts.urban.index import ALERT_INDEX, ALERT_RESULTS, BANDS, CityIndex, result_row
from bolts.urban.places import PULSE_S, WINDOW_S, Figures
from bolts.urban.reports import CITIES, KINDS, Drop, city_of, made_report, read_report, sensors_of_a_city

#: A smoothed value is kept to this part of a hundredth, rounded down.
_PART = Fraction(1, 256)


class Smoothed(NamedTuple):
    """A value after smoothing."""

    t: int
    value: int  #: hundredths


def made_lines(seed: int, sensors: int, count: int) -> Iterator[str]:
    """The first `count` reports, as the source makes them."""
    each = sensors_of_a_city(sensors)
    return (made_report(seed, number, each)[1] for number in range(1, count + 1))


def reference_rows(
    lines: Iterable[str], *, pulse_s: int = PULSE_S, window_s: int = WINDOW_S, drops: Counter[str] | None = None
) -> list[Result]:
    """The results of reports, each sensor's in order; `drops` counts those that take no part, by reason.

    A result's number grows with the interval and then the city's name.
    """
    counted: Counter[str] = Counter() if drops is None else drops
    values, intervals = _smoothed(lines, pulse_s, counted)
    found, high = [], Counter[str]()
    for interval in sorted(intervals):
        end = (interval + 1) * pulse_s
        for number, city in enumerate(sorted(CITIES)):
            figures = {
                kind.name: _figures(inside)
                for kind in KINDS
                if (inside := [v.value for v in values[city, kind.name] if end - window_s <= v.t < end])
            }
            if figures:
                index = _index(figures)
                high[city] = high[city] + 1 if index.index >= ALERT_INDEX else 0
                row = result_row(end, city, index, high[city] >= ALERT_RESULTS, figures)
                found.append(Result(interval * len(CITIES) + number, row))
    return found


def _smoothed(
    lines: Iterable[str], pulse_s: int, drops: Counter[str]
) -> tuple[dict[tuple[str, str], list[Smoothed]], set[int]]:
    """(city, kind) -> its smoothed values; and the intervals in which there was a report."""
    values: dict[tuple[str, str], list[Smoothed]] = defaultdict(list)
    last: dict[tuple[str, str], Fraction] = {}
    intervals = set()
    for line in lines:
        report = read_report(line)
        if isinstance(report, Drop):
            drops[str(report)] += 1
            continue
        drops.update(map(str, report.dropped))
        intervals.add(report.t // pulse_s)
        for kind, value in report.values.items():
            before = last.get((report.sensor, kind))
            exact = Fraction(value) if before is None else before + floor((value - before) / 4 / _PART) * _PART
            last[report.sensor, kind] = exact
            values[city_of(report.sensor), kind].append(Smoothed(report.t, floor(exact + Fraction(1, 2))))
    return values, intervals


def _figures(values: list[int]) -> Figures:
    mean = Fraction(sum(values), len(values))
    return Figures(len(values), floor(mean + Fraction(1, 2)), min(values), max(values))


def _index(figures: dict[str, Figures]) -> CityIndex:
    worst, bad = "", -1
    for kind, figure in figures.items():
        middle, good, whole = BANDS[kind]
        share = Fraction(abs(figure.mean - middle) - good, whole - good)
        index = floor(100 * min(Fraction(1), max(Fraction(0), share)))
        if index > bad:
            worst, bad = kind, index
    return CityIndex(bad, worst)
