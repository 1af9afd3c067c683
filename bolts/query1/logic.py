"""The stateful operators of query 1, apart from Storm: each class works on the mapping of its state.

Time. The source cuts the stream into intervals of `pulse_s` seconds of data time. Interval n holds the rows
with dropoff in [n*pulse_s, (n+1)*pulse_s). When it reads the first row of a later interval, and once at the
end of the input, it sends pulse n with data time t = (n+1)*pulse_s; empty intervals in between get no pulse.
At pulse n:

- the metronome sends whether the data's own time advanced, that is, whether a valid row (parsed, inside the
  grid) came since the last pulse. If none did, nothing happens: rejected rows never change a result;
- otherwise a route's count is the number of its valid rows read so far with dropoff in (t - window_s, t], and
  its rank is by count, highest first, and then by its most recent row in the order of the input, latest
  first;
- a row is output if the ten top routes, as an ordered list, differ from those last output. It bears pickup
  and dropoff of the last valid row before the pulse. Its number is n.

Everything that is not in the state is derived from it when it is loaded, so that a moved task goes on as
before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, MutableMapping
from heapq import nsmallest
from itertools import chain
from math import inf
from typing import Any, NamedTuple

WINDOW_S = 30 * 60
TOP = 10

State = MutableMapping[Any, Any]


class Ranked(NamedTuple):
    """A route, how often it is in the window, and the sequence number of its most recent row there."""

    route: str
    count: int  # type: ignore[assignment]  # hides the method of tuples
    last: int


def rank_key(ranked: Ranked) -> tuple[int, int, str]:
    """Sorts the most frequent first, and of equally frequent ones the most recent."""
    return (-ranked.count, -ranked.last, ranked.route)


def result_row(pickup: str, dropoff: str, routes: Iterable[str]) -> str:
    """The challenge's row: pickup, dropoff, from_1, to_1, ..., and one NULL for each missing route."""
    shown = [route.replace(">", ",") for route in routes]
    return ",".join([pickup, dropoff, *shown, *["NULL"] * (TOP - len(shown))])


class Intervals:
    """data_source: the interval of data time that the rows have come to.

    state["interval"] is that of the last row sent. Derived: when it ends.
    """

    def __init__(self, state: State, pulse_s: int) -> None:
        self._state = state
        self._pulse_s = pulse_s
        current = state.get("interval")
        self._end_s = -inf if current is None else (current + 1) * pulse_s

    def due(self, dropoff_s: int) -> tuple[int, int] | None:
        """Enters the interval of a row about to be sent; number and data time of the pulse that goes before it.

        A row older than its predecessor opens no interval.
        """
        if dropoff_s < self._end_s:
            return None
        before = self.last()
        interval = self._state["interval"] = dropoff_s // self._pulse_s
        self._end_s = (interval + 1) * self._pulse_s
        return before

    def last(self) -> tuple[int, int] | None:
        """Number and data time of the pulse that closes the present interval; None if there was no row."""
        interval = self._state.get("interval")
        return None if interval is None else (interval, (interval + 1) * self._pulse_s)


