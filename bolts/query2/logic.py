"""The stateful operators of query 2, apart from Storm: each class works on the mapping of its state.

Time is query 1's (`bolts.query1.logic`): a pulse with data time t closes an interval, and the definition of this
package is read at the pulses t. Money is in cents; a median is kept doubled, so that it is a whole number.

Rows of an interval arrive in any order, as they came through different tasks. Nothing here depends on that order: of a
taxi's rows the highest sequence number counts, and everything else is a set. Everything beside the state is derived
from it when it is loaded.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Iterable, MutableMapping
from heapq import nsmallest
from typing import Any, NamedTuple

PROFIT_S, TAXI_S = 15 * 60, 30 * 60
TOP = 10

State = MutableMapping[Any, Any]


class Profit(NamedTuple):
    """The profit of an area, as its trips made it."""

    area: str
    trips: int  #: in the window; 0: none, and the rest means nothing
    twice_cents: int  #: twice the median
    last: int  #: sequence number of the latest trip


class Place(NamedTuple):
    """A taxi stands empty in an area, or does no longer."""

    area: str
    taxi: str
    seq: int  #: of the row that brought it there; 0: it is gone


class Standing(NamedTuple):
    """An area that has a profitability."""

    area: str
    taxis: int  #: empty ones, at least 1
    twice_cents: int  #: twice the median profit
    last: int  #: sequence number of the latest row that counts in it


def rank_key(standing: Standing) -> tuple[float, int, str]:
    """Sorts the most profitable first, of equals the latest, and of those of one row by id.

    Quotients of whole numbers of this size are equal as floats only if they are equal.
    """
    return (-standing.twice_cents / standing.taxis, -standing.last, standing.area)


def result_row(pickup: str, dropoff: str, areas: Iterable[Standing]) -> str:
    """The challenge's row: pickup, dropoff, then id, empty taxis, median profit and profitability of each area.

    Money is in dollars, a median to half a cent. Each figure of a missing area is NULL.
    """
    shown = [
        figure
        for area in areas
        for figure in (
            area.area, f"{area.taxis}", f"{area.twice_cents / 200:.3f}", f"{area.twice_cents / 200 / area.taxis:.6f}"
        )
    ]  # fmt: skip
    return ",".join([pickup, dropoff, *shown, *["NULL"] * (4 * TOP - len(shown))])


def twice_median(values: Iterable[int]) -> int:
    """Twice the median of one value or more."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return 2 * ordered[middle] if len(ordered) % 2 else ordered[middle - 1] + ordered[middle]


