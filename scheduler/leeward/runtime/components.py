"""Base classes of elastic components: streamparse's, with the task protocol between Storm and the user's code.

A component derives from one of three:
  ElasticBolt    stateless; its replicas take turns (`balanced()`)
  StatefulBolt   keeps `self.state` by the key that its input is routed by (`keyed("field")`)
  StatefulSpout  keeps `self.state` (offsets, say) and may send pulses

User code may define, besides streamparse's methods:
  resumed()          after `self.state` was loaded or re-loaded: rebuild whatever is derived from it
  pulse(pulse)       the pulse is in from all upstream tasks; may emit; may return a dict to add to what travels on
  committed(state)   (spout) a cut is durable; `state` is a copy of self.state as of the oldest cut still kept:
                     input before it will not be asked for again
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import logging
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pystorm.exceptions import StormWentAwayError
from streamparse import Bolt, Spout

from leeward.core.control import ControlRecord, Paths, Report, cut_barrier, ready_barrier
from leeward.core.errors import ConfigError, LeewardError
from leeward.core.keys import GROUPS
from leeward.core.protocol import (
    Deliver,
    DeliverPulse,
    Export,
    Instruction,
    Kind,
    Load,
    Marker,
    Mode,
    Ready,
    Recover,
    Resumed,
    Send,
    TaskProtocol,
)
from leeward.core.table import even_table, owned, tables_text
from leeward.runtime import snapshot
from leeward.runtime.dsl import KIND, MARKER_STREAM, with_marker_inputs, with_marker_output
from leeward.runtime.link import Link
from leeward.runtime.pipe import PipeSerializer, protect_stdout
from leeward.runtime.state import KeyedState
from leeward.runtime.store import TaskStore

if os.path.basename(sys.argv[0]) == "streamparse_run":
    protect_stdout()  # as early as can be: the user's module is being imported

log = logging.getLogger(__name__)

#: A paused spout lets Storm ask this often. # seconds
_IDLE_S = 0.005
#: Emulated service may run this far behind the clock before it forgives the rest. # seconds
_CREDIT_S = 0.02


@dataclass(frozen=True, slots=True)
class Pulse:
    """A cut through the stream by the data's own clock."""

    number: int  #: increasing along the stream
    data: dict[str, Any]  #: what the spout and the operators on the way put in, merged over all channels


