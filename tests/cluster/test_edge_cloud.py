"""Dataflows of edge and cloud on a real Storm over an emulated network: placed by the policy, moved, nothing lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.live_runs import WHY, play

pytestmark = pytest.mark.skipif(WHY is not None, reason=f"needs hardware and rights to emulate a network: {WHY}")


def run(folder: Path, *options: str, timeout_s: float) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """The experiment with these options: its figures by metric, and the facts of each dataflow."""
    figures = play("edge-cloud-live", folder, *options, timeout_s=timeout_s)
    dataflows: list[dict[str, Any]] = json.loads((folder / "out" / "dataflows.json").read_text())
    return figures, dataflows


def check(figures: dict[str, float], dataflows: list[dict[str, Any]], wanted: int) -> None:
    """Times are the experiment's matter; here only what a busy machine cannot change."""
    rows = [row for row in dataflows if not row["killed"] and not row["refused"]]
    assert len(rows) == wanted and any(row["killed"] for row in dataflows)
    assert figures["events at the sinks"] > 0 and figures["lost"] == 0 and figures["doubled"] == 0
    for row in rows:
        assert row["ratio"] >= 0.97, f"{row['name']}: faster than its delays and service times together"
        ends = [(kind, node) for kind, node in zip(row["dataflow"], row["place"], strict=True) if kind != "query"]
        assert all(node.startswith({"source": "edge", "sink": "vm"}[kind]) for kind, node in ends)
    placed = sum(not row["refused"] for row in dataflows)
    assert figures["dataflows whose first placement was the plan"] == placed, "none was started twice"
    (left,) = (name for name in figures if name.startswith("dataflows left on the drained node"))
    assert figures[left] == 0, "the drained node is empty"
    assert figures["handovers by the rebalance (vertex-edge)"] >= 1
    assert sum(count for name, count in figures.items() if name.startswith("handovers in the drain")) >= 1


@pytest.mark.timeout(700)
def test_three_dataflows_on_four_nodes(tmp_path: Path):
    check(*run(tmp_path, "--quick", timeout_s=600), 3)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_twelve_dataflows_on_eight_nodes(tmp_path: Path):
    check(*run(tmp_path, timeout_s=1400), 12)
