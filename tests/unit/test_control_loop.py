"""A policy that fails, or returns no proper plan: its fault is a refusal that is told, and the service goes on."""

from __future__ import annotations

import threading

import pytest

from leeward.control.loop import Aside, Inline, Loop
from leeward.core.errors import LeewardError
from leeward.core.plan import Estimate, Plan, Slot
from leeward.core.settings import Settings
from leeward.sim.memory import ListSink
from tests.helpers.control_views import view


class Faulty:
    """Divides by zero. At once, too."""

    at_once = True

    def decide(self, view, *, now, rng):
        return 1 // 0


def test_a_fault_of_the_policy_is_told_as_a_refusal():
    sink, answered = ListSink(), threading.Event()
    loop = Loop(settings=Settings(), policy=Faulty(), sink=sink, topology="app", executor=Aside())
    loop.begin(view(), 0.0, answered.set)
    assert answered.wait(20)
    decision = loop.take(view().epoch, True, 1.0)
    assert decision is not None and decision.plan is None and not decision.keeps
    assert loop.first(view(), 2.0) is None
    why = "the policy has failed: ZeroDivisionError: integer division or modulo by zero."
    assert [fields["why"] for fields in sink.of("plan_refused")] == [why, why]


def test_in_tests_and_simulators_it_is_not_hidden():
    loop = Loop(settings=Settings(), policy=Faulty(), sink=ListSink(), topology="app", executor=Inline())
    loop.begin(view(), 0.0, lambda: None)
    with pytest.raises(ZeroDivisionError):
        loop.take(view().epoch, True, 1.0)


class Refusing:
    """Says why it has no plan."""

    def decide(self, view, *, now, rng):
        raise LeewardError("no node has room.", remedy="Add one.")


def test_an_error_that_was_raised_on_purpose_stays_as_it_is():
    sink, answered = ListSink(), threading.Event()
    loop = Loop(settings=Settings(), policy=Refusing(), sink=sink, topology="app", executor=Aside())
    loop.begin(view(), 0.0, answered.set)
    assert answered.wait(20) and loop.take(view().epoch, True, 1.0) is not None
    assert [fields["why"] for fields in sink.of("plan_refused")] == ["no node has room. Add one."]


class Returning:
    """Returns what it was made with. At once, too."""

    at_once = True

    def __init__(self, answer):
        self.answer = answer

    def decide(self, view, *, now, rng):
        return self.answer


def plan(**changes):
    return Plan(**{"tables": view().tables, "placement": view().assignment, **changes})


def without(task):
    return {other: slot for other, slot in view().assignment.items() if other != task}


MALFORMED = [
    (None, "the policy returned None, which is no Plan. Return a Plan; "),
    ({"work": {"n1": 1}}, "the policy returned {'work': {'n1': 1}}, which is no Plan."),
    (plan(placement=without(2)), "plan does not place task 2. Place every task of the topology."),
    (plan(tables={**view().tables, "work": (9999,) * 128}), "table of 'work' gives group 0 to 9999, "),
    (plan(tables={**view().tables, "work": (2,) * 5}), "table of 'work' has 5 entries, not 128."),
    (plan(tables={**view().tables, "work": None}), "plan field 'tables' of 'work' is None. Give a tuple of task ids."),
    (plan(tables={**view().tables, "work": (2, [3])}), "plan field 'tables' of 'work' is (2, [3])."),
    (plan(tables={**view().tables, 7: (2,) * 128}), "plan field 'tables', name of a component, is 7. Give a str."),
    (plan(tables=None), "plan field 'tables' is None. Give a Mapping."),
    (plan(placement={}), "plan does not place task 1."),
    (plan(placement=[]), "plan field 'placement' is []. Give a Mapping."),
    (plan(placement={**view().assignment, 4: ("n3", 1)}), "plan field 'placement' of task 4 is ('n3', 1). Give a Slot"),
    (plan(placement={**view().assignment, "4": Slot("n3", 1)}), "plan field 'placement', id of a task, is '4'. "),
    (plan(placement={**view().assignment, 4: Slot(["n3"], 1)}), "plan field 'placement' of task 4 is Slot(node=['n3']"),
    (plan(estimate=None), "plan field 'estimate' is None. Give an Estimate."),
    (plan(estimate=Estimate(cost_per_h="3")), "plan field 'estimate.cost_per_h' is '3'. Give a number"),
    (plan(load={"work": 3.0}), "plan field 'load' of 'work' is 3.0. Give tuples/s by key group."),
    (plan(load={"work": {0: "3"}}), "plan field 'load' of 'work' is {0: '3'}."),
    (plan(reason=("too", "long")), "plan field 'reason' is ('too', 'long'). Give a str."),
]


@pytest.mark.parametrize("executor", [Aside, Inline])
@pytest.mark.parametrize(("answer", "why"), MALFORMED)
def test_a_plan_that_is_none_or_names_too_little_is_refused(answer, why, executor):
    sink, answered = ListSink(), threading.Event()
    loop = Loop(settings=Settings(), policy=Returning(answer), sink=sink, topology="app", executor=executor())
    loop.begin(view(), 0.0, answered.set)
    assert answered.wait(20)
    decision = loop.take(view().epoch, True, 1.0)
    assert decision is not None and decision.plan is None and not decision.keeps
    assert loop.first(view(), 2.0) is None
    told = [fields["why"] for fields in sink.of("plan_refused")]
    assert len(told) == 2 and all(one.startswith(why) for one in told), told
