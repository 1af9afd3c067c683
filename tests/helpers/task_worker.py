"""Storm's worker around one task, for tests: it speaks through the pipe, and a recording link stands for ZooKeeper
and Redis.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import deque
from contextlib import contextmanager

from pystorm.component import StormHandler

from leeward.core.control import ControlRecord
from leeward.core.errors import LeewardError
from leeward.core.table import even_table
from leeward.runtime import ElasticBolt, StatefulBolt
from leeward.runtime.handover.courier import Courier
from leeward.runtime.pacing import Pacing
from tests.helpers.pipe_twin import frame

PACING = Pacing(practice=0)
BOLT = {
    "taskid": 5,
    "componentid": "count",
    "task->component": {"3": "pass", "4": "pass", "5": "count", "6": "count", "7": "sink"},
    "source->stream->grouping": {"pass": {"default": {}, "marker": {}}},
    "source->stream->fields": {"pass": {"default": ["key"], "marker": ["kind", "epoch", "tables", "counts", "body"]}},
    "stream->target->grouping": {"default": {"sink": {}}, "marker": {"sink": {}}},
}
TABLES = {"pass": even_table([3]), "count": even_table([5]), "sink": even_table([7])}
#: A spout with one task, before one bolt.
SPOUT = {
    "taskid": 1,
    "componentid": "source",
    "task->component": {"1": "source", "2": "count"},
    "stream->target->grouping": {"default": {"count": {}}, "marker": {"count": {}}},
}


class Count(StatefulBolt):
    outputs = ["key", "count"]

    def process(self, tup):
        print("printed by the user")
        self.state[tup.values[0]] = self.state.get(tup.values[0], 0) + 1
        self.emit([tup.values[0], self.state[tup.values[0]]])

    def process_tick(self, tup):
        self.emit(["tick", sum(self.state.values())])

    def pulse(self, pulse):
        self.emit(["pulse", pulse.number])
        return {"seen": self.task_id}


class Pass(ElasticBolt):
    outputs = ["key"]

    def process(self, tup):
        self.emit(list(tup.values))


class Failing(ElasticBolt):
    outputs = ["key"]
    exit_on_exception = False

    def process(self, tup):
        if tup.values.key == "bad":
            raise ValueError("of the user")
        self.emit([tup.values.key])


class FakeLink:
    """Posts the default record at once; keeps what it was asked to do."""

    def __init__(self, *, post, on_record, default, metrics, leisure, **_):
        self.post, self.on_record, self.record, self.metrics = post, on_record, default, metrics
        self.leisure = leisure
        self.done: list[tuple] = []
        self.jobs: list = []
        self.snapshots: dict[int, dict] = {}

    def start(self):
        self.show(self.record)

    def show(self, record):
        self.record = record
        self.post(lambda: self.on_record(record, True))

    def export(self, cut, epoch, encode, owned, barrier, report, after_s=0.0):
        try:
            blobs, swap = encode()
        except LeewardError as failure:
            self.report(barrier, report(str(failure), 0.0, 0.0))
        else:
            self.done.append(("export", cut, sorted(blobs), sorted(swap), barrier, report("", 0.0, 0.0).error))

    def load(self, cut, groups, done, failed):
        entries = {group: self.snapshots.get(group, {}) for group in groups}
        self.done.append(("load", cut, list(groups)))
        self.post(lambda: done(entries, 10, 0.0))

    def report(self, barrier, report, after_s=0.0):
        self.done.append(("report", barrier, report.error))

    def look(self):
        self.done.append(("look",))

    def soon(self, job, after_s=0.0):
        self.done.append(("soon",))
        self.jobs.append(job)

    def recover(self, epoch, reason, fresh):
        self.done.append(("recover", epoch, reason, fresh))


class FakeSending:
    """Keeps what it was given."""

    has_room = True

    def __init__(self, epoch, sent):
        self.epoch, self.sent, self.parts, self.parcels = epoch, sent, [], {}
        self.told = None

    def reach(self, targets):
        self.reached = targets

    def put(self, parts):
        self.parts.append(parts)

    def when_nearly_taken(self, call):
        self.told = call

    def finish(self, parcels):
        self.parcels = {
            task: {group: (dict(items), list(gone)) for group, (items, gone) in groups.items()}
            for task, groups in parcels.items()
        }


class FakeCourier:
    """Keeps what it was asked to do; the test answers."""

    def __init__(self, *_):
        self.asked = []

    def addresses(self):
        return {}

    def warm(self, soon):
        self.asked.append(("warm", soon))

    def send(self, epoch, sent, failed):
        sending = FakeSending(epoch, sent)
        self.asked.append(("send", sending))
        return sending

    def receive(self, epoch, groups, arrived, failed):
        self.asked.append(("receive", epoch, set(groups), arrived, failed))

    def cancel(self):
        self.asked.append(("cancel",))


class Worker:
    """The Java side of the pipe."""

    _answered = False

    def __init__(self, cls, tmp_path, twin=None, *, courier=Courier, pacing=PACING, **context):
        self.twin = twin  # None: it speaks JSON
        cls = type(cls.__name__, (cls,), {"_make_link": FakeLink, "_make_courier": courier, "_pacing": pacing})
        (tmp_path / "workers/w/pids").mkdir(parents=True, exist_ok=True)
        to_child, self._to_child = os.pipe()
        self._from_child, from_child = os.pipe()
        self._in = os.fdopen(to_child, "rb", buffering=0)
        self._out = os.fdopen(from_child, "wb", buffering=0)
        self.component = cls(input_stream=self._in, output_stream=self._out, rdb_signal=None)
        self.component._exit = lambda code: (_ for _ in ()).throw(SystemExit(code))
        self.messages: list[dict] = []
        conf = {
            "storm.id": "t-1",
            "topology.name": "t",
            "leeward.redis.url": "redis://127.0.0.1:1/0",
            "storm.zookeeper.servers": ["127.0.0.1"],
            "storm.zookeeper.port": 1,
            "pystorm.log.level": "error",
        }
        self.send(
            ({"leeward.pipe": twin.offer} if twin else {})
            | {
                "conf": conf | context.pop("conf", {}),
                "context": context,
                "pidDir": str(tmp_path / "workers/w/pids"),
            }
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._reader = os.fdopen(self._from_child, "rb", buffering=0)
        self._data, self._said = b"", deque()
        self._said_pid()

    def _said_pid(self):
        assert self._next_message()["pid"] == self.component.pid
        self._answered = True
        if self.twin:
            self._said += self.twin.messages(self._data)

    def _run(self):
        try:
            self.component.run()
        except SystemExit:
            pass
        finally:
            self._out.close()

    def send(self, message):
        os.write(self._to_child, json.dumps(message).encode() + b"\nend\n")

    def tuple(self, source, task, values, stream="default"):
        tup_id = f"{source}{values}"
        if self.twin:
            os.write(self._to_child, self.twin.tuple(tup_id, source, stream, task, values))
        else:
            self.send({"id": tup_id, "comp": source, "stream": stream, "task": task, "tuple": values})

    def marker(self, source, task, kind, number, counts="", body=None):
        self.tuple(source, task, [kind, number, "", counts, json.dumps(body)], stream="marker")

    def beat(self):
        """A heartbeat; everything that the child said before it answered."""
        self.tuple("", -1, [], stream="__heartbeat")
        return self.read_until_sync()

    def next(self):
        self.command("next")
        return self.read_until_sync()

    def command(self, name, tup_id=""):
        if self.twin:
            os.write(self._to_child, frame(name, tup_id))
        else:
            self.send({"command": name, "id": tup_id})

    def read_until_sync(self):
        seen = []
        while (message := self._next_message()).get("command") != "sync":
            seen.append(message)
        return seen

    def _next_message(self):
        while not self._said:
            data = self._reader.read(65536)
            assert data, "the child went away"
            if self.twin and self._answered:
                self._said += self.twin.messages(data)
                continue
            *texts, self._data = (self._data + data).split(b"\nend\n")
            self._said += map(json.loads, texts)
        return self._said.popleft()

    @property
    def link(self):
        return self.component._link

    def close(self):
        os.close(self._to_child)
        self._thread.join(5)
        for handler in logging.getLogger().handlers[:]:
            if isinstance(handler, StormHandler):  # would write the next test's log to that one's pipe
                logging.getLogger().removeHandler(handler)
        assert not self._thread.is_alive()


def emitted(messages, stream=None):
    return [m["tuple"] for m in messages if m.get("command") == "emit" and m.get("stream") == stream]


@contextmanager
def starting(folder, *, beat=False):
    """A function that starts a worker of a class, with a first beat if wanted; all are closed at last."""
    workers = []

    def start(cls, twin=None, **context):
        workers.append(Worker(cls, folder, twin, **(BOLT | context)))
        if beat:
            workers[-1].beat()
        return workers[-1]

    yield start
    for worker in workers:
        worker.close()


def count_of_two(tmp_path, twin):
    return Worker(Count, tmp_path, twin, courier=FakeCourier, conf={"leeward.replicas": {"count": 2}}, **BOLT)


def asked(worker, what):
    """The one thing of its kind that the courier was asked for."""
    ((_, *details),) = [entry for entry in worker.component._handovers._courier.asked if entry[0] == what]
    return details


def begin_handover(worker, count_table, *, before=False):
    """Markers of handover 1 on both channels; what the bolt said, with `before` also what it was about to say."""
    record = ControlRecord(epoch=1, handover=1, tables=TABLES | {"count": count_table})
    said = worker.beat()
    for task in (3, 4):
        worker.marker("pass", task, "route", 1, body=record.to_json())
    return (said if before else []) + worker.beat()
