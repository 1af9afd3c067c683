"""Deployments that differ in one operator come to exactly what the definitions say, whatever was looked at before."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.policies.edrp.methods.near import serving
from leeward.policies.edrp.problem.evaluate import assess
from leeward.policies.edrp.problem.nearby import Nearby
from tests.helpers.solve_builders import problems


@settings(max_examples=100)
@given(problems(), st.data())
def test_it_agrees_with_the_definitions_to_the_last_bit(problem, data):
    start = serving(problem, problem.current or {})
    if start is None or assess(problem, start)[0] is None:
        return
    deployment, nearby = dict(start), Nearby(problem, start)
    for _ in range(4):
        operator = data.draw(st.sampled_from(problem.operators))
        names = [node.id for node in problem.nodes]
        placed = data.draw(st.dictionaries(st.sampled_from(names), st.integers(1, 3), min_size=1, max_size=3))
        changed = {**deployment, operator.id: placed}
        metrics, violations = assess(problem, changed)
        assert nearby.assess(operator.id, placed) == (metrics, len(violations))
        if metrics is not None and data.draw(st.booleans()):
            nearby.move(operator.id, placed)
            deployment = changed
