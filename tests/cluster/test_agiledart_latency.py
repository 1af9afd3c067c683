"""AgileDART beside plain Storm on a real Storm: both give the same results, and each places as it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leeward.policies.agiledart.experiments.latency import OURS, STORM
from tests.cluster.live_runs import WHY, play

pytestmark = pytest.mark.skipif(WHY is not None, reason=f"needs hardware and rights to emulate a network: {WHY}")


@pytest.mark.slow  # routers, placement by agents and these applications have tests of their own on the pipeline
@pytest.mark.timeout(480)
def test_one_application_at_one_rate(tmp_path: Path):
    """Latencies are the experiment's matter; here only what a busy machine cannot change."""
    figures = play("agiledart-latency", tmp_path, "--quick", timeout_s=450)
    assert figures["results that both wrote"] > 0 and figures["of these, missing in one or different"] == 0
    for system in (OURS, STORM):
        assert figures[f"{system}: results"] > 0 and figures[f"{system}: results that came twice"] == 0
    assert figures[f"{OURS}: of that from sensors and to users"] == 0, "source and sink stay where they are pinned"
    assert figures[f"{OURS}: replicas"] == figures[f"{STORM}: replicas"]
    assert figures[f"{OURS}: by the model"] < figures[f"{STORM}: by the model"]
    out = tmp_path / "out"
    planned = {
        word: {json.loads(line)["action"] for line in (out / f"events-query1-{word}.jsonl").read_text().splitlines()}
        for word in ("ours", "storm")
    }
    assert "plan_made" in planned["ours"] and "plan_made" not in planned["storm"]
    assert not (out / "agiledart-latency.runs").exists(), "it is over: the next call measures again"
