"""Which cut no restore will go back behind."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from leeward.runtime.state.durable import Durable


def test_the_oldest_cut_that_is_kept_is_reported_and_not_the_newest():
    """Where the newest cannot be read, everything is restored from the one before."""
    durable = Durable()
    for cut in (1, 2, 3):
        durable.exported(cut, {"at": cut})
    assert list(durable.committed((1,))) == [(1, {"at": 1})]
    assert list(durable.committed((1, 2))) == []
    assert list(durable.committed((2, 3))) == [(2, {"at": 2})]
    assert list(durable.committed((2, 3))) == [], "once"


def test_what_was_exported_after_a_cut_that_is_restored_is_forgotten():
    durable = Durable()
    for cut in (1, 2):
        durable.exported(cut, {"at": cut})
    durable.restored(1, {"at": 1})
    assert list(durable.committed((2, 3))) == [], "that was another past"


def test_a_process_reports_nothing_of_cuts_that_it_had_no_part_in():
    assert list(Durable().committed((4, 5))) == []
    assert list(Durable().committed(())) == []


STEPS = st.lists(st.sampled_from(["export", "commit", "restore newest", "restore older"]), max_size=40)


@given(STEPS, st.integers(1, 3))
def test_never_is_a_cut_reported_that_a_restore_could_still_go_back_behind(steps, keep):
    durable, number, exported, kept = Durable(), 0, [], ()
    told = 0
    for step in steps:
        if step == "export":
            number += 1
            durable.exported(number, {"at": number})
            exported.append(number)
        elif step == "commit" and exported:
            kept = (*kept, exported.pop())[-keep:]
            exported.clear()
        elif kept:
            cut = kept[-1] if step == "restore newest" else kept[0]
            kept = tuple(known for known in kept if known <= cut)
            exported.clear()
            durable.restored(cut, {"at": cut})
        for cut, state in durable.committed(kept):
            assert (cut, state) == (kept[0], {"at": cut}) and cut > told
            told = cut
