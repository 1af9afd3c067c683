"""A leader leaves what it has learnt, and goes on from what it finds; so do commands that look once."""

from __future__ import annotations

import json

import pytest

from leeward.control.learning.keeping import EVERY_S, Keeper
from leeward.control.learning.record import LearntRecord, StoreTimes
from leeward.control.observe import observe, status_of
from leeward.core.errors import ClusterRefusedError
from leeward.core.learnt import Restart
from leeward.core.learnt_told import learnt_by
from leeward.core.model import HandoverCost
from leeward.core.settings import Settings
from leeward.sim.memory import ListSink, ManualClock, MemoryControlStore, World
from tests.helpers.control_figures import Figures
from tests.helpers.control_stage import Script, ended, keep, replicas_of_work, stage
from tests.helpers.control_twins import ID, NAME, Cluster
from tests.helpers.learnt_spans import taught

CURVE = taught().record(ID, {}, 0.0).curves["work"]
LEFT = LearntRecord(
    topology_id=ID, at=900.0, epoch=0, service={"work": 50.0}, curves={"work": CURVE},
    streams={("source", "work"): (1000.0, 500.0, 250.0, 10.0, 900.0)},
    stores={"n1": StoreTimes(ups=(1e6, 3e6), trips=(0.001,))},
    handovers=((1000.0, 0.5), (1000.0, 0.5)), restarts=((2, 7.0),),
)  # fmt: skip


def served(policy, *, left: str | None, until):
    """A service with figures that finds this document, after it has run."""
    cluster = Cluster()
    cluster.world.metrics[ID] = Figures(cluster)
    cluster.world.learnt = left
    service, clock, sink, _ = stage(policy, until=until, cluster=cluster)
    service.run(clock.stop)
    return sink, cluster, service


def test_a_leader_plans_by_what_the_one_before_it_has_learnt():
    policy = Script(keep)
    sink, cluster, _ = served(policy, left=LEFT.to_json(), until=lambda sink, _: sink.of("plan_made"))
    (told,) = sink.of("learnt_resumed")
    assert (told["age_s"], told["curves"], told["handovers"]) == (pytest.approx(100.0, abs=5.0), 1, 2)
    view = policy.views[0]
    assert view.restarts == (Restart(2, 7.0),) and view.handover_cost.constant_s == pytest.approx(0.5, abs=0.01)
    assert view.selectivity["source", "work"].ratio == 0.5 and view.origin.age_s == 0.0
    assert view.measured["work"].curve is not None and view.measured["work"].service_rate == 50.0
    assert {node.id: node.store.up_rate for node in view.nodes}["n1"] == 2e6
    kept = LearntRecord.from_json(cluster.world.learnt)
    assert kept.at >= 1000.0 and kept.restarts == LEFT.restarts and kept.curves.keys() == {"work"}


def test_what_a_reconfiguration_has_taught_is_left_at_once():
    policy = Script(replicas_of_work([2, 3]), keep)
    over = ended(1)
    _, cluster, _ = served(
        policy, left=LEFT.to_json(), until=lambda sink, cluster: over(sink, cluster) and len(sink.of("plan_made")) > 1
    )
    kept = LearntRecord.from_json(cluster.world.learnt)
    assert len(kept.handovers) == len(LEFT.handovers) + 1 and kept.epoch == cluster.world.journal.epoch
    after = Script(keep)
    service, clock, _, _ = stage(after, until=lambda sink, _: sink.of("plan_made"), cluster=cluster)
    service.run(clock.stop)
    again = LearntRecord.from_json(cluster.world.learnt)
    assert again.handovers == kept.handovers, "the successor reads the same journal, and does not learn it twice"


@pytest.mark.parametrize(
    "left", ["{}", "no document", LearntRecord(topology_id="app-0-1", at=1.0).to_json()], ids=["empty", "text", "other"]
)
def test_a_document_that_cannot_count_is_left_out_and_told(left):
    policy = Script(keep)
    sink, cluster, _ = served(policy, left=left, until=lambda sink, _: sink.of("plan_made"))
    (told,) = sink.of("learnt_ignored")
    assert "left out" in told["why"] and not sink.of("learnt_resumed")
    assert policy.views[0].restarts == () and policy.views[0].handover_cost == HandoverCost()
    assert LearntRecord.from_json(cluster.world.learnt).topology_id == ID


class Refusing(MemoryControlStore):
    def write_learnt(self, text):
        raise ClusterRefusedError("ZooKeeper does not answer.", remedy="Start it.")


def test_a_store_that_refuses_is_told_once_and_asked_again_later():
    sink, clock = ListSink(), ManualClock()
    keeper = Keeper(Refusing(World()), sink.emit)
    for _ in range(3):
        assert keeper.due(clock.time)
        keeper.keep(LEFT, clock.time)
        assert not keeper.due(clock.time + EVERY_S - 1)
        clock.time += EVERY_S
    assert len(sink.of("learnt_not_kept")) == 1


def looked(left: str | None):
    """(View, status) of a command that looks once while a service runs."""
    cluster = Cluster()
    cluster.world.metrics[ID] = Figures(cluster)
    service, clock, _, _ = stage(Script(keep), until=lambda sink, _: sink.of("plan_made"), cluster=cluster)
    service.run(clock.stop)
    cluster.world.learnt = left

    def sleep(seconds: float) -> None:
        clock.time += seconds

    view = observe(NAME, service._ports, Settings(window_s=10.0), sleep=sleep)
    return view, status_of(NAME, service._ports)


def test_a_command_goes_by_what_the_service_has_learnt_and_says_so():
    view, status = looked(LEFT.to_json())
    assert view.measured["work"].curve is not None and view.restarts == (Restart(2, 7.0),)
    assert view.handover_cost.constant_s == pytest.approx(0.5, abs=0.01) and view.origin.handovers == 2
    told = json.loads(json.dumps(learnt_by(view), allow_nan=False))
    assert told["learnt"].startswith("learnt by the service, as of ") and "of 1 of 2 bolts" in told["learnt"]
    assert told["learnt_age_s"] == pytest.approx(100.0, abs=30.0)
    values = {(one["what"], one["of"]): one for one in told["learnt_values"]}
    assert values["restart_pause_s", "median"]["value"] == 7.0
    assert values["tuples_for_each", "source>work"]["value"] == 0.5
    assert values["to_datastore_bytes_per_s", "n1"]["value"] == 2e6
    assert "1 response times" in status["learnt"] and "2 handovers" in status["learnt"]


def test_a_command_says_plainly_that_nothing_is_learnt_yet():
    view, status = looked(None)
    told = learnt_by(view)
    assert (
        told["learnt"].startswith("nothing is learnt (no service has recorded anything") and "M/M/1" in told["learnt"]
    )
    assert told["learnt_age_s"] is None and told["learnt_values"] == []
    assert status["learnt"].startswith("nothing is learnt")
    assert "left out" in looked("{}")[1]["learnt"]