class _Elastic:
    """What spouts and bolts share. Mixed in before streamparse's class."""

    kind = "stateless"

    def __init__(
        self, input_stream: Any = sys.stdin, output_stream: Any = sys.stdout, **options: Any
    ) -> None:
        options.pop("serializer", None)
        super().__init__(
            input_stream=io.BytesIO(), output_stream=io.BytesIO(), **options
        )  # pystorm would close ours
        write_fd = protect_stdout() if output_stream is sys.stdout else output_stream.fileno()
        self.serializer = PipeSerializer(input_stream.fileno(), write_fd)
        self.serializer.on_idle = self._on_idle
        self.counters: Counter[str] = Counter()  #: the user's own counts, published with the metrics
        self._inbox: deque[Callable[[], None]] = deque()
        self._in: Counter[str] = Counter()
        self._out: Counter[str] = Counter()
        self._processed = 0
        self._busy_s = 0.0
        self._free_at = 0.0
        self._timer_due = 0.0
        self.state = KeyedState("a component that has not started", ())

    # --- start ---

    def read_handshake(self) -> tuple[dict, dict]:
        """As pystorm's; also finds the node's swap area, beside the supervisor's other local files."""
        handshake = self.read_message()
        pid_dir = Path(handshake["pidDir"])
        (pid_dir / str(self.pid)).touch()
        self.send_message({"pid": self.pid})
        self._swap = Path(handshake["conf"].get("leeward.swap.dir") or pid_dir.parents[2] / "leeward-swap")
        return handshake["conf"], handshake["context"]

    def _setup_component(self, conf: dict, context: dict) -> None:
        super()._setup_component(conf, context)
        self._node = conf.get("storm.local.hostname") or os.uname().nodename
        by_component: dict[str, list[int]] = {}
        for task, component in context["task->component"].items():
            by_component.setdefault(component, []).append(int(task))
        sources = [
            name
            for name, streams in context.get("source->stream->grouping", {}).items()
            if MARKER_STREAM in streams
        ]
        self._downstream = sorted(context.get("stream->target->grouping", {}).get(MARKER_STREAM) or ())
        self._protocol = TaskProtocol(self.task_id, [task for name in sources for task in by_component[name]])
        self._service_s = _service_time(conf)
        self._committed_states: dict[int, dict] = {}
        paths = Paths(conf.get("leeward.zookeeper.root") or "/leeward", conf["storm.id"])
        store = TaskStore(
            _redis_url(conf),
            conf["storm.id"],
            self.component_name,
            self.task_id,
            node=self._node,
            swap=self._swap,
        )
        self._link = Link(
            zookeeper=_zookeeper(conf),
            paths=paths,
            store=store,
            task=self.task_id,
            post=self._post,
            on_record=self._on_record,
            default=ControlRecord(tables=_first_tables(by_component, conf)),
            metrics=self._metrics,
        )
        self._link.start()

    # --- the task's own thread ---

    def _post(self, work: Callable[[], None]) -> None:
        """Queue work for the task's own thread; callable from any thread."""
        self._inbox.append(work)
        self.serializer.wake()

    def _on_idle(self) -> None:
        while self._inbox:
            self._inbox.popleft()()
        now = time.monotonic()
        if now >= self._timer_due:
            self._timer_due = now + 0.2
            self._carry_out(self._protocol.on_timer())

    def _attend(self) -> None:
        """Between two messages: whatever other threads or the clock want."""
        if self._inbox or (self._protocol.mode is Mode.RESTORING and time.monotonic() >= self._timer_due):
            self._on_idle()

    def _on_record(self, record: ControlRecord, first: bool) -> None:
        self._carry_out(self._protocol.on_record(record, first=first))
        kept = [state for cut, state in sorted(self._committed_states.items()) if cut in record.committed]
        if kept and record.committed:
            self._committed_states = {
                c: s for c, s in self._committed_states.items() if c >= record.committed[0]
            }
            self.committed(copy.deepcopy(kept[0]))

    def _carry_out(self, instructions: Iterable[Instruction]) -> None:
        for instruction in instructions:
            self._actions[type(instruction)](self, instruction)

    def _send(self, instruction: Send) -> None:
        marker = instruction.marker
        if self._downstream:
            tables = ""
            if marker.kind is Kind.PROBE:
                tables = tables_text({name: self._protocol.record.tables[name] for name in self._downstream})
            body = json.dumps(marker.body, separators=(",", ":"))
            self.emit([str(marker.kind), marker.number, tables, "", body], stream=MARKER_STREAM)

    def _export(self, instruction: Export) -> None:
        """Encode now (the state of this very moment), write and report in the background."""
        cut, record = instruction.cut, instruction.record
        blobs, swap, entries, error = {}, {}, 0, ""
        table = record.tables.get(self.component_name, ()) if self.task_id in record.stays else ()
        try:
            for group in self.state.groups:
                content = self.state.group(group)
                if content:
                    entries += len(content)
                    blob = snapshot.encode(
                        content, cut=cut, owner=f"{self.component_name} (task {self.task_id})"
                    )
                    (swap if table and table[group] == self.task_id else blobs)[group] = blob
        except LeewardError as failure:
            error = str(failure)
        if self.kind == "source":
            self._committed_states[cut] = copy.deepcopy(dict(self.state))
        size = sum(map(len, blobs.values())) + sum(map(len, swap.values()))

        def report(why: str, seconds: float) -> Report:
            return Report(
                task=self.task_id,
                component=self.component_name,
                error=why,
                bytes=size,
                keys=entries,
                seconds=seconds,
            )

        if error:
            self._link.report(cut_barrier(cut), report(error, 0.0))
        else:
            self._link.export(cut, record.epoch, blobs, self.state.groups, swap, cut_barrier(cut), report)

    def _load(self, instruction: Load) -> None:
        record = instruction.record
        groups = self._groups(record)
        kept = (
            {group: self.state.group(group) for group in groups if group in set(self.state.groups)}
            if instruction.keep
            else {}
        )

        def done(entries: dict[int, dict], size: int, seconds: float) -> None:
            if record.epoch != self._protocol.record.epoch:
                return  # outdated by a newer RESTORE, which loads again
            self.state = KeyedState(self._name, ())
            self.state.replace(kept | entries)
            self._imported = Report(
                task=self.task_id,
                component=self.component_name,
                bytes=size,
                keys=sum(map(len, entries.values())),
                seconds=seconds,
            )
            if self.kind == "source":
                self._committed_states = {record.cut: copy.deepcopy(dict(self.state))}
            self.resumed()
            self._carry_out(self._protocol.loaded(record))

        def failed(why: str) -> None:
            report = Report(task=self.task_id, component=self.component_name, error=why)
            self._link.report(ready_barrier(record.epoch), report)

        self._link.load(record.cut, [group for group in groups if group not in kept], done, failed)

    def _start_running(self, instruction: Resumed) -> None:
        if instruction.record.base == 0 and not self.state.groups:
            self.state = KeyedState(self._name, self._groups(instruction.record))
            self.resumed()

    def _groups(self, record: ControlRecord) -> tuple[int, ...]:
        """The groups whose state this task owns under the record."""
        if self.kind == "stateless":
            return ()
        return owned(record.tables[self.component_name], self.task_id)

    @property
    def _name(self) -> str:
        return f"task {self.task_id} of {self.component_name}"

    def _deliver(self, instruction: Deliver) -> None:
        raise NotImplementedError  # spouts have no input; bolts define it

    def _deliver_pulse(self, instruction: DeliverPulse) -> None:
        data: dict[str, Any] = {}
        for body in instruction.bodies:
            data |= body
        more = self.pulse(Pulse(instruction.number, dict(data)))
        self._send(Send(Marker(kind=Kind.PULSE, number=instruction.number, body=data | (more or {}))))

    _actions: dict[type, Callable[[Any, Any], None]] = {
        Deliver: lambda self, i: self._deliver(i),
        DeliverPulse: lambda self, i: self._deliver_pulse(i),
        Send: _send,
        Export: _export,
        Load: _load,
        Ready: lambda self, i: self._link.report(ready_barrier(i.epoch), self._imported),
        Recover: lambda self, i: (
            log.warning("asking for a reset: %s", i.reason),
            self._link.recover(i.epoch, i.reason),
        ),
        Resumed: _start_running,
    }

    def _exit(self, status_code: int) -> None:
        """As pystorm's, but what explains the exit reaches Storm first."""
        with contextlib.suppress(StormWentAwayError):
            self.serializer.flush()
        super()._exit(status_code)

    # --- measurements ---

    def _metrics(self) -> str:
        return json.dumps(
            {
                "task": self.task_id,
                "component": self.component_name,
                "t": time.time(),
                "pid": self.pid,
                "node": self._node,
                "epoch": self._protocol.record.epoch if self._protocol.record else -1,
                "mode": str(self._protocol.mode),
                "in": dict(self._in),
                "out": dict(self._out),
                "processed": self._processed,
                "busy_s": round(self._busy_s, 6),
                "state_keys": len(self.state),
                "buffered": self._protocol.buffered,
                "counters": dict(self.counters),
            }
        )

    def emit(self, tup: list, *args: Any, stream: str | None = None, **options: Any) -> Any:
        """As streamparse's; also counts."""
        self._out[stream or "default"] += 1
        return super().emit(tup, *args, stream=stream, **options)

    # --- hooks of the user ---

    def resumed(self) -> None:
        """Called after self.state was loaded or re-loaded."""

    def pulse(self, pulse: Pulse) -> dict | None:
        """Called when the pulse is in from all upstream tasks."""

    def committed(self, state: dict) -> None:
        """Called (spouts) when a cut has become durable."""


