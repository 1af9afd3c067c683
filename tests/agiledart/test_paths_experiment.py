"""The study of paths on a road map: parts, figures and bounds."""

from __future__ import annotations

from random import Random

import pytest

from leeward.policies.agiledart.experiments.paths import (
    BLOCK,
    BOUND,
    END_TO_END,
    KL,
    LINKS,
    NEVER,
    NEXT_HOP,
    OPTIMAL,
    OURS,
    PATHS,
    POINTS,
    SHARES,
    SIDE,
    Paths,
)
from leeward.policies.agiledart.paths.network import grid


def measured(firsts):
    """Figures of a quick run in which planners have the paper's shares, and take the best path at these packets."""
    found = {}
    for part in Paths().parts(seed=0, quick=True):
        planner, begin = part.option("planner"), int(part.option("begin"))
        figures = {f"within {at}": SHARES.get(planner, 95.0) / 100 for at in POINTS}
        found[part] = figures | {f"first {number}": firsts(planner, number) for number in range(begin, begin + BLOCK)}
    return found


def rows(measured):
    return {row.metric: row for row in Paths().conclude(measured).rows}


def test_the_grid_has_the_papers_number_of_paths():
    assert len(grid(SIDE, LINKS, Random(0)).paths()) == PATHS


@pytest.mark.parametrize("planner", [KL, OURS, OPTIMAL])
def test_a_part_is_measured(planner):
    study = Paths()
    part = next(part for part in study.parts(seed=0, quick=True) if part.option("planner") == planner)
    found = study.measure(part)
    shares = [found[f"within {at}"] for at in POINTS]
    assert shares == sorted(shares) and (shares[0] == 1.0) == (planner == OPTIMAL)
    assert (0.85 < found[f"within {BOUND}"] < 0.97) == (planner != OPTIMAL)
    firsts = [value for name, value in found.items() if name.startswith("first ")]
    assert len(firsts) == BLOCK and ({*firsts} == {1.0}) == (planner == OPTIMAL)
    assert found == study.measure(part)


def test_figures_are_those_of_all_networks():
    def firsts(planner, number):
        return {KL: 10.0, OURS: 12.0, NEXT_HOP: NEVER if number % 2 else 20.0}.get(planner, 30.0)

    found = rows(measured(firsts))
    assert found[f"best path first taken, mean, {NEXT_HOP}"].ours == (20 + 201) / 2
    assert found[f"best path first taken, median, {KL}"].ours == 10
    assert found[f"best path not taken by 200 packets, {NEXT_HOP}"].ours == 50
    assert found[f"networks in which {KL} takes it no later than {END_TO_END}"].ours == 100
    assert {row.met for row in found.values()} == {True, None}


def test_a_share_far_from_the_papers_and_a_planner_that_is_later_are_not_met():
    found = measured(lambda planner, number: NEVER if planner == KL else 5.0)
    for part, figures in found.items():
        figures[f"within {BOUND}"] -= 0.06 * (part.option("planner") == NEXT_HOP)
    not_met = {metric for metric, row in rows(found).items() if row.met is False}
    assert not_met == {
        f"delays within {BOUND} times the optimum, {NEXT_HOP}",
        f"networks in which {KL} takes it no later than {NEXT_HOP}",
        f"networks in which {KL} takes it no later than {END_TO_END}",
    }
