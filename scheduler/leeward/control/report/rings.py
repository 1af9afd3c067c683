"""Rings of figures: bounded time series, the newest points in full and a day of means.

A value takes 4 bytes, a time 8. 50 topologies of 40 components with `FINE` + `COARSE` points take about 50 MB.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Mapping
from dataclasses import dataclass

#: Newest points as they came, and means over `SPAN_S` seconds.
FINE, COARSE, SPAN_S = 600, 1440, 60.0


@dataclass(frozen=True, slots=True)
class Series:
    """Points of several figures; each list is as long as `t`."""

    t: list[float]  #: s since 1970, ascending
    values: dict[str, list[float | None]]  #: figure -> its points; None: not known then


class Ring:
    """The newest `size` points of any number of figures."""

    def __init__(self, size: int) -> None:
        self._size, self._next = size, 0
        self._t = array("d")
        self._columns: dict[str, array[float]] = {}

    def __len__(self) -> int:
        return len(self._t)

    @property
    def names(self) -> tuple[str, ...]:
        """The figures, by name."""
        return tuple(sorted(self._columns))

    def add(self, t: float, values: Mapping[str, float | None]) -> None:
        """A point; a figure that it does not name is not known then."""
        for name in values.keys() - self._columns.keys():
            self._columns[name] = array("f", [math.nan] * len(self._t))
        if len(self._t) < self._size:
            self._t.append(t)
            for name, column in self._columns.items():
                column.append(_stored(values.get(name)))
            return
        self._t[self._next] = t
        for name, column in self._columns.items():
            column[self._next] = _stored(values.get(name))
        self._next = (self._next + 1) % self._size

    def read(self, names: Collection[str], since: float = -math.inf, until: float = math.inf) -> Series:
        """The points after `since` and before `until`, oldest first; a figure that is not there is left out."""
        order = [*range(self._next, len(self._t)), *range(self._next)]
        chosen = [at for at in order if since < self._t[at] < until]
        columns = {name: self._columns[name] for name in sorted(names) if name in self._columns}
        return Series(
            [self._t[at] for at in chosen],
            {name: [_read(column[at]) for at in chosen] for name, column in columns.items()},
        )


class History:
    """The figures of one topology: the newest points, and a mean for each minute before them."""

    def __init__(self, fine: int = FINE, coarse: int = COARSE, span_s: float = SPAN_S) -> None:
        self._fine, self._coarse, self._span_s = Ring(fine), Ring(coarse), span_s
        self._began: float | None = None
        self._sums: dict[str, tuple[float, int]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The figures, by name."""
        return self._fine.names

    def add(self, t: float, values: Mapping[str, float | None]) -> None:
        """A point; figures that are no finite numbers are not known."""
        self._fine.add(t, values)
        if self._began is not None and t - self._began >= self._span_s:
            means = {name: total / count for name, (total, count) in self._sums.items()}
            self._coarse.add(self._began + self._span_s / 2, means)
            self._began, self._sums = None, {}
        self._began = t if self._began is None else self._began
        for name, value in values.items():
            if value is not None and math.isfinite(value):
                total, count = self._sums.get(name, (0.0, 0))
                self._sums[name] = total + value, count + 1

    def read(self, names: Collection[str], since: float = -math.inf) -> Series:
        """Means for the time before the newest points begin, then those points; all after `since`."""
        fine = self._fine.read(names, since)
        begin = self._fine.read((), -math.inf).t[:1]
        coarse = self._coarse.read(names, since, begin[0] if begin else math.inf)
        values = {
            name: coarse.values.get(name, [None] * len(coarse.t)) + fine.values.get(name, [None] * len(fine.t))
            for name in sorted({*fine.values, *coarse.values})
        }
        return Series(coarse.t + fine.t, values)


def _stored(value: float | None) -> float:
    return math.nan if value is None or not math.isfinite(value) else value


def _read(value: float) -> float | None:
    return None if math.isnan(value) else float(f"{value:.7g}")  # as many digits as 4 bytes hold
