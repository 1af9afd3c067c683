"""Histograms of the latencies of nodes over a moving window, and x_u, the slowest of any set of them [3, 4].

All nodes share a grid of latencies, and have the logarithm of their distribution function on it, in fixed point; so
ln G of a set is a sum of integers, which never drifts.  The sums of sets that are asked for often are kept, and each
sample changes them.  A latency is read at the upper edge of its bin: at most 1.6 % too long, never too short.

Where few samples are as slow as the percentile asks for, the answer is extrapolated, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from leeward.core.fields import FieldError, check_number
from leeward.policies.dssp.latency.kernel_sums import SCALE, record, slowest, slowest_kept
from leeward.policies.dssp.model.budgets import check_percent

Ints = NDArray[np.int64]

#: Of the grid, s: its first upper edge, and its last.
SHORTEST, LONGEST = 1e-4, 1e3
BINS = 1024
STEP = math.log(LONGEST / SHORTEST) / (BINS - 1)
EDGES = SHORTEST * np.exp(STEP * np.arange(BINS))
#: ln 0 there: below every sum that is asked for. So many nodes of it do not overflow.
NEVER, MOST_NODES = -(1 << 49), 1 << 13
SAMPLES = 1000
_NONE = np.zeros(0, np.int64)


class Slowest(NamedTuple):
    """x_u of a set of nodes."""

    seconds: float | None  #: None: not known, as a node has no sample, or all have too few
    extrapolated: bool  #: fewer than `SUPPORT` samples were slower


class Windows:
    """The latest latencies of nodes, by number from 0.

    `samples`: of each node that count. Raises FieldError for sizes below 1, and for a set of over 8,192 nodes.
    """

    def __init__(self, nodes: int, samples: int = SAMPLES) -> None:
        for field, value in (("nodes", nodes), ("samples", samples)):
            check_number(field, value, positive=True)
        self._rings = np.zeros((nodes, samples), np.int16)
        self._places, self._counts = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
        self._cumulated = np.zeros((BINS, nodes), np.int32)
        self._log_of = np.array([NEVER, *(round(math.log(count) * SCALE) for count in range(1, samples + 1))])
        self._logs = np.full((BINS, nodes), NEVER)
        self._kept: list[Ints] = []
        self._totals, self._held = np.zeros((0, BINS), np.int64), np.zeros(0, np.int64)
        self._starts, self._sets = np.zeros(nodes + 1, np.int64), np.zeros(0, np.int64)

    def add(self, node: int, seconds: float) -> None:
        """A latency of a node, s; one that is longer than the grid makes the percentiles that need it unknown."""
        new = math.ceil(math.log(max(seconds, SHORTEST) / SHORTEST) / STEP - 1e-9)
        record(
            node, min(new, BINS), self._rings, self._places, self._counts, self._cumulated, self._log_of, self._logs,
            self._held, self._totals, self._starts, self._sets,
        )  # fmt: skip

    def keep(self, nodes: Sequence[int]) -> int:
        """Keep the sum of a set of nodes from now on; its number, for `slowest_kept`."""
        chosen = self._checked(nodes)
        self._kept.append(chosen)
        self._totals = np.vstack((self._totals, self._logs[:, chosen].sum(axis=1)))
        self._held = np.append(self._held, self._counts[chosen].sum())
        pairs = sorted((int(node), number) for number, kept in enumerate(self._kept) for node in kept)
        self._sets = np.array([number for _, number in pairs], np.int64)
        self._starts = np.searchsorted([node for node, _ in pairs], np.arange(len(self._counts) + 1))
        return len(self._kept) - 1

    def slowest_kept(self, number: int, percent: float) -> Slowest:
        """The same as `slowest`, of a set that is kept."""
        check_percent("percent", percent)
        size = len(self._kept[number])
        return _slowest(*slowest_kept(number, float(percent), size, self._held, EDGES, self._totals))

    def slowest(self, nodes: Sequence[int], percent: float) -> Slowest:
        """x_u = G^-1(percent / 100): the latency within which all of these nodes answer, at this percentile."""
        check_percent("percent", percent)
        chosen = self._checked(nodes)
        held = int(self._counts[chosen].sum())
        return _slowest(*slowest(float(percent), len(chosen), held, EDGES, self._logs, chosen, _NONE))

    def _checked(self, nodes: Sequence[int]) -> Ints:
        chosen = np.asarray(nodes, np.int64)
        if not 0 < len(chosen) <= MOST_NODES:
            raise FieldError("nodes", len(chosen), "is not between 1 and 8192", remedy="give a set of such a size")
        if chosen.min() < 0 or chosen.max() >= len(self._counts):
            wrong = int(chosen[(chosen < 0) | (chosen >= len(self._counts))][0])
            raise FieldError("nodes", wrong, f"is no node of {len(self._counts)}", remedy="count from 0")
        return chosen


def _slowest(seconds: float, extrapolated: bool) -> Slowest:
    return Slowest(None if math.isnan(seconds) else seconds, extrapolated)
