"""JOIN messages, from a source's node towards the NodeId of the sink's (section IV of the paper; its Fig. 5).

The paper routes to the hash of the sink's NodeId, where another node is the root; the NodeId itself is meant, as the
rendezvous is the sink.  At each hop Pastry names one node.  That node and those of its leaf set that share as long a
prefix with the key are equally good steps; of the 8 nearest of them to the present node that have room, the least
loaded one forwards.  So each hop still adds a digit, and Pastry's bound on hops holds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from leeward.core.errors import LeewardError
from leeward.policies.agiledart.dataflow.nodes import Draft, Loads, Overlay
from leeward.policies.agiledart.overlay.ids import common_prefix

#: Candidates of which the least loaded one forwards.
CANDIDATES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """One message's way."""

    path: tuple[int, ...]  #: nodes that it passed, from the source's to the sink's, both included
    asked: tuple[int, ...]  #: of each hop the node that Pastry names, whose leaf set was asked for

    @property
    def hops(self) -> int:
        """Nodes that it was sent to."""
        return len(self.path) - 1

    @property
    def forwarders(self) -> tuple[int, ...]:
        """The nodes between source and sink."""
        return self.path[1:-1]


def join(overlay: Overlay, loads: Loads | Draft, source: int, sink: int) -> Join:
    """The way from node to node. Raises LeewardError for an unknown node, and if the sink cannot be reached."""
    for end in (source, sink):
        loads.check(end)
    path, asked = [source], []
    while path[-1] != sink:
        hop = overlay.next_hop(path[-1], sink, path)
        if hop is None:
            raise LeewardError(
                f"a JOIN from node {source:032x} ended at {path[-1]:032x}, not at its sink {sink:032x}.",
                remedy="Let the overlay converge, and check that the sink's node has joined.",
            )
        asked.append(hop)
        path.append(hop if hop == sink else _forwarder(overlay, loads, path, hop, sink))
    return Join(path=tuple(path), asked=tuple(asked))


def _forwarder(overlay: Overlay, loads: Loads | Draft, path: Collection[int], hop: int, sink: int) -> int:
    """The least loaded of the nearest candidates; the hop that Pastry names if none has room."""
    *_, here = path
    digits = common_prefix(hop, sink)
    equal = {hop, *(node for node in overlay.leaf_set(hop) if common_prefix(node, sink) >= digits)}
    able = [node for node in equal - {*path, sink} if loads.room(node) > 0]
    return least_loaded(((overlay.proximity(here, node), node) for node in able), loads.share, hop)


def least_loaded(able: Iterable[tuple[float, int]], share: Callable[[int], float], hop: int) -> int:
    """Of the nearest candidates, each with its proximity; `hop` if there is none."""
    nearest = sorted(able)[:CANDIDATES]
    return min(nearest, key=lambda one: (share(one[1]), one), default=(0.0, hop))[1]
