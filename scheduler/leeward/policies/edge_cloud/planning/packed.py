"""The dataflows of a board in arrays: an arrival appends, a departure leaves a gap until gaps outweigh the rest."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.planning.arrays import Flows, Growing, Ints

_KINDS: dict[str, type] = {
    "start": np.int64, "size": np.int64, "owner": np.int64, "source": np.bool_, "sink": np.bool_, "kind": np.int64,
    "w_in": np.float64, "event_bytes": np.float64, "parent_at": np.int64, "parent": np.int64, "child_at": np.int64,
    "child": np.int64,
}  # fmt: skip


class Packed:
    """Flows, and the resource of each of their queries."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Dataflow, tuple[float, ...]]] = {}
        self._clear()

    def _clear(self) -> None:
        self._parts = {name: Growing(kind) for name, kind in _KINDS.items()}
        self._place = Growing(np.int64)
        self._parts["parent_at"].extend([0])
        self._parts["child_at"].extend([0])
        self._number: dict[str, int] = {}
        #: Dataflow -> position of each of its queries in the arrays.
        self._position: dict[str, tuple[int, ...]] = {}
        self._gaps = 0

    def add(self, dataflow: Dataflow, w_in: tuple[float, ...]) -> None:
        """A dataflow arrives, none of its queries is placed."""
        self._known[dataflow.name] = (dataflow, w_in)
        self._append(dataflow, w_in, [-1] * len(dataflow.queries))

    def _append(self, dataflow: Dataflow, w_in: tuple[float, ...], place: list[int]) -> None:
        parts, order, start = self._parts, dataflow.order, self._place.size
        number = parts["start"].size
        position = [0] * len(order)
        for at, v in enumerate(order):
            position[v] = start + at
        queries = [dataflow.queries[v] for v in order]
        parts["start"].extend([start])
        parts["size"].extend([len(order)])
        parts["owner"].extend([number] * len(order))
        parts["source"].extend([query.kind == "source" for query in queries])
        parts["sink"].extend([query.kind == "sink" for query in queries])
        parts["kind"].extend([query.type for query in queries])
        parts["w_in"].extend([w_in[v] for v in order])
        parts["event_bytes"].extend([query.event_bytes for query in queries])
        for name, others in (("parent", dataflow.parents), ("child", dataflow.children)):
            ends = accumulate((len(others[v]) for v in order), initial=parts[name].size)
            parts[name].extend([position[u] for v in order for u in others[v]])
            parts[f"{name}_at"].extend(list(ends)[1:])
        self._place.extend([place[v] for v in order])
        self._number[dataflow.name], self._position[dataflow.name] = number, tuple(position)

    def remove(self, name: str) -> None:
        """A dataflow departs."""
        del self._known[name]
        number = self._number.pop(name)
        self._parts["size"].now[number] = 0
        self._gaps += len(self._position.pop(name))
        if self._gaps > self._place.size - self._gaps:
            self._close_gaps()

    def _close_gaps(self) -> None:
        places = {name: [int(self.place[at]) for at in self._position[name]] for name in self._known}
        self._clear()
        for name, (dataflow, w_in) in self._known.items():
            self._append(dataflow, w_in, places[name])

    def put(self, name: str, v: int, r: int) -> None:
        """A query is on r from now on; -1: on none."""
        self.place[self._position[name][v]] = r

    def number(self, name: str) -> int:
        """The dataflow's number in the arrays; another one after gaps were closed."""
        return self._number[name]

    def positions(self, name: str) -> tuple[int, ...]:
        """Of each query of the dataflow."""
        return self._position[name]

    @property
    def place(self) -> Ints:
        """The resource of each query; -1: none. Of a dataflow that departed: of no meaning."""
        found: Ints = self._place.now
        return found

    def flows(self) -> Flows:
        """All dataflows; a dataflow of size 0 has departed."""
        return Flows(**{name: part.now for name, part in self._parts.items()})
