"""Ours: limits of where queries run that the paper does not know: pins of queries, and rivals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from leeward.policies.edge_cloud.planning.loads import Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of the queries of one dataflow, by their numbers."""

    pinned: Mapping[int, frozenset[int]] = field(default_factory=dict)  #: query -> resources; absent: any
    rivals: Mapping[int, frozenset[int]] = field(default_factory=dict)  #: query -> those that share no resource with it

    @property
    def queries(self) -> list[int]:
        """Those that are limited, ascending."""
        return sorted(self.pinned.keys() | self.rivals.keys())

    def hold(self, place: Sequence[int | None]) -> bool:
        """Whether a placement breaks none of them; `place`: the resource of each query, None of one without."""
        return all(self.allow(v, r, place) for v in self.queries if (r := place[v]) is not None)

    def allow(self, v: int, r: int, place: Sequence[int | None]) -> bool:
        """Whether a query may run on r beside the others of its dataflow."""
        if v in self.pinned and r not in self.pinned[v]:
            return False
        return all(place[other] != r for other in self.rivals.get(v, ()))

    def mask(self, v: int, place: Sequence[int | None], size: int) -> Mask:
        """[resource]: the same for each of `size` resources."""
        found: Mask = np.ones(size, dtype=np.bool_)
        if v in self.pinned:
            found[:] = False
            found[sorted(self.pinned[v])] = True
        found[[r for other in self.rivals.get(v, ()) if (r := place[other]) is not None]] = False
        return found
