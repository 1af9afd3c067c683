"""The spine and the tree along which the bounds of the exact search run.

The spine is one source-to-sink path, fixed upstream first; its latency is what a bound counts.  Every other
operator hangs below one of those that feed it, by its heaviest stream, so that a bound also counts its cost and
its traffic.  A side operator is fixed as soon as all of the spine is that it leads to, so that what it costs is
known without multiplying the choices for the spine; one that leads nowhere else comes last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from leeward.policies.edrp.exact.arrays import Arrays

NONE = -1


class Tree(NamedTuple):
    """Operators in the order of fixing, and the children of each."""

    order: np.ndarray  # [G]
    level: np.ndarray  # [G] position in `order`
    on_spine: np.ndarray  # [G]
    last: np.ndarray  # [G + 1] the last spine operator that is fixed at a level, or NONE
    whole: int  # the level from which on the whole spine is fixed
    parent: np.ndarray  # [G] tree parent or NONE
    edge: np.ndarray  # [G] the edge from the parent or NONE
    first: np.ndarray  # [G] first child in the order of fixing, or NONE
    next: np.ndarray  # [G] next sibling, or NONE


@dataclass(frozen=True, kw_only=True)
class Path:
    """A source-to-sink path by its operators."""

    operators: tuple[int, ...]
    length_s: float


def longest_paths(p: Arrays, hop_s: float, count: int) -> list[Path]:
    """Up to `count` source-to-sink paths, longest first, each operator at its best and `hop_s` for each stream.

    Only the `count` longest beginnings of each operator are kept, which gives the longest paths exactly.
    """
    own = np.array([p.latency[i, p.k[i]] for i in range(len(p.k))]) / p.speed.max()
    beginnings: dict[int, list[tuple[float, tuple[int, ...]]]] = {}
    feeds = {int(i) for i in p.edge_from}
    complete: list[tuple[float, tuple[int, ...]]] = []
    for i in map(int, p.topo):
        upstream = [int(u) for u, v in zip(p.edge_from, p.edge_to, strict=True) if v == i]
        found = [(length + hop_s + own[i], (*path, i)) for u in upstream for length, path in beginnings[u]] or [
            (own[i], (i,))
        ]
        beginnings[i] = sorted(found, key=lambda item: (-item[0], item[1]))[:count]
        if i not in feeds:
            complete += beginnings[i]
    best = sorted(complete, key=lambda item: (-item[0], item[1]))[:count]
    return [Path(operators=path, length_s=float(length)) for length, path in best]


def tree_along(p: Arrays, spine: tuple[int, ...]) -> Tree:
    """The tree with this spine."""
    count = len(p.k)
    order = np.array(_order_of_fixing(p, spine), dtype=np.int64)
    level = np.empty(count, dtype=np.int64)
    level[order] = np.arange(count)
    on_spine = np.zeros(count, dtype=np.bool_)
    on_spine[list(spine)] = True
    last = np.full(count + 1, NONE)
    for at, i in enumerate(order):
        last[at + 1] = i if on_spine[i] else last[at]
    parent = np.full(count, NONE)
    edge = np.full(count, NONE)
    before = dict(zip(spine[1:], spine, strict=False))
    for e in np.argsort(p.rate, kind="stable"):  # the heaviest comes last and stays
        source, target = int(p.edge_from[e]), int(p.edge_to[e])
        if target != spine[0] and before.get(target, source) == source:
            parent[target], edge[target] = source, e
    first, after = np.full(count, NONE), np.full(count, NONE)
    for i in reversed(order):
        if parent[i] != NONE:
            after[i] = first[parent[i]]
            first[parent[i]] = i
    return Tree(
        order=order,
        level=level,
        on_spine=on_spine,
        last=last,
        whole=int(level[spine[-1]]) + 1,
        parent=parent,
        edge=edge,
        first=first,
        next=after,
    )


def _order_of_fixing(p: Arrays, spine: tuple[int, ...]) -> list[int]:
    place = {i: at for at, i in enumerate(spine)}
    end = len(spine)
    due: dict[int, int] = {}  # side operator -> the place on the spine after which it is fixed
    for i in reversed([int(i) for i in p.topo]):
        if i not in place:
            heads = [int(v) for u, v in zip(p.edge_from, p.edge_to, strict=True) if u == i]
            due[i] = max((place[v] if v in place else due[v] for v in heads), default=end)
    for i in [int(i) for i in p.topo]:  # not before those that feed it
        if i in due:
            tails = [int(u) for u, v in zip(p.edge_from, p.edge_to, strict=True) if v == i]
            due[i] = max([due[i], *(place[u] if u in place else due[u] for u in tails)])
    side = [int(i) for i in p.topo if int(i) in due]
    order = []
    for at in range(end + 1):
        order += [spine[at]] if at < end else []
        order += [i for i in side if due[i] == at]
    return order
