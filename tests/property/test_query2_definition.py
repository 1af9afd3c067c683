"""The reference of query 2 against the definition: for each moment, look at all rows anew."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from statistics import median

from hypothesis import given, settings
from hypothesis import strategies as st

from bolts.query2.logic import Standing, rank_key, result_row, twice_median
from bolts.query2.reference import Drive, rows_per_event, rows_per_pulse

PROFIT_S, TAXI_S = 60, 100


def top_ten(drives: list[Drive], t: int) -> list[Standing]:
    """From the definition."""
    profits, latest = defaultdict(list), defaultdict(int)
    last_of_taxi: dict[str, int] = {}
    for number, drive in enumerate(drives, 1):
        last_of_taxi[drive.taxi] = number
        if t - PROFIT_S < drive.dropoff_s <= t:
            profits[drive.start].append(drive.cents)
            latest[drive.start] = max(latest[drive.start], number)
    taxis: dict[str, int] = defaultdict(int)
    for number in last_of_taxi.values():
        drive = drives[number - 1]
        if drive.dropoff_s > t - TAXI_S:
            taxis[drive.end] += 1
            latest[drive.end] = max(latest[drive.end], number)
    ranked = [
        (Fraction(median(map(Fraction, profits[area]))) / taxis[area], latest[area], area)
        for area in profits
        if taxis[area]
    ]
    ranked.sort(key=lambda one: one[2])
    ranked.sort(key=lambda one: one[:2], reverse=True)
    return [
        Standing(area, taxis[area], int(2 * median(map(Fraction, profits[area]))), last)
        for _, last, area in ranked[:10]
    ]


def changes(moments: list[tuple[int, list[Drive], int]]) -> list[tuple[int, str]]:
    """Rows at those moments (number, rows so far, t) at which a figure is other than the moment before."""
    found, shown = [], []
    for number, drives, t in moments:
        ten = top_ten(drives, t)
        if [area[:3] for area in ten] != shown:
            found.append((number, result_row(drives[-1].pickup, drives[-1].dropoff, ten)))
        shown = [area[:3] for area in ten]
    return found


AREA = st.integers(0, 14).map("1.{}".format)


@st.composite
def rows(draw) -> list[Drive]:
    t, drives = 0, []
    for _ in range(draw(st.integers(1, 40))):
        t += draw(st.sampled_from([0, 0, 1, 5, 20, 59, 60, 99, 100, 101]))
        drives.append(
            Drive(
                pickup=f"p{t}", dropoff=f"d{t}", dropoff_s=t, taxi=f"t{draw(st.integers(0, 5))}",
                cents=draw(st.sampled_from([0, 100, 150, 200, 400])), start=draw(AREA), end=draw(AREA),
            )
        )  # fmt: skip
    return drives


@settings(max_examples=150)
@given(drives=rows())
def test_per_event(drives):
    moments = [(n, drives[:n], drives[n - 1].dropoff_s) for n in range(1, len(drives) + 1)]
    assert list(rows_per_event(drives, profit_s=PROFIT_S, taxi_s=TAXI_S)) == changes(moments)


@settings(max_examples=150)
@given(drives=rows(), pulse_s=st.sampled_from([1, 7, 60]))
def test_per_pulse(drives, pulse_s):
    intervals = sorted({drive.dropoff_s // pulse_s for drive in drives})
    moments = [
        (n, [drive for drive in drives if drive.dropoff_s // pulse_s <= n], (n + 1) * pulse_s) for n in intervals
    ]
    assert list(rows_per_pulse(drives, pulse_s=pulse_s, profit_s=PROFIT_S, taxi_s=TAXI_S)) == changes(moments)


@given(values=st.lists(st.integers(0, 10**9), min_size=1))
def test_a_median_is_kept_doubled_and_whole(values):
    assert twice_median(values) == 2 * Fraction(median(map(Fraction, values)))


@given(
    twice=st.tuples(st.integers(0, 10**8), st.integers(0, 10**8)), taxis=st.tuples(*[st.integers(1, 13_237)] * 2),
)  # fmt: skip
def test_areas_tie_exactly_if_their_quotients_are_equal(twice, taxis):
    one, other = (
        Standing(area, n, cents, last) for area, n, cents, last in zip("ab", taxis, twice, (1, 2), strict=True)
    )
    exact = [Fraction(cents, n) for cents, n in zip(twice, taxis, strict=True)]
    assert (rank_key(one) < rank_key(other)) == (exact[0] > exact[1])
    assert (rank_key(one)[0] == rank_key(other)[0]) == (exact[0] == exact[1])
