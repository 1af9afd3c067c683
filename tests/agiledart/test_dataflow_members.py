"""An overlay of machines in one process, and operators matched with the nodes that they are pinned to."""

from __future__ import annotations

from math import dist
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.core.errors import LeewardError, PlanError
from leeward.policies.agiledart.dataflow.members import Machine, Members
from leeward.policies.agiledart.dataflow.pins import matched
from leeward.policies.agiledart.overlay.ids import id_of
from leeward.policies.agiledart.platform.converged import Converged


def alike(a: str, b: str) -> float:
    return 1.0


def test_a_strong_machine_joins_as_several_nodes_that_share_its_capacity():
    members = Members([Machine(name="weak", capacity=2), Machine(name="strong", capacity=8, logical=3)], alike)
    assert members.nodes["weak"] == (id_of("weak"),) and len(members.ids) == 4
    loads = members.loads()
    assert [loads.room(node) for node in members.nodes["strong"]] == [3, 3, 2] and loads.free == 10
    first, second, _ = members.nodes["strong"]
    assert members.proximity(first, second) == 0.0 and members.proximity(first, id_of("weak")) == 1.0
    assert {members.machine(node) for node in members.nodes["strong"]} == {"strong"}


@settings(max_examples=25)
@given(st.integers(1, 80), st.integers(0, 1_000))
def test_tables_are_those_of_a_converged_overlay(count: int, seed: int):
    rng = Random(seed)
    places = {f"m{number}": (rng.random(), rng.random()) for number in range(count)}
    members = Members([Machine(name=name, capacity=1) for name in places], lambda a, b: dist(places[a], places[b]))
    converged = Converged([id_of(name) for name in places], list(places.values()))
    for node in members.ids:
        mine, theirs = members.tables(node), converged.tables(node)
        assert tuple(mine.leaves) == tuple(theirs.leaves)
        assert sorted(mine.routes) == sorted(theirs.routes)


def test_wrong_machines_are_refused():
    with pytest.raises(LeewardError, match="no machine can host"):
        Members([], alike)
    with pytest.raises(LeewardError, match="two machines have one name"):
        Members([Machine(name="m", capacity=1), Machine(name="m", capacity=2)], alike)
    with pytest.raises(LeewardError, match="logical nodes of m: 0"):
        Members([Machine(name="m", capacity=1, logical=0)], alike)


def test_operators_move_for_one_that_has_no_other_room():
    choices = {"a": [1, 2], "b": [1, 3], "c": [2, 3], "d": [3, 1, 2, 4]}
    assert matched(choices, dict.fromkeys((1, 2, 3, 4), 1)) == {"a": 1, "b": 3, "c": 2, "d": 4}
    assert matched({"a": [1, 2], "b": [2, 1], "z": [1, 2]}, {1: 2, 2: 1}) == {"a": 1, "b": 2, "z": 1}
    with pytest.raises(PlanError, match="'c' finds no room on the 2 nodes"):
        matched({"a": [1, 2], "b": [1, 2], "c": [1, 2]}, {1: 1, 2: 1, 3: 5})
    with pytest.raises(PlanError, match="'a' finds no room on the 0 nodes"):
        matched({"a": []}, {1: 1})


@given(st.dictionaries(st.sampled_from("abcdefgh"), st.lists(st.integers(0, 5), unique=True)), st.data())
def test_a_matching_is_found_unless_too_many_share_too_few(choices: dict[str, list[int]], data: st.DataObject):
    """Hall's theorem: there is none if some operators together have less room than they are many."""
    room = {node: data.draw(st.integers(0, 3)) for node in range(6)}
    subsets = [[one for bit, one in enumerate(choices) if mask >> bit & 1] for mask in range(1 << len(choices))]
    short = any(len(some) > sum(room[n] for n in {n for one in some for n in choices[one]}) for some in subsets)
    if short:
        with pytest.raises(PlanError, match="finds no room"):
            matched(choices, room)
        return
    found = matched(choices, room)
    assert all(found[one] in nodes for one, nodes in choices.items()) and found == matched(choices, room)
    assert all(list(found.values()).count(node) <= most for node, most in room.items())
