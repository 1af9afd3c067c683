"""Compiled: distribution functions of nodes on one grid, as logarithms, and their sums over sets of nodes.

`logs[b, i]` is ln F_i at the upper edge of bin b, in fixed point; a bin is a row, as a search looks at one bin of many
nodes.  `totals[g, b]` is the sum over the nodes of set g.  `sets[starts[i]:starts[i + 1]]` are the sets of node i.
"""

from __future__ import annotations

import math

from leeward.policies.dssp.latency.compiled import kernel

#: Of natural logarithms in fixed point.
SCALE = 1 << 40
#: Samples of the whole set that have to be slower than the answer, for it to be read off; their number has an error of
#: a third then.  Fewer: it goes on from where there are so many, at the pace since there were `STEEPER` times as many.
SUPPORT, STEEPER = 10, 4


@kernel
def total_at(b, logs, nodes, totals):  # type: ignore[no-untyped-def]
    """ln G at bin b: of the nodes, or as `totals` has it if none is given."""
    if len(nodes) == 0:
        return totals[b]
    row, total = logs[b], 0
    for node in nodes:
        total += row[node]
    return total


@kernel
def first_at(least, bins, logs, nodes, totals):  # type: ignore[no-untyped-def]
    """The first bin at which ln G is at least this much; the number of bins if there is none."""
    low, high = 0, bins
    while low < high:
        middle = (low + high) >> 1
        if total_at(middle, logs, nodes, totals) >= least:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def read(wanted, near, far, edges, logs, nodes, totals):  # type: ignore[no-untyped-def]
    """The latency at which ln G is `wanted`, s; NaN where it is not known.

    If `near`, a lower one, is given (not 0), ln G is too sparse at `wanted`: from there on -ln G falls exponentially,
    as fast as it does from `far` to `near`.
    """
    bins = len(edges)
    first = first_at(near if near < 0 else wanted, bins, logs, nodes, totals)
    if first == bins:
        return math.nan
    if near == 0:
        return edges[first]
    before = first_at(far, bins, logs, nodes, totals)
    here, there = total_at(first, logs, nodes, totals), total_at(before, logs, nodes, totals)
    if here == 0 or here == there:
        return edges[first]
    pace = (edges[first] - edges[before]) / math.log(there / here)
    return edges[first] + pace * max(0.0, math.log(here / wanted))


@kernel
def slowest(percent, size, held, edges, logs, nodes, totals):  # type: ignore[no-untyped-def]
    """x_u of `size` nodes with so many samples in all, s (NaN: not known), and whether it is extrapolated."""
    if held < STEEPER * SUPPORT:
        return math.nan, True
    late, one = -math.log(percent / 100), size / held  # one: of -ln G, by a slower sample, about
    sparse = late < SUPPORT * one
    near = -int(SUPPORT * one * SCALE) if sparse else 0
    far = -int(STEEPER * SUPPORT * one * SCALE)
    wanted = -int(late * SCALE) - size  # the logarithm of each is rounded
    return read(wanted, near, far, edges, logs, nodes, totals), sparse


@kernel
def slowest_kept(number, percent, size, held, edges, totals):  # type: ignore[no-untyped-def]
    """The same of set `number`, whose sums are kept: no nodes are looked at."""
    return slowest(percent, size, held[number], edges, totals, held[:0], totals[number])


@kernel
def record(node, new, rings, places, counts, cumulated, log_of, logs, held, totals, starts, sets):  # type: ignore[no-untyped-def]
    """A sample of a node in bin `new`; when its window is full the oldest one leaves."""
    ring, place, old = rings[node], places[node], len(logs)
    if counts[node] < len(ring):
        counts[node] += 1
        for at in range(starts[node], starts[node + 1]):
            held[sets[at]] += 1
        low, high, step, touched = new, len(logs), 1, 0
    else:
        old = ring[place]
        low, high, step = min(new, old), max(new, old), 1 if new < old else -1
        touched = low
    ring[place] = new
    places[node] = (place + 1) % len(ring)
    for b in range(touched, high):
        if b >= low:
            cumulated[b, node] += step
        change = log_of[cumulated[b, node]] - log_of[counts[node]] - logs[b, node]
        if change != 0:
            logs[b, node] += change
            for at in range(starts[node], starts[node + 1]):
                totals[sets[at], b] += change
