"""Requests of people and the guards, through a whole service on in-memory ports."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from leeward.control.consent import Consent
from leeward.control.observe import status_of
from leeward.control.requests import Requests
from leeward.control.reservations import Reservations
from leeward.core.errors import ClusterRefusedError
from leeward.core.orders import State
from leeward.core.outcome import Ending, refused
from leeward.core.plan import Slot, deployment
from leeward.core.settings import Settings
from leeward.core.standing import Standing
from leeward.core.table import replicas
from leeward.sim.memory import MemoryControlStore, MemoryRequests, MemorySnapshots, World
from tests.helpers.control_stage import Script, ended, keep, replicas_of_work, stage
from tests.helpers.control_twins import NAME, Cluster, Killed


def settings(**more):
    calm = {"cool_down_s": 2.0, "scale_down_s": 0.0, "no_return_s": 0.0}
    return Settings(**({"period_s": 0.5, "window_s": 1.0} | calm | more))


def ask(cluster, body, policy=None, **more):
    """The answer of a service that is started for this request."""
    name = MemoryRequests(cluster.world).ask(body)
    service, clock, sink, _ = stage(policy, cluster=cluster, until=lambda *_: False, settings=settings(**more))
    return service.run(clock.stop, until=name), sink


def work_of(cluster):
    return deployment(cluster.world.record.tables, cluster.slots)["work"]


def test_a_frozen_topology_is_planned_for_and_nothing_is_carried_out():
    cluster = Cluster()
    answer, _ = ask(cluster, {"freeze": True, "why": "a release"})
    assert str(answer) == "done: frozen: nothing is carried out but recovery from losses"
    service, clock, sink, _ = stage(
        Script(replicas_of_work([2, 3])), cluster=cluster, until=lambda sink, _: len(sink.of("plan_refused")) > 1
    )
    service.run(clock.stop)
    assert sink.of("plan_made") and sink.of("reconfiguration_started") == []
    assert sink.of("plan_refused")[0]["why"] == "the topology is frozen: a release (leeward freeze app --undo)"
    answer, sink = ask(cluster, {"replicas": {"work": {"n2": 1}}})
    assert answer.ending is Ending.REFUSED and "is frozen: a release" in answer.why
    answer, _ = ask(cluster, {"freeze": False})
    assert str(answer) == "done: plans are carried out again"
    answer, _ = ask(cluster, {"replicas": {"work": {"n2": 1}}})
    assert answer.ending is Ending.DONE and work_of(cluster) == {"n2": 1}


@pytest.mark.parametrize("unread", [False, True])
def test_a_loss_is_recovered_from_while_frozen(unread):
    cluster = Cluster()
    ask(cluster, {"freeze": True})
    if unread:
        cluster.world.standing = Standing.unread("standing field 'version' is 3, this program reads 2.")
    kept, gone = cluster.world.standing, []

    def until(sink, cluster):
        if not gone and cluster.world.record.committed:
            gone.append(cluster.tasks[2].die())
        return bool(gone) and bool(sink.of("reconfiguration_ended"))

    service, clock, sink, _ = stage(Script(replicas_of_work([2, 3])), cluster=cluster, until=until)
    service.run(clock.stop)
    (end, *_) = sink.of("reconfiguration_ended")
    assert end["kind"] == "reset", end
    assert cluster.world.standing is kept


def test_decisions_that_cannot_be_read_let_nothing_through_until_a_person_thaws_it():
    cluster = Cluster()
    cluster.world.standing = Standing.unread("standing field 'version' is 3, this program reads 2.")
    for body in ({"replicas": {"work": {"n2": 1}}}, {"approve": 0}, {"rollback": True, "freeze": "slower"}):
        answer, _ = ask(cluster, body, Script(replicas_of_work([2, 3])))
        assert answer.ending is Ending.REFUSED and "its decisions cannot be read: standing field" in answer.why
    assert cluster.world.standing.unreadable and work_of(cluster) == {"n1": 1}
    answer, _ = ask(cluster, {"freeze": False})
    assert str(answer) == "done: plans are carried out again" and cluster.world.standing == Standing()
    answer, _ = ask(cluster, {"replicas": {"work": {"n2": 1}}})
    assert answer.ending is Ending.DONE and work_of(cluster) == {"n2": 1}


def test_with_approval_a_plan_waits_and_is_carried_out_as_it_was_proposed():
    cluster = Cluster()
    service, clock, sink, _ = stage(
        Script(replicas_of_work([2, 3])), cluster=cluster, settings=settings(approval=True),
        until=lambda sink, _: len(sink.of("plan_made")) > 3,
    )  # fmt: skip
    service.run(clock.stop)
    (proposed,) = sink.of("plan_proposed")
    assert proposed["plan"] == 1 and proposed["remedy"] == "leeward approve app --plan 1"
    assert sink.of("reconfiguration_started") == [] and work_of(cluster) == {"n1": 1}
    told = status_of(NAME, service._ports)
    assert told["proposal"]["plan"] == 1 and told["proposal"]["deployment"]["work"] == {"n1": 1, "n2": 1}
    answer, _ = ask(cluster, {"approve": 2}, approval=True)
    assert str(answer) == "refused: plan 2 does not wait. Plan 1 does."
    answer, sink = ask(cluster, {"approve": 1}, approval=True)
    assert answer.ending is Ending.DONE and replicas(cluster.world.record.tables["work"]) == (2, 3)
    assert cluster.world.standing.proposal is None and cluster.world.standing.before["work"] == {"n1": 1}
    answer, _ = ask(cluster, {"approve": 0}, approval=True)
    assert answer.ending is Ending.REFUSED and "no plan waits" in answer.why


def test_a_proposal_expires_when_the_policy_changes_its_mind():
    service, clock, sink, cluster = stage(
        Script(replicas_of_work([2, 3]), keep), settings=settings(approval=True),
        until=lambda sink, _: len(sink.of("proposal_expired")) > 0,
    )  # fmt: skip
    service.run(clock.stop)
    assert sink.of("proposal_expired")[0]["why"] == "the policy wants no change by now"
    assert cluster.world.standing == Standing(proposals=1)


def test_a_change_by_hand_lets_a_proposal_expire():
    cluster = Cluster()
    service, clock, _, _ = stage(
        Script(replicas_of_work([2, 3])), cluster=cluster, settings=settings(approval=True),
        until=lambda sink, _: len(sink.of("plan_proposed")) > 0,
    )  # fmt: skip
    service.run(clock.stop)
    ask(cluster, {"replicas": {"work": {"n2": 1}}})
    answer, _ = ask(cluster, {"approve": 1})
    assert answer.ending is Ending.REFUSED
    assert "plan 1 has expired: it was made in epoch 0, epoch 1 is in force" in answer.why
    assert work_of(cluster) == {"n2": 1}


def test_rollback_goes_back_and_may_freeze():
    cluster = Cluster()
    answer, _ = ask(cluster, {"rollback": True})
    assert answer.ending is Ending.REFUSED and "no reconfiguration is known" in answer.why
    ask(cluster, {"replicas": {"work": {"n2": 1, "n3": 1}}})
    answer, _ = ask(cluster, {"rollback": True, "freeze": "it was worse"})
    assert answer.ending is Ending.DONE and work_of(cluster) == {"n1": 1}
    assert cluster.world.standing.why == "it was worse"
    assert cluster.world.standing.before["work"] == {"n2": 1, "n3": 1}, "and forth again"
    answer, _ = ask(cluster, {"rollback": True})
    assert answer.ending is Ending.REFUSED and "is frozen" in answer.why


def test_a_rollback_that_did_not_come_about_freezes_nothing(monkeypatch):
    cluster = Cluster()
    ask(cluster, {"replicas": {"work": {"n2": 1, "n3": 1}}})

    def refuse(*_args: object) -> None:
        raise ClusterRefusedError("Redis is away.", remedy="Start it.")

    with monkeypatch.context() as away:
        away.setattr(MemorySnapshots, "raise_fence", refuse)
        answer, _ = ask(cluster, {"rollback": True, "freeze": "it was worse"})
    assert answer.ending is not Ending.DONE and not cluster.world.standing.frozen
    answer, _ = ask(cluster, {"rollback": True, "freeze": "it was worse"})
    assert answer.ending is Ending.DONE and cluster.world.standing.why == "it was worse"


def test_a_rollback_that_another_leader_brings_to_its_end_freezes_then():
    cluster = Cluster()
    ask(cluster, {"replicas": {"work": {"n2": 1, "n3": 1}}})
    name = MemoryRequests(cluster.world).ask({"rollback": True, "freeze": "it was worse"})

    def dies(step: str) -> None:
        if step == "control:handover":
            raise Killed

    service, clock, _, _ = stage(None, cluster=cluster, until=lambda *_: False, settings=settings(), fault=dies)
    with pytest.raises(Killed):
        service.run(clock.stop, until=name)
    assert not cluster.world.standing.frozen
    service, clock, sink, _ = stage(None, cluster=cluster, until=lambda *_: False, settings=settings())
    assert service.run(clock.stop, until=name).ending is Ending.DONE
    assert cluster.world.standing.why == "it was worse" and sink.of("frozen")


def test_a_rollback_is_refused_if_its_nodes_are_gone():
    cluster = Cluster()
    ask(cluster, {"replicas": {"work": {"n2": 1}}})
    cluster.world.draining.add("n1")
    answer, _ = ask(cluster, {"rollback": True})
    assert answer.ending is Ending.REFUSED and "'n1', which drains" in answer.why


@pytest.mark.parametrize(
    ("limit", "wanted", "why"),
    [
        ({"most_moves": 1}, {"n2": 2}, "2 moves are over most_moves 1. Ask for less"),
        ({"cost_cap": 3.5}, {"n1": 1, "n2": 1}, "the cost of 4 $/h is over cost_cap 3.5. Ask for less"),
    ],
)
def test_plans_by_hand_keep_to_the_limits(limit, wanted, why):
    cluster = Cluster()
    ask(cluster, {"replicas": {"work": {"n3": 1}}})
    answer, sink = ask(cluster, {"replicas": {"work": wanted}}, **limit)
    assert answer.ending is Ending.REFUSED and answer.why.startswith(why)
    assert sink.of("plan_refused")[0]["why"] == answer.why


@pytest.mark.parametrize("body", [{"approve": -1}, {"approve": "one"}, {"approve": True}, {"replicas": 3}, {}])
def test_requests_that_nobody_understands_are_refused(body):
    answer, _ = ask(Cluster(), body)
    assert answer.ending is Ending.REFUSED


def test_the_cool_down_is_told_and_scale_down_waits():
    service, clock, sink, cluster = stage(
        Script(replicas_of_work([2, 3]), replicas_of_work([2])), until=ended(2),
        settings=settings(scale_down_s=5.0), limit=8000,
    )  # fmt: skip
    service.run(clock.stop)
    assert sink.of("cool_down")[0] == {
        "topology": NAME, "seconds": 2.0, "why": "no plan is made so soon after a reconfiguration",
    }  # fmt: skip
    whys = [fields["why"] for fields in sink.of("plan_refused")]
    assert whys and all("fewer replicas of 'work' are wanted for" in why for why in whys)
    assert work_of(cluster) == {"n1": 1}


def test_a_plan_waits_for_its_turn():
    reservations = Reservations(at_once=1)
    assert reservations.turns.begin("other", 1000.0) == ""

    def until(sink, _):
        if (
            len(sink.of("plan_refused")) == 1
            and reservations.turns._running == {"other"}
            and len(sink.of("measured")) > 4
        ):
            reservations.release("other")
        return bool(sink.of("reconfiguration_ended"))

    service, clock, sink, cluster = stage(Script(replicas_of_work([2, 3]), replicas_of_work([2, 3])), until=until)
    service._reservations = reservations
    service.run(clock.stop)
    (told,) = sink.of("plan_refused")
    assert told["why"] == "waits for its turn (at_once = 1): other is reconfigured", "it is told once"
    assert replicas(cluster.world.record.tables["work"]) == (2, 3)
    assert reservations.turns._running == set()


def unreadable(cluster):
    """No cut can be restored: a person has to decide."""
    cluster.vault.parts.clear()


def stopped(cluster):
    """A task that no other one can stand in for restores nothing."""
    cluster.tasks[5].stop()


@pytest.mark.parametrize(("fault", "state"), [(unreadable, State.HELD), (stopped, State.RESTORING)])
def test_a_topology_that_restores_state_or_is_held_leaves_its_turn_to_others(fault, state):
    """That may last for hours."""
    cluster, reservations, told = Cluster(), Reservations(at_once=1), []

    def until(sink, cluster):
        record = cluster.world.record
        if not told and record is not None and record.committed:
            reservations.turns.begin(NAME, clock.time)
            cluster.tasks[2].die()
            fault(cluster)
        if told or (record is not None and record.committed):
            told.append((str(sink.of("measured")[-1]["state"]), reservations.turns.waits("other", clock.time)))
        return len(told) > 200

    service, clock, _, _ = stage(Script(keep), cluster=cluster, until=until)
    service._reservations = reservations
    service.run(clock.stop)
    assert told[0][1] == "waits for its turn (at_once = 1): app is reconfigured" and told[-1] == (state, "")


def test_a_restart_that_restores_a_second_time_gives_its_turn_back():
    cluster, reservations, told = Cluster(), Reservations(at_once=1), []

    def moved(view):
        return replace(replicas_of_work([2, 3])(view), placement={**view.assignment, 2: Slot("n3", 2)})

    def until(sink, cluster):
        if sink.of("phase"):  # every task has exported its state
            stopped(cluster)
            told.append((sink.of("phase")[-1]["phase"], reservations.turns.waits("other", clock.time)))
        return bool(told) and told[-1][1] == ""

    service, clock, _, _ = stage(Script(moved), cluster=cluster, until=until, limit=40_000)
    service._reservations = reservations
    service.run(clock.stop)
    assert told[0] == ("move", "waits for its turn (at_once = 1): app is reconfigured")
    assert told[-1] == ("restore", "") and cluster.world.journal.open and cluster.world.journal.kind == "restart"


def test_each_request_waits_as_long_for_tasks_that_are_away():
    """The first was refused after a minute; one of another day was refused at once, with the age of the first."""
    world, day = World(), 86_400.0
    store = MemoryRequests(world)
    consent = Consent(topology=NAME, store=MemoryControlStore(world), settings=Settings(), emit=lambda *_: None)
    requests = Requests(
        led=SimpleNamespace(coordinator=None), store=store, consent=consent, settings=Settings(), emit=lambda *_: None
    )
    machine = SimpleNamespace(state=State.IDLE, away=(1,), named=lambda tasks: "1 (source)")
    for since in (0.0, day):
        name = store.ask({"replicas": {"work": {"n2": 1}}})
        requests.look_again()
        for second in range(61):
            assert store.answer_to(name) is None
            requests.serve(SimpleNamespace(machine=machine), since + second)
        why = "tasks are away since 60 s: 1 (source). Ask again when they are back."
        assert store.answer_to(name) == refused(why)


def test_a_request_waits_for_its_turn():
    cluster, reservations = Cluster(), Reservations(at_once=1)
    reservations.turns.begin("other", 1000.0)
    name, waited = MemoryRequests(cluster.world).ask({"replicas": {"work": {"n2": 1}}}), []

    def until(sink, _):
        if sink.of("plan_refused") and not waited:
            waited.append(MemoryRequests(cluster.world).answer_to(name))
            reservations.release("other")
        return False

    service, clock, _, _ = stage(None, cluster=cluster, until=until)
    service._reservations = reservations
    assert service.run(clock.stop, until=name).ending is Ending.DONE
    assert waited == [None] and work_of(cluster) == {"n2": 1}


def test_the_next_leader_keeps_to_the_cool_down():
    cluster = Cluster()
    service, clock, _, _ = stage(Script(replicas_of_work([2, 3])), cluster=cluster, until=ended(1), settings=settings())
    service.run(clock.stop)
    over = clock.time
    heir, clock, sink, _ = stage(Script(replicas_of_work([2])), cluster=cluster, until=ended(1), settings=settings())
    clock.time = over
    started, emit = [], sink.emit

    def timed(action, fields):
        started.extend([clock.time] if action == "reconfiguration_started" else [])
        emit(action, fields)

    sink.emit = timed
    heir.run(clock.stop)
    assert len(started) == 1 and started[0] >= over + 2.0 - 0.25, "the first looks may be before the end was written"
