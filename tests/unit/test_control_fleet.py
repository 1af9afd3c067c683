"""Several topologies: which are led, by whose settings, and that no two plans take the same slot."""

from __future__ import annotations

import threading
from dataclasses import replace
from random import Random

import pytest

from leeward.control.fleet import LOOK_S, RETRY_S, Fleet, to_start
from leeward.control.joint import Joint
from leeward.control.loop import Loop
from leeward.control.registry import Policies
from leeward.control.reservations import Reservations, wanted_by_others
from leeward.core.errors import ClusterRefusedError, ConfigError
from leeward.core.plan import Placement, Plan, Refusal, Slot
from leeward.core.settings import Settings, settings_from
from tests.helpers.control_views import view

A, B, C = Slot("n1", 1), Slot("n1", 2), Slot("n2", 1)


class Nimbus:
    """Names what runs, or refuses."""

    def __init__(self, running):
        self.running = running

    def topologies(self):
        if self.running is None:
            raise ClusterRefusedError("nimbus is away.", remedy="Wait.")
        return dict(self.running)


class Sink:
    def __init__(self):
        self.events = []

    def emit(self, action, fields):
        self.events.append((action, dict(fields)))


def alive(fleet):
    """Names of the topologies whose services have not ended."""
    return [led.name for led in fleet._led.values() if led.thread.is_alive()]


def test_a_topology_is_begun_once_and_again_under_another_id():
    assert to_start({"b": "b-1", "a": "a-1", "x": "x-1"}, ["b-1"], ["x-1"]) == ["a"]
    assert to_start({"b": "b-2"}, ["b-1"], []) == ["b"]


def test_a_fleet_leads_what_is_ours_and_a_failure_of_one_is_not_anothers():
    served, sink, stop = [], Sink(), threading.Event()
    nimbus = Nimbus({"ours": "ours-1", "bad": "bad-1", "foreign": "foreign-1"})

    def serve(name, stop):
        served.append(name)
        if name == "bad":
            raise ConfigError("setting is wrong.", remedy="Mend it.")
        stop.wait(30)

    fleet = Fleet(nimbus=nimbus, is_ours=lambda name: name != "foreign", serve=serve, sink=sink)
    fleet._look(stop)
    fleet._look(stop)
    nimbus.running = None
    fleet._look(stop)
    fleet._look(stop)
    nimbus.running = {"ours": "ours-1", "bad": "bad-2"}
    fleet._look(stop)
    assert alive(fleet) == ["ours"]
    stop.set()
    fleet.run(stop)
    assert sorted(served) == ["bad", "bad", "ours"] and alive(fleet) == []
    told = [(action, fields.get("server")) for action, fields in sink.events if action in ("waiting", "server_back")]
    assert told == [("waiting", None), ("server_back", "Nimbus")], "the page takes it back"
    assert ("service_failed", {"topology": "bad", "why": "setting is wrong. Mend it."}) in sink.events


def test_a_topology_under_the_name_of_a_killed_one_waits_until_that_one_is_tidied():
    served, tidied, stop = [], threading.Event(), threading.Event()
    nimbus = Nimbus({"taxi": "taxi-1"})

    def serve(name, stop):
        served.append(name)
        tidied.wait(30)

    fleet = Fleet(nimbus=nimbus, is_ours=lambda name: True, serve=serve, sink=Sink())
    fleet._look(stop)
    nimbus.running = {"taxi": "taxi-2"}
    fleet._look(stop)
    assert served == ["taxi"]
    tidied.set()
    [led.thread.join() for led in fleet._led.values()]
    fleet._look(stop)
    [led.thread.join() for led in fleet._led.values()]
    assert served == ["taxi", "taxi"]


def test_a_service_that_failed_is_begun_again_while_its_topology_runs():
    served, sink, stop = [], Sink(), threading.Event()

    def serve(name, stop):
        served.append(name)
        raise ConfigError("no.", remedy="Mend it.")

    fleet = Fleet(nimbus=Nimbus({"bad": "bad-1"}), is_ours=lambda name: True, serve=serve, sink=sink)
    for _ in range(int(RETRY_S / LOOK_S) + 1):
        fleet._look(stop)
        [led.thread.join() for led in fleet._led.values()]
    assert served == ["bad", "bad"] and len(sink.events) == 2


