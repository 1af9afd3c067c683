"""Keyed state that is written while it changes: what was frozen stays as it was, what is tracked is not missed."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from zlib import crc32

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.core.errors import KeyTypeError, NotOwnedError
from leeward.core.keys import GROUPS, key_group
from leeward.runtime.state import snapshot
from leeward.runtime.state.keyed import NO_GROUP, Frozen, KeyedState

KEYS = [f"k{n}" for n in range(8)]
DEEDS = st.lists(
    st.tuples(st.sampled_from(["set", "append", "nested", "delete"]), st.sampled_from(KEYS), st.integers(0, 9))
)


def do(state: KeyedState, what: str, key: str, value: int) -> None:
    if what == "set":
        state[key] = value
    elif what == "delete":
        state.pop(key, None)
    elif isinstance(found := state.get(key), list):
        (found[0] if what == "nested" else found).append(value)
    else:
        state[key] = [[value]]


def plain(groups: KeyedState | Frozen, numbers: Iterable[int] = range(GROUPS)) -> dict:
    return {key: repr(value) for number in numbers for key, value in groups.group(number).items()}


@given(before=DEEDS, between=DEEDS, after=DEEDS, early=st.sets(st.integers(0, GROUPS - 1)))
def test_what_was_frozen_stays(before, between, after, early):
    """Whatever part of it is read, and forgotten, before the rest."""
    state = KeyedState("test")
    for deed in before:
        do(state, *deed)
    want_first, first = plain(state), state.freeze()
    for deed in between:
        do(state, *deed)
    want_second, second = plain(state), state.freeze()
    read = plain(first, early)
    for group in early:
        first.forget(group)
    for deed in after:
        do(state, *deed)
    assert read | plain(first) == want_first and plain(second) == want_second
    assert not plain(first, early)
    state.thaw(first)
    state.thaw(second)
    assert not state._watched


def test_freezing_copies_no_group_before_it_changes():
    state = KeyedState("test")
    for key in KEYS:
        state[key] = 1
    frozen = state.freeze()
    assert not frozen._copies
    state[KEYS[0]] = 2
    assert list(frozen._copies) == [key_group(KEYS[0])]


def test_what_was_frozen_outlives_its_release():
    """The old owner frees a group that it has given away entry by entry."""
    state = KeyedState("test")
    for key in KEYS:
        state[key] = 1
    want, frozen = plain(state), state.freeze()
    for entries in state.release(range(GROUPS)).values():
        entries.clear()
    assert plain(frozen) == want


def test_what_changes_while_its_group_is_packed_is_packed_as_it_was(monkeypatch):
    """Threads take turns anywhere between two calls: here the owner's comes whenever a key has been packed."""
    state = KeyedState("test")
    mine = [number for number in range(100_000) if key_group(number) == 5][:300]
    for key in mine:
        state[key] = [0]
    frozen, packer = state.freeze(), msgpack.Packer

    class Interrupted:
        def __init__(self, **options):
            self.inner = packer(**options)

        def pack(self, value):
            self.inner.pack(value)
            if isinstance(value, int):
                state[value].append(1)

        def __getattr__(self, name):
            return getattr(self.inner, name)

    monkeypatch.setattr(msgpack, "Packer", Interrupted)
    blob = snapshot.encode(frozen.group(5), cut=1, owner="test")
    assert snapshot.decode(blob, cut=1, where="here") == {key: [0] for key in mine}
    assert state.group(5) == {key: [0, 1] for key in mine}


def test_going_over_all_of_it_hands_out_what_may_change():
    state = KeyedState("test")
    state["a"], state["b"] = [1], 2
    assert dict(state.items()) == {"a": [1], "b": 2} and ("b", 2) in state.items()
    frozen = state.freeze()
    for _, value in state.items():  # noqa: PERF102 - items are what is tested
        if isinstance(value, list):
            value.append(3)
    assert plain(frozen) == {"a": "[1]", "b": "2"} and state["a"] == [1, 3]


def test_only_what_may_have_changed_is_tracked():
    state = KeyedState("test")
    state["number"], state["list"], state["other"] = 1, [1], [2]
    for group in state.groups:
        state.track(group)
    assert (state["number"], state.get("none"), "other" in state, len(state)) == (1, None, True, 3)
    assert not any(state.marked(group) for group in state.groups)
    state["list"].append(2)
    state["number"] += 1
    del state["other"]
    marked = {key for group in state.groups for key in state.marked(group)}
    assert marked == {"list", "number", "other"}
    state.untrack()
    assert not state._watched


@pytest.mark.parametrize("here", [NO_GROUP, 5, 8, 99], ids=["unknown", "another", "its own", "not owned"])
@pytest.mark.parametrize("key", [42, "42", (42,), ("cell", -7), ("a", "b")])
def test_the_group_of_the_tuple_at_hand_changes_no_answer(key, here):
    state = KeyedState("test", range(GROUPS - 30))
    state.here = here
    group = key_group(key)
    if group not in state.groups:
        with pytest.raises(NotOwnedError, match=f"no key group {group}"):
            state[key] = 1
        return
    assert key not in state and state.get(key) is None
    state[key] = 1
    state.here = here if here == NO_GROUP else group
    state[key] += 1
    assert state[key] == state.get(key) == state.group(group)[key] == 2
    del state[key]
    assert key not in state


def test_the_group_of_the_tuple_at_hand_is_looked_up_in_the_state_that_is_in_force():
    state = KeyedState("test")
    state["a"] = 1
    state.here = group = key_group("a")
    released = state.release([group])
    with pytest.raises(NotOwnedError, match=f"no key group {group}"):
        state["a"] = 2
    state.add(released)
    assert state["a"] == 1
    state.begin("test", {group: {"a": 3}})
    assert state["a"] == 3
    state["a"] = 4
    assert state.group(group) == {"a": 4}


@pytest.mark.parametrize("key", [True, 1.0, ["a"], None])
def test_a_key_of_another_type_is_refused_although_python_takes_it_for_one_that_is_there(key):
    state = KeyedState("test")
    state[1] = "one"
    state.here = key_group(1)
    for deed in (lambda: state[key], lambda: state.get(key), lambda: state.__setitem__(key, 0)):
        with pytest.raises(KeyTypeError):
            deed()


def test_changes_by_the_tuples_own_group_are_marked():
    state = KeyedState("test")
    state["a", 1] = [0]
    state.here = group = key_group(("a", 1))
    state.track(group)
    frozen = state.freeze()
    state["a", 1].append(1)
    assert state.marked(group) == {("a", 1)} and frozen.group(group) == {("a", 1): [0]}


KEY = st.one_of(st.integers(-(2**63), 2**64 - 1), st.text())


@given(st.dictionaries(st.one_of(KEY, st.tuples(KEY, KEY), st.tuples(KEY)), st.lists(st.integers(0, 9)), max_size=300))
def test_keys_come_back_as_they_were(entries):
    blob = snapshot.encode(entries, cut=1, owner="test")
    back = snapshot.decode(blob, cut=1, where="here")
    assert back == entries and set(map(type, back)) == set(map(type, entries))


def test_snapshots_of_version_1_are_read():
    payload = msgpack.packb({"a\x1fb": [1], 7: None})
    blob = struct.pack(">3sBQQI", b"LWS", 1, 4, len(payload), crc32(payload)) + payload
    assert snapshot.decode(blob, cut=4, where="here") == {"a\x1fb": [1], 7: None}
