"""Events folded into reports: what a topology does, why, what is missing; rings and the list of what has ended."""

from __future__ import annotations

import math
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.adapters import events as sinks
from leeward.control.lateness import LATE_S
from leeward.control.report import rings
from leeward.control.report.fold import TIMELINE, at, first, fold, nodes_at
from leeward.control.report.history import ENTRIES, LARGEST, Ended, appended, entries, read_entries
from leeward.control.report.knowledge import GONE, Knowledge
from leeward.control.report.rings import History, Ring
from leeward.control.report.values import Report, summary_of
from leeward.core.errors import ClusterRefusedError
from leeward.sim.memory import ListSink, ManualClock, MemoryHistory, World

CHANGE = {"component": "work", "kind": "scale-out", "before": {"n1": 1}, "after": {"n1": 1, "n2": 1}}
SEEN = {
    "components": [
        {"id": "sink", "tasks": 1, "max_replicas": 1, "stateful": True},
        {"id": "source", "tasks": 1, "max_replicas": 1, "source": True},
        {"id": "work", "tasks": 4, "max_replicas": 4, "stateful": True},
    ],
    "streams": [["source", "work"], ["work", "sink"]],
    "nodes": [{"id": "n1", "slots": 2, "capacity": 8}, {"id": "n2", "slots": 2, "capacity": 8, "draining": True}],
}
MEASURED = {
    "state": "idle", "phase": "run", "epoch": 3, "rates": {"source": 100.0, "work": 90.0, "sink": 5.0},
    "service_rates": {"work": 60.0}, "queued": {"work": 7}, "response_s": 0.2, "cost_per_h": 3.0, "backlog": 4,
    "deployment": {"source": {"n1": 1}, "work": {"n1": 1}, "sink": {"n2": 1}},
}  # fmt: skip
PLAN = {
    "reason": "work is slow", "epoch": 3, "response_s": 0.1, "objective": 0.2, "objective_now": 0.4, "cost_per_h": 4.0,
    "rates": {"work": 90.0}, "changes": [CHANGE], "deployment": {**MEASURED["deployment"], "work": {"n1": 1, "n2": 1}},
}  # fmt: skip
ENDED = {
    "kind": "handover", "epoch": 4, "ending": "done", "result": "done", "changes": [CHANGE], "pause_s": 0.5,
    "phases": {"ahead_s": 1.0, "handover_s": 0.25}, "steps": 1, "bytes_exported": 900, "reason": "work is slow",
}  # fmt: skip


def told(*events, topology="taxi"):
    """The facts after (time, action, fields)."""
    known = first(topology, events[0][0])
    for now, action, fields in events:
        known = fold(known, action, fields, now)
    return known


def led(*more):
    start = ((0.0, "service_started", {"topology_id": "taxi-1", "policy": "edrp"}), (1.0, "leading", {}))
    return told(*start, (2.0, "cluster_seen", SEEN), (2.0, "measured", MEASURED), *more)


def test_measurements_become_figures_of_topology_components_and_nodes():
    known = led()
    report = at(known, 3.0)
    assert (report.role, report.policy, report.phase, report.epoch) == ("leader", "edrp", "run", 3)
    assert (report.rate, report.response_s, report.cost_per_h, report.backlog) == (100.0, 0.2, 3.0, 4)
    work = {component.id: component for component in report.components}["work"]
    assert (work.replicas, work.tasks, work.rate, work.service_rate, work.queued) == (1, 4, 90.0, 60.0, 7)
    assert work.busy == pytest.approx(1.5)
    assert [(node.id, dict(node.replicas), node.draining) for node in nodes_at(known)] == [
        ("n1", {"source": 1, "work": 1}, False), ("n2", {"sink": 1}, True),
    ]  # fmt: skip
    assert report.missing == () and summary_of(report).replicas == 3


