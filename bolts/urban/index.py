"""The index of a city, joined from its kinds, and its alert (pure)."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any, NamedTuple

from bolts.urban.places import Figures
from bolts.urban.reports import KINDS

ALERT_INDEX, ALERT_RESULTS = 70, 3

State = MutableMapping[Any, Any]


class Band(NamedTuple):
    """How far a mean may be from the middle of its kind, hundredths."""

    middle: int
    good: int  #: up to here the index is 0
    bad: int  #: from here it is 100


BANDS: dict[str, Band] = {
    "pollution": Band(0, 50_00, 200_00),
    "dust": Band(0, 200_00, 1000_00),
    "light": Band(0, 10_000_00, 50_000_00),
    "sound": Band(40_00, 15_00, 45_00),
    "temperature": Band(21_00, 4_00, 20_00),
    "humidity": Band(50_00, 10_00, 45_00),
}


class CityIndex(NamedTuple):
    """How bad it is, and why."""

    index: int  # type: ignore[assignment]  # hides the method of tuples; 0 to 100
    worst: str  #: the kind that is as bad as this, the first in the order of KINDS


def badness(kind: str, mean: int) -> int:
    """0 to 100."""
    band = BANDS[kind]
    beyond = abs(mean - band.middle) - band.good
    return min(100, max(0, 100 * beyond // (band.bad - band.good)))


def index_of(figures: Mapping[str, Figures]) -> CityIndex:
    """Of one kind or more."""
    kinds = [kind.name for kind in KINDS if kind.name in figures]
    worst = max(kinds, key=lambda kind: badness(kind, figures[kind].mean))
    return CityIndex(badness(worst, figures[worst].mean), worst)


def result_row(t: int, city: str, found: CityIndex, alert: bool, figures: Mapping[str, Figures]) -> str:
    """t, city, index, worst kind, alert (0 or 1), then count, mean, least and greatest of each kind, or NULLs."""
    shown = [
        text
        for kind in KINDS
        for text in (_texts(figures[kind.name]) if kind.name in figures else ["NULL"] * len(Figures._fields))
    ]
    return ",".join([f"{t}", city, f"{found.index}", found.worst, f"{int(alert)}", *shown])


def _texts(figures: Figures) -> list[str]:
    return [f"{figures.count}", *(f"{value / 100:.2f}" for value in figures[1:])]


class CityJoin:
    """index: joins the kinds of each city at a pulse.

    state[city] = [results in a row with a high index, {kind: [count, mean, least, most]}]; the figures are those that
    came since the last pulse.
    """

    def __init__(self, state: State) -> None:
        self._state = state

    def add(self, city: str, kind: str, figures: Figures) -> None:
        """Takes in the figures of a kind, before the pulse that they belong to."""
        entry = self._state.get(city)
        if entry is None:
            entry = self._state[city] = [0, {}]
        entry[1][kind] = list(figures)

    def rows(self, t: int) -> list[tuple[str, str]]:
        """(city, result) of the cities that have figures; their figures are spent."""
        found = []
        for city in sorted(self._state):
            entry = self._state[city]
            if not entry[1]:
                continue
            figures = {kind: Figures(*values) for kind, values in entry[1].items()}
            index = index_of(figures)
            entry[:] = entry[0] + 1 if index.index >= ALERT_INDEX else 0, {}
            found.append((city, result_row(t, city, index, entry[0] >= ALERT_RESULTS, figures)))
        return found
