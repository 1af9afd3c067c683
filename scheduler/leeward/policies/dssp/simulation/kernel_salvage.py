"""Compiled: the queues of all nodes in the order of `disciplines.Salvage`; as `kernel_queues.serve` in all else."""

from __future__ import annotations

import math

import numpy as np

from leeward.policies.dssp.disciplines import CERTAIN, LOOK
from leeward.policies.dssp.simulation.compiled import kernel
from leeward.policies.dssp.simulation.kernel_queues import STEP, drawn, mixed


@kernel
def fitting(count, left, stages):  # type: ignore[no-untyped-def]
    """`disciplines.fitting`."""
    mean, first = stages * left, stages * count
    if mean <= 0:
        return 0.0 if count else 1.0
    term = math.exp(first * math.log(mean) - mean - math.lgamma(first + 1.0))
    total = term
    for number in range(first + 1, first + stages):
        term *= mean / number
        total += term
    return total


@kernel
def worth(dues, place, waiting, now, mean, stages):  # type: ignore[no-untyped-def]
    """`Salvage._worth` of the item at a place of the line, which is in the order of `dues`."""
    left = (dues[place] - now) / mean
    if left <= 0:
        return False
    if left >= CERTAIN or place == waiting - 1:
        return True
    allowed, lost = 1.0 - fitting(0, left, stages), 0.0
    for count in range(1, min(LOOK, waiting - 1 - place) + 1):
        lost += fitting(count, (dues[place + count] - now) / mean, stages)
        if lost > allowed:
            return False
    return True


@kernel
def take_in(dues, items, waiting, due, item):  # type: ignore[no-untyped-def]
    """Adds to a line of `waiting` items, behind those that are due as soon."""
    at = waiting
    while at > 0 and dues[at - 1] > due:
        dues[at], items[at] = dues[at - 1], items[at - 1]
        at -= 1
    dues[at], items[at] = due, item


@kernel
def chosen(dues, items, waiting, now, mean, stages):  # type: ignore[no-untyped-def]
    """Takes the item to serve out of the line."""
    place = 0
    while place < waiting and not worth(dues, place, waiting, now, mean, stages):
        place += 1
    if place == waiting:
        place = 0
    item = items[place]
    for at in range(place, waiting - 1):
        dues[at], items[at] = dues[at + 1], items[at + 1]
    return item, place > 0


@kernel
def serve_salvaging(  # type: ignore[no-untyped-def]
    seed, shape, means, starts, queries, comes, after, first, count, due, stages, ends, passed
):
    """`due`: of each task; `passed` counts how often an item was served before others of an earlier deadline."""
    dues, items = np.empty(64), np.empty(64, np.int64)
    domains, nodes = means.shape
    for d in range(domains):
        begin, end = starts[d], starts[d + 1]
        for n in range(nodes):
            base = mixed(np.uint64(seed) + STEP * np.uint64(d * nodes + n + 1))
            waiting, free, at = 0, 0.0, begin
            while True:
                while at < end:
                    q = queries[at]
                    if first[q] <= n < first[q] + count[q]:
                        if comes[at] > free:
                            if waiting:
                                break
                            free = comes[at]
                        if waiting == len(dues):
                            dues, items = np.concatenate((dues, dues)), np.concatenate((items, items))
                        take_in(dues, items, waiting, due[at], at)
                        waiting += 1
                    at += 1
                if not waiting:
                    break
                item, passes = chosen(dues, items, waiting, free, means[d, n], stages)
                waiting -= 1
                q = queries[item]
                passed[q] += passes
                free += drawn(shape, means[d, n], base + STEP * np.uint64(q))
                ends[q] = max(ends[q], free + after[item])
