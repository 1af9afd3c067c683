"""cluster.json: what other programs read to find a running cluster.

{"version": 2, "spec": {...}, "nimbus": "127.0.0.1:6627", "zookeeper": "127.0.0.1:6621",
 "redis_url": "redis://127.0.0.1:6622/0", "secrets": "/.../secrets.json",
 "storm_home": "...", "storm_version": "2.8.3", "boot": "...",
 "nodes": [{"name": "127.0.0.11", "daemon": "supervisor-1", "thrift_port": 6631, "ports": [6700, 6701]}],
 "daemons": {"nimbus": {"pid": 4711, "started": 123456}}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from leeward.local.errors import FolderError
from leeward.local.layout import LOOPBACK, ClusterSpec, Layout, layout_of
from leeward.local.processes import Process, boot_id

VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A running cluster as cluster.json tells it."""

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
        "spec": asdict(spec) | {"dir": str(spec.dir), "storm_home": spec.storm_home and str(spec.storm_home)},
        "nimbus": f"{LOOPBACK}:{layout.nimbus}",
        "zookeeper": f"{LOOPBACK}:{layout.zookeeper}",
        "redis_url": record.redis_url,
        "secrets": str(record.secrets),
        "storm_home": str(record.storm_home),
        "storm_version": record.storm_version,
        "nodes": [asdict(node) for node in layout.nodes],
        "boot": boot_id(),
        "daemons": {name: asdict(process) for name, process in record.daemons.items()},
    }
    path = record_path(spec.dir)
    part = path.with_suffix(".part")
    part.touch(mode=0o600)
    part.write_text(json.dumps(values, indent=2) + "\n")
    part.replace(path)


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
    home = values["spec"]["storm_home"]
    spec = ClusterSpec(**values["spec"] | {"dir": Path(folder), "storm_home": home and Path(home)})
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
