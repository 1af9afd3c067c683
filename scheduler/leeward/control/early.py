"""A topology that Nimbus has accepted and not placed yet. Pure.

Nimbus places once a second, so a new topology may wait that long until the plugin tells its tasks.  Their numbers are
known before: Storm sorts the components by name and counts through.  So a policy that needs no
measurement can plan at once, and where its plan is there before Nimbus' next pass, Storm's first placement is the plan.
A topology with `leeward.first_plan.secs` is published, and not placed, until it has a plan or has waited for so long.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from leeward.control.ports import Structure
from leeward.control.snapshot import ClusterSnapshot, document_of, read_snapshot

TASKS = "topology.tasks"
#: Storm's own components would have to be placed by a plan, too: numbers of their tasks, and consumers of its metrics.
OWN, CONSUMERS = ("topology.acker.executors", "topology.eventlogger.executors"), "topology.metrics.consumer.register"


def tasks_of(structure: Structure) -> dict[int, str] | None:
    """Task -> component by Storm's rule (`StormCommon.stormTaskInfo`).

    None if Storm has components of its own in it, or may have, or if a number of tasks is not known.
    """
    if any(structure.conf.get(key) != 0 for key in OWN) or structure.conf.get(CONSUMERS):
        return None
    found: dict[int, str] = {}
    for component in sorted(structure.components, key=lambda component: component.id):
        count = component.conf.get(TASKS)
        if not isinstance(count, int):
            return None
        found |= {len(found) + number: component.id for number in range(1, count + 1)}
    return found


def cluster_before(text: str | None, structure: Structure, tasks: Mapping[int, str]) -> ClusterSnapshot | None:
    """The cluster as last published, beside a topology with these `tasks` of which nothing is placed.

    None if nothing was published, or this topology already, unless it waits for its first plan.  Raises ProtocolError
    for what cannot be read.
    """
    document: dict[str, Any] = document_of(text) if text else {}
    waiting = [entry for entry in document.get("topologies", []) if entry["id"] == structure.id]
    if not document or not all(entry.get("waiting") for entry in waiting):
        return None
    topologies = [entry for entry in document["topologies"] if entry not in waiting]
    executors = [{"component": name, "tasks": [task, task], "node": None, "port": None} for task, name in tasks.items()]
    mine = {
        "id": structure.id, "name": structure.name, "managed": False, "epoch": None, "reason": "no plan",
        "executors": executors,
    }  # fmt: skip
    return read_snapshot(json.dumps({**document, "topologies": [*topologies, mine]}), structure.id)
