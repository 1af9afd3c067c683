"""Many placements of the same dataflows at once: their makespans, and how many queries break a constraint.

A population is an array [placement, query] of resources.  The queries of all dataflows are numbered through, each
dataflow's after one another.  Queries of equal depth in their dataflows are measured in one step for all placements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.formulas import rates
from leeward.policies.edge_cloud.planning.arrays import Ints
from leeward.policies.edge_cloud.planning.loads import Floats, Loads, Mask


class _Level(NamedTuple):
    """The queries of one depth: [query], [query, parent]; a query with fewer parents than others repeats one."""

    queries: Ints
    parents: Ints


class Placing:
    """The dataflows to be placed beside what `loads` has."""

    def __init__(self, loads: Loads, dataflows: Sequence[Dataflow]) -> None:
        self._loads = loads
        queries = [query for dataflow in dataflows for query in dataflow.queries]
        #: The position of each dataflow's first query.
        self.starts = np.cumsum([0, *(len(dataflow.queries) for dataflow in dataflows[:-1])])
        self.kind: Ints = np.array([query.type for query in queries])
        self.w_in: Floats = np.array([rate for dataflow in dataflows for rate in rates(dataflow)[0]])
        self.sink: Mask = np.array([query.kind == "sink" for query in queries])
        self._bytes: Floats = np.array([query.event_bytes for query in queries])
        #: The queries that load their resource: all but the sources.
        self._works: Ints = np.flatnonzero([query.kind != "source" for query in queries])
        self._levels = _levels(dataflows, self.starts)

    def evaluate(self, places: Ints) -> tuple[Floats, Mask]:
        """For each placement its total makespan (8), s; and [placement, query] whether the query breaks a constraint.

        That is C1 for a sink on an edge; C2 if it cannot keep up, or one that was there before; C3 if its edge fails.
        """
        works = self._works
        latency = np.zeros(places.shape)
        broken = np.zeros(places.shape, dtype=np.bool_)
        latency[:, works], broken[:, works] = self._load(places[:, works])
        broken |= self.sink & self._loads.is_edge[places]
        spans = np.maximum.reduceat(self._lengths(places, latency), self.starts, axis=1)
        return spans.sum(axis=1), broken

    def _load(self, places: Ints) -> tuple[Floats, Mask]:
        """Lambda of the queries that are no sources, s, and whether they break C2 or C3 where they are."""
        loads, kind, w_in = self._loads, self.kind[self._works], self.w_in[self._works]
        resources = len(loads.count)
        size = len(places) * resources
        cell = (places + resources * np.arange(len(places))[:, None]).ravel()

        def sums(own: Floats | None, others: Floats | Ints) -> Floats:
            """[placement, query]: the sum over all that is on the query's resource."""
            found = np.bincount(cell, None if own is None else own.ravel(), minlength=size)
            return np.asarray(found[cell].reshape(places.shape) + others[places])

        alone = loads.lam_s[kind, places]
        over = 1 + loads.overheads.at(places, sums(None, loads.count).astype(np.int64))
        service = over * sums(alone, loads.lam_sum_s)
        drain = sums(w_in * loads.eps_mah[kind, places], loads.drain_mah_s)
        energy = loads.recharge_s[places] * (loads.base_mah_s[places] + drain)
        broken = (np.maximum(w_in, loads.fastest[places]) * service >= 1) | (energy > loads.battery_mah[places])
        latency = {"shared": service, "overhead": alone * over, "exclusive": alone}[loads.fabric.mode]
        return latency, broken

    def _lengths(self, places: Ints, latency: Floats) -> Floats:
        """L_i (10), s."""
        loads, found = self._loads, latency.copy()
        for level in self._levels:
            r, s = places[:, level.parents], places[:, level.queries, None]
            here, there = loads.site[r], loads.site[s]
            hop = loads.latency_s[here, there] + self._bytes[level.parents] * loads.s_per_byte[here, there]
            way = found[:, level.parents] + np.where(r == s, 0.0, hop)
            found[:, level.queries] += way.max(axis=2)
        return found


def _levels(dataflows: Sequence[Dataflow], starts: Ints) -> list[_Level]:
    """The depths of all dataflows but the first, which has the sources."""
    found = []
    for depth in range(1, max(len(dataflow.sets) for dataflow in dataflows)):
        rows = [
            (start + v, [start + u for u in dataflow.parents[v]])
            for start, dataflow in zip(starts.tolist(), dataflows, strict=True)
            if depth < len(dataflow.sets)
            for v in dataflow.sets[depth]
        ]
        most = max(len(parents) for _, parents in rows)
        padded = [parents + parents[:1] * (most - len(parents)) for _, parents in rows]
        found.append(_Level(queries=np.array([v for v, _ in rows]), parents=np.array(padded)))
    return found
