"""The record that a leader leaves: the next one goes on from it, and nothing else is taken for it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.control.learning.curves import HALF_LIFE_S, SPAN_S, CurveLearner, Stay
from leeward.control.learning.learner import Learner
from leeward.control.learning.record import LARGEST, LearntRecord, StoreTimes, read_record
from leeward.core.errors import ProtocolError
from leeward.core.journal import Journal, StepName
from leeward.core.model import HandoverCost
from leeward.core.outcome import DONE
from tests.helpers.learnt_spans import CLOSED, SERVICE, STREAM, taught

NOW = 40 * SPAN_S


def written(learner: Learner, now: float = NOW) -> LearntRecord:
    """As it is read again."""
    text = learner.record("app-1", SERVICE, now).to_json()
    assert text is not None
    return LearntRecord.from_json(text)


def resumed(learner: Learner, now: float = NOW) -> Learner:
    return Learner([STREAM], written(learner), now)


def test_a_successor_knows_all_that_its_predecessor_knew():
    first = taught()
    first.ended(replace(CLOSED, epoch=3))
    first.ended(replace(CLOSED, kind="restart", epoch=4))
    for _ in range(10):
        first.compare(0.08, 0.15, NOW)  # a model that is too slow has a negative rest
    second = resumed(first)
    before, after = first.learnt(SERVICE), second.learnt(SERVICE)
    assert after.curves["work"].response_s(50.0) == pytest.approx(before.curves["work"].response_s(50.0), rel=1e-6)
    assert after.curves["work"].error_s(50.0) == pytest.approx(before.curves["work"].error_s(50.0), rel=1e-3)
    assert after.selectivities[STREAM] == pytest.approx(before.selectivities[STREAM])
    assert after.rest.samples == before.rest.samples and after.rest.seconds == pytest.approx(-0.07)
    assert after.stores == before.stores and after.restarts == before.restarts
    assert second.handover_cost == first.handover_cost != HandoverCost()


def test_a_reconfiguration_that_the_record_has_counts_no_second_time():
    """A leader that takes over learns from the journal of the last one, of which its predecessor knew."""
    first = taught()
    first.ended(replace(CLOSED, epoch=3))
    second = resumed(first)
    second.ended(replace(CLOSED, epoch=3))
    assert second.handovers[0] == 1
    second.ended(replace(CLOSED, epoch=4))
    assert second.handovers[0] == 2


def test_samples_age_while_nobody_leads():
    curve = taught().learnt(SERVICE).curves["work"]
    later = resumed(taught(), NOW + HALF_LIFE_S).learnt(SERVICE).curves["work"]
    assert later.samples == pytest.approx(curve.samples / 2) and later.error_s(50.0) > curve.error_s(50.0)
    assert resumed(taught(), NOW + 100 * HALF_LIFE_S).learnt(SERVICE).curves == {}


def test_a_clock_that_is_behind_the_predecessors_ages_nothing():
    learner = resumed(taught(), NOW - 60.0)
    samples = learner.learnt(SERVICE).curves["work"].samples
    assert samples == pytest.approx(taught().learnt(SERVICE).curves["work"].samples)


@given(st.lists(st.tuples(st.floats(0.01, 0.95), st.floats(0.1, 50.0), st.floats(0, 9000)), min_size=1, max_size=40))
def test_any_sums_of_samples_are_read_again(samples: list[tuple[float, float, float]]):
    learner, now = CurveLearner(), 0.0
    for busy, slow, passed in samples:
        now += passed
        learner.add(Stay(tuples=100, sojourn_s=0.01 * slow / (1 - busy), service_s=0.01, busy=busy, span_s=1e6), now)
    record = LearntRecord(topology_id="app-1", at=now, curves={"work": learner.kept()})
    read = CurveLearner.of(LearntRecord.from_json(record.to_json() or "").curves["work"], now)
    rate = 50.0
    assert read.fit(0.01).response_s(rate) == pytest.approx(
        CurveLearner.of(learner.kept(), now).fit(0.01).response_s(rate), rel=1e-3
    )


def test_a_large_cluster_keeps_fewer_transfers_of_each_node():
    times = StoreTimes(ups=(1e6, 2e6, 9e6), downs=(3e6,) * 32, trips=(0.002,) * 32)
    small = LearntRecord(topology_id="app-1", at=1.0, stores={"n1": times})
    assert LearntRecord.from_json(small.to_json() or "").stores == {"n1": times}
    large = LearntRecord(topology_id="app-1", at=1.0, stores={f"node{n}": times for n in range(1000)})
    text = large.to_json()
    assert text is not None and len(text) < LARGEST
    assert LearntRecord.from_json(text).stores["node7"] == StoreTimes(ups=(2e6,), downs=(3e6,), trips=(0.002,))
    curve = taught().record("app-1", SERVICE, NOW).curves["work"]
    assert replace(large, curves={f"component{n}": curve for n in range(5000)}).to_json() is None


GOOD = json.loads(taught().record("app-1", SERVICE, NOW).to_json() or "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{" * 5000,
        json.dumps({**GOOD, "at": -1}),
        json.dumps({**GOOD, "service": {"work": 0}}),
        json.dumps({**GOOD, "curves": {"work": [1.0] * 9}}),
        json.dumps({**GOOD, "curves": {"work": [1.0, 0.9, 0.1, *GOOD["curves"]["work"][3:]]}}),
        json.dumps({**GOOD, "curves": {"work": [*GOOD["curves"]["work"][:9], 0.0]}}),
        json.dumps({**GOOD, "streams": [["source", "work", 1.0]]}),
        json.dumps({**GOOD, "stores": {"n1": {"ups": [float("nan")], "downs": [], "trips": []}}}),
        json.dumps({**GOOD, "rest": [10.0, 5.0, 1.0, 1.0]}),
        json.dumps({**GOOD, "rest": [10.0, "long", 1.0, 1.0]}),
        json.dumps({**GOOD, "handovers": [[1, "long"]]}),
        json.dumps({name: value for name, value in GOOD.items() if name != "restarts"}),
    ],
)  # fmt: skip
def test_a_wrong_document_is_refused_and_never_half_read(text):
    with pytest.raises(ProtocolError):
        LearntRecord.from_json(text)
    record, why = read_record(text, "app-1")
    assert record is None and "left out" in why


def test_a_newer_or_a_foreign_document_is_left_out_with_the_reason():
    assert read_record(None, "app-1") == (None, "no service has recorded anything of this topology yet")
    assert read_record(json.dumps(GOOD), "app-1")[1] == ""
    assert "it is of app-1, not app-2" in read_record(json.dumps(GOOD), "app-2")[1]
    assert "Update Leeward" in read_record(json.dumps({**GOOD, "version": 2}), "app-1")[1]


def test_a_closed_journal_without_an_epoch_still_teaches_a_first_leader():
    learner = Learner()
    learner.ended(Journal(kind="restart", step=StepName.CLOSED, result=DONE, times={"announce": 1.0, "closed": 3.0}))
    assert len(learner.learnt({}).restarts) == 1
