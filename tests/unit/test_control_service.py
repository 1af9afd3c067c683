"""The service on in-memory ports: planning, refusing, requests, a standby that takes over, a fault at each step."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace

import pytest

from leeward.control.costs import PRIOR, estimate
from leeward.control.ports import ComponentFacts, Structure
from leeward.control.report.knowledge import Knowledge
from leeward.control.reservations import Reservations
from leeward.core.errors import ConfigError, PlanError
from leeward.core.outcome import DONE, Ending
from leeward.core.plan import Plan, Slot, deployment
from leeward.core.settings import Settings
from leeward.core.table import even_table, replicas
from leeward.runtime.handover.handovers import Handovers
from leeward.sim.memory import MemoryBarriers, MemoryHistory, MemoryRequests
from tests.helpers.control_figures import Figures
from tests.helpers.control_stage import Script, ended, keep, replicas_of_work, stage
from tests.helpers.control_twins import FIRST, ID, NAME, TASKS, Cluster

#: Events of each second or checkpoint.
QUIET = ("measured", "learnt", "cluster_seen", "checkpoint_committed")


def test_plans_scales_out_and_tells():
    service, clock, sink, cluster = stage(Script(replicas_of_work([2, 3])), until=ended(1))
    service.run(clock.stop)
    assert replicas(cluster.world.record.tables["work"]) == (2, 3)
    (made, *_), (end,) = sink.of("plan_made"), sink.of("reconfiguration_ended")
    assert made["reason"] == "script" and made["deployment"]["work"] == {"n1": 1, "n2": 1}
    assert end["result"] == "done" and [c["kind"] for c in end["changes"]] == ["scale-out"]
    order = [action for action, _ in sink.events if action not in QUIET]
    assert order[:4] == ["service_started", "leading", "first_record", "plan_made"]
    assert order[4:] == ["reconfiguration_started", "reconfiguration_ended", "cool_down"]
    assert sink.of("measured")[-1]["deployment"]["sink"] == {"n3": 1}


def test_its_events_make_the_whole_report_and_the_end_is_stored():
    service, clock, sink, cluster = stage(Script(replicas_of_work([2, 3], response_s=0.1), keep), until=ended(1))
    service.run(clock.stop)
    knowledge = Knowledge(clock)
    for action, fields in sink.events:
        knowledge.emit(action, fields)
    report = knowledge.report(NAME)
    assert (report.role, report.phase, report.plan.reason, report.plan.verdict) == ("leader", "run", "script", "done")
    assert report.before["work"] == {"n1": 1} and report.plan.deployment["work"] == {"n1": 1, "n2": 1}
    assert sink.of("measured")[0]["rates"] == {}, "one sample gives no rate"
    assert report.modelled_response_s == 0.1 and report.streams == (("source", "work"), ("work", "sink"))
    assert {node.id for node in knowledge.nodes(NAME)} == {"n1", "n2", "n3"}
    (entry,) = MemoryHistory(cluster.world).read()
    assert (entry["kind"], entry["ending"], entry["epoch"]) == ("handover", "done", report.last.epoch)


def test_while_a_plan_waits_for_its_turn_the_policy_is_not_asked_again():
    policy, reservations = Script(replicas_of_work([2, 3])), Reservations(1)
    reservations.turns.resume("another")
    waited = []

    def until(sink, _):
        if sink.of("plan_refused") and not waited:
            waited.append(clock.time + 20.0)
        if waited and clock.time > waited[0]:
            waited.append(len(policy.views))
            reservations.turns.end("another")
        return bool(sink.of("reconfiguration_ended"))

    service, clock, sink, _ = stage(policy, until=until)
    service._reservations = reservations
    service.run(clock.stop)
    assert waited[1] == 1, "asked once in twenty seconds, with a period of half a second"
    assert len(sink.of("plan_refused")) == 1 and len(sink.of("reconfiguration_ended")) == 1


def test_a_slot_that_another_topology_has_taken_while_the_plan_was_made_is_not_asked_for():
    slot = Slot("n3", 2)

    def answer(view):
        world = cluster.world
        document = json.loads(world.snapshot)
        executor = {"component": "c", "tasks": [1, 1], "node": slot.node, "port": slot.port}
        other = {**document["topologies"][0], "id": "other-1", "name": "other", "executors": [executor]}
        world.snapshot = json.dumps({**document, "topologies": [document["topologies"][0], other]})
        world.changed()
        return Plan(tables=view.tables, placement={**view.assignment, 4: slot}, reason="script")

    cluster = Cluster()
    policy = Script(answer, keep)
    service, clock, sink, _ = stage(policy, until=lambda sink, _: len(policy.views) > 1, cluster=cluster)
    service.run(clock.stop)
    (refused,) = sink.of("plan_refused")
    assert refused["why"] == "slot n3:2 is about to be used by topology 'other'"
    assert not sink.of("reconfiguration_started") and cluster.world.placement is None


def test_one_that_needs_no_turn_any_more_does_not_hold_up_the_others():
    policy, reservations = Script(replicas_of_work([2, 3]), keep), Reservations(1)
    reservations.turns.resume("another")

    def until(sink, _):
        if sink.of("plan_refused"):
            reservations.turns.end("another")
        return len(sink.of("plan_made")) >= 2

    service, clock, _, _ = stage(policy, until=until)
    service._reservations = reservations
    service.run(clock.stop)
    assert reservations.turns.begin("third", clock.time) == ""


def test_cool_down_between_reconfigurations():
    answers = [replicas_of_work([2, 3]), replicas_of_work([2]), keep]
    service, clock, sink, _ = stage(Script(*answers), until=ended(2))
    times = []
    emit = sink.emit

    def timed(action, fields):
        times.append((action, clock.time))
        emit(action, fields)

    sink.emit = timed
    service.run(clock.stop)
    starts = [t for action, t in times if action == "reconfiguration_started"]
    ends = [t for action, t in times if action == "reconfiguration_ended"]
    assert starts[1] - ends[0] >= 2.0


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda v: Plan(tables=v.tables, placement={**v.assignment, 2: Slot("n9", 1)}), "unknown node 'n9'"),
        (lambda v: Plan(tables={**v.tables, "x": even_table([2])}, placement=v.assignment), "unknown component 'x'"),
        (replicas_of_work([2, 4], objective=0.499, objective_now=0.5), "below minimum_gain 0.02"),
        (lambda v: (_ for _ in ()).throw(PlanError("no rates.", remedy="Wait.")), "no rates. Wait."),
    ],
)
def test_refuses_and_says_why(answer, why):
    cluster = Cluster()
    cluster.world.placement = None
    first = replicas_of_work([2, 3])  # the first plan counts whatever it gains
    service, clock, sink, cluster = stage(
        Script(first, answer), cluster=cluster, until=lambda sink, _: len(sink.of("plan_refused")) > 0
    )
    service.run(clock.stop)
    assert why in sink.of("plan_refused")[0]["why"]
    assert len(sink.of("reconfiguration_started")) == 1
    assert replicas(cluster.world.record.tables["work"]) == (2, 3)


def test_over_capacity_is_refused():
    settings = Settings(period_s=0.5, eps_max=1, window_s=1.0)
    service, clock, sink, _ = stage(
        Script(lambda v: Plan(tables={**v.tables, "work": even_table([2, 3, 4])},
                              placement={**v.assignment, 3: Slot("n1", 2), 4: Slot("n1", 2)})),
        settings=settings, until=lambda sink, _: len(sink.of("plan_refused")) > 0,
    )  # fmt: skip
    service.run(clock.stop)
    assert "4 replicas on 'n1', over its capacity of 2" in sink.of("plan_refused")[0]["why"]


def test_draining_is_seen_by_the_policy():
    policy = Script(keep)
    service, clock, _, cluster = stage(policy, until=lambda *_: len(policy.views) > 1)
    cluster.world.draining.add("n2")
    service.run(clock.stop)
    assert [n.id for n in policy.views[0].nodes if n.draining] == ["n2"]


def test_rates_reach_the_policy():
    policy = Script(keep)
    service, clock, _, cluster = stage(policy, until=lambda *_: len(policy.views) > 4)

    cluster.world.metrics[ID] = Figures(cluster)
    service.run(clock.stop)
    assert policy.views[-1].measured["source"].arrival_rate == pytest.approx(100, rel=0.05)


def test_nothing_is_planned_and_no_request_begun_before_every_task_of_a_new_topology_is_heard():
    """A handover began while Storm was still starting workers. No task could answer, and it ended in a reset."""
    policy, cluster, asked = Script(replicas_of_work([2, 3])), Cluster(), []
    cluster.unheard = {4}

    def until(sink, cluster):
        passed = cluster.clock.time - 1000.0
        if passed > 5.0 and not asked:
            asked.append(MemoryRequests(cluster.world).ask({"replicas": {"work": {"n1": 1, "n2": 1}}}))
        if passed > 10.0 and cluster.unheard:
            assert not policy.views and not sink.of("reconfiguration_started") and not cluster.world.answers
            cluster.unheard = set()
        return bool(asked) and asked[0] in cluster.world.answers

    service, clock, sink, _ = stage(policy, until=until, cluster=cluster)
    service.run(clock.stop)
    assert not cluster.unheard and cluster.world.answers[asked[0]].ending is Ending.DONE
    assert not sink.of("reset")


def test_request_by_hand_is_carried_out_and_answered():
    service, clock, _, cluster = stage(None, until=lambda *_: False)
    name = MemoryRequests(cluster.world).ask({"replicas": {"work": {"n2": 1, "n3": 1}}})
    assert service.run(clock.stop, until=name) == DONE
    assert deployment(cluster.world.record.tables, cluster.slots)["work"] == {"n2": 1, "n3": 1}
    assert cluster.slots[2].node == "n1", "the task given up stays where it is, warm"


def test_what_is_old_is_deleted_once_who_asked_has_the_answer(monkeypatch):
    service, clock, _, cluster = stage(None, until=lambda *_: False)
    name = MemoryRequests(cluster.world).ask({"replicas": {"work": {"n2": 1, "n3": 1}}})
    drop, then = MemoryBarriers.drop, []

    def dropping(self, *, below, epoch):
        then.append((epoch, MemoryRequests(cluster.world).answer_to(name)))
        drop(self, below=below, epoch=epoch)

    monkeypatch.setattr(MemoryBarriers, "drop", dropping)
    service.run(clock.stop, until=name)
    assert then[-1] == (cluster.world.record.epoch, DONE)


@pytest.mark.parametrize(
    ("replicas_wanted", "answer"),
    [
        ({"work": {"n9": 1}}, "refused: replicas of 'work' name unknown node 'n9'."),
        ({"works": {"n1": 1}}, "refused: replicas name unknown component 'works'."),
        ({"work": {"n1": 7}}, "refused: component 'work' shall have 7 replicas."),
        ({"work": {"n1": 1}}, "done: nothing to change"),
    ],
)
def test_requests_that_are_not_carried_out(replicas_wanted, answer):
    service, clock, _, cluster = stage(None, until=lambda *_: False)
    name = MemoryRequests(cluster.world).ask({"replicas": replicas_wanted})
    assert str(service.run(clock.stop, until=name)).startswith(answer)
    assert cluster.world.record.epoch == 0


def test_a_request_that_ends_at_once_is_answered():
    service, clock, _, cluster = stage(None, until=lambda *_: False)
    cluster.world.refuse.add("redis")
    name = MemoryRequests(cluster.world).ask({"replicas": {"work": {"n2": 1}}})
    assert str(service.run(clock.stop, until=name)).startswith("aborted: the fence could not be set")


def test_a_request_that_asks_for_nothing_is_refused():
    service, clock, _, cluster = stage(None, until=lambda _, cluster: bool(cluster.world.answers))
    cluster.world.requests["r-1"] = {}
    service.run(clock.stop)
    (told,) = cluster.world.answers.values()
    assert told.ending == "refused" and "the deployment is None" in told.why


def test_a_request_that_comes_while_the_service_looks_is_not_overlooked(monkeypatch):
    look, names = MemoryRequests.pending, []

    def pending(self, wake):
        found = look(self, wake)
        if not names:
            names.append(self.ask({"replicas": {"work": {"n2": 1}}}))  # just after it has looked
        return found

    def answered(_, cluster):
        return bool(names) and MemoryRequests(cluster.world).answer_to(names[0]) is not None

    monkeypatch.setattr(MemoryRequests, "pending", pending)
    service, clock, _, cluster = stage(None, until=answered, limit=100)
    service.run(clock.stop)
    assert MemoryRequests(cluster.world).answer_to(names[0]) == DONE


def test_an_aborted_request_says_so():
    restart = Settings(period_s=0.5, mode="restart")
    service, clock, _, cluster = stage(None, until=lambda *_: False, settings=restart)
    cluster.fail(4, "OutOfMemoryError: maxmemory", times=2)  # the checkpoint before it, too
    name = MemoryRequests(cluster.world).ask({"replicas": {"work": {"n2": 1}}})
    assert str(service.run(clock.stop, until=name)) == "aborted: task 4 (work): OutOfMemoryError: maxmemory"
    assert cluster.world.record.tables == FIRST


@pytest.mark.parametrize(("mode", "begun", "phase"), [("restart", "announce", "pause"), ("live", "handover", "run")])
def test_a_standby_takes_over_what_a_dead_leader_had_begun(mode, begun, phase):
    class Died(Exception):
        pass

    def fault(step):
        if step in ("control:pause", "control:handover"):
            raise Died

    cluster = Cluster()
    settings = Settings(period_s=0.5, cool_down_s=2.0, window_s=1.0, minimum_gain=0.02, mode=mode)
    service, clock, _, _ = stage(
        Script(replicas_of_work([2, 3])), cluster=cluster, until=ended(1), fault=fault, settings=settings
    )
    with pytest.raises(Died):
        service.run(clock.stop)
    assert cluster.world.record.phase == phase
    standby, clock, sink, _ = stage(None, cluster=cluster, until=ended(1))
    standby.run(clock.stop)
    assert cluster.world.record.phase == "run"
    assert sink.of("taken_over")[0]["step"] == begun
    assert sink.of("reconfiguration_ended")[0]["result"] == "done"


@pytest.mark.parametrize("at", ["control:pause", "control:ahead", "control:handover", "journal:closed"])
@pytest.mark.parametrize("mode", ["restart", "live"])
def test_whoever_asked_a_leader_that_died_is_answered_once(mode, at):
    class Died(Exception):
        pass

    def fault(step):
        if step == at and cluster.world.journal.request:
            raise Died

    cluster, settings = Cluster(), Settings(period_s=0.5, mode=mode)
    name = MemoryRequests(cluster.world).ask({"replicas": {"work": {"n2": 1, "n3": 1}}})
    service, clock, _, _ = stage(None, cluster=cluster, until=ended(1), fault=fault, settings=settings)
    with contextlib.suppress(Died):
        service.run(clock.stop, until=name)
    standby, clock, sink, _ = stage(None, cluster=cluster, until=lambda *_: False, settings=settings)
    assert standby.run(clock.stop, until=name) == DONE
    assert cluster.world.requests == {}, "it is not carried out again"
    begun_anew = (mode, at) == ("live", "control:ahead")  # it was only being copied
    assert len(sink.of("reconfiguration_started")) == begun_anew
    assert deployment(cluster.world.record.tables, cluster.slots)["work"] == {"n2": 1, "n3": 1}


def test_what_handovers_cost_reaches_the_policy_and_the_next_leader(monkeypatch):
    cluster, report_of = Cluster(), Handovers._report_of
    monkeypatch.setattr(Handovers, "_report_of", lambda *about, **more: replace(report_of(*about, **more), waited=0.3))
    policy = Script(replicas_of_work([2, 3]), replicas_of_work([2]), keep)
    service, clock, sink, _ = stage(policy, cluster=cluster, until=lambda *_: len(policy.views) > 2)
    service.run(clock.stop)
    seen = [(end["bytes_imported"], end["pause_s"]) for end in sink.of("reconfiguration_ended")]
    assert [pause_s for _, pause_s in seen] == [0.3, 0.3] and min(size for size, _ in seen) > 100
    assert [view.handover_cost for view in policy.views] == [PRIOR, estimate(seen[:1]), estimate(seen)]
    heir = Script(keep)
    service, clock, _, _ = stage(heir, cluster=cluster, until=lambda *_: heir.views)
    service.run(clock.stop)
    assert heir.views[0].handover_cost == estimate(seen)


def test_waits_while_another_leads():
    cluster = Cluster()
    cluster.world.leader = object()
    service, clock, sink, _ = stage(None, cluster=cluster, until=lambda *_: False)
    clock.stop.set()
    service.run(clock.stop)
    assert sink.of("leading") == [] and cluster.world.record is None


def test_a_lost_lock_ends_the_term_and_the_next_one_goes_on():
    cluster = Cluster()
    stolen = []

    def until(sink, cluster):
        if sink.of("leading") and not stolen and cluster.world.record is not None:
            stolen.append(cluster.world.leader)
            cluster.world.leader = None
        return len(sink.of("leading")) >= 2

    service, clock, sink, _ = stage(Script(keep), cluster=cluster, until=until)
    service.run(clock.stop)
    assert "session with ZooKeeper was lost" in sink.of("leadership_lost")[0]["why"]


def test_refuses_topologies_that_are_not_leewards():
    service, clock, _, cluster = stage(None, until=lambda *_: False)
    cluster.world.structures[NAME] = Structure(
        id=ID, name=NAME, components=(ComponentFacts(id="bolt", kind="", inputs=()),)
    )
    with pytest.raises(ConfigError, match=r"component 'bolt' has no leeward\.kind"):
        service.run(clock.stop)
    cluster.world.structures.clear()
    with pytest.raises(ConfigError, match=r"'app' does not run; running: \[\]"):
        service.run(clock.stop)


def test_redis_away_stops_measuring_not_the_service():
    service, clock, sink, cluster = stage(Script(keep), until=lambda sink, _: len(sink.of("measure_failed")) > 2)
    cluster.world.refuse.add("redis")
    service.run(clock.stop)
    assert sink.of("leadership_lost") == []
    assert len(TASKS) == 5


def test_a_task_that_tells_what_cannot_be_stops_measuring_not_the_service():
    service, clock, sink, cluster = stage(Script(keep), until=lambda sink, _: len(sink.of("measure_failed")) > 2)
    cluster.world.metrics[ID] = {3: '{"component": "work", "pid": 1, "t": NaN}'}
    service.run(clock.stop)
    assert all("task 3 tells figures" in fields["why"] for fields in sink.of("measure_failed"))
    assert sink.of("measured") == [] and sink.of("leadership_lost") == []
