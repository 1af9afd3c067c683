"""cluster.json: other programs read it to find a running cluster.

{"version": 2, "spec": {...}, "nimbus": "127.0.0.1:6627", "zookeeper": "127.0.0.1:6621",
 "redis_url": "redis://127.0.0.1:6622/0", "secrets": "/.../secrets.json",
 "storm_home": "...", "storm_version": "2.8.3", "boot": "...",
 "nodes": [{"name": "127.0.0.11", "address": "127.0.0.11", "daemon": "supervisor-1", "thrift_port": 6631,
            "ports": [6700, 6701], "meta": {}}],
 "network": null,
 "daemons": {"nimbus": {"pid": 4711, "started": 123456}}}

With a network file, "network" is {"emulated": true, "nodes": [{"id": "north-1", "site": "north", "role": "worker",
"name": "north-1", "address": "198.18.51.11", "namespace": "lw-1a2b3c4d-north-1"}]}; where the network cannot be
emulated, "emulated" is false, "name" (the node id that Storm knows) and "address" are on loopback, and "namespace" is
null.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from leeward.core.network_document import network_document, parse_network
from leeward.local.errors import FolderError
from leeward.local.layout import ClusterSpec, Layout, layout_of
from leeward.local.network.plan import ends_of
from leeward.local.processes import Process, boot_id

VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A running cluster as cluster.json describes it."""

    spec: ClusterSpec
    layout: Layout
    redis_url: str  #: without the password
    secrets: Path  #: the secrets file
    storm_home: Path
    storm_version: str
    #: processes by daemon; empty when the machine booted since
    daemons: Mapping[str, Process]


def record_path(folder: Path) -> Path:
    """Where a run folder's record is."""
    return Path(folder) / "cluster.json"


def write_record(record: Record) -> None:
    """Write cluster.json whole or not at all, readable by the owner alone (settings may be anything)."""
    spec, layout = record.spec, record.layout
    values = {
        "version": VERSION,
        "spec": spec_values(spec),
        "nimbus": f"{layout.host}:{layout.nimbus}",
        "zookeeper": f"{layout.host}:{layout.zookeeper}",
        "redis_url": record.redis_url,
        "secrets": str(record.secrets),
        "storm_home": str(record.storm_home),
        "storm_version": record.storm_version,
        "nodes": [asdict(node) for node in layout.nodes],
        "network": network_values(spec, layout),
        "boot": boot_id(),
        "daemons": {name: asdict(process) for name, process in record.daemons.items()},
    }
    path = record_path(spec.dir)
    part = path.with_suffix(".part")
    part.touch(mode=0o600)
    part.write_text(json.dumps(values, indent=2) + "\n")
    part.replace(path)


def spec_values(spec: ClusterSpec) -> dict[str, object]:
    """A spec as plain values."""
    own = {"dir": str(spec.dir), "storm_home": spec.storm_home and str(spec.storm_home), "emulated": spec.emulated}
    network = spec.network and network_document(spec.network)
    return asdict(replace(spec, network=None)) | own | {"network": network}


def spec_from(values: Mapping[str, Any], folder: Path) -> ClusterSpec:
    """The spec that `spec_values` wrote. The folder may have been moved."""
    home, network = values["storm_home"], values.get("network")
    own = {"dir": folder, "storm_home": home and Path(home), "network": network and parse_network(network)}
    return ClusterSpec(**{**values, **own})


def network_values(spec: ClusterSpec, layout: Layout) -> dict[str, object] | None:
    """Where each node of the network file is; None without one."""
    if spec.network is None:
        return None
    found = {node.id: node for node in (spec.network.nimbus, *spec.network.workers)}
    addresses = [layout.host, *(node.address for node in layout.nodes)]
    names = [layout.host, *(node.name for node in layout.nodes)]
    spaces = [end.namespace for end in ends_of(spec)[:-1]] if spec.emulated else [None] * len(found)
    return {
        "emulated": spec.emulated,
        "nodes": [
            {"id": id, "site": node.site, "role": node.role, "name": name, "address": address, "namespace": space}
            for (id, node), name, address, space in zip(found.items(), names, addresses, spaces, strict=True)
        ],
    }


def read_record(folder: Path) -> Record:
    """Read cluster.json. Raises FolderError when there is none or it is of another version."""
    path = record_path(folder)
    try:
        values = json.loads(path.read_text())
    except FileNotFoundError:
        raise FolderError(
            f"dir: no cluster runs in {folder} (no {path.name}).",
            remedy=f"Start one: leeward cluster up --dir {folder}",
        ) from None
    if values.get("version") != VERSION:
        raise FolderError(
            f"{path}: version {values.get('version')!r}, this program reads {VERSION}.",
            remedy="End that cluster with the program that started it.",
        )
    spec = spec_from(values["spec"], Path(folder))
    same_boot = values["boot"] == boot_id()
    return Record(
        spec=spec,
        layout=layout_of(spec),
        redis_url=values["redis_url"],
        secrets=Path(values["secrets"]),
        storm_home=Path(values["storm_home"]),
        storm_version=values["storm_version"],
        daemons={n: Process(**process) for n, process in values["daemons"].items()} if same_boot else {},
    )
