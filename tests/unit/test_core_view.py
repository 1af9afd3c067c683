"""A view travels as JSON, and a document that is no view counts as none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.core.view import MOST_ARROWS, MOST_LETTERS, Arrow, View

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=6), inner, max_size=5),
    max_leaves=12,
)
PLACES = st.tuples(st.floats(0, 300), st.floats(0, 200))
ARROWS = st.builds(
    lambda start, end, label: Arrow(start=start, end=end, label=label), PLACES, PLACES, st.text(max_size=9)
)
VIEWS = st.lists(ARROWS, max_size=8).map(
    lambda arrows: View(title="routes", note="08:00", width=300.0, height=200.0, arrows=tuple(arrows))
)


@given(VIEWS)
def test_a_view_survives_its_way(view: View):
    assert View.of(json.loads(json.dumps(view.document()))) == view


@given(JSON, st.sampled_from(["title", "note", "width", "height", "arrows"]))
def test_whatever_comes_it_is_a_view_or_none(value: object, field: str):
    document = View(title="routes", width=1.0, height=1.0).document()
    for broken in (value, {**document, field: value}):
        found = View.of(broken)
        assert found is None or (found.width > 0 and len(found.arrows) <= MOST_ARROWS)


def test_more_than_a_page_can_show_is_cut_off():
    arrow = Arrow(start=(0, 0), end=(1, 1), label="x" * 500)
    view = View(title="t" * 500, width=1, height=1, arrows=(arrow,) * 80)
    found = View.of(json.loads(json.dumps(view.document())))
    assert found is not None and len(found.arrows) == MOST_ARROWS
    assert len(found.title) == len(found.arrows[0].label) == MOST_LETTERS


@pytest.mark.parametrize("place", [(-1.0, 0.0), (0.0, 2.5)])
def test_an_arrow_that_lies_outside_is_left_out(place: tuple[float, float]):
    inside = Arrow(start=(0, 0), end=(1, 2), label="in")
    view = View(title="t", width=1, height=2, arrows=(Arrow(start=place, end=(1, 1), label="out"), inside))
    found = View.of(view.document())
    assert found is not None and [arrow.label for arrow in found.arrows] == ["in"]
