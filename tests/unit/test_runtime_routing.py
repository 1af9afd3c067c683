"""Routers in tasks: what a sender puts into its pipe, what a replica answers, and which routers a topology may have."""

from __future__ import annotations

import json
import logging
import socket
import struct
import threading
import time

import pytest
import streamparse

from leeward.core.control import ControlRecord, Phase
from leeward.core.errors import ConfigError
from leeward.core.route import Route, RoutePacing
from leeward.core.table import even_table
from leeward.policies.agiledart.paths.routers import ThompsonRouter
from leeward.runtime import ElasticBolt, StatefulBolt, StatefulSpout, Topology, balanced, keyed, ordered_by, routed_by
from leeward.runtime.dsl.routers import routers_of
from leeward.runtime.routing.returns import Answers, Recent, Returns
from leeward.runtime.routing.routes import Routes, Sender
from tests.cluster.harness import await_
from tests.helpers.pipe_twin import Twin
from tests.helpers.task_worker import BOLT, starting

THOMPSON = "leeward.policies.agiledart.paths.routers:ThompsonRouter"
HERE = {"storm.local.hostname": "127.0.0.1"}


class Source(StatefulSpout):
    outputs = ["key"]

    def next_tuple(self):
        self.emit(["k"])


class Pass(ElasticBolt):
    outputs = ["key"]

    def process(self, tup):
        self.emit(list(tup.values))


class Work(ElasticBolt):
    outputs = []
    router = routed_by("agiledart-thompson", slot_s=0.2)


class First:
    """A router that takes the first hop; the topologies of the tests name it."""

    steady = True

    def __init__(self, wrong=False):
        self.wrong, self.learnt = wrong, []

    def next_hop(self, hops, *, now, rng):
        return -1 if self.wrong else hops[0]

    def learn(self, hop, delay_s):
        self.learnt.append((hop, delay_s))


class Stubborn:
    def next_hop(self, hops, *, now, rng):
        return hops[0]


FIRST = f"{__name__}:First"


# --- which routers there may be


def test_a_topology_tells_all_tasks_the_routers_of_its_components():
    class Words(Topology):
        source = Source.spec()
        plain = Pass.spec(inputs={source: balanced()}, par=2)
        work = Work.spec(inputs={plain: balanced()}, par=3)
        more = Pass.spec(inputs={plain: balanced()}, par=3, router=routed_by(First, wrong=False))

    work = {"router": THOMPSON, "options": {"slot_s": 0.2}}
    assert Words.config["leeward.routers"] == {"work": work, "more": {"router": FIRST, "options": {"wrong": False}}}
    conf = json.loads(json.dumps(Words.config))
    made = routers_of(conf, ["work", "sink"])
    assert list(made) == ["work"] and isinstance(made["work"], ThompsonRouter)
    assert routers_of(conf, ["sink"]) == {} == routers_of({}, ["work"])


def test_a_topology_without_routers_has_no_such_key():
    class Words(Topology):
        source = Source.spec()
        plain = Pass.spec(inputs={source: balanced()}, par=2)

    assert "leeward.routers" not in Words.config


@pytest.mark.parametrize(
    ("router", "reason"),
    [
        (routed_by("agiledart-thomson"), "Did you mean agiledart-thompson"),
        (routed_by("agiledart-thompson", slot=1), "does not take its options"),
        (routed_by("agiledart-thompson", slot_s=-1), "A slot of -1 s is none"),
        (routed_by("nowhere:Router"), "cannot be loaded"),
        (routed_by(Stubborn), "has no method learn"),
        (routed_by(First()), "which cannot travel to a worker"),
        (routed_by(First, wrong={1, 2}), "does not take its options"),
        (5, "router is 5, which routes nothing"),
    ],
)
def test_routers_that_cannot_be_are_refused(router, reason):
    with pytest.raises(ConfigError, match=reason):
        Pass.spec(name="work", inputs={Source.spec(name="s"): balanced()}, router=router)


def test_a_router_never_routes_by_key():
    source = Source.spec(name="source")
    with pytest.raises(ConfigError, match="any replica will do"):
        Work.spec(name="work", inputs={source: keyed("key")})

    class Count(StatefulBolt):
        outputs = []

    with pytest.raises(ConfigError, match="any replica will do"):
        Count.spec(name="count", inputs={source: keyed("key")}, router=routed_by(First))


def test_an_attribute_of_the_users_own_with_that_name_is_left_alone():
    class Own(ElasticBolt):
        outputs = []
        router = "10.0.0.1"

    Own.spec(name="own", inputs={Source.spec(name="source"): balanced()})


def test_a_worker_whose_topology_collected_nothing_says_so(caplog):
    class Words(streamparse.Topology):
        source = Source.spec()
        work = Work.spec(inputs={source: balanced()})

    conf = json.loads(next(spec for spec in Words.specs if spec.name == "work").common.json_conf)
    with caplog.at_level(logging.WARNING):
        assert routers_of(conf, []) == {}
    assert "no sender has a router" in caplog.text


# --- answers


