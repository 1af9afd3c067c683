"""Reads the snapshot that the plugin publishes at `<root>/snapshot`. Pure, but for the newest text, which is kept.

The snapshot is one text for all topologies, and the service of each reads it. So it is parsed once for all of them, and
parts that are as they were in the text before are kept: one supervisor's object serves every topology. A long one comes
packed: `{"version": 2, "gzip": "<base64>"}`.
"""

from __future__ import annotations

import binascii
import json
import threading
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leeward.core.errors import NotReadyError, ProtocolError
from leeward.core.orders import Assigned
from leeward.core.plan import Slot

SNAPSHOT_VERSION, PACKED_VERSION = 1, 2
#: Bytes of a snapshot that is unpacked; one of 5,000 nodes has some 4 MB.
LARGEST = 1 << 28
#: To zlib: the bytes begin with a header of gzip.
_GZIP = 16 + zlib.MAX_WBITS


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
    crowded: Mapping[str, int] = field(default_factory=dict)  #: node -> overhang of these (`overhang.py`)
    waiting: bool = False  #: nothing of this topology is placed, and the plugin waits for its first plan


def document_of(text: str) -> dict[str, Any]:
    """The JSON of a snapshot, unpacked. Raises ProtocolError for what is none, or of another version."""
    try:
        document = json.loads(text)
        if document["version"] == PACKED_VERSION:
            document = json.loads(_unzipped(document["gzip"]))
        version = document["version"]
    except (ValueError, KeyError, TypeError, RecursionError, zlib.error) as error:
        raise ProtocolError(f"not a snapshot: {error!r}.", remedy="Only the plugin writes it.") from None
    if version != SNAPSHOT_VERSION:
        raise ProtocolError(
            f"snapshot field 'version' is {version!r}, this program reads {SNAPSHOT_VERSION} and {PACKED_VERSION}.",
            remedy="Install plugin and service of the same release.",
        )
    return dict(document)


def _unzipped(base64: str) -> bytes:
    unzip = zlib.decompressobj(wbits=_GZIP)
    found = unzip.decompress(binascii.a2b_base64(base64, strict_mode=True), LARGEST)
    if not unzip.eof:
        raise ValueError(f"it is cut off, or has over {LARGEST} bytes")
    return found


def ports_of(text: str | None) -> dict[str, dict[str, tuple[int, ...]]]:
    """Topology id -> node -> ports of the slots in which its workers are, of all topologies; raises ProtocolError."""
    if not text:
        return {}
    try:
        return {topology["id"]: _ports(topology["executors"]) for topology in document_of(text)["topologies"]}
    except (ValueError, KeyError, TypeError) as error:
        raise ProtocolError(f"not a snapshot: {error!r}.", remedy="Only the plugin writes it.") from None


def nodes_of(text: str | None) -> list[str]:
    """Nodes that have a supervisor, sorted; raises ProtocolError."""
    if not text:
        return []
    try:
        return sorted({str(entry["node"]) for entry in document_of(text)["supervisors"]})
    except (KeyError, TypeError) as error:
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
        return _NEWEST.of(text).seen_by(topology_id)
    except (ValueError, KeyError, TypeError) as error:
        raise ProtocolError(f"not a snapshot: {error!r}.", remedy="Only the plugin writes it.") from None


@dataclass(frozen=True, slots=True)
class _Topology:
    """A topology in the text."""

    entry: Mapping[str, Any]  #: as it was read
    used: Mapping[Slot, str]  #: slots in which it has an executor -> its name


class _Document:
    """A snapshot, read as far as it is the same for all topologies. Raises ProtocolError, ValueError, KeyError,
    TypeError."""

    def __init__(self, text: str, before: _Document | None = None) -> None:
        """`before`: the one of which unchanged parts are taken."""
        document = document_of(text)
        self.text, self._entries = text, document["supervisors"]
        known: dict[str, _Topology] = dict(before.topologies) if before else {}
        self.topologies: list[tuple[str, _Topology]] = [
            (entry["id"], _read(entry, known.get(entry["id"]))) for entry in document["topologies"]
        ]
        same = before is not None and before._entries == self._entries
        self._supervisors: tuple[Supervisor, ...] = (
            before._supervisors if before is not None and same else _supervisors(self._entries)
        )

    def seen_by(self, topology_id: str) -> ClusterSnapshot:
        """One topology's part. Raises NotReadyError if it is not there."""
        mine = [topology.entry for id, topology in self.topologies if id == topology_id]
        if not mine:
            raise NotReadyError(f"Nimbus' plugin does not know {topology_id} yet.", remedy="Ask again in a second.")
        owners: dict[Slot, str] = {}
        for id, topology in self.topologies:
            if id != topology_id:
                owners.update(topology.used)
        tasks: dict[int, str] = {}
        slots: dict[int, Slot] = {}
        for executor in mine[0]["executors"]:
            first, last = executor["tasks"]
            for task in range(first, last + 1):
                tasks[task] = executor["component"]
                if executor["node"] is not None:
                    slots[task] = Slot(executor["node"], executor["port"])
        return ClusterSnapshot(
            supervisors=self._supervisors,
            tasks=tasks,
            assigned=Assigned(
                managed=bool(mine[0]["managed"]), epoch=mine[0]["epoch"], reason=mine[0]["reason"], slots=slots
            ),
            taken=frozenset(owners),
            owners=owners,
            others=frozenset(id for id, _ in self.topologies if id != topology_id),
            waiting=bool(mine[0].get("waiting")),
        )


def _read(entry: dict[str, Any], before: _Topology | None) -> _Topology:
    if before is not None and before.entry == entry:
        return before
    name, executors = str(entry["name"]), entry["executors"]
    return _Topology(entry, {Slot(e["node"], e["port"]): name for e in executors if e["node"] is not None})


def _supervisors(entries: list[dict[str, Any]]) -> tuple[Supervisor, ...]:
    by_node: dict[str, Supervisor] = {}
    for entry in entries:
        known = by_node.get(entry["node"])
        by_node[entry["node"]] = Supervisor(
            node=entry["node"],
            ports=tuple(sorted({*entry["ports"], *(known.ports if known else ())})),
            meta={key: str(value) for key, value in (entry.get("meta") or {}).items()},
            blacklisted=bool(entry.get("blacklisted")) or bool(known and known.blacklisted),
        )
    return tuple(by_node[node] for node in sorted(by_node))


class _Newest:
    """The newest snapshot that was read. For several threads: one parses, the others wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._document: _Document | None = None

    def of(self, text: str) -> _Document:
        with self._lock:
            if self._document is None or self._document.text != text:
                self._document = _Document(text, self._document)
            return self._document


_NEWEST = _Newest()
