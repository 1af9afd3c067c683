"""Bi-modal links on a real Storm: agents map streams, routes follow, links are re-allocated, nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cluster.live_runs import WHY, play

pytestmark = pytest.mark.skipif(WHY is not None, reason=f"needs hardware and rights to emulate a network: {WHY}")


def check(folder: Path, wanted: int, *options: str, timeout_s: float) -> None:
    """Rates are the experiment's matter; here only what a busy machine cannot change."""
    figures = play("bimodal-live", folder, *options, timeout_s=timeout_s)
    streams = json.loads((folder / "out" / "streams.json").read_text())
    ran = [one for one in streams if not one["refused"]]
    assert len(ran) == wanted and all(one["as_mapped"] for one in ran)
    assert figures["events at the sinks"] > 0 and figures["lost"] == 0 and figures["doubled"] == 0
    assert figures["streams without a reservation when they were measured"] == 0
    assert figures["hops that got another way while tuples flowed"] >= 1
    assert figures["public hops of these after"] < figures["public hops of these before"]
    assert figures["carried by dedicated links"] > 0 and figures["carried by the public network"] > 0


@pytest.mark.timeout(700)
def test_three_streams_on_four_servers(tmp_path: Path):
    check(tmp_path, 3, "--quick", timeout_s=600)


@pytest.mark.slow
@pytest.mark.timeout(1300)
def test_seven_streams_on_seven_servers(tmp_path: Path):
    check(tmp_path, 7, timeout_s=1200)
