"""Deletes what killed topologies have left: the service for its own one, `leeward tidy` for all."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from leeward.control.ports import Clock, LeftoverStore, Nimbus
from leeward.core.leftovers import Leftover, reason_to_stay

#: Workers of a killed topology end within seconds, and write until then: nothing has to come back for this long.
QUIET_S = 5.0
#: If something still comes back after this long, seconds, it is left to `leeward tidy`.
GIVE_UP_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The remains of a topology, and why they stay; an empty `why`: it may be deleted."""

    left: Leftover
    why: str


def survey(nimbus: Nimbus, leftovers: LeftoverStore, now: float, *, orphans: bool = False) -> Mapping[str, Found]:
    """Topology id -> what there is of it. Raises ClusterRefusedError if Nimbus does not answer.

    Nimbus is asked before and after, so a topology that is submitted meanwhile, or has just been, is one that runs.
    """
    before = set(nimbus.topologies().values())
    found = leftovers.found()
    running = before | set(nimbus.topologies().values())
    return {
        topology_id: Found(left=left, why=reason_to_stay(topology_id, left, running=running, now=now, orphans=orphans))
        for topology_id, left in sorted(found.items())
    }


def clear(
    leftovers: LeftoverStore, topology_id: str, clock: Clock, stop: threading.Event, *, patient: bool = True
) -> Leftover:
    """Delete everything of a topology that no longer runs; returns its names.

    `patient`: look again until its last workers have ended, or `stop` is set.
    """
    end, deleted = clock.now() + GIVE_UP_S, leftovers.delete(topology_id)
    while patient and not stop.wait(clock.patience(QUIET_S)) and clock.now() < end:
        more = leftovers.delete(topology_id)
        if not more:
            break
        deleted += more
    return deleted
