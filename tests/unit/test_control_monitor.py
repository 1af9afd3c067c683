"""Counters to rates, resets included; facts to one view."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from leeward.control.counted import packed
from leeward.control.lines import read_samples
from leeward.control.monitor import (
    Facts,
    Monitor,
    Rates,
    build_view,
    check_structure,
    members,
    rates_between,
    sinks,
    streams_of,
)
from leeward.control.ports import ComponentFacts, StreamFacts, Structure
from leeward.control.snapshot import read_snapshot
from leeward.core.control import ControlRecord
from leeward.core.errors import ConfigError, NotReadyError, ProtocolError
from leeward.core.metrics import TaskMetrics
from leeward.core.network import Network, NetworkNode, Site
from leeward.core.plan import Placement, Slot
from leeward.core.settings import Settings
from leeward.core.table import even_table
from leeward.sim.memory import snapshot_text
from tests.helpers.zipped import zipped


def line(task, component, t, *, pid=1, received=None, out=0, processed=0, busy=0.0, buffered=0, **more):
    return json.dumps(more | {
        "task": task, "component": component, "t": t, "pid": pid, "in": received or {}, "processed": processed,
        "out": {"default": out, "marker": 999}, "busy_s": busy, "buffered": buffered,
    })  # fmt: skip


def rates(old, new, minimum=1):
    return rates_between(packed(read_samples(old)), read_samples(new), minimum_samples=minimum)


def test_rates_are_summed_over_tasks_and_markers_do_not_count():
    old = {1: line(1, "source", 10, out=0), 2: line(2, "work", 10), 3: line(3, "work", 10.5)}
    new = {
        1: line(1, "source", 20, out=1000),
        2: line(2, "work", 20, received={"source": 600}, processed=600, busy=3.0),
        3: line(3, "work", 20.5, received={"source": 400}, processed=400, busy=2.0, buffered=7),
    }
    found = rates(old, new)
    assert found.emitted["source"] == pytest.approx(100)
    assert found.streams == {("source", "work"): pytest.approx(100)}
    assert found.service == {"work": pytest.approx(200)}
    assert found.buffered["work"] == 7 and found.span_s == 10


def test_the_view_shows_the_network_that_is_known():
    nodes = (NetworkNode(id="head", site="a", role="nimbus"), NetworkNode(id="n1", site="a"))
    network = Network(sites=(Site(id="a"),), nodes=nodes)
    assert build_view(facts(network=network), Settings()).network is network
    assert build_view(facts(), Settings()).network is None


def test_a_new_process_counts_from_its_start():
    old = {2: line(2, "work", 10, received={"source": 5000}, processed=5000, busy=50)}
    new = {2: line(2, "work", 20, pid=2, received={"source": 300}, processed=300, busy=3)}
    found = rates(old, new)
    assert found.streams[("source", "work")] == pytest.approx(30)
    assert found.service["work"] == pytest.approx(100)


def test_the_load_of_key_groups_is_summed_over_tasks_and_over_the_window():
    old = {2: line(2, "work", 10, groups={"7": 900}, looked_at=300), 3: line(3, "work", 10, groups={"9": 5})}
    new = {
        2: line(2, "work", 20, groups={"7": 2900, "8": 100}, looked_at=700),
        3: line(3, "work", 20, pid=2, groups={"9": 400, "8": 100}, looked_at=100),
        4: line(4, "work", 20, groups={"1": 100}, looked_at=100),
    }
    assert rates(old, new).groups == {"work": {7: 200.0, 8: 20.0, 9: 40.0}}


def test_too_few_tuples_say_nothing_of_key_groups():
    old, new = {2: line(2, "work", 10)}, {2: line(2, "work", 20, groups={"7": 10_000}, looked_at=499)}
    assert rates(old, new).groups == {}


def test_too_few_samples_keep_the_last_known_service_rate():
    monitor = Monitor(Settings(minimum_samples=50, window_s=10.0))
    monitor.observe(read_samples({2: line(2, "work", 0)}), 0)
    monitor.observe(read_samples({2: line(2, "work", 5, processed=100, busy=1.0)}), 5)
    assert monitor.service == {"work": pytest.approx(100)}
    monitor.forget()
    monitor.observe(read_samples({2: line(2, "work", 6, processed=100, busy=1.0)}), 6)
    monitor.observe(read_samples({2: line(2, "work", 7, processed=110, busy=5.0)}), 7)
    assert monitor.service == {"work": pytest.approx(100)}


def test_the_window_slides():
    monitor = Monitor(Settings(window_s=10.0))
    for second in range(60):
        sent = 100 * second if second < 30 else 3000 + 10 * (second - 30)
        found = monitor.observe(read_samples({1: line(1, "source", second, out=sent)}), second)
    assert found.emitted["source"] == pytest.approx(10)
    assert 9 <= found.span_s <= 11


def test_lines_that_cannot_be_read_are_left_out():
    assert read_samples({1: "no json", 2: "[]", 3: '{"component":"x"}', 4: line(4, "work", 1)}).keys() == {4}


STRUCTURE = Structure(
    id="app-1-1",
    name="app",
    components=(
        ComponentFacts(
            id="sink",
            kind="stateful",
            inputs=("work",),
            conf={"leeward.pinned": ["n2"], "leeward.facts": {"event_bytes": 40}},
        ),
        ComponentFacts(id="source", kind="source", inputs=(), conf={"leeward.service_rate": 284}),
        ComponentFacts(
            id="work",
            kind="stateless",
            inputs=("source",),
            conf={"leeward.max_replicas": 2, "leeward.service_rate": 233},
        ),
    ),
)
TASKS = {1: "source", 2: "work", 3: "work", 4: "work", 5: "sink", 6: "__acker"}
SLOTS = {task: Slot("n1", 1) for task in TASKS}


def cluster(**changes):
    return snapshot_text(
        nodes={"n1": (1, 2), "n2": (1, 2)}, topology_id="app-1-1", name="app", tasks=TASKS, slots=SLOTS, **changes
    )


def facts(**changes):
    found = Rates(
        span_s=10, emitted={"source": 100.0}, streams={("source", "work"): 95.0, ("work", "sink"): 9.0},
        service={"work": 240.0}, buffered={"work": 3}, groups={"work": {7: 95.0}},
    )  # fmt: skip
    record = ControlRecord(
        epoch=4, tables={"source": even_table([1]), "work": even_table([2]), "sink": even_table([5])}
    )
    base = {
        "structure": STRUCTURE, "cluster": read_snapshot(cluster(), "app-1-1"), "record": record, "rates": found,
        "service": found.service, "sizes": {"sink": 900},
    }  # fmt: skip
    return Facts(**{**base, **changes})


def test_the_view():
    view = build_view(facts(draining=frozenset({"n2"})), Settings(eps_max=4))
    assert [(n.id, n.capacity, n.draining) for n in view.nodes] == [("n1", 8, False), ("n2", 8, True)]
    work = view.component("work")
    assert (work.tasks, work.max_replicas, work.stateful, work.source) == ((2, 3, 4), 2, False, False)
    assert view.component("sink").pinned == ("n2",) and view.component("sink").stateful
    assert view.component("sink").facts == {"event_bytes": 40} and not view.component("work").facts
    assert view.streams == (("source", "work"), ("work", "sink"))
    assert view.measured["source"].arrival_rate == 100 and view.measured["source"].service_rate == 284
    assert view.measured["work"].arrival_rate == 95 and view.measured["work"].service_rate == 240
    assert view.measured["work"].group_load == {7: 95.0} and view.measured["sink"].group_load == {}
    assert view.measured["sink"].service_rate is None and view.measured["sink"].state_bytes == 900
    assert view.assignment[6] == Slot("n1", 1), "Storm's own tasks are placed too"
    assert view.epoch == 4


def test_priors_hold_until_measured():
    view = build_view(facts(service={}), Settings())
    assert view.measured["work"].service_rate == 233
    slower = replace(STRUCTURE, conf={"leeward.service_speed": 0.5})
    assert build_view(facts(service={}, structure=slower), Settings()).measured["work"].service_rate == 116.5


def test_backlog_beyond_what_checkpoints_explain():
    settings = Settings(checkpoint_every_s=15)
    waiting = build_view(facts(streams=StreamFacts(last=10_000, done=2_000)), settings)
    assert waiting.measured["source"].queued == 8_000 - 100 * 30
    assert build_view(facts(streams=StreamFacts(last=3_000, done=2_000)), settings).measured["source"].queued == 0


def test_slots_of_other_topologies_are_no_capacity():
    document = json.loads(cluster())
    other = {**document["topologies"][0], "id": "other-1-1", "name": "other"}
    other["executors"] = [{"component": "x", "tasks": [1, 1], "node": "n2", "port": 2}]
    document["topologies"].append(other)
    view = build_view(facts(cluster=read_snapshot(json.dumps(document), "app-1-1")), Settings(eps_max=4))
    assert [(n.id, n.ports, n.capacity) for n in view.nodes] == [("n1", (1, 2), 8), ("n2", (1,), 4)]


def test_blacklisted_nodes_are_left_out():
    document = json.loads(cluster())
    document["supervisors"][1]["blacklisted"] = True
    view = build_view(facts(cluster=read_snapshot(json.dumps(document), "app-1-1")), Settings())
    assert [n.id for n in view.nodes] == ["n1"]


def test_who_takes_part():
    assert members(STRUCTURE, TASKS).keys() == {1, 2, 3, 4, 5}
    check_structure(STRUCTURE)
    foreign = Structure(id="x", name="x", components=(ComponentFacts(id="bolt", kind="", inputs=()),))
    with pytest.raises(ConfigError, match=r"component 'bolt' has no leeward\.kind.*Derive every component"):
        check_structure(foreign)


def test_whom_no_other_reads_from():
    assert sinks(STRUCTURE) == {"sink"}


def test_bad_pin():
    bad = Structure(
        id="x", name="x", components=(ComponentFacts(id="s", kind="source", inputs=(), conf={"leeward.pinned": "n1"}),)
    )
    with pytest.raises(ConfigError, match=r"'s' has leeward\.pinned = 'n1'"):
        build_view(facts(structure=bad), Settings())


def pinned(pins: object) -> Structure:
    return replace(STRUCTURE, conf={"leeward.pins": pins})


def test_pins_of_the_submission_stand_in_place_of_the_component_s():
    view = build_view(facts(structure=pinned({"sink": ["n4", "n3"], "source": ["n1"]})), Settings())
    assert {c.id: c.pinned for c in view.components} == {"sink": ("n3", "n4"), "source": ("n1",), "work": ()}
    view = build_view(facts(structure=pinned({"sink": []})), Settings())
    assert view.component("sink").pinned == (), "an empty list frees it"


@pytest.mark.parametrize(
    ("pins", "match"),
    [
        ("n1", r"'app' has leeward\.pins = 'n1'.*Give a map"),
        ({"sinks": ["n1"]}, r"leeward\.pins names 'sinks'.*sink, source, work"),
    ],
)
def test_pins_that_no_component_has(pins: object, match: str):
    with pytest.raises(ConfigError, match=match):
        check_structure(pinned(pins))


def test_bad_pin_of_the_submission():
    with pytest.raises(ConfigError, match=r"'sink' has leeward\.pins = 'n1'"):
        build_view(facts(structure=pinned({"sink": "n1"})), Settings())


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        (None, NotReadyError, "has not published"),
        ("{", ProtocolError, "not a snapshot"),
        ('{"version":3}', ProtocolError, "'version' is 3, this program reads 1 and 2"),
        ('{"version":2}', ProtocolError, "not a snapshot: KeyError"),
        ('{"version":2,"gzip":7}', ProtocolError, "not a snapshot"),
        ('{"version":2,"gzip":"?"}', ProtocolError, "not a snapshot"),
        ('{"version":2,"gzip":"' + "A" * 80 + '"}', ProtocolError, "not a snapshot"),
        (zipped('{"version":1,"supervisors":[],"topologies":[]}'), NotReadyError, "does not know app-1-1 yet"),
        (zipped('{"version":2,"gzip":""}'), ProtocolError, "'version' is 2"),
        (zipped("[]"), ProtocolError, "not a snapshot"),
        (zipped('{"version":1}')[:-12] + '"}', ProtocolError, "not a snapshot"),
        ('{"version":1,"supervisors":[],"topologies":[]}', NotReadyError, "does not know app-1-1 yet"),
    ],
)
def test_snapshots_that_cannot_be_read(text, error, match):
    with pytest.raises(error, match=match):
        read_snapshot(text, "app-1-1")


@pytest.mark.parametrize(("id_", "first"), [(None, True), ("app-1-0", True), ("app-1-1", False)])
def test_a_plan_is_the_first_of_its_topology_not_of_its_name(id_, first):
    wanted = id_ and Placement(topology_id=id_, epoch=4, slots={})
    assert build_view(facts(wanted=wanted), Settings()).first is first


@pytest.mark.parametrize(("epoch", "managed", "first"), [(0, False, True), (0, True, False), (1, False, False)])
def test_a_plan_that_storm_was_too_fast_for_was_not_the_first(epoch, managed, first):
    seen = read_snapshot(cluster(managed=managed, epoch=0, reason="no plan"), "app-1-1")
    found = facts(wanted=Placement(topology_id="app-1-1", epoch=0, slots={}), cluster=seen)
    found = replace(found, record=replace(found.record, epoch=epoch))
    assert build_view(found, Settings()).first is first


def test_streams_are_those_that_a_source_and_a_sink_say():
    def task(**ends):
        return TaskMetrics(component="x", pid=1, t=0.0, **ends)

    assert streams_of([task(), task(reads="in"), task(writes="out")]) == ("in", "out")
    assert streams_of([task()]) == streams_of([]) == ("", "")
