"""The stateful operators over sensors and places, apart from Storm: each class works on the mapping of its state.

A place is `city.kind`. Time is cut by the sources' pulses: interval n holds the reports with
t in [n * pulse_s, (n + 1) * pulse_s), and at pulse n a window is its last intervals.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, NamedTuple

WINDOW_S, PULSE_S = 60, 10
#: A smoothed value is kept in so many parts of a hundredth, so that what a division loses is less than that.
_PARTS = 256

State = MutableMapping[Any, Any]


class Figures(NamedTuple):
    """The smoothed values of a window; in hundredths but for the count."""

    count: int  # type: ignore[assignment]  # hides the method of tuples
    mean: int  #: rounded, halves up
    least: int
    most: int


def smoothed(parts: int | None, value: int) -> int:
    """The parts of a sensor's smoothed value after one more value; None: there was none."""
    return value * _PARTS if parts is None else parts + (value * _PARTS - parts) // 4


def hundredths(parts: int) -> int:
    """A smoothed value as it goes on."""
    return (parts + _PARTS // 2) // _PARTS


class Smoothing:
    """smooth: the smoothed values of each sensor.

    state[sensor] = {kind: parts}
    """

    def __init__(self, state: State) -> None:
        self._state = state

    def add(self, sensor: str, kind: str, value: int) -> int:
        """Takes in a value (hundredths), in the order of the sensor's reports; the smoothed one."""
        kinds = self._state.get(sensor)
        if kinds is None:
            kinds = self._state[sensor] = {}
        parts = kinds[kind] = smoothed(kinds.get(kind), value)
        return hundredths(parts)


class PlaceWindow:
    """stats: the smoothed values of each place by interval.

    state[place] = [[interval, count, sum, least, most], ...], ascending.
    """

    def __init__(self, state: State, *, pulse_s: int, window_s: int) -> None:
        self._state, self._pulse_s, self._kept = state, pulse_s, window_s // pulse_s

    def add(self, place: str, t: int, value: int) -> None:
        """Takes in a smoothed value; those of one interval may come in any order."""
        panes = self._state.get(place)
        if panes is None:
            panes = self._state[place] = []
        interval = t // self._pulse_s
        for pane in reversed(panes):
            if pane[0] == interval:
                pane[1:] = pane[1] + 1, pane[2] + value, min(pane[3], value), max(pane[4], value)
                return
            if pane[0] < interval:
                break
        panes.append([interval, 1, value, value, value])
        panes.sort()

    def figures(self, interval: int) -> list[tuple[str, Figures]]:
        """Drops what is not in the window that ends with this interval; the places that have values, by name."""
        found = []
        for place in sorted(self._state):
            panes = self._state[place] = [pane for pane in self._state[place] if interval - self._kept < pane[0]]
            inside = [pane for pane in panes if pane[0] <= interval]
            if inside:
                count, total = sum(pane[1] for pane in inside), sum(pane[2] for pane in inside)
                mean = (2 * total + count) // (2 * count)
                least, most = min(pane[3] for pane in inside), max(pane[4] for pane in inside)
                found.append((place, Figures(count, mean, least, most)))
            if not panes:
                del self._state[place]
        return found
