"""Sites as processes in namespaces of their own: packets pass the emulated network, also when its links change."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from leeward.cli._agiledart_live_paths import Sites
from leeward.local.network import namespaces
from leeward.policies.agiledart.experiments import live_paths as study
from leeward.policies.agiledart.experiments.live_paths import DRIFT, Scale
from tests.helpers.servers import port_block

WHY = namespaces.hindrance()
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"needs hardware and rights to emulate a network: {WHY}")

SCALE = Scale(side=2, links=5, packets=30, gap_s=0.05, played=1, changed=1)


def test_packets_are_forwarded_by_processes_and_meet_the_changed_links(tmp_path: Path):
    (setting, _), (changing, _) = study.settings(SCALE, 5)
    good = tuple(1.0 for _ in setting.thetas)
    cut = replace(changing, thetas=good, later=tuple(study.WORSE for _ in good))
    with Sites(cut, DRIFT, seed=1, folder=tmp_path / "net", base_port=port_block(), out=tmp_path) as sites:
        trace = sites.trace()
        lines = [json.loads(line) for line in (tmp_path / "site-0.jsonl").read_text().splitlines()]
    assert namespaces.left(tmp_path / "net") == []
    assert [one.number for one in trace.came] == list(range(SCALE.packets)) and not trace.reported
    assert {line["end"] for line in lines if "why" in line} == set(range(SCALE.packets))
    first, last = trace.came[:10], trace.came[-10:]
    least_s = study.SLOT_S / 2
    assert all(one.delay_s >= least_s * len(one.path) for one in trace.came)
    assert max(one.delay_s for one in first) < min(1.0, max(one.delay_s for one in last))
