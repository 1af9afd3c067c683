"""The count of a node's rooms, through any order of what its hosts, owners and time do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leeward.policies.agiledart.deployment.rooms import Rooms

CAPACITY, LASTS = 3, 5.0
NAMES, OPERATORS, ATTEMPTS = st.sampled_from("ab"), st.sampled_from("vwxyz"), st.integers(1, 3)
SOME = st.lists(OPERATORS, max_size=4, unique=True)
STEPS = st.one_of(
    st.tuples(st.just("reserve"), NAMES, ATTEMPTS, OPERATORS),
    st.tuples(st.just("renew"), NAMES, ATTEMPTS, SOME),
    st.tuples(st.just("release"), NAMES, ATTEMPTS, SOME),
    st.tuples(st.just("tick")),
)


@given(st.lists(STEPS, max_size=40))
def test_the_load_counts_the_operators_that_are_held_and_never_more_than_there_is_room_for(steps):
    rooms, now = Rooms(CAPACITY, LASTS), 0.0
    for step in steps:
        now += 1.0
        match step:
            case "reserve", name, attempt, operator:
                rooms.reserve(name, attempt, operator, now)
            case "renew", name, attempt, some:
                rooms.renew(name, attempt, some, now, running=False)
            case "release", name, attempt, some:
                rooms.release(name, attempt, some)
            case _:
                rooms.tick(now)
        assert rooms.load == (len(rooms.operators()), CAPACITY)
        assert rooms.load.room >= 0
    rooms.tick(now + LASTS)
    assert rooms.load == (0, CAPACITY) and rooms.operators() == ()
