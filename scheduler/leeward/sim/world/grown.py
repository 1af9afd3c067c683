"""Worlds of any size, made by a seed: topologies for a cluster that is larger than any that we can start.

The components of a topology form a tree, in which each fifth one reads from a second component, too. Service rates are
such that at the load of `LOAD` tuples/s a component needs from one to three replicas.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping

from leeward.core.coordinates import Coordinate
from leeward.sim.world.description import ComponentEntry, NodeEntry, StreamEntry, WorldFile

#: Tuples/s of the one source for which service rates are made.
LOAD = 200.0
#: The first port of a node.
FIRST_PORT = 6700
#: Children of a component in the tree; the distance between two components that have a second input.
CHILDREN, JOIN_EACH = 3, 5
#: Sites of the cluster, and how far they and the nodes within one are from each other, s.
SITES, APART_S, WITHIN_S = 8, 0.02, 0.0005


def nodes_of(count: int, slots: int) -> dict[str, tuple[int, ...]]:
    """Node -> ports, for nodes `n0000`, `n0001`, ..."""
    return {f"n{number:04}": tuple(range(FIRST_PORT, FIRST_PORT + slots)) for number in range(count)}


def places_of(nodes: Mapping[str, object], seed: int) -> dict[str, Coordinate]:
    """Where each node is: in one of `SITES` sites, in turn."""
    rng = random.Random(f"{seed}:places")
    middles = [(rng.uniform(-APART_S, APART_S), rng.uniform(-APART_S, APART_S)) for _ in range(SITES)]
    return {
        node: Coordinate(
            position=tuple(part + rng.gauss(0.0, WITHIN_S) for part in middles[number % SITES]),
            height=rng.uniform(0.1, 1.0) * WITHIN_S, error=0.1,
        )
        for number, node in enumerate(sorted(nodes))
    }  # fmt: skip


def grown(name: str, *, components: int, tasks: int, workers: int, seed: int) -> WorldFile:
    """One topology. `tasks`: of each component; `workers`: slots over which Storm deals them at first."""
    rng = random.Random(f"{seed}:{name}")
    names = [f"c{number:02}" for number in range(components)]
    streams: list[StreamEntry] = []
    rates = [LOAD] + [0.0] * (components - 1)
    for number in range(1, components):
        above = {(number - 1) // CHILDREN} | ({number - 2} if number % JOIN_EACH == 0 else set())
        for source in sorted(above):
            ratio = round(rng.uniform(0.3, 0.9), 2)
            streams.append(StreamEntry(source=names[source], target=names[number], ratio=ratio, keyed=number % 3 == 0))
            rates[number] += ratio * rates[source]
    entries = tuple(
        ComponentEntry(
            id=name, tasks=tasks, rate=math.ceil(rates[number] / rng.uniform(0.4, 2.2)) if number else 10 * LOAD,
            kind="source" if not number else "stateful" if number % 3 == 0 else "stateless",
            state_bytes=100_000 if number % 3 == 0 else 0,
        )
        for number, name in enumerate(names)
    )  # fmt: skip
    at_first = tuple(NodeEntry(id=f"w{number}", slots=1) for number in range(workers))
    return WorldFile(name=name, nodes=at_first, components=entries, streams=tuple(streams), workers=workers)
