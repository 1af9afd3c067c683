"""Compiled: the queues of all nodes, one after the other, as nothing that one node does changes what another gets.

A subtask's execution time follows from seed, node and query alone, so every discipline meets the same ones.
"""

from __future__ import annotations

import math

import numpy as np

from leeward.policies.dssp.simulation.compiled import kernel

#: Of splitmix64.
STEP = np.uint64(0x9E3779B97F4A7C15)
_ONE, _TWO = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
#: Distributions of execution times.
UNIFORM, EXPONENTIAL, CONSTANT = 0, 1, 2


@kernel
def mixed(value):  # type: ignore[no-untyped-def]
    """A hash of 64 bits."""
    value = (value ^ (value >> _S30)) * _ONE
    value = (value ^ (value >> _S27)) * _TWO
    return value ^ (value >> _S31)


@kernel
def drawn(shape, mean, state):  # type: ignore[no-untyped-def]
    """An execution time; `state`: a number for each subtask."""
    share = (float(mixed(state) >> _S11) + 0.5) / 9007199254740992.0
    if shape == UNIFORM:
        return 2.0 * mean * share
    if shape == EXPONENTIAL:
        return -mean * math.log(share)
    return mean


@kernel
def push(keys, items, count, key, item):  # type: ignore[no-untyped-def]
    """Adds to a heap of `count` items, the least key first; ties go to the lower item."""
    at = count
    while at > 0:
        above = (at - 1) >> 1
        if keys[above] < key or (keys[above] == key and items[above] < item):
            break
        keys[at], items[at] = keys[above], items[above]
        at = above
    keys[at], items[at] = key, item


@kernel
def drop_first(keys, items, count):  # type: ignore[no-untyped-def]
    """Takes the first of `count` items out."""
    last = count - 1
    key, item, at = keys[last], items[last], 0
    while True:
        child = 2 * at + 1
        if child >= last:
            break
        other = child + 1
        if other < last and (keys[other] < keys[child] or (keys[other] == keys[child] and items[other] < items[child])):
            child = other
        if key < keys[child] or (key == keys[child] and item < items[child]):
            break
        keys[at], items[at] = keys[child], items[child]
        at = child
    keys[at], items[at] = key, item


@kernel
def serve(  # type: ignore[no-untyped-def]
    seed, shape, means, starts, queries, comes, after, first, count, keys, ends
):
    """All nodes, each by the least key: `ends` becomes the latest end of each query's subtasks, with delays after it.

    `means[d, n]`: mean execution time of node n in domain d.  Tasks of domain d are those from `starts[d]` to
    `starts[d + 1]`, by time: of `queries`, at the nodes when it `comes`, with the delays `after` it, with its place in
    the order (`keys`).  Of each query: `first` node and `count` of nodes in each domain.
    """
    heap, items = np.empty(64), np.empty(64, np.int64)
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
                        if waiting == len(heap):
                            heap, items = np.concatenate((heap, heap)), np.concatenate((items, items))
                        push(heap, items, waiting, keys[at], at)
                        waiting += 1
                    at += 1
                if not waiting:
                    break
                item = items[0]
                drop_first(heap, items, waiting)
                waiting -= 1
                q = queries[item]
                free += drawn(shape, means[d, n], base + STEP * np.uint64(q))
                ends[q] = max(ends[q], free + after[item])
