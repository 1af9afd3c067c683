"""Tables by load: balanced or as near to it as single moves and exchanges get, and nothing moves without a gain."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.core.balance import LEAST_GAIN, NOTHING, TOLERANCE, balance, excess
from leeward.core.keys import GROUPS
from leeward.core.table import even_table, owned, redistribute

TASKS = st.lists(st.integers(1, 40), min_size=1, max_size=8, unique=True)
RATES = st.one_of(st.just(0.0), st.floats(0.0, 10.0), st.sampled_from([1.0, 1.0, 100.0, 1000.0]))
LOADS = st.dictionaries(st.integers(0, GROUPS - 1), RATES, max_size=GROUPS)


@st.composite
def tables(draw):
    tasks = draw(TASKS)
    return tuple(draw(st.lists(st.sampled_from(tasks), min_size=GROUPS, max_size=GROUPS)))


def moved(before, after):
    return [group for group in range(GROUPS) if before[group] != after[group]]


def loads_of(table, tasks, load):
    return {task: sum(load.get(group, 0.0) for group in owned(table, task)) for task in tasks}


def helpful(table, tasks, load):
    """What `balance` should have done: (giver, taker, what goes) that makes the larger of two loads clearly smaller."""
    loads = loads_of(table, tasks, load)
    mean = sum(loads.values()) / len(tasks)
    for giver, taker in itertools.permutations(tasks, 2):
        gap = loads[giver] - loads[taker]
        apart = loads[giver] > (1 + TOLERANCE) * mean * 1.0001 or loads[taker] < (1 - TOLERANCE) * mean * 0.9999
        if not apart or gap <= TOLERANCE * mean * 1.0001:
            continue
        mine, theirs = ([load.get(group, 0.0) for group in owned(table, task)] for task in (giver, taker))
        least = 1.01 * LEAST_GAIN * mean
        for goes in itertools.chain(mine, (a - b for a in set(mine) for b in set(theirs) if b >= least)):
            if least <= goes <= gap - least:
                yield giver, taker, goes


@pytest.mark.long
@settings(max_examples=200)
@given(before=tables(), tasks=TASKS, load=LOADS)
def test_balanced_as_far_as_single_steps_go_and_stable(before, tasks, load):
    after = balance(before, tasks, load)
    assert set(after) == set(tasks), "every group has a wanted owner, every wanted task a group"
    assert balance(after, tasks, load) == after, "doing it again moves nothing"
    assert balance(before, tasks[::-1], dict(reversed(load.items()))) == after, "order of arguments does not matter"
    if math.fsum(load.values()) > NOTHING:
        assert not list(itertools.islice(helpful(after, tasks, load), 1))
    else:
        assert after == redistribute(before, tasks)


@settings(max_examples=100)
@given(before=tables(), load=LOADS)
def test_the_same_tasks_never_get_worse_and_idle_groups_stay(before, load):
    tasks = sorted(set(before))
    after = balance(before, tasks, load)
    assert excess(after, load) <= excess(before, load) + 1e-9
    if math.fsum(load.values()) > NOTHING:
        mean = sum(load.values()) / len(tasks)
        assert all(load.get(group, 0.0) >= 0.99 * LEAST_GAIN * mean for group in moved(before, after))
        if all(abs(value - mean) < TOLERANCE * mean * 0.999 for value in loads_of(before, tasks, load).values()):
            assert after == before, "balanced: nothing is to be gained"


@given(before=tables(), gone=st.integers(1, 40), load=LOADS)
def test_scaling_in_gives_all_that_the_departing_had_to_others(before, gone, load):
    tasks = sorted(set(before) - {gone}) or [41]
    after = balance(before, tasks, load)
    assert {group for group in range(GROUPS) if before[group] == gone} <= set(moved(before, after))


def test_next_to_no_load_is_none():
    before = even_table([1, 2, 3])
    assert balance(before, [2, 3, 4], {7: 5e-324}) == redistribute(before, [2, 3, 4])


def test_one_hot_group_moves_alone():
    load = dict.fromkeys(range(GROUPS), 1.0) | {40: 127.0}
    assert moved(even_table([1]), balance(even_table([1]), [1, 2], load)) == [40]


def test_scaling_out_by_load_moves_fewer_than_by_number():
    load = {group: 1000.0 / (1 + group) for group in range(GROUPS)}
    before, tasks = even_table([1]), [1, 2, 3, 4]
    after = balance(before, tasks, load)
    assert excess(after, load) <= TOLERANCE
    assert len(moved(before, after)) < 40 < len(moved(before, redistribute(before, tasks)))


def test_equal_loads_are_equal_numbers_within_the_tolerance():
    after = balance(even_table([1]), [1, 2], dict.fromkeys(range(GROUPS), 5.0))
    assert max(Counter(after).values()) <= 64 * 1.1


def test_an_exchange_where_no_single_group_can_move():
    table = tuple(1 if group in (0, 1) else 2 for group in range(GROUPS))
    load = {0: 10.0, 1: 10.0, 2: 6.0, 3: 6.0}
    after = balance(table, [1, 2], load)
    assert len(moved(table, after)) == 2 and excess(after, load) == pytest.approx(0.0)


def test_what_sits_in_one_group_cannot_be_shared_out():
    table = even_table([1, 2])
    assert balance(table, [1, 2], {7: 50.0}) == table
    assert excess(table, {7: 50.0}) == pytest.approx(1.0) and excess(table, {}) == 0.0
    after = balance(even_table([1]), [1, 2, 3], {7: 50.0})
    assert Counter(after) == {1: 126, 2: 1, 3: 1} and after[7] == 1, "who has nothing to do still is a replica"