class ElasticBolt(_Elastic, Bolt):
    """A stateless bolt whose replicas come and go; write it exactly like a streamparse Bolt."""

    @classmethod
    def spec(
        cls, name: str | None = None, inputs: Any = None, par: int | None = None, config: dict | None = None
    ) -> Any:
        """As streamparse's `Bolt.spec`; `par` is the number of tasks, the most replicas there can be.

        Adds the marker stream to outputs and inputs. Raises ConfigError for inputs that are not routed by table.
        """
        spec = super().spec(
            name=name,
            inputs=with_marker_inputs(cls.__name__, inputs),
            par=par or cls.par,
            config={**(cls.config or {}), **(config or {}), KIND: cls.kind},
        )
        spec.outputs = spec.common.streams = spec._sanitize_outputs(cls, with_marker_output(cls.outputs))
        return spec

    def _run(self) -> None:
        tup = self.read_tuple()
        self._attend()
        if tup.stream == MARKER_STREAM:
            self._carry_out(self._protocol.on_marker(tup.task, _marker(tup.values, self.task_id)))
            self.ack(tup)
        elif self.is_heartbeat(tup):
            self.send_message({"command": "sync"})
        elif self.is_tick(tup):
            if self._protocol.open:
                self.process_tick(tup)
            self.ack(tup)
        else:
            self._in[tup.component] += 1
            self._carry_out(self._protocol.on_tuple(tup.task, tup))

    def _deliver(self, instruction: Deliver) -> None:
        start = time.perf_counter()
        if self._service_s:
            self._free_at = max(self._free_at, start - _CREDIT_S) + self._service_s
            time.sleep(max(0.0, self._free_at - start))
        self._current_tups = [instruction.item]
        self.process(instruction.item)
        if self.auto_ack:
            self.ack(instruction.item)
        self._current_tups = []
        self._processed += 1
        self._busy_s += time.perf_counter() - start