class RouteWindow:
    """count_by_window: the rows of each route in the sliding window.

    state[route] = [count, last, dropoff_s, seq, dropoff_s, seq, ...]: as last sent downstream, then its rows in order;
    flat, as most routes have one row and Python's collector goes over every list.
    Derived: which routes have rows in which minute, so that a pulse touches only what expires; and the routes that
    may have changed since the last pulse.
    """

    def __init__(self, state: State, *, window_s: int = WINDOW_S) -> None:
        self._state = state
        self._window_s = window_s
        self._by_minute: defaultdict[int, set[str]] = defaultdict(set)  # minute m: (60 (m - 1), 60 m] s
        self._touched = set()
        for route, entry in state.items():
            for dropoff_s in entry[2::2]:
                self._by_minute[-(-dropoff_s // 60)].add(route)
            if _standing(entry) != (entry[0], entry[1]):
                self._touched.add(route)

    def add(self, route: str, dropoff_s: int, seq: int) -> None:
        """Takes in a row. Rows of one route may arrive out of order: they came through different tasks."""
        entry = self._state.get(route)
        if entry is None:
            self._state[route] = [0, 0, dropoff_s, seq]
        elif dropoff_s > entry[-2]:
            entry += (dropoff_s, seq)
        else:
            rows = sorted([*zip(entry[2::2], entry[3::2], strict=True), (dropoff_s, seq)])
            entry[2:] = chain.from_iterable(rows)
        self._by_minute[-(-dropoff_s // 60)].add(route)
        self._touched.add(route)

    def changes(self, t: int) -> list[Ranked]:
        """Drops what is not in (t - window_s, t] and returns what changed (count 0: gone), by route."""
        until, changed = t - self._window_s, []
        self._touch_expired(until)
        for route in sorted(self._touched):
            entry = self._state.get(route)
            if entry is None:
                continue  # went with the first part of its minute
            stays = 2
            while stays < len(entry) and entry[stays] <= until:
                stays += 2
            del entry[2:stays]
            count, last = standing = _standing(entry)
            if standing != (entry[0], entry[1]):
                changed.append(Ranked(route, count, last))
                entry[0], entry[1] = standing
            if not count:
                del self._state[route]
        self._touched.clear()
        return changed

    def _touch_expired(self, until: int) -> None:
        for minute in [minute for minute in self._by_minute if 60 * (minute - 1) < until]:
            self._touched |= self._by_minute[minute]
            if 60 * minute <= until:
                del self._by_minute[minute]


def _standing(entry: list[int]) -> tuple[int, int]:
    """Count and last of an entry; (0, 0) once it has no rows."""
    count = len(entry) // 2 - 1
    return (count, entry[-1]) if count else (0, 0)


class LocalRank:
    """partial_rank: the ten top ones among the routes of this task.

    state[route] = [count, last]. Derived: `last` of the routes with a count; the ten are among the highest counts,
    which few routes have.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._by_count: defaultdict[int, dict[str, int]] = defaultdict(dict)
        for route, (count, last) in state.items():
            self._by_count[count][route] = last

    def update(self, route: str, count: int, last: int) -> None:
        """Takes in count_by_window's count of a route; count 0 removes it."""
        old = self._state.get(route)
        if old is not None:
            del self._by_count[old[0]][route]
        if count:
            self._by_count[count][route] = last
        if old is None:
            if count:
                self._state[route] = [count, last]
        elif count:
            old[0], old[1] = count, last
        else:
            del self._state[route]

    def top(self) -> list[Ranked]:
        """At most ten routes, best first."""
        found: list[Ranked] = []
        for count in sorted(self._by_count, reverse=True):
            found += (Ranked(route, count, last) for route, last in self._by_count[count].items())
            if len(found) >= TOP:
                break
        return nsmallest(TOP, found, key=rank_key)


class GlobalRank:
    """global_rank: merges the local top tens of a pulse, and knows which ten it showed last.

    state["candidates"] = [[route, count, last], ...] since the last pulse; state["shown"] = [route, ...]
    """

    def __init__(self, state: State) -> None:
        self._state = state

    def candidate(self, ranked: Ranked) -> None:
        """Takes in one line of a local top ten."""
        self._state["candidates"] = [*self._state.get("candidates", ()), list(ranked)]

    def merge(self) -> list[str] | None:
        """The ten top routes, best first, if they are not the ones shown last; the candidates are spent."""
        candidates = sorted((Ranked(*c) for c in self._state.get("candidates", ())), key=rank_key)
        self._state["candidates"] = []
        routes = [ranked.route for ranked in candidates[:TOP]]
        if routes == self._state.get("shown", []):
            return None
        self._state["shown"] = routes
        return routes


class DataClock:
    """metronome: the last valid row, and whether there was one since the last pulse.

    state["last"] = [seq, pickup, dropoff]; state["told"] = seq of the last row at the last pulse. Derived: seq of the
    last row, found by going over the state, as a warm task has no part of it to ask for.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._seq = next((last[0] for key, last in state.items() if key == "last"), 0)

    def row(self, seq: int, pickup: str, dropoff: str) -> None:
        """Takes in a valid row; rows may arrive out of order, the highest sequence number counts."""
        if seq > self._seq:
            self._seq = seq
            self._state["last"] = [seq, pickup, dropoff]

    def tell(self) -> dict[str, Any]:
        """The data of a pulse: pickup, dropoff, seq of the last valid row, and `advanced`."""
        seq, pickup, dropoff = self._state.get("last", (0, "", ""))
        advanced = seq > self._state.get("told", 0)
        self._state["told"] = seq
        return {"pickup": pickup, "dropoff": dropoff, "seq": seq, "advanced": advanced}
