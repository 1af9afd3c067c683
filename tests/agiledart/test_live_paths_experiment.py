"""The live study of forwarding: settings, the runs in virtual time, and the figures."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from leeward.core.network_document import parse_network
from leeward.policies.agiledart.experiments import live_paths as study
from leeward.policies.agiledart.experiments.live_paths import (
    BEST,
    CHANGED,
    DRIFT,
    FULL,
    KL,
    QUICK,
    STEADY,
    THOMPSON,
    WORSE,
    Came,
    Trace,
)

(STILL, _), (MOVED, _) = study.settings(replace(QUICK, changed=1), 0)


def trace(setting, delay_s, *, after=None):
    """Every packet takes the best path; `after`: the delay of those that are sent after the change."""
    path = study.play(setting, BEST, 0).came[-1].path
    half = setting.scale.packets // 2
    delays = [after if after and number >= half else delay_s for number in range(setting.scale.packets)]
    return Trace(
        came=tuple(Came(number=n, path=path, delay_s=delay) for n, delay in enumerate(delays)), reported=frozenset()
    )


def found(setting, live):
    played = {name: [study.play(setting, name, seed) for seed in range(20)] for name in live}
    rows, panel = study.conclude(setting, {name: [one] for name, one in live.items()}, played)
    return {row.metric: row for row in rows}, panel


def test_the_settings_are_those_of_the_seed_and_their_documents_are_networks():
    for setting, names in study.settings(FULL, 3):
        network = parse_network(setting.document(setting.thetas, 3))
        assert len(network.nodes) == 16 and len(network.links) == 2 * 24
        assert names == (STEADY if setting.later is None else CHANGED)
    assert study.settings(FULL, 3)[0] == study.settings(FULL, 3)[0]
    assert len(study.settings(QUICK, 0)) == 1


def test_the_link_that_gets_worse_is_on_the_best_path_and_another_path_is_better_then():
    changed = [n for n, (a, b) in enumerate(zip(MOVED.thetas, MOVED.later, strict=True)) if a != b]
    assert len(changed) == 1 and MOVED.later[changed[0]] == WORSE
    path = (*study.play(MOVED, BEST, 0).came[-1].path, MOVED.network.sink)
    assert MOVED.network.links[changed[0]] in list(pairwise(path))
    half = MOVED.scale.packets // 2
    assert MOVED.at(half - 1) == MOVED.thetas and MOVED.at(half) == MOVED.later


@pytest.mark.parametrize("name", STEADY)
def test_in_virtual_time_all_packets_arrive_and_the_one_that_knows_takes_the_best_path(name):
    played = study.play(STILL, name, 1)
    assert [one.number for one in played.came] == list(range(STILL.scale.packets)) and not played.reported
    assert played == study.play(STILL, name, 1)
    ratios = study.ratios(STILL, played)
    assert min(ratios) >= 1 - 1e-9
    if name == BEST:
        assert sorted(ratios)[len(ratios) // 2] == pytest.approx(1.0)


def test_a_live_run_that_is_far_from_the_simulated_ones_or_loses_a_packet_is_not_met():
    near = {name: study.play(STILL, name, 7) for name in (KL, BEST)}
    rows, panel = found(STILL, near)
    assert {row.met for row in rows.values()} == {True, None} and len(panel.curves) == 2
    far = near | {KL: trace(STILL, 60.0)}
    far[BEST] = replace(near[BEST], came=near[BEST].came[1:])
    rows, _ = found(STILL, far)
    assert {metric for metric, row in rows.items() if row.met is False} == {
        f"mean delay, {KL}", f"packets neither delivered nor reported, {BEST}"
    }  # fmt: skip
    assert rows[f"optimal's mean delay over that of {KL}"].ours < 0.1


def test_after_a_change_only_later_packets_count():
    live = {THOMPSON: trace(MOVED, 1.0, after=2.0), DRIFT: trace(MOVED, 5.0, after=1.0)}
    rows, _ = found(MOVED, live)
    assert rows["mean delay with fade over without, after the change"].ours == pytest.approx(0.5)
    assert rows["mean delay with fade over without, after the change"].met
    assert rows[f"mean delay, {THOMPSON}"].ours == pytest.approx(2000)


def test_a_packet_that_was_reported_is_not_lost():
    near = study.play(STILL, BEST, 7)
    gone = near.came[0].number
    live = {BEST: replace(near, came=near.came[1:], reported=frozenset({gone}))}
    rows, _ = found(STILL, live)
    assert rows[f"packets neither delivered nor reported, {BEST}"].met


def test_several_live_runs_count_together_and_have_narrower_bounds():
    runs = [trace(MOVED, 1.0, after=after) for after in (1.0, 3.0)]
    played = {name: [study.play(MOVED, name, seed) for seed in range(3)] for name in CHANGED}
    rows = {row.metric: row for row in study.conclude(MOVED, dict.fromkeys(CHANGED, runs), played)[0]}
    once = {row.metric: row for row in study.conclude(MOVED, dict.fromkeys(CHANGED, runs[:1]), played)[0]}
    metric = f"mean delay, {THOMPSON}"
    assert rows[metric].ours == pytest.approx(2000) and "2 runs" in rows[metric].setting
    assert rows[metric].high - rows[metric].low == pytest.approx((once[metric].high - once[metric].low) / 2**0.5)