class StatefulBolt(ElasticBolt):
    """A bolt whose `self.state` is a mapping by the key of its keyed input; the state moves with the key groups."""

    kind = "stateful"


class StatefulSpout(_Elastic, Spout):
    """A spout whose `self.state` (offsets) belongs to the cuts; has one task."""

    kind = "source"

    @classmethod
    def spec(cls, name: str | None = None, par: int | None = None, config: dict | None = None) -> Any:
        """As streamparse's `Spout.spec`. Raises ConfigError for more than one task."""
        if (par or cls.par) != 1:
            raise ConfigError(
                f"{cls.__name__}.spec(par={par}) asks for several tasks.",
                remedy="A stateful spout has one task; use several spouts, or scale out behind it.",
            )
        spec = super().spec(name=name, par=1, config={**(cls.config or {}), **(config or {}), KIND: cls.kind})
        spec.outputs = spec.common.streams = spec._sanitize_outputs(cls, with_marker_output(cls.outputs))
        return spec

    def emit_pulse(self, number: int, data: dict[str, Any] | None = None) -> None:
        """Cut the stream here. `number` must increase; `data` holds JSON values."""
        self._send(Send(Marker(kind=Kind.PULSE, number=number, body=data or {})))

    def _run(self) -> None:
        command = self.read_command()
        self._attend()
        name = command["command"]
        if name == "next":
            self._next()
        elif name in ("ack", "fail"):
            getattr(self, name)(command["id"])
        elif name in ("activate", "deactivate"):
            getattr(self, name)()
        self.send_message({"command": "sync"})

    def _next(self) -> None:
        start = time.perf_counter()
        if not self._protocol.open or start < self._free_at:
            time.sleep(_IDLE_S if not self._protocol.open else min(_IDLE_S, self._free_at - start))
            return
        sent = self._out.total() - self._out[MARKER_STREAM]
        self.next_tuple()
        sent = self._out.total() - self._out[MARKER_STREAM] - sent
        if sent and self._service_s:
            self._free_at = max(self._free_at, start - _CREDIT_S) + sent * self._service_s
            self._busy_s += sent * self._service_s
        else:
            self._busy_s += time.perf_counter() - start if sent else 0.0
        self._processed += sent


def _marker(values: Any, task: int) -> Marker:
    kind, number, _tables, counts, body = values
    sent = None
    for entry in counts.split(",") if counts else ():
        receiver, _, count = entry.partition(":")
        if int(receiver) == task:
            sent = int(count)
    return Marker(kind=Kind(kind), number=number, sent=sent, body=json.loads(body))


def _first_tables(by_component: dict[str, list[int]], conf: dict) -> dict[str, tuple[int, ...]]:
    """Tables of a topology that nobody has planned for yet: `leeward.replicas` of each component, else one."""
    wanted = conf.get("leeward.replicas") or {}
    return {
        name: even_table(sorted(tasks)[: wanted.get(name, 1)])
        for name, tasks in by_component.items()
        if not name.startswith("__")
    }


def _service_time(conf: dict) -> float:
    """Emulated seconds for each tuple; 0 unless `leeward.service_times` names a table."""
    table = conf.get("leeward.service_times")
    if not table or table == "none":
        return 0.0
    rate = conf.get(f"leeward.{table}.rate")
    if not rate:
        raise ConfigError(
            f"leeward.service_times is {table!r}, but this component has no leeward.{table}.rate.",
            remedy="Set the rate (tuples/s) in the component's config, or leeward.service_times to 'none'.",
        )
    return 1.0 / float(rate)


def _redis_url(conf: dict) -> str:
    url = conf.get("leeward.redis.url")
    if not isinstance(url, str) or not url:
        raise ConfigError(
            f"topology configuration leeward.redis.url is {url!r}.",
            remedy="Give it at submission: -o leeward.redis.url=redis://:password@host:port/0.",
        )
    return url


def _zookeeper(conf: dict) -> str:
    return ",".join(f"{host}:{conf['storm.zookeeper.port']}" for host in conf["storm.zookeeper.servers"])


assert GROUPS == 128  # the Java groupings are compiled for it
