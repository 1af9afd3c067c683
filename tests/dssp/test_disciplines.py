"""Orders of waiting subtasks: one object for a bolt's queue and for the simulator."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from leeward.control.registry import DISCIPLINES as GROUP
from leeward.control.registry import load, names
from leeward.policies.dssp.disciplines import DISCIPLINES, Salvage, fitting


@dataclass(frozen=True, kw_only=True)
class Waiting:
    arrived: float
    rank: int = 0
    due: float
    unloaded: float = 0.0
    execution: float = 0.1
    stages: int = 1
    weight: float = 1.0


OLD = Waiting(arrived=0.0, rank=2, due=3.0)
URGENT = Waiting(arrived=1.0, rank=1, due=1.5)
SLOW = Waiting(arrived=0.5, rank=0, due=2.0, unloaded=1.5)
QUEUE = [OLD, URGENT, SLOW]


@pytest.mark.parametrize(
    ("name", "order"),
    [
        ("FIFO", [OLD, SLOW, URGENT]),
        ("SPR", [SLOW, URGENT, OLD]),
        ("EDF", [URGENT, SLOW, OLD]),
        ("EDFQ", [SLOW, URGENT, OLD]),
    ],
)
def test_each_orders_as_its_name_says(name, order):
    waiting, found = list(QUEUE), []
    while waiting:
        found.append(waiting.pop(DISCIPLINES[name].next_item(waiting, now=0.0)))
    assert found == order


def test_ours_passes_over_what_cannot_be_saved_and_drops_nothing():
    ours = Salvage()
    assert QUEUE[ours.next_item(QUEUE, now=1.0)] is URGENT
    assert QUEUE[ours.next_item(QUEUE, now=1.6)] is SLOW, "it is late already"
    assert QUEUE[ours.next_item(QUEUE, now=9.0)] is URGENT, "none can be saved: the order is as before"
    assert [URGENT][ours.next_item([URGENT], now=9.0)] == URGENT


def test_ours_weighs_one_against_all_that_stand_behind_it():
    ours, last = Salvage(), Waiting(arrived=0.0, due=0.05)  # half an execution is left: 39 % that it is in time
    easy = [Waiting(arrived=0.0, due=5.0) for _ in range(3)]
    tight = [Waiting(arrived=0.0, due=0.15), Waiting(arrived=0.0, due=0.25)]
    assert ours.next_item([last], now=0.0) == 0
    assert ours.next_item([last, *easy], now=0.0) == 0, "they have time enough"
    assert ours.next_item([last, *tight], now=0.0) == 1, "P(1 fits into 1.5) + P(2 fit into 2.5) = 33 + 26 %"


def test_ours_prefers_the_class_that_counts_more():
    ours, heavy = Salvage(), Waiting(arrived=0.0, due=1.1)
    for weight, position in ((1.0, 0), (math.exp(-0.9), 0), (math.exp(-1.1), 1)):
        light = Waiting(arrived=0.0, due=1.0, weight=weight)
        assert ours.next_item([light, heavy], now=0.0) == position, "an execution of 0.1 s is worth a factor e"
    light, later = Waiting(arrived=0.0, due=0.2, weight=0.2), Waiting(arrived=0.0, due=0.37)
    assert ours.next_item([light, later], now=0.0) == 0, "0.2 x 86 % that it is in time, for 9 % behind it"
    assert ours.next_item([light, later, later], now=0.0) == 1, "for 9 + 17 %"


@pytest.mark.parametrize("stages", [1, 3, 8])
def test_the_executions_that_fit_are_all_cases_and_have_the_mean(stages):
    for left in (0.3, 1.0, 4.7):
        chances = [fitting(count, left, stages) for count in range(60)]
        assert sum(chances) == pytest.approx(1.0)
        mean = sum(count * chance for count, chance in enumerate(chances))
        assert left - 1 <= mean <= left + 1e-9
    assert fitting(0, 0.0, stages) == 1.0 and fitting(2, -1.0, stages) == 0.0


@pytest.mark.parametrize("name", list(DISCIPLINES))
def test_of_two_that_are_alike_the_older_one_goes_first(name):
    assert DISCIPLINES[name].next_item([URGENT, URGENT], now=0.0) == 0


def test_they_are_found_by_their_names():
    assert {f"dssp-{name}" for name in ("edf", "edfq", "fifo", "salvage", "spr")} <= set(names(GROUP))
    assert load("dssp-salvage", GROUP) is Salvage