@pytest.fixture
def returns():
    made = Returns("127.0.0.1")
    yield made
    made.close()


def test_an_answer_comes_with_its_time(returns):
    Answers(7, service_s=lambda: 0.25, ahead_s=lambda: 0.5).answer(12, returns.address)
    before = time.monotonic()
    answer = returns.next(5)
    assert (answer.task, answer.number, answer.service_s, answer.ahead_s) == (7, 12, 0.25, 0.5)
    assert before - 1 < answer.at <= time.monotonic()
    assert returns.next(0.0) is None


@pytest.mark.parametrize("place", ["secret", "magic", "version", "length"])
def test_what_is_no_answer_is_dropped(returns, place):
    host, port, secret = json.loads(returns.address)
    good = struct.pack(">3sB16sIQdd", b"LWR", 1, bytes.fromhex(secret), 7, 12, 0.0, 0.0)
    at = {"secret": 10, "magic": 0, "version": 3, "length": len(good)}[place]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(good[:at] + b"\x99" + good[at + 1 :], (host, port))
        assert returns.next(5) is None
        sender.sendto(good, (host, port))
        assert returns.next(5).number == 12


def test_an_answer_that_cannot_be_sent_stops_nobody(caplog):
    answers = Answers(7, service_s=lambda: 0.0, ahead_s=lambda: 0.0)
    for _ in range(2):
        answers.answer(1, json.dumps(["no.such.host.invalid", 1, "00" * 16]))
    assert caplog.text.count("cannot answer the samples") == 1


def test_the_time_for_a_tuple_is_that_of_the_last_ones():
    now, tuples, busy = [0.0], [0], [0.0]
    recent = Recent(lambda: tuples[0], lambda: busy[0], lambda: now[0])
    assert recent.mean_s() == 0.0
    tuples[0], busy[0] = 10, 0.1
    assert recent.mean_s() == pytest.approx(0.01)
    tuples[0], busy[0], now[0] = 20, 0.6, 0.1
    assert recent.mean_s() == pytest.approx(0.01)  # too soon
    now[0] = 0.3
    assert recent.mean_s() == pytest.approx(0.05)
    now[0] = 9.0
    assert recent.mean_s() == pytest.approx(0.05)  # no tuple since


# --- a sender


def sender(seen, *, works=lambda: True, emitted=None):
    emitted = emitted or iter(range(1, 1000)).__next__
    return Sender(name="task 5", works=works, emitted=emitted, emit=seen.append, post=lambda work: work())


def test_a_router_that_fails_is_given_up_and_the_others_go_on(returns, caplog):
    seen = []
    routes = {"work": Route(First(wrong=True), None), "more": Route(First(), None)}
    made = Routes(sender(seen), routes, returns)
    made.follow({"work": even_table([3, 4]), "more": even_table([8, 9])})
    made.turn()
    assert seen == [["weights", 0, "work=", "", ""], ["sample", 1, "more=8,9", "", returns.address]]
    assert "without its router to work" in caplog.text
    made.turn()
    assert len(seen) == 2 and made.weights() == {"more": {}}


def test_a_sender_that_does_not_work_forgets_its_samples(returns):
    working, router, seen, now = [True], First(), [], [0.0]
    made = Routes(sender(seen, works=lambda: working[0]), {"work": Route(router, None)}, returns, clock=lambda: now[0])
    made.follow({"work": even_table([3, 4])})
    made.turn()
    working[0] = False
    made.turn()
    working[0], now[0] = True, 60.0
    made.turn()
    assert router.learnt == [] and [marker[0] for marker in seen] == ["sample", "sample"]


def test_an_idle_sender_takes_no_turns_and_a_busy_one_does(returns):
    count, turns, router = [0], [], First()
    told = Sender(
        name="task 5", works=lambda: True, emitted=lambda: count[0], emit=lambda marker: None,
        post=lambda work: (turns.append(1), work()),
    )  # fmt: skip
    made = Routes(told, {"work": Route(router, None)}, returns, pacing=RoutePacing(every_s=0.01))
    made.follow({"work": even_table([3, 4])})
    made.start()
    threading.Event().wait(0.1)  # ten turns' time; none is taken, so there is no condition to wait for
    assert not turns
    count[0] = 1
    await_(lambda: turns, "a turn", 10)


# --- behind a pipe

SENDER = {
    "taskid": 5,
    "componentid": "pass",
    "task->component": {"3": "source", "5": "pass", "6": "pass", "7": "work", "8": "work", "9": "work"},
    "source->stream->grouping": {"source": {"default": {}, "marker": {}}},
    "source->stream->fields": {"source": {"default": ["key"], "marker": ["kind", "epoch", "tables", "counts", "body"]}},
    "stream->target->grouping": {"default": {"work": {}}, "marker": {"work": {}}},
}
TABLES = {"source": even_table([3]), "pass": even_table([5]), "work": even_table([7, 8, 9])}
ROUTERS = {"leeward.routers": {"work": {"router": FIRST, "options": {}}}}


def sent(messages):
    """The markers of these kinds."""
    found = [m["tuple"] for m in messages if m.get("command") == "emit" and m.get("stream") == "marker"]
    return [marker for marker in found if marker[0] in ("weights", "sample")]


