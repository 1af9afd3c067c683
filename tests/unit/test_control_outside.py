"""The service warns of state outside of self.state, and refuses a reconfiguration that would lose it, unless forced."""

from __future__ import annotations

import pytest

from leeward.control.guard import by_hand, would_lose
from leeward.control.monitor import outside_of
from leeward.control.observe import warnings_of
from leeward.core.errors import PlanError
from leeward.core.metrics import TaskMetrics
from leeward.core.model import Measured
from leeward.core.outcome import Ending
from leeward.core.plan import Plan, Slot
from tests.helpers.control_figures import Figures
from tests.helpers.control_stage import Script, keep, replicas_of_work, stage
from tests.helpers.control_twins import ID, Cluster
from tests.helpers.control_views import view


def keeping(*names):
    return view(measured={"work": Measured(arrival_rate=10.0, outside=names)})


def test_a_plan_that_moves_its_key_groups_is_refused_by_component_attribute_and_remedy():
    with pytest.raises(PlanError) as refusal:
        by_hand({"work": {"n1": 1, "n2": 1}}, keeping("counter", "total"))
    text = str(refusal.value)
    assert text.startswith("work keeps counter and total outside of self.state")
    assert "resumed()" in text and "--force" in text


def test_it_is_accepted_when_forced_or_when_the_component_stays():
    before = keeping("counter")
    assert by_hand({"work": {"n1": 1, "n2": 1}}, before, force=True).tables["work"] != before.tables["work"]
    moved = Plan(tables=before.tables, placement={**before.assignment, 4: Slot("n3", 2)})
    assert would_lose(moved, before) == "", "a warm task moves"
    assert would_lose(by_hand({"work": {"n1": 1, "n2": 1}}, view()), view()) == ""


def test_a_restart_of_its_replicas_worker_loses_it_too():
    before = keeping("counter")
    moved = Plan(tables=before.tables, placement={**before.assignment, 2: Slot("n1", 2)})
    assert would_lose(moved, before).startswith("work keeps counter")


def sample(component, **more):
    return TaskMetrics(component=component, pid=1, t=1.0, **more)


def test_the_tasks_of_a_component_are_put_together():
    samples = {2: sample("work", outside=("b",)), 3: sample("work", outside=("a", "b")), 5: sample("sink")}
    assert outside_of(samples) == {"work": ("a", "b")}
    assert outside_of(samples | {5: sample("sink", state_unused=True)}) == {"work": ("a", "b"), "sink": ()}


def test_warnings_are_sentences_by_component():
    samples = {
        2: sample("work", outside=("counter",), dropped=3),
        3: sample("work", dropped=4),
        5: sample("sink", state_unused=True),
    }
    sink, outside, dropped = warnings_of(samples)
    assert outside.startswith("work keeps counter outside of self.state")
    assert sink.startswith("sink keeps state by its class, but") and "transient" in sink
    assert dropped.startswith("7 tuples that warm tasks of work emitted were dropped")
    assert warnings_of({2: sample("work")}) == []


def publishing(**more):
    cluster = Cluster()
    cluster.world.metrics[ID] = Figures(cluster, {2: {"processed": 10, **more}})
    return cluster


def test_the_service_warns_once_and_refuses_the_policys_plan():
    several = lambda sink, _: len(sink.of("plan_refused")) >= 2  # noqa: E731
    policy = Script(replicas_of_work([2, 3]))
    service, clock, sink, _ = stage(policy, until=several, cluster=publishing(outside=("counter",)))
    service.run(clock.stop)
    (warned,) = sink.of("state_outside")
    assert warned["component"] == "work" and warned["attributes"] == ["counter"] and "remedy" in warned
    assert sink.of("plan_refused")[0]["why"].startswith("work keeps counter outside of self.state")
    assert not sink.of("reconfiguration_started") and policy.views[0].measured["work"].outside == ("counter",)


def test_a_component_that_never_uses_its_state_is_told_of_and_refused():
    """It may keep it where no look reaches: in an array, a client, a closure."""
    refused = lambda sink, _: bool(sink.of("plan_refused"))  # noqa: E731
    policy = Script(replicas_of_work([2, 3]))
    service, clock, sink, _ = stage(policy, until=refused, cluster=publishing(state_unused=True))
    service.run(clock.stop)
    (warned,) = sink.of("state_outside")
    assert warned["component"] == "work" and warned["attributes"] == []
    why = sink.of("plan_refused")[0]["why"]
    assert why.startswith("work keeps state by its class, but") and "transient = ()" in why and "--force" in why
    assert not sink.of("reconfiguration_started")


@pytest.mark.parametrize(("more", "ending"), [({}, Ending.REFUSED), ({"force": True}, Ending.DONE)])
def test_a_person_may_force_it(more, ending):
    cluster = publishing(outside=("counter",))
    service, clock, sink, cluster = stage(Script(keep), until=lambda sink, c: bool(c.world.answers), cluster=cluster)
    emit = sink.emit

    def asking(action, fields):
        emit(action, fields)
        if action == "state_outside":
            cluster.world.requests["request-1"] = {"replicas": {"work": {"n1": 1, "n2": 1}}, **more}

    sink.emit = asking
    service.run(clock.stop)
    answer = cluster.world.answers["request-1"]
    assert answer.ending is ending, answer
    assert ending is Ending.DONE or "work keeps counter" in answer.why
