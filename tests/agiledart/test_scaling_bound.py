"""The limit of an operator, the remedy, and the places of replicas."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.policies.agiledart.scaling.bound import Bound, Remedy, Upstream, bound_of, remedy_of
from leeward.policies.agiledart.scaling.facts import busy, from_sources, upstream
from leeward.policies.agiledart.scaling.spread import Room, grow, move, shrink
from tests.helpers.control_views import node, view


def bound(share: float | None, **changes) -> Bound:
    one = Upstream(**({"busy": 0.3, "queued": 0.0, "rate": 100.0} | changes))
    return bound_of(share, [one], threshold=0.7, waits_s=2.0)


@pytest.mark.parametrize(
    ("share", "changes", "expected"),
    [
        (0.9, {}, Bound.COMPUTE),
        (0.7, {"queued": 9_000.0}, Bound.COMPUTE),
        (0.3, {}, Bound.NONE),
        (0.3, {"queued": 200.0}, Bound.NONE),
        (0.3, {"queued": 201.0}, Bound.BANDWIDTH),
        (0.3, {"queued": 300.0, "queued_before": 301.0}, Bound.NONE),
        (0.3, {"queued": 300.0, "queued_before": 300.0}, Bound.BANDWIDTH),
        (0.3, {"queued": 9_000.0, "busy": 0.8}, Bound.NONE),
        (0.3, {"queued": 9_000.0, "busy": None}, Bound.NONE),
        (0.3, {"sent": 100.0, "received": 96.0}, Bound.NONE),
        (0.3, {"sent": 100.0, "received": 94.0}, Bound.BANDWIDTH),
        (0.3, {"sent": 0.0, "received": 0.0, "rate": 0.0}, Bound.NONE),
        (None, {"queued": 9_000.0}, Bound.NONE),
    ],
)
def test_the_criterion(share, changes, expected):
    assert bound(share, **changes) is expected


def test_an_operator_that_nothing_sends_to_is_not_bound_by_bandwidth():
    assert bound_of(0.1, [], threshold=0.7, waits_s=2.0) is Bound.NONE


def test_remedies_are_those_of_the_paper():
    assert [remedy_of(Bound.COMPUTE, stateful=stateful) for stateful in (True, False)] == [Remedy.UP] * 2
    assert remedy_of(Bound.BANDWIDTH, stateful=False) is Remedy.OUT
    assert remedy_of(Bound.BANDWIDTH, stateful=True) is Remedy.MOVE
    assert remedy_of(Bound.NONE, stateful=True) is None


def test_facts_of_a_view():
    shown = view(rate=120.0, work=(2, 3), mu=150.0, queued=600)
    assert busy(shown, "work") == pytest.approx(0.4)
    (before,) = upstream(shown, shown.component("work"), {"source": 500})
    assert (before.queued, before.queued_before, before.rate) == (600, 500, 120.0)
    assert (before.sent, before.received) == (120.0, 120.0)
    assert before.busy == pytest.approx(0.4), "the busiest of source, work and sink"
    (before,) = upstream(shown, shown.component("sink"), {})
    assert before.sent is None and before.queued_before is None
    assert from_sources(shown, 60.0) == pytest.approx(300.0)
    assert from_sources(view(rate=0.0, queued=600), 60.0) == 0


# --- places


def room(*capacities: int, used: dict[str, int] | None = None) -> Room:
    made = Room.of([node(f"n{number}", capacity=size) for number, size in enumerate(capacities, 1)])
    made.used.update(used or {})
    return made


NODES, READY = ["n1", "n2", "n3"], dict.fromkeys(["n1", "n2", "n3"], 9)


def test_up_fills_the_node_and_out_goes_round_the_others():
    assert grow({"n1": 1}, 3, NODES, room(3, 9, 9, used={"n1": 1}), ready=READY) == {"n1": 3, "n2": 1}
    assert grow({"n1": 1}, 3, NODES, room(9, 9, 9, used={"n1": 1}), ready=READY, out=True) == {
        "n1": 2,
        "n2": 1,
        "n3": 1,
    }


def test_the_least_loaded_node_comes_first_and_ties_break_by_id():
    assert grow({}, 1, NODES, room(4, 4, 8, used={"n1": 2, "n2": 1, "n3": 1}), ready=READY) == {"n3": 1}
    assert grow({}, 1, NODES, room(4, 4, 4), ready=READY) == {"n1": 1}


def test_a_node_where_no_worker_restarts_comes_before_all():
    assert grow({"n1": 1}, 1, NODES, room(9, 9, 9), ready={"n1": 1, "n3": 1}) == {"n1": 1, "n3": 1}


def test_of_other_nodes_the_near_ones_come_first():
    place = room(1, 9, 9, used={"n1": 1, "n3": 5})
    assert grow({"n1": 1}, 1, NODES, place, ready=READY, near=["n1", "n3"]) == {"n1": 1, "n3": 1}
    assert grow({"n1": 1}, 1, NODES, place, ready={"n2": 1}, near=["n3"]) == {"n1": 1, "n2": 1}, "none restarts"


def test_shrinking_keeps_one_and_relieves_the_most_loaded():
    assert shrink({"n1": 2, "n2": 1}, 2, room(4, 4, 4, used={"n1": 4, "n2": 1})) == {"n2": 1}
    assert sum(shrink({"n1": 2, "n2": 1}, 9, room(4, 4, 4)).values()) == 1


def test_a_move_takes_all_of_a_node_as_far_as_there_is_room():
    place = room(4, 4, 2, used={"n1": 3, "n2": 1})
    assert move({"n1": 3, "n2": 1}, "n3", place) == ({"n1": 1, "n2": 1, "n3": 2}, "n1")
    assert place.used == Counter({"n1": 1, "n2": 1, "n3": 2})


@given(
    st.lists(st.integers(0, 5), min_size=3, max_size=3), st.integers(0, 12), st.booleans(),
    st.lists(st.sampled_from(NODES), unique=True),
)  # fmt: skip
def test_growth_never_leaves_its_room(sizes, by, out, allowed):
    place = room(*sizes)
    found = grow({}, by, allowed, place, ready=READY, out=out)
    assert all(found[n] <= place.capacity[n] and n in allowed for n in found)
    assert sum(found.values()) == min(by, sum(place.capacity[n] for n in allowed))
    assert place.used == Counter(found)
