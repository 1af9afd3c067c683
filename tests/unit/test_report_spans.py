"""A reconfiguration as spans: phases follow each other, and the last one ends with the whole."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.control.report.fold import reconfiguration_of
from leeward.control.report.spans import spans_of

FIELDS = {
    "kind": "handover", "epoch": 7, "ending": "done", "result": "done", "reason": "work is slow", "pause_s": 0.05,
    "phases": {"ahead_s": 1.5, "handover_s": 0.5}, "bytes_exported": 2048,
    "changes": [{"component": "work", "kind": "move", "before": {"n1": 1}, "after": {"n2": 1}}],
}  # fmt: skip


def test_the_whole_and_its_phases():
    whole, phases = spans_of("taxi", reconfiguration_of(FIELDS, 100.0))
    assert (whole.begun, whole.ended, whole.failed) == (98.0, 100.0, "")
    assert whole.attributes == {
        "leeward.topology": "taxi", "leeward.kind": "handover", "leeward.result": "done", "leeward.epoch": 7,
        "leeward.reason": "work is slow", "leeward.pause_s": 0.05, "leeward.bytes_moved": 2048,
        "leeward.components": "work",
    }  # fmt: skip
    assert [(one.name, one.begun, one.ended) for one in phases] == [("ahead", 98.0, 99.5), ("handover", 99.5, 100.0)]
    assert phases[0].attributes["leeward.phase"] == "ahead" and phases[0].attributes["leeward.topology"] == "taxi"


@pytest.mark.parametrize(("ending", "why"), [("aborted", "task 3 was silent"), ("reset", "reset")])
def test_one_that_did_not_come_about_has_failed_with_its_reason(ending, why):
    whole, _ = spans_of("taxi", reconfiguration_of(FIELDS | {"ending": ending, "result": why}, 100.0))
    assert whole.failed == why and whole.attributes["leeward.result"] == ending


@given(st.lists(st.floats(0, 1000), max_size=6), st.floats(1e6, 2e9), st.none() | st.floats(0, 2e9))
def test_phases_fill_the_end_of_the_whole_without_a_gap(durations, ended, begun):
    fields = FIELDS | {"phases": {f"p{n}_s": seconds for n, seconds in enumerate(durations)}}
    whole, phases = spans_of("taxi", reconfiguration_of(fields, ended, begun))
    assert whole.begun <= whole.ended == ended or begun is not None
    edges = [whole.begun, *(one.begun for one in phases), ended]
    assert edges == sorted(edges) or begun is not None
    for one, after in pairwise(phases):
        assert one.ended == after.begun
    if phases:
        assert phases[-1].ended == pytest.approx(ended, abs=1e-3) and whole.begun <= phases[0].begun
