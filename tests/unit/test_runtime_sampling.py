"""One tuple of a batch stands for all of it: over many batches shares come out right, whatever the order of keys."""

from __future__ import annotations

import itertools

import pytest

from leeward.runtime.pipe.loop import Source
from leeward.runtime.state.sampling import GroupLoad

SOURCES = {group: Source("pass", "default", 3, group) for group in (0, 1)}
SOURCES |= {2: Source("pass", "marker", 3), 3: Source("pass", "default", 3)}


def batches(keys, sizes, count):
    keys, sizes = itertools.cycle(keys), itertools.cycle(sizes)
    for _ in range(count):
        yield [part for _ in range(next(sizes)) for part in (next(keys), [])]


@pytest.mark.parametrize("sizes", [[1], [8], [100], [99, 1], [64, 3, 7]])
@pytest.mark.parametrize("keys", [[0, 1, 1, 1], [1, 1, 0, 1, 1, 1, 1, 0]])
def test_shares(keys, sizes):
    load, total = GroupLoad(), 0
    for batch in batches(keys, sizes, 4000):
        load.sample(batch, SOURCES)
        total += len(batch) // 2
    assert load.tuples.total() == total and load.looked_at == 4000
    assert load.tuples[1] / total == pytest.approx(0.75, abs=0.03)


def test_what_has_no_group_is_not_counted():
    load = GroupLoad()
    load.sample([2, ["pulse"]], SOURCES)
    load.sample([9, ["defined here"]], SOURCES)
    load.sample([3, ["of a stream that is not keyed"]], SOURCES)
    assert not load.tuples and load.looked_at == 0