LEARNT = {
    "models": {
        "work": {"utilisation": 0.5, "measured_s": 0.02, "learnt_s": 0.021, "error_s": 0.002, "mm1_s": 0.03,
                 "samples": 12.0, "low": 0.2, "high": 0.6},
        "sink": {"measured_s": float("nan"), "mm1_s": 0.1},
    },
    "stores": {"n2": {"up_rate": None, "down_rate": 5e7, "trip_s": 0.001, "ups": 0, "downs": 3}},
    "selectivities": {"source>work": {"ratio": 0.9, "error": 0.02, "windows": 7.0}},
    "handover": {"constant_s": 0.01, "per_byte_s": 1e-8, "off_s": -1.0, "handovers": 3},
    "restarts": [{"started": 1, "pause_s": 9.0}, {"started": 2, "pause_s": 11.0}, {"started": 2, "pause_s": None}],
}  # fmt: skip


def test_what_was_learnt_stands_beside_what_was_measured():
    report = at(led((3.0, "learnt", LEARNT)), 4.0)
    model = {component.id: component.model for component in report.components}
    assert (model["work"].measured_s, model["work"].learnt_s, model["work"].mm1_s) == (0.02, 0.021, 0.03)
    assert model["source"] is None and model["sink"] is None, "NaN is not told"
    assert [(store.node, store.down_rate, store.downs) for store in report.stores] == [("n2", 5e7, 3)]
    assert [(one.source, one.target, one.ratio) for one in report.selectivities] == [("source", "work", 0.9)]
    assert (report.restart_pause_s, report.restarts_seen) == (10.0, 2)
    assert (report.handover.constant_s, report.handover.off_s, report.handover.handovers) == (0.01, None, 3)
    assert report.last_action != "learnt", "it is no deed"


def test_a_listener_still_has_the_newest_measurement_after_something_was_learnt():
    knowledge = Knowledge(ManualClock(now=5.0))
    knowledge.emit("measured", {"topology": "taxi", **MEASURED})
    knowledge.emit("learnt", {"topology": "taxi", **LEARNT})
    assert [event.action for event in knowledge.events(0)] == ["measured"]
    assert knowledge.report("taxi").restart_pause_s == 10.0


def test_a_rate_that_is_not_known_is_not_zero():
    """Right after a reconfiguration samples are forgotten, and there is no window to take rates over."""
    known = fold(led(), "measured", {**MEASURED, "rates": {}}, 3.0)
    report = at(known, 3.0)
    assert report.rate is None and {component.rate for component in report.components} == {None}


def test_a_reconfiguration_is_told_from_plan_to_end():
    events = [(10.0, "plan_made", PLAN), (10.5, "reconfiguration_started", {"epoch": 4, "changes": [CHANGE]})]
    known = led(*events, (11.0, "phase", {"phase": "move"}), (11.5, "handover_step", {"steps": 2}))
    report = at(known, 12.0)
    assert report.plan.verdict == "begun" and report.current.begun == 10.5
    assert [(mark.at, mark.name) for mark in report.current.marks] == [(11.0, "move"), (11.5, "step 2")]
    report = at(fold(known, "reconfiguration_ended", ENDED, 20.0), 102.0)
    assert report.current is None and report.plan.verdict == "done"
    assert report.last.phases == {"ahead": 1.0, "handover": 0.25} and report.last.begun == 10.5
    assert report.downtime_s == 0.5 and report.downtime_share == pytest.approx(0.5 / 102)
    assert report.modelled_response_s == 0.1, "the deployment that the plan priced is in force"
    assert report.before["work"] == {"n1": 1} and report.before["sink"] == {"n2": 1}
    assert (report.last_action, report.last_at) == ("reconfiguration_ended", 20.0)


@pytest.mark.parametrize(
    ("fields", "verdict", "modelled"),
    [
        ({"changes": []}, "no change", 0.1),
        ({}, "made", None),
        ({"response_s": math.nan, "changes": []}, "no change", None),
    ],
)
def test_only_the_price_of_what_is_in_force_is_modelled(fields, verdict, modelled):
    report = at(led((10.0, "plan_made", {**PLAN, **fields})), 11.0)
    assert (report.plan.verdict, report.modelled_response_s) == (verdict, modelled)


