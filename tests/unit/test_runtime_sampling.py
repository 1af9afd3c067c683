"""One tuple of a batch stands for all of it: over many batches shares come out right, whatever the order of keys."""

from __future__ import annotations

import itertools

import pytest

from leeward.core.errors import KeyTypeError
from leeward.runtime.pipe.loop import Source
from leeward.runtime.state.sampling import GroupLoad

SOURCES = {0: Source("pass", "default", 3, None), 1: Source("pass", "marker", 3, None)}


def group_of(tup):
    assert (tup.component, tup.stream, tup.task) == ("pass", "default", 3)
    return tup.values[0]


def batches(keys, sizes, count):
    keys, sizes = itertools.cycle(keys), itertools.cycle(sizes)
    for _ in range(count):
        yield [part for _ in range(next(sizes)) for part in (0, [next(keys)])]


@pytest.mark.parametrize("sizes", [[1], [8], [100], [99, 1], [64, 3, 7]])
@pytest.mark.parametrize("keys", [[0, 1, 1, 1], [1, 1, 0, 1, 1, 1, 1, 0]])
def test_shares(keys, sizes):
    load, total = GroupLoad(group_of), 0
    for batch in batches(keys, sizes, 4000):
        load.sample(batch, SOURCES)
        total += len(batch) // 2
    assert load.tuples.total() == total and load.looked_at == 4000
    assert load.tuples[1] / total == pytest.approx(0.75, abs=0.03)


def test_what_has_no_group_is_not_counted():
    load = GroupLoad(group_of)
    load.sample([1, ["pulse"]], SOURCES)
    load.sample([9, ["defined here"]], SOURCES)
    load.sample([0, [None]], SOURCES)
    assert not load.tuples and load.looked_at == 0


def test_a_key_of_a_foreign_type_is_left_to_the_user_s_code():
    def refuse(tup):
        raise KeyTypeError("key 1.5 is of type float.", remedy="-")

    load = GroupLoad(refuse)
    load.sample([0, [1.5]], SOURCES)
    assert load.looked_at == 0
