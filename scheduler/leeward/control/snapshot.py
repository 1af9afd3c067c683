"""Reads the snapshot that the plugin publishes at `<root>/snapshot`. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leeward.core.errors import NotReadyError, ProtocolError
from leeward.core.orders import Assigned
from leeward.core.plan import Slot

SNAPSHOT_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervisor:
    """A supervisor as Nimbus sees it."""

    node: str
    ports: tuple[int, ...]
    meta: Mapping[str, str] = field(default_factory=dict)
    blacklisted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot:
    """One topology's part of the plugin's snapshot."""

    supervisors: tuple[Supervisor, ...]  #: by node
    tasks: Mapping[int, str]  #: task -> component, system components included
    assigned: Assigned
    taken: frozenset[Slot]  #: slots that other topologies use
    owners: Mapping[Slot, str] = field(default_factory=dict)  #: of those: the name of the topology
    others: frozenset[str] = frozenset()  #: ids of the other topologies that run


def ports_of(text: str | None) -> dict[str, dict[str, tuple[int, ...]]]:
    """Topology id -> node -> ports of the slots in which its workers are, of all topologies; raises ProtocolError."""
    try:
        document = json.loads(text) if text else {"topologies": []}
        return {topology["id"]: _ports(topology["executors"]) for topology in document["topologies"]}
    except (ValueError, KeyError, TypeError) as error:
        raise ProtocolError(f"not a snapshot: {error!r}.", remedy="Only the plugin writes it.") from None


def _ports(executors: list[dict[str, Any]]) -> dict[str, tuple[int, ...]]:
    found: dict[str, set[int]] = {}
    for executor in executors:
        if executor["node"] is not None:
            found.setdefault(executor["node"], set()).add(executor["port"])
    return {node: tuple(sorted(ports)) for node, ports in found.items()}


def read_snapshot(text: str | None, topology_id: str) -> ClusterSnapshot:
    """Raises NotReadyError if the plugin has not published this topology yet, ProtocolError for what it cannot read."""
    if not text:
        raise NotReadyError(
            "Nimbus' plugin has not published a snapshot.",
            remedy="Set storm.scheduler to leeward.plugin.PlanScheduler in Nimbus' storm.yaml and restart Nimbus.",
        )
    try:
        document = json.loads(text)
        if document["version"] != SNAPSHOT_VERSION:
            raise ProtocolError(
                f"snapshot field 'version' is {document['version']}, this program reads {SNAPSHOT_VERSION}.",
                remedy="Install plugin and service of the same release.",
            )
        return _read(document, topology_id)
    except (ValueError, KeyError, TypeError) as error:
        raise ProtocolError(f"not a snapshot: {error!r}.", remedy="Only the plugin writes it.") from None


def _read(document: dict[str, Any], topology_id: str) -> ClusterSnapshot:
    mine = [topology for topology in document["topologies"] if topology["id"] == topology_id]
    if not mine:
        raise NotReadyError(f"Nimbus' plugin does not know {topology_id} yet.", remedy="Ask again in a second.")
    owners = {
        Slot(executor["node"], executor["port"]): str(topology["name"])
        for topology in document["topologies"]
        if topology["id"] != topology_id
        for executor in topology["executors"]
        if executor["node"] is not None
    }
    tasks: dict[int, str] = {}
    slots: dict[int, Slot] = {}
    for executor in mine[0]["executors"]:
        first, last = executor["tasks"]
        for task in range(first, last + 1):
            tasks[task] = executor["component"]
            if executor["node"] is not None:
                slots[task] = Slot(executor["node"], executor["port"])
    by_node: dict[str, Supervisor] = {}
    for entry in document["supervisors"]:
        known = by_node.get(entry["node"])
        by_node[entry["node"]] = Supervisor(
            node=entry["node"],
            ports=tuple(sorted({*entry["ports"], *(known.ports if known else ())})),
            meta={key: str(value) for key, value in (entry.get("meta") or {}).items()},
            blacklisted=bool(entry.get("blacklisted")) or bool(known and known.blacklisted),
        )
    topology = mine[0]
    return ClusterSnapshot(
        supervisors=tuple(by_node[node] for node in sorted(by_node)),
        tasks=tasks,
        assigned=Assigned(
            managed=bool(topology["managed"]), epoch=topology["epoch"], reason=topology["reason"], slots=slots
        ),
        taken=frozenset(owners),
        owners=owners,
        others=frozenset(other["id"] for other in document["topologies"] if other["id"] != topology_id),
    )