def test_refusals_have_their_reason_and_number():
    known = led((10.0, "plan_made", PLAN), (10.1, "plan_refused", {"why": "cool-down"}))
    known = fold(known, "plan_refused", {"why": "no slot", "request": "r-1"}, 11.0)
    report = at(known, 12.0)
    assert (report.plan.verdict, report.plan.why) == ("refused", "cool-down")
    assert [(one.why, one.request) for one in report.refusals] == [("cool-down", ""), ("no slot", "r-1")]
    assert report.refused == 2


def test_a_plan_that_waits_for_approval_is_told_until_it_begins_or_expires():
    known = led((10.0, "plan_made", PLAN), (10.1, "plan_proposed", {"plan": 3}))
    report = at(known, 11.0)
    assert (report.proposal, report.plan.verdict, report.plan.why) == (3, "proposed", "plan 3 waits for approval")
    begun = at(fold(known, "reconfiguration_started", {"epoch": 4, "changes": [CHANGE]}, 12.0), 12.0)
    assert (begun.proposal, begun.plan.verdict, begun.plan.why) == (None, "begun", "")
    expired = at(fold(known, "proposal_expired", {"plan": 3, "why": "n2 is gone"}, 12.0), 12.0)
    assert (expired.proposal, expired.plan.verdict) == (None, "refused") and "n2 is gone" in expired.plan.why


def test_a_freeze_is_told_with_its_reason():
    known = led((10.0, "frozen", {"why": "release"}))
    assert at(known, 11.0).frozen == "release"
    assert at(fold(known, "thawed", {"why": ""}, 12.0), 12.0).frozen is None


MISSING = [
    ("measure_failed", {"why": "Redis is away"}, "measurements", "measured", MEASURED),
    ("waiting", {"why": "Nimbus is away"}, "server", "leading", {}),
    ("server_away", {"why": "no answer", "server": "Nimbus"}, "Nimbus", "server_back", {"server": "Nimbus"}),
    ("server_away", {"why": "no answer", "server": "ZooKeeper"}, "ZooKeeper", "standby", {}),
    ("leadership_lost", {"why": "session lost"}, "leader", "leading", {}),
    ("held", {"why": "no cut", "remedy": "recover"}, "state", "cut_chosen", {}),
    ("tasks_left_out", {"tasks": [3]}, "tasks", "tasks_returned", {}),
    ("tasks_awaited", {"tasks": [3]}, "tasks", "tasks_heard", {}),
    ("service_failed", {"why": "wrong setting"}, "service", "service_started", {"topology_id": "taxi-1"}),
]


@pytest.mark.parametrize(("action", "fields", "what", "back", "more"), MISSING, ids=[row[2] for row in MISSING])
def test_what_is_missing_is_told_since_when_until_it_is_back(action, fields, what, back, more):
    known = fold(led((3.0, action, fields)), action, fields, 4.0)
    (lack,) = at(known, 4.5).missing
    since = 2.0 if what == "measurements" else 3.0  # the last that came: a server that hangs lets the service wait
    assert (lack.what, lack.since) == (what, since) and lack.why
    assert at(fold(known, back, more, 5.0), 5.5).missing == ()


@pytest.mark.parametrize(
    ("action", "fields"), [row[:2] for row in MISSING if row[2] in ("measurements", "state", "tasks", "leader")]
)
def test_a_leader_that_stands_by_again_lacks_nothing_that_the_new_one_tells(action, fields):
    known = fold(led((3.0, action, fields)), "leadership_lost", {"why": "session lost"}, 4.0)
    assert at(fold(known, "standby", {}, 5.0), 60.0).missing == ()


