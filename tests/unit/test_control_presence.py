"""A Nimbus that is away is waited for; one that answers says whether a topology still runs."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from leeward.control.errors import TopologyGoneError
from leeward.control.loop import Inline
from leeward.control.presence import ASK_S, Presence, patiently
from leeward.core.errors import ClusterRefusedError, ConfigError
from leeward.sim.memory import MemoryRequests
from tests.helpers.control_stage import STRUCTURE, Script, keep, stage
from tests.helpers.control_twins import ID, NAME, Cluster


class Answers:
    """A Nimbus that gives these answers, the last one for ever; None: it does not answer."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), 0

    def topologies(self):
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer is None:
            raise ClusterRefusedError("nimbus does not answer.")
        return {name.rsplit("-", 2)[0]: name for name in answer}


def gone_at(*answers, until=100):
    """The second at which the topology counts as gone."""
    presence = Presence(Answers(*answers), STRUCTURE, Inline())
    for second in range(until):
        try:
            presence.check(float(second))
        except TopologyGoneError:
            return second
    return None


def test_two_answers_without_the_topology_say_that_it_is_gone():
    assert gone_at([]) == ASK_S + 1
    assert gone_at([ID], [ID], ["other-1-1"], ["other-1-1"]) == 3 * ASK_S + 1
    assert gone_at(["app-2-2"]) == ASK_S + 1, "another one of this name"


@pytest.mark.parametrize("answers", [([ID],), (None,), ([], None), ([], [ID], [], [ID], [], [ID])])
def test_silence_or_one_answer_says_nothing(answers):
    assert gone_at(*answers) is None


def test_nobody_waits_for_the_answer():
    release = threading.Event()
    nimbus = SimpleNamespace(topologies=lambda: release.wait(30) and {})
    presence = Presence(nimbus, STRUCTURE)
    for now in range(100):
        presence.check(float(now))  # returns at once, and asks once
    release.set()


def test_pauses_between_tries_grow_to_ten_seconds():
    stop, whys, pauses = threading.Event(), [], []

    def ask():
        if len(whys) < 5:
            raise ClusterRefusedError(f"try {len(whys)}.")
        return "there"

    assert patiently(ask, stop, whys.append, patience=lambda s: pauses.append(s) or 0.0) == "there"
    assert pauses == [2.0, 4.0, 8.0, 10.0, 10.0] and whys[-1] == "try 4."


def test_a_service_that_starts_while_nimbus_is_away_waits_for_it():
    service, clock, sink, cluster = stage(Script(keep), until=lambda sink, _: len(sink.of("measured")) > 3)
    cluster.world.refuse.add("nimbus")
    emit = sink.emit

    def back_after_three(action, fields):
        emit(action, fields)
        if len(sink.of("waiting")) == 3:
            cluster.world.refuse.discard("nimbus")

    sink.emit = back_after_three
    service.run(clock.stop)
    assert [event["why"] for event in sink.of("waiting")] == ["nimbus does not answer. Start nimbus."] * 3
    assert [action for action, _ in sink.events][3:5] == ["service_started", "leading"]


def test_a_service_that_waits_for_nimbus_can_be_stopped():
    service, clock, sink, cluster = stage(None, until=lambda *_: False)
    cluster.world.refuse.add("nimbus")
    emit = sink.emit
    sink.emit = lambda action, fields: (emit(action, fields), clock.stop.set())
    assert service.run(clock.stop) is None
    assert [action for action, _ in sink.events] == ["waiting"]


def test_a_topology_that_does_not_run_is_an_error_at_once():
    service, clock, sink, cluster = stage(None, until=lambda *_: False)
    cluster.world.structures.clear()
    with pytest.raises(ConfigError, match="does not run"):
        service.run(clock.stop)
    assert sink.of("waiting") == []


def test_a_leader_goes_on_while_nimbus_is_away():
    service, clock, sink, cluster = stage(Script(keep), until=lambda *_: clock.time > 1600.0)
    emit = sink.emit

    def away_for_minutes(action, fields):
        emit(action, fields)
        if action == "leading":
            cluster.world.refuse.add("nimbus")
            cluster.world.structures.clear()  # whatever it would say
        if clock.time > 1300.0:
            cluster.world.structures[NAME] = STRUCTURE
            cluster.world.refuse.discard("nimbus")

    sink.emit = away_for_minutes
    service.run(clock.stop)
    assert len(sink.of("leading")) == 1
    assert sink.of("leadership_lost") == sink.of("topology_gone") == []


def killed(action_at, successor=None):
    """A stage where the topology is killed at this event, and perhaps submitted again."""
    cluster = Cluster()
    service, clock, sink, _ = stage(Script(keep), cluster=cluster, until=lambda *_: False)
    emit = sink.emit

    def kill(action, fields):
        emit(action, fields)
        if action == action_at and not sink.of("topology_gone"):
            cluster.world.structures.clear()
            if successor:
                cluster.world.structures[NAME] = successor

    sink.emit = kill
    return service, clock, sink, cluster


def test_what_a_killed_topology_leaves_is_deleted_and_the_service_ends():
    service, clock, sink, cluster = killed("checkpoint_committed")
    cluster.world.cuts["other-1-1"] = {1}
    assert service.run(clock.stop) is None
    assert not clock.stop.is_set() and service.successor is None and service.term is None
    world = cluster.world
    assert (world.record, world.journal, world.leader) == (None, None, None)
    assert world.cuts == {"other-1-1": {1}} and ID not in world.fences
    assert [action for action, _ in sink.events][-2:] == ["topology_gone", "tidied"]
    assert sink.of("tidied")[0]["topology_id"] == ID and sink.of("tidied")[0]["keys"] >= 1


def test_a_topology_that_is_submitted_again_is_named_to_whoever_goes_on():
    again = type(STRUCTURE)(id="app-2-2", name=NAME, components=STRUCTURE.components)
    service, clock, _, cluster = killed("checkpoint_committed", again)
    service.run(clock.stop)
    assert service.successor == "app-2-2" and cluster.world.record is None


def each_look_takes_a_second(clock):
    now = clock.now
    clock.now = lambda: clock.patience(1.0) or now()


def test_a_standby_ends_with_its_topology_too():
    service, clock, sink, cluster = killed("standby")
    cluster.world.leader = object()
    each_look_takes_a_second(clock)
    service.run(clock.stop)
    assert sink.of("leading") == [] and sink.of("tidied")


def test_a_leader_that_waits_for_the_plugin_ends_with_its_topology_too():
    service, clock, _, cluster = killed("waiting")
    cluster.world.snapshot = None
    each_look_takes_a_second(clock)
    name = MemoryRequests(cluster.world).ask({"replicas": {"work": {"n2": 1}}})
    assert "no longer runs" in str(service.run(clock.stop, until=name)), "and whoever asked hears of it"


def test_what_cannot_be_deleted_is_said():
    service, clock, sink, cluster = killed("checkpoint_committed")
    emit = sink.emit

    def without_redis(action, fields):
        emit(action, fields)
        if action == "topology_gone":
            cluster.world.refuse.add("redis")

    sink.emit = without_redis
    assert service.run(clock.stop) is None
    assert "redis does not answer" in sink.of("tidy_failed")[0]["why"]
