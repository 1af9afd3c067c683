"""Dataflows of edge and cloud on a real Storm over an emulated network: placed by the policy, moved, nothing lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from leeward.local import processes
from leeward.local.cluster import MARK
from leeward.local.network import namespaces
from tests.cluster.harness import leeward
from tests.servers import port_block

WHY = namespaces.hindrance()
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"needs hardware and rights to emulate a network: {WHY}")


def run(folder: Path, *options: str, timeout_s: float) -> dict[str, Any]:
    """The experiment with these options; its result."""
    places = ("--dir", str(folder / "cluster"), "--out", str(folder / "out"), "--base-port", str(port_block()))
    done = leeward("experiment", "edge-cloud-live", *places, *options, timeout_s=timeout_s)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert processes.marked(MARK, str(folder / "cluster")) == set() and namespaces.left(folder / "cluster") == []
    found: dict[str, Any] = json.loads((folder / "out" / "edge_cloud_live.json").read_text())
    return found


def check(found: dict[str, Any], dataflows: int) -> None:
    """Times are the experiment's matter; here only what a busy machine cannot change."""
    rows = [row for row in found["dataflows"] if not row["killed"] and not row["refused"]]
    assert len(rows) == dataflows and any(row["killed"] for row in found["dataflows"])
    assert found["events"] > 0 and found["lost"] == 0 and found["doubled"] == 0
    for row in rows:
        assert row["ratio"] >= 0.97, f"{row['name']}: faster than its delays and service times together"
        ends = [(one["kind"], node) for one, node in zip(row["kinds"], row["place"], strict=True)]
        assert all(node.startswith({"source": "edge", "sink": "vm"}[kind]) for kind, node in ends if kind != "query")
    assert found["drain"]["dataflows"] > 0 and found["drain"]["left"] == [], "the drained node is empty"
    assert found["moves"].get("handover", 0) >= found["drain"]["dataflows"]


@pytest.mark.timeout(400)
def test_three_dataflows_on_four_nodes(tmp_path: Path):
    small = ("--dataflows", "3", "--nodes", "4", "--window", "10", "--rate", "2", "--speed", "0.01", "--stretch", "2")
    check(run(tmp_path, *small, timeout_s=360), 3)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_twelve_dataflows_on_eight_nodes(tmp_path: Path):
    check(run(tmp_path, timeout_s=1400), 12)