def test_a_service_that_loses_the_lead_leaves_decisions_and_figures_to_the_next_leader():
    started = {"epoch": 3, "changes": [], "reason": "slow"}
    frozen, proposed = (3.0, "frozen", {"why": "release"}), (3.1, "plan_proposed", {"plan": 3})
    known = led(frozen, proposed, (3.2, "reconfiguration_started", started))
    assert at(known, 3.5).current and at(known, 3.5).rate and at(known, 3.5).components[0].rate
    lost = fold(known, "leadership_lost", {"why": "session lost"}, 4.0)
    assert at(lost, 4.0).current and at(lost, 4.0).rate, "perhaps it leads again at once"
    standby = at(fold(lost, "standby", {}, 5.0), 60.0)
    assert (standby.current, standby.plan, standby.proposal, standby.frozen) == (None, None, None, None)
    assert (standby.rate, standby.response_s, standby.cost_per_h, standby.deployment) == (None, None, None, {})
    assert all(one.busy is None and one.rate is None and one.replicas == 0 for one in standby.components)
    again = at(fold(lost, "leading", {}, 5.0), 5.5)
    assert (again.proposal, again.frozen) == (None, None), "it tells of them again, if they hold"
    assert again.current, "nobody else has led meanwhile, and it goes on"


def test_measurements_that_stay_away_are_late():
    known = led()
    assert at(known, 2.0 + LATE_S).missing == ()
    (lack,) = at(known, 3.0 + LATE_S).missing
    assert (lack.what, lack.since, lack.why) == ("measurements", 2.0, "none came for 6 s")


def test_another_topology_of_the_same_name_begins_anew():
    known = led((5.0, "reconfiguration_ended", ENDED), (9.0, "service_started", {"topology_id": "taxi-2"}))
    report = at(known, 10.0)
    assert (report.topology_id, report.heard, report.downtime_s, report.deployment) == ("taxi-2", 9.0, 0.0, {})
    same = led((5.0, "reconfiguration_ended", ENDED), (9.0, "service_started", {"topology_id": "taxi-1"}))
    assert at(same, 10.0).downtime_s == 0.5, "a new term is no new topology"


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.dictionaries(st.sampled_from(sorted({*SEEN, *MEASURED, *PLAN, *ENDED, "why", "node", "tasks"})), ANYTHING)
ACTIONS = sorted(line.split("  ")[0] for line in (sinks.__doc__ or "").splitlines() if "  " in line)


@given(
    st.lists(st.tuples(st.sampled_from([name for line in ACTIONS for name in line.split(", ")]), FIELDS), max_size=9)
)
def test_no_event_however_absurd_breaks_a_report(events):
    knowledge = Knowledge(ManualClock())
    for action, fields in events:
        knowledge.emit(action, {"topology": "taxi", **fields})
    for name in knowledge.names:
        report = knowledge.report(name)
        assert isinstance(report, Report) and 0 <= report.downtime_share <= 1
        numbers = [report.rate, report.response_s, report.cost_per_h, report.downtime_s]
        assert all(value is None or value >= 0 for value in numbers), "NaN fails this, too"
        knowledge.series(name), knowledge.nodes(name), knowledge.timeline(name)


def test_the_timeline_is_bounded():
    known = led(*((10.0 + n, "reconfiguration_ended", {**ENDED, "epoch": n}) for n in range(TIMELINE + 5)))
    assert len(known.timeline) == TIMELINE and known.timeline[-1].epoch == TIMELINE + 4
    assert at(known, 99.0).reconfigurations == TIMELINE + 5


# --- rings


@given(st.lists(st.floats(0, 1e6, width=32), max_size=40), st.integers(1, 9))
def test_a_ring_keeps_the_newest_points_in_order(values, size):
    ring = Ring(size)
    for t, value in enumerate(values):
        ring.add(float(t), {"a": value} if t % 3 else {})
    read = ring.read(["a", "b"])
    kept = list(enumerate(values))[-size:]
    assert read.t == [float(t) for t, _ in kept]
    if len(values) > 1:
        wanted = [value if t % 3 else None for t, value in kept]
        for got, want in zip(read.values["a"], wanted, strict=True):
            assert (got is None) == (want is None) and (got is None or got == pytest.approx(want, rel=1e-6))
    assert "b" not in read.values


