"""Numbers on a path: without a gap when nothing is lost, and telling when something is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bolts.dataflow.events import Event, counted, outputs, padding, passed_on


def event(number: int, path: str = "q0") -> Event:
    return Event(path=path, number=number, sent_us=number * 1000, lost=0, doubled=0)


def through(numbers: list[int], selectivity: float) -> list[Event]:
    """The outputs of one query."""
    state: dict[str, list[int]] = {}
    return [out for n in numbers for out in passed_on(counted(state, event(n)), "q1", selectivity)]


@given(selectivity=st.floats(0.0, 4.0), count=st.integers(0, 60))
def test_numbers_on_a_path_have_no_gap_and_as_many_as_the_selectivity_says(selectivity: float, count: int):
    found = through(list(range(1, count + 1)), selectivity)
    assert [one.number for one in found] == list(range(1, outputs(count, selectivity) + 1))
    assert abs(len(found) - count * selectivity) <= 1
    assert all(one.path == "q0.q1" and one.lost == one.doubled == 0 for one in found)


def test_tenths_add_up():
    assert [outputs(n, 0.1) for n in (9, 10, 30)] == [0, 1, 3]


@given(selectivity=st.sampled_from([0.5, 1.0, 2.0]), at=st.integers(2, 19))
def test_a_lost_event_shows_behind_the_query_even_if_its_share_was_nothing(selectivity: float, at: int):
    found = through([n for n in range(1, 21) if n != at], selectivity)
    assert found[-1].lost == 1 and found[-1].doubled == 0


def test_a_doubled_event_shows():
    found = through([1, 2, 2, 3], 1.0)
    assert [one.number for one in found] == [1, 2, 2, 3]
    assert found[-1].doubled == 1 and found[-1].lost == 0


def test_paths_are_counted_apart_and_findings_add_up_along_them():
    state: dict[str, list[int]] = {}
    assert counted(state, event(1, "q0.q1")).lost == 0
    assert counted(state, event(1, "q0.q2")).lost == 0
    assert counted(state, event(4, "q0.q1")._replace(lost=5)).lost == 7
    assert counted(state, event(2, "q0.q2")).lost == 0


def test_padding_fills_up_to_the_size():
    assert len(padding(1060.0)) == 1000 and padding(10.0) == ""
