"""The record of a cluster as it would be in its run folder."""

from __future__ import annotations

from pathlib import Path

from leeward.local.layout import ClusterSpec, layout_of
from leeward.local.processes import Process
from leeward.local.record import Record


def record_in(folder: Path, *, process: Process = Process(4711, 12)) -> Record:
    spec = ClusterSpec(dir=folder, base_port=16000, supervisors=2, settings={"a": 1})
    return Record(
        spec=spec,
        layout=layout_of(spec),
        redis_url="redis://127.0.0.1:16022/0",
        secrets=folder / "secrets.json",
        storm_home=Path("/opt/storm"),
        storm_version="2.8.3",
        daemons={"nimbus": process},
    )
