"""Live experiments as a user starts them: a cluster of their own on an emulated network, which is gone afterwards."""

from __future__ import annotations

import json
from pathlib import Path

from leeward.local import processes
from leeward.local.cluster import MARK
from leeward.local.network import namespaces
from tests.cluster.harness import leeward
from tests.helpers.servers import port_block

WHY = namespaces.hindrance()


def play(experiment: str, folder: Path, *options: str, timeout_s: float) -> dict[str, float]:
    """The figures of `leeward experiment EXPERIMENT` by metric; its other files are in `folder`/out."""
    places = ("--dir", str(folder / "cluster"), "--out", str(folder / "out"), "--base-port", str(port_block()))
    done = leeward("experiment", experiment, *places, *options, timeout_s=timeout_s)
    print(done.stderr, done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert processes.marked(MARK, str(folder / "cluster")) == set() and namespaces.left(folder / "cluster") == []
    rows = json.loads((folder / "out" / f"{experiment}.json").read_text())["rows"]
    return {row["metric"]: row["ours"] for row in rows}