class _Minutes:
    """Which keys have something of which minute of data time, so that a pulse touches only what may expire."""

    def __init__(self) -> None:
        self._keys: defaultdict[int, set[str]] = defaultdict(set)  # minute m: (60 (m - 1), 60 m] s

    def note(self, key: str, dropoff_s: int) -> None:
        self._keys[-(-dropoff_s // 60)].add(key)

    def expired(self, until: int) -> set[str]:
        """The keys of which something may be at `until` or before; whole minutes are forgotten."""
        found: set[str] = set()
        for minute in [minute for minute in self._keys if 60 * (minute - 1) < until]:
            found |= self._keys[minute]
            if 60 * minute <= until:
                del self._keys[minute]
        return found


class ProfitWindow:
    """profit_by_area: the trips that started in each area.

    state[area] = [trips, twice_cents, last, [[dropoff_s, seq, cents], ...]]: as last sent downstream, then the trips in
    order. Derived: when they expire, and the areas that may have changed since the last pulse.
    """

    def __init__(self, state: State, *, window_s: int = PROFIT_S) -> None:
        self._state, self._window_s = state, window_s
        self._minutes, self._touched = _Minutes(), set[str]()
        for area, entry in state.items():
            for dropoff_s, _, _ in entry[3]:
                self._minutes.note(area, dropoff_s)
            if entry[0] != len(entry[3]) or _profit(area, entry[3]) != Profit(area, *entry[:3]):
                self._touched.add(area)

    def add(self, area: str, dropoff_s: int, cents: int, seq: int) -> None:
        """Takes in a trip."""
        entry = self._state.get(area)
        if entry is None:
            self._state[area] = [0, 0, 0, [[dropoff_s, seq, cents]]]
        else:
            insort(entry[3], [dropoff_s, seq, cents])
        self._minutes.note(area, dropoff_s)
        self._touched.add(area)

    def changes(self, t: int) -> list[Profit]:
        """Drops what is not in (t - window_s, t] and returns what changed, by area."""
        until, changed = t - self._window_s, []
        self._touched |= self._minutes.expired(until)
        for area in sorted(self._touched):
            entry = self._state.get(area)
            if entry is None:
                continue  # went with the first part of its minute
            trips = entry[3] = [trip for trip in entry[3] if trip[0] > until]
            profit = _profit(area, trips)
            if profit != Profit(area, *entry[:3]):
                changed.append(profit)
                entry[:3] = profit[1:]
            if not trips:
                del self._state[area]
        self._touched.clear()
        return changed


def _profit(area: str, trips: list[list[int]]) -> Profit:
    if not trips:
        return Profit(area, 0, 0, 0)
    last = max(seq for _, seq, _ in trips)
    return Profit(area, len(trips), twice_median(cents for _, _, cents in trips), last)


class TaxiPlaces:
    """empty_taxis: where each taxi's last trip ended.

    state[taxi] = [seq, dropoff_s, area, told_seq, told_area]: the last trip, and what was last sent downstream (0 and
    "": nothing). Derived: when it expires, and the taxis that may have changed since the last pulse.
    """

    def __init__(self, state: State, *, window_s: int = TAXI_S) -> None:
        self._state, self._window_s = state, window_s
        self._minutes, self._touched = _Minutes(), set[str]()
        for taxi, (seq, dropoff_s, _, told_seq, _) in state.items():
            self._minutes.note(taxi, dropoff_s)
            if told_seq != seq:
                self._touched.add(taxi)

    def add(self, taxi: str, dropoff_s: int, area: str, seq: int) -> None:
        """Takes in the end of a trip."""
        entry = self._state.get(taxi)
        if entry is None:
            self._state[taxi] = [seq, dropoff_s, area, 0, ""]
        elif seq > entry[0]:
            entry[:3] = seq, dropoff_s, area
        else:
            return
        self._minutes.note(taxi, dropoff_s)
        self._touched.add(taxi)

    def changes(self, t: int) -> list[Place]:
        """The taxis that came or went, by taxi; one that left an area for another is told twice."""
        until, changed = t - self._window_s, []
        self._touched |= self._minutes.expired(until)
        for taxi in sorted(self._touched):
            entry = self._state.get(taxi)
            if entry is None:
                continue  # went with the first part of its minute
            seq, dropoff_s, area, told_seq, told_area = entry
            empty = dropoff_s > until
            if told_area and not (empty and area == told_area):
                changed.append(Place(told_area, taxi, 0))
            if empty and seq != told_seq:
                changed.append(Place(area, taxi, seq))
                entry[3:] = seq, area
            if not empty:
                del self._state[taxi]
        self._touched.clear()
        return changed


class AreaRank:
    """rank_areas: the ten top ones among the areas of this task.

    state[area] = [trips, twice_cents, last, {taxi: seq}]. Derived: the standings of the areas that have one.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._standings: dict[str, Standing] = {}
        for area, entry in state.items():
            self._stand(area, entry)

    def profit(self, profit: Profit) -> None:
        """Takes in the profit of an area."""
        entry = self._entry(profit.area)
        entry[:3] = profit[1:]
        self._settle(profit.area, entry)

    def place(self, place: Place) -> None:
        """Takes in that a taxi came or went."""
        entry = self._entry(place.area)
        if place.seq:
            entry[3][place.taxi] = place.seq
        else:
            entry[3].pop(place.taxi, None)
        self._settle(place.area, entry)

    def top(self) -> list[Standing]:
        """At most ten areas, best first."""
        return nsmallest(TOP, self._standings.values(), key=rank_key)

    def _entry(self, area: str) -> list[Any]:
        entry = self._state.get(area)
        if entry is None:
            entry = self._state[area] = [0, 0, 0, {}]
        return entry

    def _settle(self, area: str, entry: list[Any]) -> None:
        self._standings.pop(area, None)
        if not entry[0] and not entry[3]:
            del self._state[area]
        self._stand(area, entry)

    def _stand(self, area: str, entry: list[Any]) -> None:
        trips, twice_cents, last, taxis = entry
        if trips and taxis:
            self._standings[area] = Standing(area, len(taxis), twice_cents, max(last, *taxis.values()))


class TopAreas:
    """top_areas: merges the local top tens of a pulse, and knows which ten it showed last.

    state["candidates"] = [[area, taxis, twice_cents, last], ...] since the last pulse;
    state["shown"] = [[area, taxis, twice_cents], ...]
    """

    def __init__(self, state: State) -> None:
        self._state = state

    def candidate(self, standing: Standing) -> None:
        """Takes in one line of a local top ten."""
        self._state["candidates"] = [*self._state.get("candidates", ()), list(standing)]

    def merge(self) -> list[Standing] | None:
        """The ten top areas, best first, if a figure of them is not as shown last; the candidates are spent."""
        candidates = sorted((Standing(*c) for c in self._state.get("candidates", ())), key=rank_key)
        self._state["candidates"] = []
        areas = candidates[:TOP]
        shown = [list(area[:3]) for area in areas]
        if shown == [list(area) for area in self._state.get("shown", [])]:
            return None
        self._state["shown"] = shown
        return areas
