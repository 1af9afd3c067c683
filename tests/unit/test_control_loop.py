"""A policy that fails: its fault is a refusal that is told, and the service goes on."""

from __future__ import annotations

import threading

import pytest

from leeward.control.loop import Aside, Inline, Loop
from leeward.core.errors import LeewardError
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