def joined(fleet, stop):
    """A look, and the end of every service that it has begun."""
    fleet._look(stop)
    for led in fleet._led.values():
        led.thread.join()


def test_a_topology_that_is_killed_after_its_service_failed_is_told_gone_once():
    """Its service tells nobody: its report would lack the service, and an alert would fire, for ever."""
    sink, stop, nimbus = Sink(), threading.Event(), Nimbus({"bad": "bad-1"})

    def serve(name, stop):
        raise ConfigError("no.", remedy="Mend it.")

    fleet = Fleet(nimbus=nimbus, is_ours=lambda name: True, serve=serve, sink=sink)
    joined(fleet, stop)
    for running in ({"bad": "bad-2"}, {}, {}):
        nimbus.running = running
        joined(fleet, stop)
    failed = ("service_failed", {"topology": "bad", "why": "no. Mend it."})
    gone = [
        ("topology_gone", {"topology": "bad", "topology_id": identity, "why": f"topology {identity} no longer runs."})
        for identity in ("bad-1", "bad-2")
    ]
    assert sink.events == [failed, gone[0], failed, gone[1]], "the one before is told gone before the next begins"


def test_a_topology_that_is_killed_as_its_failed_service_is_to_begin_again_is_told_gone():
    """Nimbus lists it, and no longer knows its components a moment later."""
    sink, stop, nimbus, known = Sink(), threading.Event(), Nimbus({"bad": "bad-1"}), [True]

    def serve(name, stop):
        raise ConfigError("no.", remedy="Mend it.")

    fleet = Fleet(nimbus=nimbus, is_ours=lambda name: known[0], serve=serve, sink=sink, look_s=RETRY_S)
    joined(fleet, stop)
    known[0] = False
    joined(fleet, stop)
    nimbus.running = {}
    for _ in range(2):
        joined(fleet, stop)
    assert [action for action, _ in sink.events] == ["service_failed", "topology_gone"]


def test_a_topology_whose_service_ended_by_itself_is_not_told_gone_again():
    sink, stop, nimbus = Sink(), threading.Event(), Nimbus({"taxi": "taxi-1"})

    def serve(name, stop):
        sink.emit("topology_gone", {"topology": name})

    fleet = Fleet(nimbus=nimbus, is_ours=lambda name: True, serve=serve, sink=sink)
    joined(fleet, stop)
    nimbus.running = {}
    joined(fleet, stop)
    assert sink.events == [("topology_gone", {"topology": "taxi"})] and fleet._led == {}


def test_a_service_that_fails_during_a_look_is_told_gone_before_its_successor_begins():
    """Else the end of the one before would be told of the successor, which has the same name."""
    sink, stop, over, nimbus = Sink(), threading.Event(), threading.Event(), Nimbus({"bad": "bad-1"})

    def serve(name, stop):
        sink.emit("service_started", {"topology": name})
        over.wait(30)
        raise ConfigError("no.", remedy="Mend it.")

    fleet = Fleet(nimbus=nimbus, is_ours=lambda name: True, serve=serve, sink=sink)
    fleet._look(stop)
    (first,) = fleet._led.values()
    plain, nimbus.running = fleet._stays, {"bad": "bad-2"}

    def ends_behind(identity, led, running):
        stays = plain(identity, led, running)
        over.set()
        first.thread.join()
        return stays

    fleet._stays = ends_behind
    for _ in range(2):
        joined(fleet, stop)
    actions = [action for action, _ in sink.events]
    assert actions == ["service_started", "service_failed", "topology_gone", "service_started", "service_failed"]


def test_a_slot_that_one_plan_is_about_to_use_is_not_anothers():
    slots = Reservations()
    assert slots.claim("one", [A, B]) is None
    assert slots.claim("two", [C, B]) == ("one", B)
    assert slots.of_others("two") == {A, B} and slots.of_others("one") == frozenset()
    slots.release("one")
    assert slots.claim("two", [C, B]) is None


