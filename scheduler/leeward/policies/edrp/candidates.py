"""The nodes of a large cluster that S-EDRP looks at. The paper's clusters have tens of nodes; this part is our own.

Two nodes are *alike* if nothing in the problem but their names tells them apart: no task of the topology is on them, no
component is pinned to them, nothing is known of their delays, and their capacity and speed-up are the same. If two such
nodes change places in a deployment, F and all constraints stay as they are. No deployment uses more of them than it has
replicas. So of nodes that are alike, as many as the components that are pinned nowhere can have replicas together are
enough: every deployment has an equal one on these. Nodes that no replica may use are left out. Where more than a solver
can look at in its time are left, only some of each kind stay, and a better deployment may be missed.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from leeward.core.coordinates import Delays
from leeward.core.model import ClusterView, Node

#: Nodes that a search looks at, at most, beside those that something is known of. Replicas on few nodes wait less for
#: each other than on many that are alike, so more are of use only if these are full.
MOST = 8


@dataclass(frozen=True, slots=True)
class Candidates:
    """See the module."""

    nodes: tuple[Node, ...]  #: by id
    complete: bool  #: a deployment on these is as good as any on all nodes


def candidates(view: ClusterView, most: int = MOST) -> Candidates:
    """The nodes to look at: those that something is known of, and enough of each kind of the others.

    Of a kind those with the least ids, counted from a place that the topology's name gives: so topologies that plan at
    the same time want different ones.
    """
    known, kinds = _known(view), dict[object, list[Node]]()
    for node in view.nodes:
        if node.id not in known and not node.draining and node.capacity > 0:
            kinds.setdefault((node.capacity, node.meta.get("speedup", "")), []).append(node)
    kept = [node for node in view.nodes if node.id in known]
    if not kinds and all(node.draining or node.capacity <= 0 for node in kept):
        return Candidates(view.nodes, complete=True)  # none can be used, and the problem says so by their names
    useful = sum(component.max_replicas for component in view.components if not component.pinned)
    ordered = [_rotated(nodes, view.topology)[:useful] for nodes in kinds.values()]
    needed = sum(map(len, ordered))
    for nodes, count in zip(ordered, _counts(ordered, most, useful), strict=True):
        kept += nodes[:count]
    complete = needed <= len(kept) - len(known & {node.id for node in view.nodes})
    return Candidates(tuple(sorted(kept, key=lambda node: node.id)), complete=complete)


def _known(view: ClusterView) -> set[str]:
    """Nodes that have tasks of the topology, that a component is pinned to, or of which a delay is known."""
    delays = view.delay_s
    measured = delays.places if isinstance(delays, Delays) else {node for pair in delays for node in pair}
    pinned = {node for component in view.components for node in component.pinned}
    return {slot.node for slot in view.assignment.values()} | pinned | set(measured)


def _rotated(nodes: Sequence[Node], topology: str) -> list[Node]:
    ordered = sorted(nodes, key=lambda node: node.id)
    begin = zlib.crc32(topology.encode()) % len(ordered)
    return ordered[begin:] + ordered[:begin]


def _counts(kinds: Sequence[Sequence[Node]], most: int, useful: int) -> list[int]:
    """How many of each kind: all, or `most` in all, one of each kind in turn, those of large capacity first.

    More than `most` if they would not hold `useful` replicas.
    """
    counts, room = [0] * len(kinds), 0
    order = sorted((at for at in range(len(kinds)) if kinds[at]), key=lambda at: (-kinds[at][0].capacity, at))
    while more := [at for at in order if counts[at] < len(kinds[at])]:
        for at in more:
            if sum(counts) >= most and room >= useful:
                return counts
            counts[at] += 1
            room += kinds[at][0].capacity
    return counts
