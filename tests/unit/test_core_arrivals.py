"""The lines of sinks: the longest path's delay, and every loss and repeat."""

from __future__ import annotations

import pytest

from leeward.core.arrivals import Arrival, Faults, faults, longest_s, makespan_s, read


def one(number: int, delay_us: int = 1000, path: str = "q0.q1", lost: int = 0, doubled: int = 0) -> Arrival:
    sent = number * 1_000_000
    return Arrival("q2", path, number, sent, lost, doubled, sent + delay_us, "vm-1")


def test_lines_are_read_and_half_ones_left_out():
    assert read(["q2 q0.q1 3 3000000 0 0 3001000 vm-1", "q2 q0.q1 4"]) == [one(3)]


def test_the_makespan_is_the_median_of_the_slowest_path():
    quick = [one(n, 1000, "q0") for n in range(1, 10)]
    slow = [one(n, 5000 if n != 4 else 900_000) for n in range(1, 10)]
    assert makespan_s(quick + slow) == pytest.approx(0.005)
    assert makespan_s(slow, since_us=4_000_000, until_us=5_000_000) == pytest.approx(0.9)
    assert makespan_s(slow, since_us=99_000_000) is None
    assert longest_s(slow, 0, 99_000_000) == pytest.approx(0.9)


def test_gaps_and_repeats_are_counted_on_each_path():
    assert faults([one(n) for n in (1, 2, 3)] + [one(n, path="q0") for n in (1, 2)]) == Faults()
    assert faults([one(n) for n in (2, 3, 6)]) == Faults(lost=3)
    assert faults([one(n) for n in (1, 2, 1, 2, 3)]) == Faults(again=2), "the sink was set back"
    assert faults([one(1), one(2, lost=4, doubled=1)]) == Faults(lost=4, doubled=1), "swallowed on the way"
