"""At most so many topologies are reconfigured at once, each in its turn: examples, and random schedules."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leeward.control.turns import FORGET_S, Turns


def test_two_at_once_and_the_third_in_its_turn():
    turns = Turns(2)
    assert turns.begin("a", 0.0) == turns.begin("b", 0.0) == ""
    assert turns.begin("c", 1.0) == "waits for its turn (at_once = 2): a is reconfigured, b is reconfigured"
    assert "b is reconfigured, c asked before" in turns.begin("d", 2.0)
    turns.end("a")
    assert "c asked before" in turns.begin("d", 3.0), "c has asked first"
    assert turns.begin("c", 3.0) == "" and turns.begin("d", 3.0) != ""
    turns.end("b")
    assert turns.begin("d", 4.0) == ""


def test_one_that_asks_no_more_loses_its_place():
    turns = Turns(1)
    turns.begin("a", 0.0)
    turns.begin("b", 0.0)
    turns.end("a")
    assert turns.begin("c", 1.0) != ""
    assert turns.begin("c", FORGET_S) == ""


def test_one_that_looks_whether_its_turn_has_come_keeps_its_place_until_it_leaves():
    turns = Turns(1)
    turns.begin("a", 0.0)
    assert turns.begin("b", 0.0) != "" and turns.begin("c", 1.0) != ""
    for now in range(1, int(3 * FORGET_S), 5):
        assert "a is reconfigured" in turns.waits("b", float(now)) and "b asked before" in turns.waits("c", float(now))
    turns.end("a")
    assert turns.waits("b", 3 * FORGET_S) == turns.waits("b", 3 * FORGET_S) == "", "to look takes no turn"
    turns.leave("b")
    assert turns.begin("c", 3 * FORGET_S) == ""


def test_no_limit_and_a_predecessors_reconfiguration():
    assert all(Turns(0).begin(name, 0.0) == "" for name in "abcdef")
    turns = Turns(1)
    turns.resume("a")
    turns.resume("b")
    assert turns.begin("c", 0.0) != ""
    turns.end("a")
    turns.end("b")
    assert turns.begin("c", 0.0) == ""


@given(st.integers(1, 3), st.lists(st.tuples(st.sampled_from("abcde"), st.booleans()), max_size=60))
def test_never_more_than_so_many(at_once, steps):
    turns, running = Turns(at_once), set()
    for now, (name, begins) in enumerate(steps):
        if not begins:
            turns.end(name)
            running.discard(name)
        elif name not in running and turns.begin(name, float(now)) == "":
            running.add(name)
        assert len(running) <= at_once


@given(st.integers(1, 3), st.permutations("abcdefghi"))
def test_all_that_go_on_asking_get_their_turn(at_once, names):
    turns, done, now = Turns(at_once), [], 0.0
    while len(done) < len(names):
        begun = [name for name in names if name not in done and turns.begin(name, now) == ""]
        assert 0 < len(begun) <= at_once
        for name in begun:
            turns.end(name)
        done += begun
        now += 1.0