def test_wanted_slots_of_others_count_while_they_run():
    placements = {
        "me": Placement(topology_id="me-1", epoch=1, slots={1: A}),
        "other": Placement(topology_id="other-1", epoch=1, slots={1: B}),
        "killed": Placement(topology_id="killed-1", epoch=1, slots={1: C}),
    }
    assert wanted_by_others(placements, "me", {"other-1", "other-2"}) == {B}


def test_a_topologys_table_goes_before_the_top():
    document = {
        "period_s": 5.0,
        "edrp": {"w_r": 0.4, "w_c": 0.5, "r_max_s": 1.0},
        "topologies": {"quick": {"period_s": 1.0, "edrp": {"r_max_s": 0.1}}, "plain": {"policy": "even"}},
    }
    chosen = settings_from(document, ["cool_down_s=7"])
    quick, plain, other = chosen.of("quick"), chosen.of("plain"), chosen.of("other")
    assert (quick.service.period_s, quick.service.cool_down_s) == (1.0, 7.0)
    assert quick.policies["edrp"] == {"w_r": 0.4, "w_c": 0.5, "r_max_s": 0.1}
    assert (plain.service.policy, plain.service.period_s) == ("even", 5.0)
    assert other is chosen and chosen.policies["edrp"]["r_max_s"] == 1.0
    with pytest.raises(ConfigError, match="unknown setting 'peroid_s'"):
        settings_from({"topologies": {"quick": {"peroid_s": 1}}})


class Together:
    """Gives a plan to the first topology only, and remembers what it was shown."""

    def __init__(self, _settings=None):
        self.shown = []

    def decide(self, view, *, now, rng):
        raise AssertionError("it is asked about all")

    def decide_all(self, views, *, now, rng):
        self.shown.append([view.topology for view in views])
        first = views[0]
        return {first.topology: Plan(tables=first.tables, placement=first.assignment, reason="first")}


def test_a_joint_policy_sees_every_topology_and_each_loop_gets_its_part():
    policy = Together()
    joint, one, two = Joint(policy), replace(view(), topology="one"), replace(view(), topology="two")
    assert joint.decide(two, now=0.0, rng=Random(0)).reason == "first"
    assert joint.decide(one, now=0.0, rng=Random(0)).reason == "first"
    assert "leaves it" in joint.decide(two, now=0.0, rng=Random(0)).reason
    joint.forget("one")
    assert joint.decide(two, now=0.0, rng=Random(0)).reason == "first"
    assert policy.shown == [["two"], ["one", "two"], ["one", "two"], ["two"]]


def test_a_topology_that_the_joint_policy_refuses_stays_as_it_is_and_the_reason_is_told():
    class Full(Together):
        def decide_all(self, views, *, now, rng):
            return {one.topology: Refusal(reason=f"no room for {one.topology}") for one in views}

    shown = replace(view(), topology="late")
    plan = Joint(Full()).decide(shown, now=0.0, rng=Random(0))
    assert plan == Plan(tables=shown.tables, placement=shown.assignment, reason="no room for late")


def no_post(directory):
    raise AssertionError("this policy writes no letters")


def test_topologies_with_the_same_joint_policy_share_it(monkeypatch):
    monkeypatch.setattr("leeward.control.registry.load", lambda name: Together if name == "x:Together" else None)
    policies = Policies(settings_from({"policy": "x:Together", "topologies": {"none": {"policy": "none"}}}), no_post)
    assert policies.of("one") is policies.of("two") and policies.of("none") is None


def test_a_joint_policy_that_needs_no_rates_is_asked_at_once():
    class Facts:
        at_once = True

    class Rates:
        pass

    settings = Settings(period_s=10.0)
    for policy, wants in ((Joint(Facts()), True), (Joint(Rates()), False)):
        loop = Loop(settings=settings, policy=policy, sink=Sink(), topology="t")
        loop.started(100.0)
        assert loop.wants_view(100.0) is wants and loop.wants_view(110.0)
