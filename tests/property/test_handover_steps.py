"""From the present tables to the wanted ones in steps: every step moves something, none too much, the hottest last."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from leeward.core.keys import GROUPS
from leeward.core.migration.steps import advance, in_order
from leeward.core.plan import Plan
from leeward.core.table import even_table

TABLES = st.one_of(
    st.lists(st.integers(1, 5), min_size=1, max_size=5, unique=True).map(even_table),
    st.lists(st.integers(1, 5), min_size=GROUPS, max_size=GROUPS).map(tuple),
)


@given(old=TABLES, new=TABLES, limit=st.integers(1, GROUPS), loads=st.lists(st.floats(0, 9), max_size=GROUPS))
def test_steps(old, new, limit, loads):
    load = dict(enumerate(loads))
    plan = Plan(tables={"work": new}, placement={}, load={"work": load})
    order = in_order({"work": old}, plan).get("work", ())
    assert len(order) == sum(a != b for a, b in zip(old, new, strict=True))
    table, before, steps = old, [], 0
    while table != new:
        after = advance(table, new, order, limit)
        moved = [group for group in order if table[group] != after[group]]
        assert moved and all(after[group] in (table[group], new[group]) for group in range(GROUPS))
        if len(set(old)) > 1 or len(set(new)) > 1:
            gives, takes = Counter(table[group] for group in moved), Counter(after[group] for group in moved)
            assert max(gives.values()) <= limit and max(takes.values()) <= limit
        pairs = {(old[group], new[group]) for group in moved}
        for pair in pairs:  # between the same two tasks, what is hotter never goes earlier
            mine = [group for group in order if (old[group], new[group]) == pair]
            gone = [group for group in mine if group in {*before, *moved}]
            assert gone == mine[: len(gone)]
        before += moved
        table, steps = after, steps + 1
    assert steps <= 2 * -(-GROUPS // limit)


def test_usual_changes_are_one_step_or_two():
    usual = ([1], [1, 2], 1), ([1, 2], [1], 1), ([1], [2], 1), ([1], [1, 2, 3], 2), ([1, 2, 3], [1], 2)
    for old, new, steps in usual:
        before, after = even_table(old), even_table(new)
        order = in_order({"work": before}, Plan(tables={"work": after}, placement={}))["work"]
        for _ in range(steps):
            assert before != after
            before = advance(before, after, order, 64)
        assert before == after
