"""Histograms over a moving window, beside the paper's formula on the same samples."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.core.fields import FieldError
from leeward.policies.dssp.latency.kernel_sums import SCALE
from leeward.policies.dssp.latency.windows import EDGES, STEP, Windows
from leeward.policies.dssp.model.budgets import unloaded_s


def empirical(samples):
    ordered = sorted(samples)
    return lambda t: bisect_right(ordered, t) / len(ordered)


@settings(max_examples=60)
@given(
    samples=st.lists(st.tuples(st.integers(0, 2), st.floats(1e-5, 2e3)), min_size=1, max_size=120),
    size=st.integers(1, 20), later=st.integers(0, 119),
)  # fmt: skip
def test_kept_sums_equal_sums_made_anew(samples, size, later):
    windows, latest = Windows(3, size), [deque(maxlen=size) for _ in range(3)]
    sets = [[0], [2, 1], [0, 1, 2], [1, 1]]
    numbers = {}
    for position, (node, seconds) in enumerate(samples):
        if position == later % len(samples):
            numbers = {windows.keep(nodes): nodes for nodes in sets}
        windows.add(node, seconds)
        latest[node].append(seconds)
    for number, nodes in numbers.items():
        for percent in (1.0, 50.0, 99.0):
            assert windows.slowest_kept(number, percent) == windows.slowest(nodes, percent)
    for node, kept in enumerate(latest):
        below = np.array([sum(s <= edge * (1 + 1e-9) for s in kept) for edge in EDGES])
        want = [round((math.log(b) - math.log(len(kept))) * SCALE) if b else None for b in below]
        got = windows._logs[:, node]
        assert all(abs(g - w) <= 1 if w is not None else g < -500 * SCALE for g, w in zip(got, want, strict=True))


@pytest.mark.parametrize("nodes", [1, 3, 8])
def test_the_slowest_is_the_papers_within_a_bin(nodes):
    rng = np.random.default_rng(1)
    drawn = rng.exponential(0.1, (nodes, 2000))
    windows = Windows(nodes, 2000)
    for node, row in enumerate(drawn):
        for seconds in row:
            windows.add(node, seconds)
    want = unloaded_s(99.0, [empirical(row) for row in drawn])
    found = windows.slowest(range(nodes), 99.0)
    assert not found.extrapolated
    assert want * (1 - 1e-9) <= found.seconds <= want * math.exp(STEP) * (1 + 1e-9)


def test_a_tail_without_samples_is_extrapolated_and_says_so():
    rng = np.random.default_rng(2)
    windows = Windows(20, 1000)
    for node in range(20):
        for seconds in rng.exponential(0.1, 1000):
            windows.add(node, seconds)
    found = windows.slowest(range(20), 99.99)  # one sample of ten sets as large would be slower
    want = -0.1 * math.log1p(-(0.9999 ** (1 / 20)))
    assert found.extrapolated
    assert found.seconds == pytest.approx(want, rel=0.15)


def test_times_that_never_vary_have_no_tail():
    windows = Windows(1, 200)
    for _ in range(200):
        windows.add(0, 0.25)
    seconds, extrapolated = windows.slowest([0], 99.9)
    assert extrapolated and 0.25 <= seconds <= 0.25 * math.exp(STEP)


@pytest.mark.parametrize("known", [0, 3])
def test_with_too_few_samples_it_is_not_known(known):
    windows = Windows(2, 100)
    for _ in range(100):
        windows.add(0, 0.1)
    for _ in range(known):
        windows.add(1, 0.1)
    assert windows.slowest([1], 50.0).seconds is None
    assert (windows.slowest([0, 1], 50.0).seconds is None) is (known == 0)


def test_beyond_the_grid_it_is_not_known():
    windows = Windows(1, 100)
    for _ in range(100):
        windows.add(0, 5e3)
    assert windows.slowest([0], 50.0).seconds is None


def test_the_window_forgets():
    windows = Windows(1, 100)
    for seconds in [9.0] * 100 + [0.1] * 100:
        windows.add(0, seconds)
    assert windows.slowest([0], 50.0).seconds < 0.11


@pytest.mark.parametrize("nodes, why", [([], "between"), ([3], "no node"), ([-1], "no node"), ([0] * 9000, "between")])
def test_bad_sets_are_named(nodes, why):
    windows = Windows(3)
    with pytest.raises(FieldError, match=why):
        windows.slowest(nodes, 99.0)
    with pytest.raises(FieldError, match=why):
        windows.keep(nodes)


def test_bad_sizes_are_named():
    with pytest.raises(FieldError, match="samples"):
        Windows(3, 0)
