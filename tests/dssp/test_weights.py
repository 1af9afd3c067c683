"""Weights of classes, learned from how many queries are late."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.policies.dssp.disciplines import Salvage
from leeward.policies.dssp.model.weights import LEAST, Lateness, learned
from leeward.policies.dssp.simulation.run import Simulation
from leeward.policies.dssp.simulation.setup import queries
from leeward.policies.dssp.simulation.setup import testbed as the_testbed

SETTING = the_testbed()


@given(
    st.dictionaries(
        st.sampled_from("abcd"), st.tuples(st.integers(0, 50), st.integers(0, 10_000)).map(
            lambda pair: Lateness(late=min(pair), allowed=0.01 * pair[1])
        ), min_size=1,
    ),
    st.dictionaries(st.sampled_from("abcde"), st.floats(LEAST, 1.0)), st.integers(1, 100),
)  # fmt: skip
def test_weights_are_within_their_bounds_and_the_greatest_is_one(round_, before, number):
    found = learned(before, round_, number=number)
    assert set(found) == {*round_, *before}
    assert max(found.values()) == 1.0 and min(found.values()) >= LEAST


@given(st.dictionaries(st.sampled_from("abcd"), st.floats(0, 1e4), min_size=2))
def test_where_no_query_is_late_no_class_counts_more_however_many_queries_came(allowed):
    found = learned({}, {name: Lateness(late=0, allowed=one) for name, one in allowed.items()}, number=1)
    assert found == pytest.approx(dict.fromkeys(allowed, 1.0))


def test_the_class_that_is_later_than_its_objective_allows_counts_more():
    late = {"few": Lateness(late=8, allowed=4.0), "many": Lateness(late=8, allowed=40.0)}
    once = learned({}, late, number=1)
    assert once["few"] == 1.0 and once["many"] < 0.4
    assert learned(once, late, number=2)["many"] < once["many"], "as long as it is so"
    one = {"few": Lateness(late=1, allowed=0.1), "many": Lateness(late=4, allowed=4.0)}
    assert learned({}, one, number=1)["many"] > 0.5, "one late query says little"


def test_with_learned_weights_the_classes_of_the_testbed_are_late_alike():
    simulation = Simulation(queries(SETTING, 60_000, 4))

    def apart(outcome) -> float:
        late = [outcome.lateness(n, one.objective_s) for n, one in enumerate(SETTING.classes)]
        shares = [one.late / one.allowed for one in late]
        return max(shares) / min(shares)

    plain = simulation.weighted(20.0, Salvage(), [1.0] * 4)
    assert apart(plain) > 4 and apart(simulation.outcome(20.0, Salvage())) < 3
