"""The reference against the definition: for each moment, count all rows of its window anew."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bolts.query1.logic import result_row
from bolts.query1.reference import Ride, rows_per_event, rows_per_pulse

WINDOW_S = 100


def top_ten(rides: list[Ride], t: int) -> list[str]:
    """From the definition: routes of the rows in (t - window, t] by count, then by the most recent row."""
    inside = [(n, ride.route) for n, ride in enumerate(rides) if t - WINDOW_S < ride.dropoff_s <= t]
    routes = [route for _, route in inside]
    last = {route: n for n, route in inside}
    return sorted(set(routes), key=lambda route: (routes.count(route), last[route]), reverse=True)[:10]


def changes(moments: list[tuple[int, list[Ride], int]]) -> list[tuple[int, str]]:
    """Rows at those moments (number, rows so far, t) at which the ten are other than the moment before."""
    found, shown = [], []
    for number, rides, t in moments:
        ten = top_ten(rides, t)
        if ten != shown:
            found.append((number, result_row(rides[-1].pickup, rides[-1].dropoff, ten)))
        shown = ten
    return found


@st.composite
def inputs(draw):
    """Rows in order, of few enough routes that ties and the eleventh route matter."""
    t, rides = 1000, []
    for n in range(draw(st.integers(0, 70))):
        t += draw(st.sampled_from([0, 0, 1, 2, 5, 10, 30, 99, 100, 101]))
        route = f"1.1>{draw(st.integers(1, 14))}.1"
        rides.append(Ride(pickup=f"p{n}", dropoff=f"d{n}", dropoff_s=t, route=route))
    return rides


@settings(max_examples=200)
@given(rides=inputs())
def test_per_event(rides):
    moments = [(n, rides[:n], rides[n - 1].dropoff_s) for n in range(1, len(rides) + 1)]
    assert list(rows_per_event(rides, window_s=WINDOW_S)) == changes(moments)


@settings(max_examples=200)
@given(rides=inputs(), pulse_s=st.sampled_from([1, 7, 60, 250]))
def test_per_pulse(rides, pulse_s):
    ends = sorted({ride.dropoff_s // pulse_s for ride in rides})
    moments = [(n, [r for r in rides if r.dropoff_s // pulse_s <= n], (n + 1) * pulse_s) for n in ends]
    assert list(rows_per_pulse(rides, pulse_s=pulse_s, window_s=WINDOW_S)) == changes(moments)
