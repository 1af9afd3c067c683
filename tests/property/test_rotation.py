"""The rotation by weights: the rule that a sender's grouping has in Java, and what it promises."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.core.errors import ProtocolError
from leeward.core.rotation import LONGEST, rotation

VECTORS = json.loads((Path(__file__).parents[1] / "vectors/rotation.json").read_text())
weights = st.dictionaries(st.integers(1, 99), st.integers(0, 40), max_size=12)


def test_the_round_is_that_of_the_java_groupings():
    assert VECTORS["longest"] == LONGEST and len(VECTORS["vectors"]) >= 60
    for vector in VECTORS["vectors"]:
        assert list(rotation(dict(vector["weights"]))) == vector["round"], vector


@given(weights)
def test_each_task_has_as_many_turns_as_its_weight(weights):
    assert Counter(rotation(weights)) == Counter({task: weight for task, weight in weights.items() if weight})


@given(weights)
def test_turns_are_spread_over_the_round(weights):
    """Each task is at any time within one turn, and a bit for ties among many, of its share so far."""
    turns, total, had = rotation(weights), sum(weights.values()), Counter()
    for turn, task in enumerate(turns, start=1):
        had[task] += 1
        for other, weight in weights.items():
            assert abs(had[other] - turn * weight / total) <= len(weights) / 2 + 1, (other, turn)


@given(weights)
def test_a_multiple_of_the_weights_gives_the_same_turns(weights):
    many = rotation({task: 2 * weight for task, weight in weights.items()})
    assert many == rotation(weights) * 2


@pytest.mark.parametrize("bad", [{1: -1}, {1: 2, 2: -1}, {1: LONGEST, 2: 1}])
def test_weights_that_are_none_are_refused(bad):
    with pytest.raises(ProtocolError, match="are no shares"):
        rotation(bad)