def until(worker, kind):
    """The next marker of this kind, while tuples flow; and everything sent until then."""
    seen, deadline = [], time.monotonic() + 20
    while not (found := [marker for marker in sent(seen) if marker[0] == kind]):
        assert time.monotonic() < deadline, seen
        worker.tuple("source", 3, ["k"])
        seen += worker.beat()
        time.sleep(0.005)  # between two messages; the condition is above
    return found[0], seen


def test_a_sender_asks_learns_and_weighs(tmp_path, twin):
    with starting(tmp_path, beat=True) as start:
        worker = start(Pass, twin, **SENDER, conf=HERE | ROUTERS)
        worker.link.show(ControlRecord(tables=TABLES, epoch=1, base=1, phase=Phase.RESTORE))
        worker.beat()
        worker.marker("source", 3, "probe", 1)
        worker.beat()
        worker.link.show(ControlRecord(tables=TABLES, epoch=1, base=1))
        sample, _ = until(worker, "sample")
        assert sample[2] == "work=7,8,9"
        for task in (7, 8, 9):
            Answers(task, service_s=lambda: 0.01, ahead_s=lambda: 0.0).answer(sample[1], sample[4])
        weights, seen = until(worker, "weights")
        assert weights[2] in ("work=7:32,8:0,9:0", "work=7:64,8:0,9:0")
        route = worker.component._routes._routes["work"]
        assert {task for task, _ in route.router.learnt} == {7, 8, 9}
        assert all(0.01 < delay < 5 for _, delay in route.router.learnt)
        assert json.loads(worker.link.metrics())["weights"]["work"]["8"] == 0
        assert not [m for m in seen if m.get("command") == "error"]


def test_a_task_without_a_router_downstream_listens_nowhere(tmp_path):
    with starting(tmp_path, beat=True) as start:
        worker = start(Pass, Twin(ids=False), **SENDER, conf=HERE)
        assert worker.component._routes is None


def test_where_tasks_do_not_reach_each_other_there_is_no_router(tmp_path, caplog):
    with starting(tmp_path, beat=True) as start:
        worker = start(Pass, Twin(ids=False), **SENDER, conf=HERE | ROUTERS | {"leeward.handover.direct": False})
        assert worker.component._routes is None


def test_a_replica_answers_behind_the_tuples_that_came_before(tmp_path, twin, returns):
    slow = {"leeward.service_times": "emulated", "leeward.service_rate": 20}
    with starting(tmp_path, beat=True) as start:
        worker = start(Pass, twin, **BOLT, conf=HERE | slow)
        for _ in range(3):
            worker.tuple("pass", 3, ["k"])
        began = time.monotonic()
        worker.tuple("pass", 3, ["sample", 4, "count=5", "", returns.address], stream="marker")
        answer = returns.next(10)
        assert (answer.task, answer.number, answer.service_s, answer.ahead_s) == (5, 4, 0.05, 0.0)
        assert answer.at - began > 0.1
        worker.tuple("pass", 3, ["k"])
        assert [m for m in worker.beat() if m.get("command") == "emit" and m.get("stream") is None]


def test_a_task_that_is_no_replica_does_not_answer(tmp_path, returns):
    with starting(tmp_path, beat=True) as start:
        worker = start(Pass, Twin(ids=False), **BOLT | {"taskid": 6}, conf=HERE)
        worker.tuple("pass", 3, ["sample", 4, "count=6", "", returns.address], stream="marker")
        worker.beat()
        assert returns.next(0.0) is None


class Dated(StatefulSpout):
    outputs = ["key", "due"]


class Urgent(Pass):
    gate = threading.Event()

    def process(self, tup):
        if tup.values.key == "gate":
            self.gate.wait(30)
        self.emit([tup.values.key])


def test_a_sample_keeps_no_urgent_tuple_back(tmp_path, returns):
    spec = Urgent.spec(name="u", inputs={Dated.spec(name="d"): balanced()}, queue=ordered_by("dssp-edf", due="due"))
    conf = HERE | json.loads(spec.common.json_conf)
    fields = {"pass": {"default": ["key", "due"], "marker": ["kind", "epoch", "tables", "counts", "body"]}}
    with starting(tmp_path, beat=True) as start:
        worker = start(Urgent, Twin(ids=False), **BOLT | {"source->stream->fields": fields}, conf=conf)
        await_(lambda: worker.component._protocol.open, "the task to run", 10)
        worker.tuple("pass", 3, ["gate", 1.0])
        worker.tuple("pass", 3, ["late", 9.0])
        worker.tuple("pass", 3, ["sample", 4, "count=5", "", returns.address], stream="marker")
        worker.tuple("pass", 3, ["urgent", 2.0])
        Urgent.gate.set()
        keys = []
        while len(keys) < 3:
            keys += [m["tuple"][0] for m in worker.beat() if m.get("command") == "emit" and m.get("stream") is None]
        assert keys == ["gate", "urgent", "late"]
        assert returns.next(10).number == 4
