"""Pauses of restarts: a line drawn to the settings while few are known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.control.learning.restarts import restart_of
from leeward.core.journal import Journal, StepName
from leeward.core.learnt import Restart, RestartCost, restart_cost
from leeward.core.plan import Slot
from leeward.core.table import even_table

PRIOR = RestartCost(6.0, 0.5)


def pause_s(cost: RestartCost, started: int) -> float:
    return cost.constant_s + cost.each_s * started


def test_the_prior_holds_until_a_restart_was_seen():
    assert restart_cost([], PRIOR) == PRIOR


def test_one_restart_moves_the_line_to_it():
    cost = restart_cost([Restart(2, 12.0)], PRIOR)
    assert pause_s(cost, 2) == pytest.approx(12.0, abs=0.5)
    assert cost.constant_s > 9.0, "the constant is less sure than the time for a replica"


def test_a_line_is_found():
    seen = [Restart(n, 3.0 + 1.5 * n) for n in (1, 2, 4, 1, 3, 4, 2, 1)]
    cost = restart_cost(seen, PRIOR)
    assert cost.constant_s == pytest.approx(3.0, abs=0.3) and cost.each_s == pytest.approx(1.5, abs=0.15)
    assert 0 < cost.error_s < 1.0 and cost.restarts == 8


def test_scattered_pauses_are_less_sure():
    sure = restart_cost([Restart(1, 9.0)] * 6, PRIOR)
    unsure = restart_cost([Restart(1, 9.0 + off) for off in (-4, 4, -4, 4, -4, 4)], PRIOR)
    assert unsure.error_s > 2 * sure.error_s


@given(
    seen=st.lists(st.builds(Restart, st.integers(0, 50), st.floats(0.0, 1e4)), max_size=16),
    constant=st.floats(0.0, 100.0),
    each=st.floats(0.0, 10.0),
)
def test_neither_part_is_negative_or_no_number(seen, constant, each):
    cost = restart_cost(seen, RestartCost(constant, each))
    assert 0.0 <= cost.constant_s < math.inf and 0.0 <= cost.each_s < math.inf and 0.0 <= cost.error_s < math.inf


def journal(*, to: str = "n2", step: StepName = StepName.CLOSED, kind: str = "restart") -> Journal:
    old = {1: Slot("n1", 1), 2: Slot("n1", 1), 3: Slot("n1", 1)}
    return Journal(
        kind=kind, step=step, new_tables={"work": even_table([1, 2])}, old_slots=old,
        new_slots=old | {2: Slot(to, 1)}, times={"announce": 10.0, "move": 11.0, "closed": 19.5},
    )  # fmt: skip


def test_a_journal_tells_the_pause_and_the_replicas_that_started():
    assert restart_of(journal()) == Restart(1, 9.5)
    assert restart_of(journal(to="n1")) == Restart(0, 9.5), "no worker has restarted"
    assert restart_of(journal(kind="handover")) is None
    assert restart_of(journal(step=StepName.MOVE)) is None, "it is in progress"
