"""Table V on a real Storm, one short run of each mode: exact, and with the figures that the table needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leeward.policies.edrp.experiments.table5 import MODES
from tests.cluster.live_runs import play


@pytest.mark.slow  # `leeward demo` is the same run, and S-EDRP plans in it
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", MODES)
def test_two_hours_of_rows_for_one_objective(tmp_path: Path, mode: str):
    """Response times and costs are the experiment's matter; here only what a busy machine cannot change."""
    options = ["--quick", "--hours", "2", "--objective", "balanced", "--mode", mode]
    figures = play("edrp-table5", tmp_path, *options, timeout_s=500)
    assert figures["results lost, doubled or out of order"] == 0 and figures["rows replayed"] > 10_000
    assert 8 <= figures["fewest replicas"] <= figures["mean C"] <= figures["most replicas"]
    assert figures["the same of all results"] > 0 and figures["runs that failed"] == 0
    events = (tmp_path / "out" / f"balanced-{mode}" / "events.jsonl").read_text().splitlines()
    kinds = {event.get("kind") for event in map(json.loads, events) if event["action"] == "reconfiguration_ended"}
    assert not kinds & ({"restart"} if mode == "live" else {"handover"})
