"""From looks at the tasks to all that is learnt: spans, processes that begin anew, reconfigurations that end."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from leeward.control.learning.curves import SPAN_S
from leeward.control.learning.learner import Learner
from leeward.control.learning.telling import learnt_fields
from leeward.control.monitor import Rates
from leeward.core.learnt import Restart
from leeward.core.metrics import TaskMetrics
from leeward.core.model import HandoverCost
from leeward.core.outcome import Ending, Outcome
from tests.helpers.learnt_spans import CLOSED, SERVICE, SLOTS, STREAM, looks, taught


def test_a_span_ends_after_its_time_and_teaches_the_curve_of_each_component():
    learner = Learner([STREAM])
    ends = [learner.observe(looks(100.0 + at), SLOTS, SERVICE, float(at)) for at in range(25)]
    assert [at for at, ended in enumerate(ends) if ended] == [10, 20]
    curve = taught().learnt(SERVICE).curves["work"]
    assert curve.response_s(50.0) == pytest.approx(0.015, rel=0.02)
    assert curve.seen(50.0) and curve.samples == pytest.approx(38, abs=3)
    assert "source" not in taught().learnt(SERVICE).curves, "a source times no tuple"


def test_model_and_measurement_are_compared_at_the_same_rate():
    (one,) = taught().agreements
    assert (one.component, one.utilisation, one.measured_s) == ("work", pytest.approx(0.5), pytest.approx(0.015))
    assert one.learnt_s == pytest.approx(0.015, rel=0.02) and one.mm1_s == pytest.approx(0.02)
    assert one.error_s < 0.001


def test_an_open_span_with_a_reconfiguration_in_it_is_none():
    learner = Learner([STREAM])
    learner.observe(looks(100.0), SLOTS, SERVICE, 0.0)
    learner.forget()
    assert not learner.observe(looks(111.0, growth=50.0), SLOTS, SERVICE, 11.0)
    assert learner.learnt(SERVICE).curves == {}


def test_a_process_that_began_within_the_span_is_left_out():
    learner = Learner([STREAM])
    learner.observe(looks(100.0), SLOTS, SERVICE, 0.0)
    learner.observe(looks(111.0, pid=2), SLOTS, SERVICE, 11.0)
    assert learner.learnt(SERVICE).curves == {} and learner.agreements == ()


def test_links_and_selectivities_are_learnt_on_the_way():
    learnt = taught().learnt(SERVICE)
    assert learnt.stores["n1"].up_rate == pytest.approx(1e7) and learnt.stores["n1"].trip_s == 0.002
    assert learnt.selectivities[STREAM].ratio == pytest.approx(1.0)
    silent = taught().completed(Rates(emitted={"source": 60.0}))
    assert silent.streams == {STREAM: pytest.approx(60.0)}


def overloaded(t: float, sent: float) -> dict[int, TaskMetrics]:
    """After 500 s of looks(): the source sends `sent` tuples/s, `work` takes 97 of them and is busy all the time."""
    source, work = looks(500.0).values()
    sends, takes = round(sent * (t - 500.0)), round(97.0 * (t - 500.0))
    return {
        1: replace(source, t=t, sent={"default": source.processed + sends}, processed=source.processed + sends),
        2: replace(
            work, t=t, received={"source": work.processed + takes}, processed=work.processed + takes,
            busy_s=work.busy_s + 0.97 * (t - 500.0), sojourns=work.sojourns + takes,
            sojourn_s=work.sojourn_s + 0.5 * takes,
        ),
    }  # fmt: skip


def untimed(samples: dict[int, TaskMetrics]) -> dict[int, TaskMetrics]:
    """A read of thousands of tuples takes longer than a span, and one read in eight is timed."""
    work = looks(500.0)[2]
    return {**samples, 2: replace(samples[2], sojourns=work.sojourns, sojourn_s=work.sojourn_s)}


@pytest.mark.parametrize("told", [dict, untimed])
def test_a_component_that_cannot_keep_up_gets_the_rate_that_it_is_sent(told):
    learner = taught()  # until 500 s of the tasks' clock
    for at in range(1, 31):
        learner.observe(told(overloaded(500.0 + SPAN_S * at, 120.0)), SLOTS, SERVICE, SPAN_S * (40 + at))
    assert learner.learnt(SERVICE).selectivities[STREAM].ratio == pytest.approx(1.0), "spans that lag teach none"
    rates = Rates(emitted={"source": 120.0}, streams={STREAM: 97.0})
    assert learner.completed(rates).streams == {STREAM: pytest.approx(120.0)}
    learner.forget()
    assert learner.completed(rates) is rates, "a reconfiguration may have ended it"


def test_a_reconfiguration_teaches_what_one_of_its_kind_costs():
    learner = Learner()
    learner.ended(replace(CLOSED, result=Outcome(Ending.UNDONE, "no room")))
    assert learner.handover_cost == HandoverCost()
    learner.ended(replace(CLOSED, new_tables=CLOSED.old_tables))
    assert learner.handover_cost == HandoverCost(), "warm tasks alone: no tuple waited"
    learner.ended(CLOSED)
    assert learner.handover_cost.constant_s == pytest.approx(0.25, abs=0.001)
    learner.ended(replace(CLOSED, kind="restart"))
    assert learner.learnt(SERVICE).restarts == (Restart(0, 4.0),)


def test_all_of_it_can_be_told():
    learner = taught()
    learner.ended(replace(CLOSED, kind="restart"))
    told = json.loads(json.dumps(learnt_fields(learner), allow_nan=False))
    assert set(told) == {"models", "stores", "selectivities", "rest", "handover", "restarts"}
    assert told["models"]["work"]["measured_s"] == pytest.approx(0.015)
    assert told["selectivities"]["source>work"]["ratio"] == 1.0
    assert told["restarts"] == [{"started": 0, "pause_s": 4.0}]
