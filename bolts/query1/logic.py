"""What the stateful operators of query 1 do, apart from Storm: each class works on the mapping of its state.

Time. The source cuts the stream into intervals of `pulse_s` seconds of data time. Interval n holds the rows
with dropoff in [n*pulse_s, (n+1)*pulse_s). When it reads the first row of a later interval, and once at the
end of the input, it sends pulse n with data time t = (n+1)*pulse_s; empty intervals in between get no pulse.
At pulse n:

- the metronome tells whether the data's own time advanced, that is, whether a valid row (parsed, inside the
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

from bisect import bisect_left, insort
from collections.abc import Iterable, MutableMapping
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

WINDOW_S = 30 * 60
TOP = 10

State = MutableMapping[Any, Any]


class Ranked(NamedTuple):
    """A route, how often it is in the window, and the sequence number of its most recent row there."""

    route: str
    count: int
    last: int


def rank_key(ranked: Ranked) -> tuple[int, int, str]:
    """Sorts the most frequent first, and of equally frequent ones the most recent."""
    return (-ranked.count, -ranked.last, ranked.route)


def result_row(pickup: str, dropoff: str, routes: Iterable[str]) -> str:
    """The challenge's row: pickup, dropoff, from_1, to_1, ..., and one NULL for each missing route."""
    shown = [route.replace(">", ",") for route in routes]
    return ",".join([pickup, dropoff, *shown, *["NULL"] * (TOP - len(shown))])


def due_pulse(state: State, dropoff_s: int, pulse_s: int) -> tuple[int, int] | None:
    """Enters the interval of a row about to be sent; returns number and data time of the pulse that goes
    before it.

    state["interval"] is that of the last row sent. A row older than its predecessor opens no interval.
    """
    interval = dropoff_s // pulse_s
    current = state.get("interval")
    if current is not None and interval <= current:
        return None
    state["interval"] = interval
    return None if current is None else (current, (current + 1) * pulse_s)


class RouteWindow:
    """count_by_window: the rows of each route in the sliding window.

    state[route] = {"rows": [[dropoff_s, seq], ...] in order, "told": [count, last] as last sent downstream}
    Derived: a heap of all rows by dropoff, so that a pulse touches only what expires; and the routes that may
    have changed since the last pulse.
    """

    def __init__(self, state: State, *, window_s: int = WINDOW_S) -> None:
        self._state = state
        self._window_s = window_s
        self._by_time = [(row[0], route) for route, entry in state.items() for row in entry["rows"]]
        heapify(self._by_time)
        self._touched = {route for route, entry in state.items() if _standing(entry) != entry["told"]}

    def add(self, route: str, dropoff_s: int, seq: int) -> None:
        """Takes in a row. Rows of one route may arrive out of order: they came through different tasks."""
        entry = self._state.get(route) or {"rows": [], "told": [0, 0]}
        insort(entry["rows"], [dropoff_s, seq])
        self._state[route] = entry
        heappush(self._by_time, (dropoff_s, route))
        self._touched.add(route)

    def changes(self, t: int) -> list[Ranked]:
        """Drops what is not in (t - window_s, t] and returns what changed (count 0: gone), by route."""
        self._expire(t - self._window_s)
        changed = []
        for route in sorted(self._touched):
            entry = self._state[route]
            standing = _standing(entry)
            if standing != entry["told"]:
                changed.append(Ranked(route, *standing))
                self._state[route] = {"rows": entry["rows"], "told": standing}
            if not entry["rows"]:
                del self._state[route]
        self._touched.clear()
        return changed

    def _expire(self, until: int) -> None:
        while self._by_time and self._by_time[0][0] <= until:
            _, route = heappop(self._by_time)
            entry = self._state[route]
            # one heap entry for each row: the route's oldest row is the one that goes
            self._state[route] = {"rows": entry["rows"][1:], "told": entry["told"]}
            self._touched.add(route)


def _standing(entry: dict[str, Any]) -> list[int]:
    """[count, last] of an entry; [0, 0] once it is empty."""
    rows = entry["rows"]
    return [len(rows), rows[-1][1]] if rows else [0, 0]


class LocalRank:
    """partial_rank: the ten top ones among the routes of this task.

    state[route] = [count, last]. Derived: all routes in the order of their rank, kept by bisection.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._order = sorted(rank_key(Ranked(route, *standing)) for route, standing in state.items())

    def update(self, ranked: Ranked) -> None:
        """Takes in what count_by_window tells of a route; count 0 removes it."""
        old = self._state.get(ranked.route)
        if old is not None:
            del self._order[bisect_left(self._order, rank_key(Ranked(ranked.route, *old)))]
        if ranked.count:
            insort(self._order, rank_key(ranked))
            self._state[ranked.route] = [ranked.count, ranked.last]
        elif old is not None:
            del self._state[ranked.route]

    def top(self) -> list[Ranked]:
        """At most ten routes, best first."""
        return [Ranked(route, -count, -last) for count, last, route in self._order[:TOP]]


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

    state["last"] = [seq, dropoff_s, pickup, dropoff]; state["told"] = seq of the last row at the last pulse
    """

    def __init__(self, state: State) -> None:
        self._state = state

    def row(self, dropoff_s: int, seq: int, pickup: str, dropoff: str) -> None:
        """Takes in a valid row; rows may arrive out of order, the highest sequence number counts."""
        if seq > self._state.get("last", (0,))[0]:
            self._state["last"] = [seq, dropoff_s, pickup, dropoff]

    def tell(self) -> dict[str, Any]:
        """What a pulse carries on: pickup, dropoff, seq of the last valid row, and `advanced`."""
        seq, _, pickup, dropoff = self._state.get("last", (0, 0, "", ""))
        advanced = seq > self._state.get("told", 0)
        self._state["told"] = seq
        return {"pickup": pickup, "dropoff": dropoff, "seq": seq, "advanced": advanced}
