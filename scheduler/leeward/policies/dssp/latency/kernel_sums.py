"""Compiled: distribution functions of nodes on one grid, as logarithms, and their sums over sets of nodes.

`logs[b, i]` is ln F_i at the upper edge of bin b, in fixed point; a bin is a row, as a search looks at one bin of many
nodes.  `totals[g, b]` is the sum over the nodes of set g.  `sets[starts[i]:starts[i + 1]]` are the sets of node i.
"""

from __future__ import annotations

import math

from leeward.policies.dssp.latency.compiled import kernel


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
def first_at(least, logs, nodes, totals):  # type: ignore[no-untyped-def]
    """The first bin at which ln G is at least this much; the number of bins if there is none."""
    low, high = 0, len(logs)
    while low < high:
        middle = (low + high) >> 1
        if total_at(middle, logs, nodes, totals) >= least:
            high = middle
        else:
            low = middle + 1
    return low


@kernel
def slowest(wanted, near, far, edges, logs, nodes, totals):  # type: ignore[no-untyped-def]
    """The latency at which ln G is `wanted`, s; NaN where it is not known.

    If `near`, a lower one, is given (not 0), ln G is too sparse at `wanted`: from there on -ln G falls exponentially,
    as fast as it does from `far` to `near`.
    """
    first = first_at(near if near < 0 else wanted, logs, nodes, totals)
    if first == len(edges):
        return math.nan
    if near == 0:
        return edges[first]
    before = first_at(far, logs, nodes, totals)
    here, there = total_at(first, logs, nodes, totals), total_at(before, logs, nodes, totals)
    if here == 0 or here == there:
        return edges[first]
    pace = (edges[first] - edges[before]) / math.log(there / here)
    return edges[first] + pace * max(0.0, math.log(here / wanted))


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
