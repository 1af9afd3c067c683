"""The remains of a topology in ZooKeeper, in Redis and on nodes, and which of them may be deleted.

Storm names a submitted topology `<name>-<counter>-<seconds since 1970>`, so an id is never used twice.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

#: Nimbus' list and what tasks write may lag behind a submission: younger topologies are left alone, seconds.
YOUNG_S = 60.0
_ID = re.compile(r".+-\d+-(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """The remains of one topology."""

    znodes: int = 0  #: under its own znode in ZooKeeper, itself among them
    placement: str = ""  #: name of the topology whose wanted placement is for this id
    keys: int = 0  #: in Redis
    swaps: tuple[str, ...] = ()  #: swap areas on this node
    listed: bool = False  #: Storm's own znode of it is there: it runs, or is about to

    def __bool__(self) -> bool:
        return bool(self.znodes or self.placement or self.keys or self.swaps)

    def __add__(self, other: Leftover) -> Leftover:
        return Leftover(
            znodes=self.znodes + other.znodes, placement=self.placement or other.placement,
            keys=self.keys + other.keys, swaps=tuple(dict.fromkeys((*self.swaps, *other.swaps))),
            listed=self.listed or other.listed,
        )  # fmt: skip


def submitted_at(topology_id: str) -> float | None:
    """Seconds since 1970, by Nimbus' clock; None if this is no id of Storm's."""
    match = _ID.fullmatch(topology_id)
    return float(match[1]) if match else None


def reason_to_stay(
    topology_id: str, left: Leftover, *, running: Collection[str], now: float, orphans: bool = False
) -> str:
    """Why nothing of this topology may be deleted; empty if all of it may.

    `running`: ids that Nimbus named before `left` was collected, or after it. `orphans`: Redis belongs to this cluster
    alone, so what its ZooKeeper does not know of is of no other cluster.
    """
    submitted = submitted_at(topology_id)
    if topology_id in running or left.listed:
        return "runs"
    if submitted is None:
        return "not an id of Storm's"
    if now - submitted < YOUNG_S:
        return f"submitted less than {YOUNG_S:g} s ago"
    if not (left.znodes or left.placement or left.swaps or orphans):
        return "unknown to this ZooKeeper: another cluster may use this Redis"
    return ""
