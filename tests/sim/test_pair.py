"""Coordinator and tasks of a small topology in memory, with everything that may go wrong, by seed.

`leeward.sim.pair` checks each step, and at the end that nothing is missing. Here are few seeds of many;
`python -m leeward.sim.torture` runs as many as wanted.
"""

from __future__ import annotations

import pytest

from leeward.sim.pair import Pair

BLOCK = 15

#: Seeds that have failed, with their story. What a seed does changes when `Pair` draws other choices: then the story
#: belongs into a test of its own, and the seed goes.
REGRESSIONS: dict[int, str] = {}


@pytest.mark.parametrize("first", range(0, 10 * BLOCK, BLOCK))
def test_nothing_is_lost_or_counted_twice_and_all_comes_to_rest(first):
    for seed in range(first, first + BLOCK):
        Pair(seed).run()


def test_seeds_that_have_failed():
    for seed in REGRESSIONS:
        Pair(seed).run()


def test_a_seed_does_the_same_each_time():
    one, two = Pair(3).run(), Pair(3).run()
    assert one.sink.events == two.sink.events and list(one.story) == list(two.story)
