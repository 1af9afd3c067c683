"""Network coordinates: what is measured once is predicted, what cannot be is ignored, messages are checked."""

from __future__ import annotations

import math
import statistics
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.control.monitor import delays_of
from leeward.core.coordinates import LEAST_HEIGHT_S, Coordinate, Delays, moved, round_trip_s, surest
from leeward.core.metrics import TaskMetrics
from leeward.core.plan import Slot
from tests.helpers.benches import bench_module
from tests.helpers.shared_folder import stored

with bench_module("coordinates") as bench:
    errors, planetlab, settled = bench.errors, bench.planetlab, bench.settled

figures = st.floats(min_value=1e-5, max_value=5.0)
coordinates = st.builds(
    Coordinate, st.tuples(st.floats(-1, 1), st.floats(-1, 1)), figures, st.floats(min_value=0.01, max_value=1.0)
)


def test_planetlab_is_predicted_as_well_as_in_the_literature():
    matrix = planetlab(stored("data/rtt", "planetlab490_slice01.txt.gz")[0])
    places = settled(lambda _: matrix, looks=200, peers=64, seed=0, count=len(matrix))
    assert statistics.median(errors(places, matrix)) < 0.15


def test_three_sites_and_their_access_links_are_found():
    sites, access = ((0.0, 0.0), (0.04, 0.0), (0.0, 0.03)), (0.001, 0.004)
    nodes = [(site, height) for site in sites for height in access]
    matrix = [[math.dist(a, b) + p + q for b, q in nodes] for a, p in nodes]
    places = settled(lambda _: matrix, looks=1500, peers=5, seed=3, count=len(nodes))
    assert max(errors(places, matrix)) < 0.1


@given(coordinates, coordinates, st.sampled_from([0.0, -1.0, math.nan, math.inf, 11.0]))
def test_a_round_trip_that_cannot_be_moves_nothing(own, other, absurd):
    assert moved(own, other, absurd, Random(0)) == own


@given(coordinates, coordinates, figures)
def test_a_move_does_not_make_the_prediction_worse_and_stays_a_coordinate(own, other, measured):
    after = moved(own, other, measured, Random(0))
    assert Coordinate.of(after.figures()) == after
    if after.height > LEAST_HEIGHT_S:  # else it could not move as far down as it would
        assert abs(round_trip_s(after, other) - measured) <= abs(round_trip_s(own, other) - measured) + 1e-9


def test_nodes_at_one_point_part_into_some_direction():
    a = moved(Coordinate(), Coordinate(), 0.1, Random(1))
    assert round_trip_s(a, Coordinate()) > 0.01 and math.hypot(*a.position) > 0


@pytest.mark.parametrize(
    "message",
    [None, [], [0.1] * 3, [0.1] * 5, [0.0, 0.0, -1.0, 0.5], [0.0, 0.0, 0.1, 0.0], [0.0, 0.0, 0.1, 2.0],
     [math.nan, 0.0, 0.1, 0.5], ["0", 0.0, 0.1, 0.5], [10**400, 0.0, 0.1, 0.5], [True, 0.0, 0.1, 0.5], {"x": 1}],
)  # fmt: skip
def test_a_message_that_is_no_coordinate_is_refused(message):
    assert Coordinate.of(message) is None


def test_delays_are_half_of_the_round_trips_between_nodes_that_have_a_place():
    places = {
        "a": Coordinate((0.0, 0.0), 0.001, 0.1),
        "b": Coordinate((0.03, 0.04), 0.002, 0.2),
        "c": Coordinate(),  # it has measured nothing yet
    }
    delays = Delays(places)
    assert delays["a", "b"] == delays["b", "a"] == pytest.approx((0.05 + 0.003) / 2)
    assert dict(delays).keys() == {("a", "b"), ("b", "a")} and len(delays) == 2
    assert ("a", "c") not in delays and ("a", "a") not in delays and delays.get(("a", "x"), 0.0) == 0.0


def test_a_round_trip_that_was_measured_goes_before_the_prediction_and_tells_its_error():
    places = {name: Coordinate((x, 0.0), 0.001, 0.3) for name, x in (("a", 0.0), ("b", 0.04), ("c", 0.1))}
    delays = Delays(places, {("a", "b"): 0.05, ("b", "a"): 0.06, ("a", "gone"): 1.0})
    assert delays["a", "b"] == delays["b", "a"] == 0.025 and delays["a", "c"] == pytest.approx(0.051)
    assert delays.error() == pytest.approx((0.06 - 0.042) / 0.06), "the upper one of two"
    assert Delays(places).error() is None and len(delays) == 6


def sample(error: float | None, **trips: float) -> TaskMetrics:
    """As the service reads it."""
    place = None if error is None else Coordinate((error, 0.0), 0.001, error)
    read = TaskMetrics.from_line(TaskMetrics(component="c", pid=1, t=0.0, place=place, trips=trips).to_line())
    assert read is not None and read.place == place and read.trips == trips
    return read


def test_a_node_is_where_its_surest_task_is():
    samples = {1: sample(0.5, b=0.3), 2: sample(0.2, b=0.2), 3: sample(0.3), 4: sample(None), 5: sample(0.1)}
    slots = {1: Slot("a", 1), 2: Slot("a", 2), 3: Slot("b", 1), 4: Slot("c", 1)}
    delays = delays_of(samples, slots)
    assert delays.places == {"a": samples[2].place, "b": samples[3].place}
    assert dict(delays) == {("a", "b"): 0.1, ("b", "a"): 0.1}, "the shortest that was measured"
    assert surest([]) is None
