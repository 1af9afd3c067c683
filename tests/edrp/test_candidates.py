"""Nodes that S-EDRP looks at: nothing is lost where it says so, and plans of a large cluster keep the rules."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.control.guard import check_plan
from leeward.core.coordinates import Coordinate, Delays
from leeward.policies.edrp.candidates import candidates
from leeward.policies.edrp.methods import solve
from leeward.policies.edrp.policy import Edrp, build_problem
from leeward.policies.edrp.problem.outcome import Optimal
from leeward.policies.edrp.settings import EdrpSettings
from tests.helpers.control_views import node, view

SETTINGS = EdrpSettings(link_delay_s=0.01, link_cost=0.001, r_max_s=1.0)
#: The view's own nodes, of which something is known.
OWN = tuple(node(f"n{number}") for number in (1, 2, 3))


def more(kinds):
    """Nodes on which nothing of the topology is: (ports, drains, speed-up)."""
    return tuple(
        node(f"m{at:03}", ports=tuple(range(1, ports + 1)), capacity=4 * ports, draining=drains, speedup=speed)
        for at, (ports, drains, speed) in enumerate(kinds)
    )


kinds = st.tuples(st.integers(0, 2), st.sampled_from([False, False, False, True]), st.sampled_from(["1.0", "1.5"]))


@settings(max_examples=25)
@given(st.lists(kinds, max_size=12), st.sampled_from([80.0, 290.0, 420.0]), st.booleans())
def test_the_optimum_on_the_candidates_is_the_optimum_on_all_nodes(found, rate, first):
    shown = view(rate=rate, nodes=(*OWN, *more(found)), first=first)
    chosen = candidates(shown, most=10)
    if not chosen.complete:
        return
    fewer = build_problem(replace(shown, nodes=chosen.nodes), SETTINGS)[0]
    one, other = solve(build_problem(shown, SETTINGS)[0], method="exact"), solve(fewer, method="exact")
    assert type(one) is type(other)
    if isinstance(one, Optimal):
        assert abs(other.metrics.F - one.metrics.F) <= 1e-6


def test_of_nodes_that_are_alike_as_many_stay_as_there_can_be_replicas():
    shown = view(nodes=(*OWN, *more([(1, False, "1.0")] * 50)))
    chosen = candidates(shown)
    assert len(chosen.nodes) == 3 + 5 and chosen.complete, "source 1, work 3, sink 1"
    other = candidates(replace(shown, topology="another"))
    assert {one.id for one in chosen.nodes} != {one.id for one in other.nodes}, "they would want the same slots"


def test_nodes_that_something_is_known_of_stay():
    places = Delays({"m007": Coordinate((0.1, 0.0), 0.001, 0.1)})
    shown = view(nodes=(*OWN, *more([(1, False, "1.0")] * 50)), pinned=("m030",), delay_s=places)
    assert {"n1", "n2", "n3", "m007", "m030"} <= {one.id for one in candidates(shown, most=2).nodes}


def test_a_cluster_that_is_too_large_is_looked_at_in_part_and_the_reason_says_so():
    nodes = (*OWN, *more([(1 + at % 2, False, str(1 + at / 100)) for at in range(60)]))
    shown = view(nodes=nodes, rate=290.0)
    chosen = candidates(shown, most=6)
    fresh = [one for one in chosen.nodes if one.id.startswith("m")]
    assert not chosen.complete and len(fresh) == 6 and {one.capacity for one in fresh} == {8}
    plan = Edrp(SETTINGS).decide(shown, now=0.0, rng=random.Random(0))
    assert "11 of 63 nodes were looked at" in plan.reason
    check_plan(plan, shown)


def test_a_cluster_of_which_no_node_can_be_used_is_looked_at_as_a_whole():
    shown = view(nodes=tuple(node(f"n{number}", draining=True) for number in (1, 2, 3, 4)))
    assert candidates(shown).nodes == shown.nodes
