"""Copying ahead under every order of changes, steps and pieces: what arrives is what was there at the switch."""

from __future__ import annotations

from itertools import count

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.core.keys import key_group
from leeward.runtime.handover.ahead import Ahead
from leeward.runtime.handover.pieces import PIECE_BYTES, Assembly, Cutter, pack
from leeward.runtime.pacing import Pacing
from leeward.runtime.state.keyed import KeyedState

KEYS = [f"k{n}" for n in range(40)]
SETS = st.tuples(st.just("set"), st.sampled_from(KEYS), st.integers(0, 9))
LISTS = st.tuples(st.just("append"), st.sampled_from(KEYS), st.integers(0, 9))
DELETES = st.tuples(st.just("delete"), st.sampled_from(KEYS), st.none())
STEPS = st.tuples(st.just("step"), st.none(), st.none())
CHANGES = st.one_of(SETS, LISTS, DELETES)

NEAR_S = Pacing().near_s


def change(state: KeyedState, what: str, key: str, value: int) -> None:
    if what == "set":
        state[key] = value
    elif what == "append":
        found = state.get(key)
        if isinstance(found, list):
            found.append(value)  # in place: only the look-up tells
        else:
            state[key] = [value]
    elif key in state:
        del state[key]


@settings(max_examples=150)
@given(
    before=st.lists(CHANGES, max_size=40),
    meanwhile=st.lists(st.one_of(CHANGES, STEPS), max_size=120),
    targets=st.lists(st.sampled_from([7, 8, None]), min_size=128, max_size=128),
    size=st.sampled_from([7, 64, 10_000]),
)
def test_what_arrives_is_what_was_there(before, meanwhile, targets, size):
    state = KeyedState("test")
    for what in before:
        change(state, *what)
    lost = {group: target for group, target in enumerate(targets) if target is not None}
    ahead = Ahead(state, lost, "test")
    cutters = {task: Cutter(epoch=5, sender=1, size=size) for task in (7, 8)}
    assemblies = {task: Assembly(5) for task in (7, 8)}
    for what in meanwhile:
        if what[0] != "step":
            change(state, *what)
            continue
        for task, data in ahead.step(0.0, lambda: 0.0).items():
            for piece in cutters[task].add(data):
                assert not assemblies[task].take(piece), "no group is whole before the switch"
    want = {group: dict(state.group(group)) for group in lost}
    arrived: dict[int, dict] = {7: {}, 8: {}}
    rest = ahead.rest()
    assert rest.keys() == lost.keys()
    for group, (items, gone) in rest.items():
        packer = msgpack.Packer(autoreset=False)
        pack(packer, group, items, gone, last=True, owner="test")
        task = lost[group]
        for piece in cutters[task].add(packer.bytes()):
            arrived[task] |= assemblies[task].take(piece)
    for task, cutter in cutters.items():
        for piece in cutter.add(b"", end=True):
            arrived[task] |= assemblies[task].take(piece)
    assert arrived[7] | arrived[8] == want
    assert all(key_group(key) == group for groups in arrived.values() for group, e in groups.items() for key in e)


def test_what_stands_still_is_packed_once_and_then_nothing_is_left():
    state = KeyedState("test")
    for n in range(1000):
        state[n] = "x" * 50
    ahead = Ahead(state, dict.fromkeys(range(128), 7), "test")
    steps = 0
    while ahead.step(0.0, lambda: 0.0):
        steps += 1
    assert ahead.small and ahead.entries == 1000 and steps >= 128
    assert ahead.left == 0
    assert all(not items and not gone for items, gone in ahead.rest().values())


def test_the_switch_can_be_asked_for_when_what_is_left_is_packed_before_it_comes():
    state = KeyedState("test")
    for n in range(3000):
        state[n] = "x" * 1000
    ahead = Ahead(state, dict.fromkeys(range(128), 7), "test")
    assert not ahead.near
    looks, steps = count(), 0  # 0.1 ms from one look at the clock to the next: a step takes twice that
    while not ahead.near:
        assert ahead.step(0.0, lambda: next(looks) / 10_000)
        steps += 1
    left = 3000 - ahead.entries
    assert not ahead.small and 0.9 * NEAR_S < left * 0.0002 * steps / ahead.entries <= NEAR_S
    assert sum(len(items) for items, _ in ahead.rest().values()) == left


def test_large_values_are_packed_one_by_one():
    """A step looks at the clock only between two chunks."""
    state = KeyedState("test")
    keys = [key for key in range(2000) if key_group(key) == 5][:10]
    for key in keys:
        state[key] = "x" * 2 * PIECE_BYTES
    ahead = Ahead(state, {5: 7}, "test")
    steps = []
    while parts := ahead.step(0.0, lambda: 0.0):
        steps.append(len(parts[7]) // (2 * PIECE_BYTES))
    assert steps == [1] * len(keys)


@pytest.mark.long
def test_what_changes_faster_than_it_is_copied_is_given_up_on():
    state = KeyedState("test")
    for n in range(2000):
        state[n] = "x" * 100
    ahead = Ahead(state, dict.fromkeys(range(128), 7), "test")
    for _ in range(10_000):
        ahead.step(0.0, lambda: 0.0)
        for n in range(2000):
            state[n] = "y" * 100
        if ahead.small:
            break
    assert ahead.small and ahead.left > 4 * 1024
