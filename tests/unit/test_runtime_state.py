"""Keyed state that is written while it changes: what was frozen stays as it was, what is tracked is not missed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leeward.runtime.state import KeyedState

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


def plain(groups: dict) -> dict:
    return {key: repr(value) for entries in groups.values() for key, value in entries.items()}


@given(before=DEEDS, between=DEEDS, after=DEEDS)
def test_what_was_frozen_stays(before, between, after):
    state = KeyedState("test")
    for deed in before:
        do(state, *deed)
    first = state.freeze()
    want_first = plain(first)
    for deed in between:
        do(state, *deed)
    second = state.freeze()
    want_second = plain(second)
    for deed in after:
        do(state, *deed)
    assert plain(first) == want_first and plain(second) == want_second
    state.thaw(first)
    state.thaw(second)
    assert not state._watched


def test_going_over_all_of_it_hands_out_what_may_change():
    state = KeyedState("test")
    state["a"], state["b"] = [1], 2
    assert dict(state.items()) == {"a": [1], "b": 2} and ("b", 2) in state.items()
    frozen = state.freeze()
    for _, value in state.items():
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
