"""Selectivities: tuples on a stream for each tuple that its source component processes, with their error. Pure.

The ratio is that of all tuples that count, not the mean of ratios, so that a window with few tuples weighs little. Old
windows count less. A stream that was silent in a window gets the rate that its selectivity predicts, and what lies
behind it too: an operator that emits once a minute has load downstream in a window of ten seconds as well.

A component that lags receives as much as it can process, not as much as it is sent. Its input is at least what the
selectivities predict, and so is that of all downstream: a plan by what it receives would never add a replica.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from leeward.control.learning.aging import kept_share
from leeward.control.monitor import Rates
from leeward.core.learnt import Selectivity

#: A window counts half after this time, s: a filter that lets nothing through any more is soon believed.
HALF_LIFE_S = 600.0
#: With fewer windows nothing is predicted.
LEAST_WINDOWS = 3.0

Stream = tuple[str, str]


@dataclass(slots=True)
class SelectivityLearner:
    """Of one stream."""

    _in: float = 0.0
    _out: float = 0.0
    _squares: float = 0.0  # tuples in, times the square of the ratio
    _windows: float = 0.0
    _at: float | None = None

    def add(self, processed: float, sent: float, now: float) -> None:
        """A window: tuples that the source component has processed, and tuples on the stream."""
        if processed <= 0:
            return
        self._forget(now)
        self._in += processed
        self._out += sent
        self._squares += sent * sent / processed
        self._windows += 1.0

    def _forget(self, now: float) -> None:
        kept = kept_share(self._at, now, HALF_LIFE_S)
        self._at = now
        self._in, self._out = kept * self._in, kept * self._out
        self._squares, self._windows = kept * self._squares, kept * self._windows

    def kept(self) -> tuple[float, ...]:
        """Tuples in, out, squares, windows, time of the newest window: all that it goes on from."""
        return self._in, self._out, self._squares, self._windows, self._at or 0.0

    @classmethod
    def of(cls, kept: Sequence[float], now: float) -> SelectivityLearner:
        """As it was kept, and aged until `now`."""
        into, out, squares, windows, at = kept
        learner = cls(into, out, squares, windows, at)
        learner._forget(now)
        return learner

    @property
    def known(self) -> bool:
        """Enough windows to predict by."""
        return self._windows >= LEAST_WINDOWS

    def fit(self) -> Selectivity | None:
        """None before the first window."""
        if not self._windows:
            return None
        ratio = self._out / self._in
        variance = max(0.0, self._squares / self._in - ratio * ratio)
        return Selectivity(ratio, math.sqrt(variance / self._windows), self._windows)


def completed(
    rates: Rates, selectivities: Mapping[Stream, Selectivity], streams: Sequence[Stream],
    lagging: Collection[str] = (),
) -> Rates:  # fmt: skip
    """The same rates, with those of streams that were silent though their source component had input.

    Streams into components in `lagging`, and all downstream of these, have at least the rate that is predicted.
    `streams`: of the topology, without circles.
    """
    found, short = dict(rates.streams), set(lagging)
    for source, target in in_order(streams):
        received = found.get((source, target), 0.0)
        if not _known(selectivities.get((source, target))) or (received and not short & {source, target}):
            continue
        fed = any(name == source for _, name in streams)
        into = sum(rate for (_, name), rate in found.items() if name == source)
        predicted = selectivities[source, target].ratio * (into if fed else rates.emitted.get(source, 0.0))
        if predicted >= received:
            found[source, target] = predicted
            short |= {target} if received else set()
    return rates if found == rates.streams else replace(rates, streams=found)


def _known(selectivity: Selectivity | None) -> bool:
    return selectivity is not None and selectivity.windows >= LEAST_WINDOWS


def in_order(streams: Sequence[Stream]) -> list[Stream]:
    """Streams in the order in which tuples take them; those of a circle come last, by name."""
    waiting, order = sorted(streams), list[Stream]()
    while waiting:
        targets = {target for _, target in waiting}
        free = [stream for stream in waiting if stream[0] not in targets] or waiting
        order += free
        waiting = [stream for stream in waiting if stream not in free]
    return order
