"""The benchmark of the types of query: how long one event takes, and what the processor draws for it.

The paper's 21 types are those of a technical report (its section 5); it prints no number of it.  These figures are
ours, within the ranges of the independent implementation (spec of edge and cloud, section 5, REF): a Raspberry Pi takes
0.18 to 1.02 ms for an event, a virtual machine a third of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from leeward.policies.edge_cloud.model.formulas import SECONDS_PER_HOUR

#: A machine of the cloud takes this share of an edge's time.
CLOUD_SHARE = 1 / 3
#: The current that an edge draws in addition while its processor works on a query, mA.
BUSY_MA = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryType:
    """One type of query on a device of speed 1."""

    name: str
    #: lambda on an edge, s.
    edge_s: float
    #: The least and the greatest selectivity sigma of such queries.
    selectivity: tuple[float, float]

    @property
    def cloud_s(self) -> float:
        """lambda on a machine of the cloud, s."""
        return self.edge_s * CLOUD_SHARE

    @property
    def edge_mah(self) -> float:
        """epsilon: the charge that one event takes from an edge, mAh."""
        return BUSY_MA * self.edge_s / SECONDS_PER_HOUR


def _family(kind: str, *rows: tuple[str, float, float, float]) -> tuple[QueryType, ...]:
    return tuple(
        QueryType(name=f"{kind}-{name}", edge_s=ms / 1000, selectivity=(low, high)) for name, ms, low, high in rows
    )


#: name, ms on an edge, least and greatest selectivity.
TYPES: tuple[QueryType, ...] = (
    *_family("filter", ("rare", 0.20, 0.02, 0.2), ("half", 0.21, 0.3, 0.7), ("most", 0.22, 0.8, 1.0),
             ("join", 0.27, 0.2, 0.9)),
    *_family("sequence", ("2", 0.32, 0.2, 0.6), ("3", 0.40, 0.1, 0.5), ("5", 0.52, 0.05, 0.3),
             ("every", 0.60, 0.8, 2.0)),
    *_family("pattern", ("2", 0.36, 0.2, 0.6), ("3", 0.46, 0.1, 0.5), ("5", 0.62, 0.05, 0.3),
             ("every", 0.70, 1.0, 3.0)),
    *_family("sliding", ("10", 0.30, 1.0, 1.0), ("60", 0.38, 1.0, 1.0), ("600", 0.56, 1.0, 1.0),
             ("group", 0.74, 1.0, 2.0), ("time", 0.44, 1.0, 1.0)),
    *_family("batch", ("10", 0.28, 0.1, 0.1), ("60", 0.34, 0.0167, 0.0167), ("600", 0.48, 0.01, 0.01),
             ("group", 0.90, 0.1, 0.5)),
)  # fmt: skip
NUMBER = {one.name: number for number, one in enumerate(TYPES)}
