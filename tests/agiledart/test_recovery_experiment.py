"""The rows of agiledart-recovery follow from the figures of a run, and a wrong state fails its bound."""

from __future__ import annotations

import pytest

from leeward.policies.agiledart.experiments.recovery import FULL, QUICK, RING, K, M, conclude, neighbours, saved

GOOD = {
    "ours": 7.0, "whole": 11.5, "central": 20.0, "written": 2.0, "wrong": 0.0, "k failures": 11.0, "k right": 1.0,
    "forged right": 1.0, "loss told": 1.0, "forged loss told": 1.0, **{f"{n} at once": 6.0 for n in FULL.failures},
}  # fmt: skip


def missed(measured, scale=FULL) -> list[str]:
    return [row.metric for row in conclude(scale, measured).rows if row.met is False]


@pytest.mark.parametrize("scale", [FULL, QUICK])
def test_a_good_run_meets_every_bound(scale):
    assert missed(GOOD, scale) == []


@pytest.mark.parametrize(
    ("change", "metric"),
    [
        ({"ours": 7.5}, "saved, against one central store"),
        ({"whole": 9.9}, "saved, against 4 whole fragments"),
        ({"wrong": 1.0}, "rebuilds that gave a wrong state"),
        ({"loss told": 0.0}, "3 killed: reported as loss"),
        ({"forged loss told": 0.0}, "2 killed, 1 forges: reported as loss"),
        ({"k right": 0.0}, "2 holders killed: rebuilt, and right"),
        ({"forged right": 0.0}, "1 killed, 1 forges: rebuilt, and right"),
        ({"8 at once": 7.6}, "8 at once over one"),
    ],
)
def test_each_bound_can_be_missed(change, metric):
    assert missed(GOOD | change) == [metric]


def test_saved_time_is_a_part_of_the_others():
    assert saved(2.4, 11.8) == pytest.approx(79.66, abs=0.01)


def test_every_state_of_the_ring_keeps_m_holders_when_eight_nodes_fail():
    dead = set(range(0, RING, 3))
    for node in dead:
        assert len(set(neighbours(node)) - dead) >= M and len(neighbours(node)) == M + K