def test_old_points_are_means_of_a_minute_and_none_is_told_twice():
    history = History(fine=10, coarse=4, span_s=5.0)
    for t in range(40):
        history.add(float(t), {"rate": float(t), "bad": math.inf})
    read = history.read(["rate", "bad"])
    assert read.t == sorted(read.t) and read.t[-10:] == [float(t) for t in range(30, 40)]
    assert read.t[:4] == [17.5, 22.5, 27.5, 30.0]
    assert read.values["rate"][:2] == [17.0, 22.0] and set(read.values["bad"]) == {None}
    assert history.read(["rate"], since=37.0).t == [38.0, 39.0]


def test_memory_of_fifty_topologies_of_forty_components_is_bounded():
    """Rings that are full; the bound of the service is 500 MB for everything."""
    names = {f"c{n}.{figure}": 1.0 for n in range(40) for figure in ("rate", "queued", "replicas")}
    tracemalloc.start()
    history = History()
    for t in range(600 + 60 * 20):
        history.add(float(t), names)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used * 50 < 100e6


# --- all topologies


def test_points_are_written_behind_the_lock_that_each_event_needs(monkeypatch):
    """The thread that reconfigures tells events: it waited for a tenth of a second for one that read all points."""
    knowledge, held = Knowledge(ManualClock(now=5.0)), []
    knowledge.emit("measured", {"topology": "taxi", **MEASURED})
    plain = rings._read
    monkeypatch.setattr(rings, "_read", lambda value: held.append(knowledge._lock.locked()) or plain(value))
    assert knowledge.series("taxi").values["cost_per_h"] == [3.0]
    assert set(held) == {False}


def test_points_that_come_while_others_are_written_change_none_of_them(monkeypatch):
    knowledge, plain = Knowledge(ManualClock()), rings._read
    kept = knowledge._series["taxi"] = History(fine=2)
    for t in (1.0, 2.0):
        kept.add(t, {"a": t, "b": t})

    def read(value):
        kept.add(3.0, {"a": 3.0, "b": 3.0})
        return plain(value)

    monkeypatch.setattr(rings, "_read", read)
    assert knowledge.series("taxi") == rings.Series([1.0, 2.0], {"a": [1.0, 2.0], "b": [1.0, 2.0]})


def test_decisions_have_ids_and_are_told_again_from_any_of_them():
    clock = ManualClock()
    knowledge, woken = Knowledge(clock, kept=3), []
    start = knowledge.newest_id
    assert start == 1_000_000_000, "above those of a service that started a second before"
    end = knowledge.listen(lambda: woken.append(1))
    for n in range(5):
        knowledge.emit("plan_refused", {"topology": "taxi", "why": str(n)})
    knowledge.emit("measured", {"topology": "taxi", **MEASURED})
    end()
    knowledge.emit("measured", {"topology": "taxi", **MEASURED})
    knowledge.emit("waiting", {"why": "Nimbus is away"})
    assert len(woken) == 6 and knowledge.newest_id == start + 8
    assert [knowledge.missed(start + n) for n in (0, 2, 3, 8, 9)] == [True, True, False, False, True]
    assert [(event.id - start, event.action) for event in knowledge.events(start + 4)] == [
        (5, "plan_refused"), (7, "measured"), (8, "waiting"),
    ]  # fmt: skip
    assert [event.id - start for event in knowledge.events(0, "other")] == [8]
    assert knowledge.missing[0].what == "server"
    knowledge.emit("server_back", {"server": "Nimbus"})
    assert knowledge.missing == ()


