"""Arrivals and departures: within the bounds of the walk, by the paper's probabilities, equal for equal seeds."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.core.fields import FieldError
from leeward.sim.workload.arrivals import UTILISATION, Arrive, Depart, Step, poisson, random_walk

CATALOGUES = st.lists(st.integers(1, 40), min_size=1, max_size=12)
SPREADS = st.sampled_from([0.0, 0.5, 1.0, 2.0])


def replay(steps: Sequence[Step], sizes: Sequence[int]):
    """Each event with the components and the sizes by topology, in the order of arrival, that there were before it."""
    active: dict[str, int] = {}
    for step in steps:
        for event in step:
            yield event, sum(active.values()), dict(active)
            if isinstance(event, Arrive):
                assert event.topology not in active
                active[event.topology] = sizes[event.entry]
            else:
                del active[event.topology]


@given(CATALOGUES, st.integers(1, 60), SPREADS, st.integers())
def test_a_walk_turns_at_its_bounds_and_nowhere_else(sizes, nodes, spread, seed):
    steps = random_walk(sizes, nodes, 60, random.Random(seed), spread=spread)
    assert all(len(step) == 1 for step in steps)
    adds = True
    for event, components, _ in replay(steps, sizes):
        low, high = (UTILISATION - spread) * nodes, (UTILISATION + spread) * nodes
        if adds and isinstance(event, Depart):
            assert components >= high
        if not adds and isinstance(event, Arrive):
            assert components <= low
        if isinstance(event, Arrive):
            assert components < high or components <= low
        else:
            assert components > low
        adds = isinstance(event, Arrive)


@given(CATALOGUES, st.integers(1, 60), st.integers(), st.booleans())
def test_the_first_active_topology_of_a_size_goes(sizes, nodes, seed, walks):
    rng = random.Random(seed)
    steps = random_walk(sizes, nodes, 60, rng) if walks else poisson(sizes, nodes, 60, rng)
    names = [event.topology for step in steps for event in step if isinstance(event, Arrive)]
    assert len(set(names)) == len(names)
    for event, _, active in replay(steps, sizes):
        if isinstance(event, Depart):
            first = next(name for name, size in active.items() if size == active[event.topology])
            assert event.topology == first


@pytest.mark.parametrize(("nodes", "start"), [(100, 16), (101, 70)])
def test_poisson_starts_with_many_and_alternates(nodes, start):
    first, *more = poisson([4, 12, 50], nodes, 9, random.Random(1))
    assert [type(event) for event in first] == [Arrive] * start
    assert [type(event) for step in more for event in step] == [Arrive, Depart] * 4
    assert all(len(step) == 1 for step in more)


@pytest.mark.parametrize("kind", [random_walk, poisson])
def test_a_shorter_run_is_the_beginning_of_a_longer_one(kind):
    long = kind([3, 5, 8, 8], 20, 80, random.Random(7))
    assert len(long) == 80
    assert kind([3, 5, 8, 8], 20, 30, random.Random(7)) == long[:30]
    assert kind([3, 5, 8, 8], 20, 80, random.Random(8)) != long


def shares(steps: Sequence[Step], sizes: Sequence[int]) -> tuple[Counter[int], Counter[int]]:
    """Arrivals by size, and by entry."""
    entries = Counter(event.entry for step in steps for event in step if isinstance(event, Arrive))
    by_size: Counter[int] = Counter()
    for entry, count in entries.items():
        by_size[sizes[entry]] += count
    return by_size, entries


def test_a_walk_draws_sizes_by_their_inverse_and_entries_evenly():
    sizes = [4, 8, 8, 16]
    by_size, entries = shares(random_walk(sizes, 10**6, 7000, random.Random(3)), sizes)
    for size, expected in ((4, 4000), (8, 2000), (16, 1000)):
        assert by_size[size] == pytest.approx(expected, rel=0.1)
    assert entries[1] == pytest.approx(entries[2], rel=0.1)


def test_poisson_draws_sizes_by_its_probabilities():
    sizes = [6, 12, 12, 18]
    by_size, entries = shares(poisson(sizes, 10, 14000, random.Random(3)), sizes)
    weight = {size: 12.0**size / math.factorial(size) for size in (6, 12, 18)}
    arrivals = sum(by_size.values())
    for size, one in weight.items():
        assert by_size[size] / arrivals == pytest.approx(one / sum(weight.values()), rel=0.1)
    assert entries[1] == pytest.approx(entries[2], rel=0.1)


def test_sizes_far_from_the_mean_can_still_be_drawn():
    assert len(poisson([2000, 3000], 10, 5, random.Random(1))) == 5


@pytest.mark.parametrize(
    ("sizes", "intervals", "spread", "said"),
    [
        ([], 5, 0.0, "catalogue.sizes = []: nothing can arrive. Give entries with a component at least."),
        ([3, 0], 5, 0.0, "catalogue.sizes = [3, 0]"),
        ([3], 0, 0.0, "intervals = 0: there is nothing to run. Give 1 or more."),
        ([3], 5, -0.5, "spread = -0.5: must be 0 or more"),
        ([3], 5, 2.5, "spread = 2.5: is more than the mean utilisation of 2. Give a number from 0 to 2."),
        ([3], 5, math.nan, "spread = nan: is not a finite number"),
    ],
)
def test_bad_input_is_named_with_a_remedy(sizes, intervals, spread, said):
    with pytest.raises(FieldError) as caught:
        random_walk(sizes, 10, intervals, random.Random(0), spread=spread)
    assert said in str(caught.value)
