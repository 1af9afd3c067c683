"""The stateful operators' logic, each on a plain dict as its state."""

import json

import pytest

from bolts.query1.logic import DataClock, GlobalRank, Intervals, LocalRank, Ranked, RouteWindow, result_row


def copy(state):
    """The state after a move: plain values, nothing shared."""
    return json.loads(json.dumps(state))


def test_a_window_tells_what_changed_once():
    window = RouteWindow({})
    window.add("1.1>2.2", 100, 1)
    window.add("1.1>2.2", 110, 2)
    window.add("1.1>3.3", 110, 3)
    assert window.changes(120) == [("1.1>2.2", 2, 2), ("1.1>3.3", 1, 3)]
    assert window.changes(180) == []


def test_the_window_is_open_at_its_beginning():
    state = {}
    window = RouteWindow(state, window_s=1800)
    window.add("a", 100, 1)
    window.changes(120)
    assert window.changes(100 + 1799) == []
    assert window.changes(100 + 1800) == [("a", 0, 0)]
    assert state == {}


def test_a_new_row_for_an_expired_one_is_a_change():
    window = RouteWindow({}, window_s=100)
    window.add("a", 10, 1)
    assert window.changes(20) == [("a", 1, 1)]
    window.add("a", 50, 2)
    assert window.changes(110) == [("a", 1, 2)]


def test_a_route_that_came_and_went_between_pulses_is_never_told():
    state = {}
    window = RouteWindow(state, window_s=100)
    window.add("a", 10, 1)
    assert window.changes(500) == []
    assert state == {}


def test_rows_of_a_route_may_arrive_out_of_order():
    window = RouteWindow({}, window_s=100)
    window.add("a", 50, 2)
    window.add("a", 10, 1)
    assert window.changes(60) == [("a", 2, 2)]
    assert window.changes(110) == [("a", 1, 2)]


def test_a_row_that_comes_too_late_is_not_told():
    state = {}
    window = RouteWindow(state, window_s=100)
    window.add("a", 300, 2)
    assert window.changes(300) == [("a", 1, 2)]
    window.add("a", 200, 1)
    window.add("b", 150, 3)
    assert window.changes(300) == [] and list(state) == ["a"]


def test_a_minute_may_leave_the_window_in_parts():
    state = {}
    window = RouteWindow(state, window_s=100)
    for n, t in enumerate(range(10, 70, 10), 1):
        window.add(f"r{t}", t, n)
    window.changes(69)
    assert [route for t in range(110, 170, 7) for route, _, _ in window.changes(t)] == [
        f"r{t}" for t in range(10, 70, 10)
    ]
    assert state == {}


def test_a_moved_window_goes_on_in_the_middle_of_an_interval():
    state = {}
    window = RouteWindow(state, window_s=100)
    window.add("a", 10, 1)
    window.changes(20)
    window.add("b", 30, 2)
    moved = RouteWindow(copy(state), window_s=100)
    assert moved.changes(40) == [("b", 1, 2)]
    assert moved.changes(110) == [("a", 0, 0)]


def test_ranks_are_by_count_and_then_by_the_most_recent_row():
    rank = LocalRank({})
    for ranked in [Ranked("a", 1, 9), Ranked("b", 2, 3), Ranked("c", 2, 4), Ranked("d", 1, 10)]:
        rank.update(*ranked)
    assert [r.route for r in rank.top()] == ["c", "b", "d", "a"]
    assert rank.top()[0] == ("c", 2, 4)


def test_a_local_rank_shows_ten_of_many_and_follows_changes():
    state = {}
    rank = LocalRank(state)
    for n in range(1, 13):
        rank.update(f"r{n}", n, n)
    assert [r.route for r in rank.top()] == [f"r{n}" for n in range(12, 2, -1)]
    rank.update("r12", 1, 12)
    rank.update("r11", 0, 0)
    rank.update("unknown", 0, 0)
    expected = [f"r{n}" for n in range(10, 1, -1)] + ["r12"]
    assert [r.route for r in rank.top()] == expected
    assert [r.route for r in LocalRank(copy(state)).top()] == expected
    assert "r11" not in state and "unknown" not in state


def test_the_global_rank_merges_and_speaks_only_of_changes():
    state = {}
    for ranked in [Ranked("a", 1, 1), Ranked("b", 3, 2), Ranked("c", 1, 3)]:
        GlobalRank(state).candidate(ranked)
    assert GlobalRank(copy(state)).merge() == ["b", "c", "a"]
    assert GlobalRank(state).merge() == ["b", "c", "a"]
    for ranked in [Ranked("c", 2, 3), Ranked("b", 7, 2), Ranked("a", 1, 1)]:
        GlobalRank(state).candidate(ranked)
    assert GlobalRank(state).merge() is None  # other counts, same order
    assert GlobalRank(state).merge() == []
    assert GlobalRank(state).merge() is None


def test_the_global_rank_shows_ten():
    state = {}
    for n in range(30):
        GlobalRank(state).candidate(Ranked(f"r{n}", 1, n))
    assert GlobalRank(state).merge() == [f"r{n}" for n in range(29, 19, -1)]


@pytest.mark.parametrize("shown", [0, 1, 9, 10])
def test_a_missing_route_is_one_null(shown):
    columns = result_row("P", "D", ["1.2>3.4"] * shown).split(",")
    assert columns == ["P", "D"] + ["1.2", "3.4"] * shown + ["NULL"] * (10 - shown)


def test_pulses_close_intervals_that_held_rows():
    state = {}
    intervals = Intervals(state, 60)
    assert intervals.last() is None
    assert intervals.due(119) is None  # the first row closes nothing
    assert intervals.due(119) is None
    assert intervals.due(120) == (1, 120)
    assert intervals.due(100) is None  # older than its predecessor
    moved = Intervals(copy(state), 60)
    assert moved.due(179) is None
    assert moved.due(420) == (2, 180)  # one pulse, though intervals 3 to 6 are empty
    assert moved.last() == (7, 480)
    assert state == {"interval": 2}


def test_the_clock_tells_the_last_row_and_whether_it_is_new():
    state = {}
    assert DataClock(state).tell() == {"pickup": "", "dropoff": "", "seq": 0, "advanced": False}
    DataClock(state).row(2, "p2", "d2")
    DataClock(state).row(1, "p1", "d1")  # overtaken
    state = copy(state)
    assert DataClock(state).tell() == {"pickup": "p2", "dropoff": "d2", "seq": 2, "advanced": True}
    state = copy(state)
    assert DataClock(state).tell() == {"pickup": "p2", "dropoff": "d2", "seq": 2, "advanced": False}