@given(st.lists(st.sampled_from(["decide", "measure", "read"]), max_size=60))
def test_a_listener_that_comes_and_goes_hears_each_decision_once_or_that_it_missed_some(steps):
    knowledge = Knowledge(ManualClock(), kept=5)
    seen, heard, told, missed = knowledge.newest_id, [], 0, False
    for step in [*steps, "read"]:
        if step == "decide":
            knowledge.emit("plan_refused", {"topology": "taxi", "why": str(told)})
            told += 1
        elif step == "measure":
            knowledge.emit("measured", {"topology": "taxi", **MEASURED})
        else:
            missed = missed or knowledge.missed(seen)
            found = knowledge.events(seen)
            heard += [int(event.fields["why"]) for event in found if event.action == "plan_refused"]
            seen = found[-1].id if found else seen
    assert heard == sorted(set(heard)), "in order, none twice"
    assert missed or heard == list(range(told))


def test_topologies_that_are_gone_are_forgotten_when_there_are_many():
    clock = ManualClock()
    knowledge = Knowledge(clock)
    for n in range(GONE + 3):
        clock.time += 1
        knowledge.emit("measured", {"topology": f"t{n:02}", **MEASURED})
        knowledge.emit("topology_gone", {"topology": f"t{n:02}"})
    knowledge.emit("leading", {"topology": "alive"})
    assert knowledge.names == ("alive", *(f"t{n:02}" for n in range(3, GONE + 3)))
    assert knowledge.series("t00").t == [] and knowledge.series("t05").t != []


def test_a_drain_is_seen_by_all_topologies():
    knowledge = Knowledge(ManualClock())
    for name in ("a", "b"):
        knowledge.emit("cluster_seen", {"topology": name, **SEEN})
    knowledge.emit("node_drains", {"node": "n1"})
    assert [node.draining for name in "ab" for node in knowledge.nodes(name)] == [True, True, True, True]


# --- the stored list


def test_entries_are_kept_in_order_bounded_and_once():
    text = b""
    for n in range(ENTRIES + 2):
        text = appended(text, {"t": float(n), **ENDED, "epoch": n})
    assert appended(text, {"t": float(ENTRIES + 1), **ENDED, "epoch": ENTRIES + 1}) == text, "written again"
    assert [entry["epoch"] for entry in entries(text)] == list(range(2, ENTRIES + 2))
    last = read_entries(entries(text))[-1]
    assert (last.ended, last.begun, last.pause_s) == (ENTRIES + 1.0, ENTRIES - 0.25, 0.5)
    huge = {**ENDED, "changes": [{**CHANGE, "after": {f"node-{n}": 1 for n in range(1000)}}]}
    assert len(appended(b"", huge)) < LARGEST and entries(appended(b"", huge))[0]["phases"] == ENDED["phases"]
    assert entries(b"not JSON") == entries(b'{"a": 1}') == []


def test_what_ended_while_the_store_was_away_is_stored_later():
    world, sink = World(), ListSink()
    ended, store = Ended(sink), MemoryHistory(world)
    ended.emit("reconfiguration_ended", {"topology": "taxi", **ENDED})
    ended.emit("measured", {})
    world.refuse.add("zookeeper")
    with pytest.raises(ClusterRefusedError):
        ended.keep(store, 5.0)
    world.refuse.clear()
    ended.keep(store, 9.0)
    ended.keep(store, 10.0)
    assert len(sink.events) == 2
    assert [(entry["t"], entry["kind"]) for entry in store.read()] == [(5.0, "handover")]


def test_the_timeline_joins_stored_and_seen_entries_once():
    clock = ManualClock(now=100.0)
    knowledge = Knowledge(clock)
    knowledge.emit("reconfiguration_ended", {"topology": "taxi", **ENDED})
    stored = read_entries([{"t": 50.0, **ENDED, "epoch": 2}, {"t": 99.9, **ENDED}])
    assert [entry.epoch for entry in knowledge.timeline("taxi", stored)] == [2, 4]
    assert [entry.epoch for entry in knowledge.timeline("unknown", stored)] == [2, 4]
