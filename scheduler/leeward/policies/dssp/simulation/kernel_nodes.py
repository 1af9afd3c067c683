"""Compiled: the queues of all nodes, one after the other, as nothing that one node does changes what another gets.

A subtask's execution time follows from seed, node and query alone, so every discipline meets the same ones.
"""

from __future__ import annotations

import numpy as np

from leeward.policies.dssp.simulation.compiled import kernel
from leeward.policies.dssp.simulation.kernel_queues import STEP, drawn, drop_first, mixed, push
from leeward.policies.dssp.simulation.kernel_salvage import chosen, place_of, take_in


@kernel
def outwards(number, size):  # type: ignore[no-untyped-def]
    """From the middle of `size` places to both ends."""
    return size // 2 - (number + 1) // 2 if number % 2 else size // 2 + number // 2


@kernel
def serve(  # type: ignore[no-untyped-def]
    seed, shape, means, starts, queries, comes, after, first, count, keys, weights, stages, arrived, longest, kinds,
    spare, ends, passed,
):  # fmt: skip
    """All nodes: `ends` becomes the latest end of each query's subtasks, with the delays after it.

    `means[d, n]`: mean execution time of node n in domain d.  Tasks of domain d are those from `starts[d]` to
    `starts[d + 1]`, by time: of `queries`, at the nodes when it `comes`, with the delays `after` it, with its place in
    the order (`keys`).  Of each query: `first` node and `count` of nodes in each domain.  `stages`: of the execution
    time where the order is Salvage's, keys are times at which they are due, and each query has its class's weight;
    `passed` counts for each query how often it was served before a more urgent one.  0: the least key is served.

    A query is late that ends more than `longest` after it has `arrived`.  False, with the rest left out, as soon as
    more queries of one of the `kinds` are late than it has to `spare`; the middle nodes, which most queries need, come
    first.
    """
    line, items = np.empty(64), np.empty(64, np.int64)
    domains, nodes = means.shape
    for number in range(domains):
        d = outwards(number, domains)
        begin, end = starts[d], starts[d + 1]
        for place in range(nodes):
            n = outwards(place, nodes)
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
                        if waiting == len(line):
                            line, items = np.concatenate((line, line)), np.concatenate((items, items))
                        if stages:
                            take_in(line, items, waiting, place_of(keys[at], weights[q], means[d, n], stages), at)
                        else:
                            push(line, items, waiting, keys[at], at)
                        waiting += 1
                    at += 1
                if not waiting:
                    break
                if stages:
                    item, passes = chosen(line, items, keys, weights, queries, waiting, free, means[d, n], stages)
                    passed[queries[item]] += passes
                else:
                    item = items[0]
                    drop_first(line, items, waiting)
                waiting -= 1
                q = queries[item]
                free += drawn(shape, means[d, n], base + STEP * np.uint64(q))
                before, ends[q] = ends[q], max(ends[q], free + after[item])
                if before - arrived[q] <= longest[q] < ends[q] - arrived[q]:
                    spare[kinds[q]] -= 1
                    if spare[kinds[q]] < 0:
                        return False
    return True
