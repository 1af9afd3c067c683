"""What every elastic component shares: the task protocol between Storm and the user's code."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import gc
import io
import json
import logging
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pystorm.component import Component
from pystorm.exceptions import StormWentAwayError

from leeward.core.control import ControlRecord, Paths, Report, cut_barrier, ready_barrier
from leeward.core.instructions import (
    CopyAhead,
    Deliver,
    DeliverPulse,
    Export,
    HandedOver,
    HandOver,
    Instruction,
    Kind,
    Load,
    Marker,
    Mode,
    Ready,
    Recover,
    Resumed,
    Send,
)
from leeward.core.protocol import TaskProtocol
from leeward.core.table import Table, first_tables, owned, tables_text
from leeward.runtime import snapshot
from leeward.runtime.conf import direct, key_groups, redis_url, service_time, zookeeper
from leeward.runtime.courier import Courier
from leeward.runtime.dsl import MARKER_STREAM
from leeward.runtime.handover import Handovers
from leeward.runtime.link import Link
from leeward.runtime.load import GroupLoad
from leeward.runtime.output import Output
from leeward.runtime.pipe import PipeSerializer, give_stdout_back, protect_stdout
from leeward.runtime.service import Server
from leeward.runtime.state import KeyedState
from leeward.runtime.store import TaskStore
from leeward.runtime.swap import drop_gone

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pulse:
    """A cut through the stream by the data's own clock."""

    number: int  #: increasing along the stream
    data: dict[str, Any]  #: what the spout and the operators on the way put in, merged over all channels


#: Threads that encode, send and receive give way to the task's own so often, in seconds; Python's default is 5 ms.
SWITCH_S = 0.0005
#: What a task has no part in is read so much later: a handover of little state takes half of that.
_AFTER_S = 0.25


class Elastic(Output):
    """What spouts and bolts share. Mixed in before streamparse's class."""

    kind = "stateless"

    def __init__(self, input_stream: Any = sys.stdin, output_stream: Any = sys.stdout, **options: Any) -> None:
        options.pop("serializer", None)
        super().__init__(input_stream=io.BytesIO(), output_stream=io.BytesIO(), **options)  # pystorm would close ours
        write_fd = protect_stdout() if output_stream is sys.stdout else output_stream.fileno()
        self.serializer = PipeSerializer(input_stream.fileno(), write_fd)
        self.serializer.on_idle = self._on_idle
        self.counters: Counter[str] = Counter()  #: the user's own counts, published with the metrics
        self._inbox: deque[Callable[[], None]] = deque()
        self._rest: Iterator | None = None  # of the input read last
        self._processed = 0
        self._busy_s = 0.0
        self._state_bytes = 0  # as of the last export
        self._timer_due = 0.0
        self._wall_offset_s = time.time() - time.monotonic()  # rates must not see the wall clock step
        self.state = KeyedState("a component that has not started", ())

    # --- start ---

    def read_handshake(self) -> tuple[dict, dict]:
        """As pystorm's; also finds the node's swap area, beside the supervisor's other local files."""
        handshake = self.serializer.handshake()
        pid_dir = Path(handshake["pidDir"])
        (pid_dir / str(self.pid)).touch()
        self.serializer.answer(handshake, self.pid)
        self._open_output()
        self._swap = Path(handshake["conf"].get("leeward.swap.dir") or pid_dir.parents[2] / "leeward-swap")
        return handshake["conf"], handshake["context"]

    def _setup_component(self, conf: dict, context: dict) -> None:
        super()._setup_component(conf, context)
        sys.setswitchinterval(SWITCH_S)
        _interrupt_nobody()
        self._node = conf.get("storm.local.hostname") or os.uname().nodename
        components = {int(task): name for task, name in context["task->component"].items()}
        sources = {
            name for name, streams in context.get("source->stream->grouping", {}).items() if MARKER_STREAM in streams
        }
        self._downstream = sorted(context.get("stream->target->grouping", {}).get(MARKER_STREAM) or ())
        group_of = key_groups(conf, context) if self.kind == "stateful" else None
        self._group_load = GroupLoad(group_of) if group_of else None
        self._protocol = TaskProtocol(
            self.task_id,
            [task for task, name in components.items() if name in sources],
            component=self.component_name,
            group_of=group_of,
        )
        self._direct = direct(conf)
        courier = Courier(
            redis_url(conf), conf["storm.id"], self.task_id, self._name, self._post, self._node if self._direct else "",
            lambda: self._link.look(),
        )  # fmt: skip
        self._handovers = Handovers(self, courier)
        self._server = Server(service_time(conf))
        self._committed_states: dict[int, dict] = {}
        self._imported = Report(task=self.task_id, component=self.component_name)  # with the newest RESTORE
        paths = Paths(conf.get("leeward.zookeeper.root") or "/leeward", conf["storm.id"])
        store = TaskStore(
            redis_url(conf),
            conf["storm.id"],
            self.component_name,
            self.task_id,
            node=self._node,
            swap=self._swap,
        )
        self._link = Link(
            zookeeper=zookeeper(conf),
            paths=paths,
            store=store,
            task=self.task_id,
            post=self._post,
            on_record=self._on_record,
            default=ControlRecord(tables=first_tables(components, conf.get("leeward.replicas"))),
            metrics=self._metrics,
            hurry=self._in_a_hurry,
            leisure=self._until_told,
        )
        self._link.start()
        if not conf.get("leeward.swap.dir"):  # else it may be shared with tasks of another cluster
            self._link.soon(lambda: self._drop_swaps(conf), _AFTER_S)
        if self.kind == "stateful":
            self._link.soon(courier.warm)
        _give_back()

    def _drop_swaps(self, conf: dict) -> None:
        storms = f"{(conf.get('storm.zookeeper.root') or '/storm').rstrip('/')}/storms"
        drop_gone(self._swap, conf["storm.id"], lambda name: self._link.exists(f"{storms}/{name}"), time.time())

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
        if self._handovers.copying:
            self._handovers.step()

    def _attend(self) -> None:
        """Between two messages: whatever other threads or the clock want."""
        if self._inbox or (self._protocol.timed and time.monotonic() >= self._timer_due):
            self._on_idle()
        elif self._handovers.copying:
            self._handovers.step()

    @property
    def leisure_s(self) -> float:
        """Until what nobody waits for is done: when the markers of a handover or a checkpoint have run through, and by
        one task after the other, as they would take the processors from the tuples.
        """
        return 0.04 + self._turn_s

    @property
    def _turn_s(self) -> float:
        return 0.01 * (self.task_id % 5)

    def _until_told(self) -> float:
        """Seconds. Who owns groups may have to copy some ahead. Who is to take them is called by who gives them; where
        tasks do not reach each other it reads soon. The others take part through markers alone: they read when a
        handover is likely to be over.
        """
        if self.kind == "stateful":
            if self.state.groups:
                return 0.0
            if not self._direct:
                return self._turn_s / 2
        return _AFTER_S + self._turn_s

    def _in_a_hurry(self) -> bool:
        """A new record matters at once: to a source, and to whoever is stopped. To the others markers bring it."""
        return self.kind == "source" or self._protocol.mode is not Mode.RUNNING

    def _on_record(self, record: ControlRecord, first: bool) -> None:
        self._carry_out(self._protocol.on_record(record, first=first))
        kept = [state for cut, state in sorted(self._committed_states.items()) if cut in record.committed]
        if kept and record.committed:
            self._committed_states = {c: s for c, s in self._committed_states.items() if c >= record.committed[0]}
            self.committed(copy.deepcopy(kept[0]))

    def _carry_out(self, instructions: Iterable[Instruction]) -> None:
        for instruction in instructions:
            self._actions[type(instruction)](self, instruction)

    def _send(self, instruction: Send) -> None:
        marker = instruction.marker
        if self._downstream:
            tables = ""
            if instruction.tables is not None:
                tables = tables_text({name: instruction.tables[name] for name in self._downstream})
            body = json.dumps(marker.body, separators=(",", ":"))
            self.emit([str(marker.kind), marker.number, tables, "", body], stream=MARKER_STREAM)

    def _export(self, instruction: Export) -> None:
        """The state of this very moment is encoded, written and reported in the background."""
        cut, record = instruction.cut, instruction.record
        table = record.tables.get(self.component_name, ()) if self.task_id in record.stays else ()
        state, frozen = self.state, self.state.freeze()
        owned_now, counts = state.groups, {"bytes": 0, "keys": 0}
        owner = f"{self.component_name} (task {self.task_id})"
        if self.kind == "source":
            self._committed_states[cut] = copy.deepcopy(dict(self.state))

        def encode() -> tuple[dict[int, bytes], dict[int, bytes]]:
            blobs: dict[int, bytes] = {}
            swap: dict[int, bytes] = {}
            for group in owned_now:
                entries = frozen.group(group)
                if entries:
                    stays = bool(table) and table[group] == self.task_id
                    blob = (swap if stays else blobs)[group] = snapshot.encode(entries, cut=cut, owner=owner)
                    counts["bytes"] += len(blob)
                    counts["keys"] += len(entries)
                frozen.forget(group)
            return blobs, swap

        def report(why: str, seconds: float) -> Report:
            self._state_bytes = counts["bytes"]
            self._post(lambda: state.thaw(frozen))
            return Report(task=self.task_id, component=self.component_name, error=why, seconds=seconds, **counts)

        later = self.leisure_s  # all tasks do it at about the same time, and those downstream still wait for the marker
        if self._protocol.mode is not Mode.RUNNING:
            later = 0.0
            self._link.look()  # or it would hear late of what ends the pause
        self._link.export(cut, record.epoch, encode, owned_now, cut_barrier(cut), report, later)

    def _load(self, instruction: Load) -> None:
        record = instruction.record
        self._handovers.cancel()
        groups = self._groups(record.tables)
        kept = [group for group in groups if group in set(self.state.groups)] if instruction.keep else []

        def done(entries: dict[int, dict], size: int, seconds: float) -> None:
            if record.epoch != self._protocol.record.epoch:
                return  # outdated by a newer RESTORE, which loads again
            before, self.state = self.state.release(kept), KeyedState(self._name, ())
            self.state.replace(before | entries)
            gc.freeze()  # plain values without cycles: the collector need not go over them again and again
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
        self._server.rest()
        if instruction.new:
            self.state = KeyedState(self._name, self._groups(instruction.tables))
            self.resumed()

    def _groups(self, tables: Mapping[str, Table]) -> tuple[int, ...]:
        """The groups whose state this task owns by the tables."""
        if self.kind == "stateless":
            return ()
        return owned(tables[self.component_name], self.task_id)

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
        CopyAhead: lambda self, i: self._handovers.copy_ahead(i),
        HandOver: lambda self, i: self._handovers.hand_over(i),
        HandedOver: lambda self, i: self._handovers.handed_over(i),
        Recover: lambda self, i: (
            self._handovers.cancel(),
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

    @property
    def _in(self) -> Counter[str]:
        """Data tuples that came, by upstream component."""
        return Counter()

    def _metrics(self) -> str:
        load = self._group_load
        return json.dumps(
            {
                "task": self.task_id,
                "component": self.component_name,
                "t": self._wall_offset_s + time.monotonic(),
                "pid": self.pid,
                "node": self._node,
                "epoch": self._protocol.record.epoch if self._protocol.record else -1,
                "mode": str(self._protocol.mode),
                "in": dict(self._in),
                "out": dict(self._out),
                "processed": self._processed,
                "busy_s": round(self._busy_s, 6),
                "state_keys": len(self.state),
                "state_bytes": self._state_bytes,
                "buffered": self._protocol.buffered,
                "groups": dict(load.tuples) if load else {},
                "looked_at": load.looked_at if load else 0,
                "counters": dict(self.counters),
            }
        )

    # --- hooks of the user ---

    def resumed(self) -> None:
        """Called after self.state was loaded or re-loaded."""

    def regrouped(self, gained: tuple[int, ...], lost: tuple[int, ...]) -> None:
        """Called after a handover added key groups to self.state, or took some away."""
        self.resumed()

    def pulse(self, pulse: Pulse) -> dict | None:
        """Called when the pulse is in from all replicas upstream, of replicas only: warm tasks get no pulses."""

    def committed(self, state: dict) -> None:
        """Called (spouts) when a cut has become durable."""


def _interrupt_nobody() -> None:
    """Where processors are scarce, a task that gets input waits for its turn, and then has more of it to work on."""
    with contextlib.suppress(OSError, AttributeError):  # Linux has this policy
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _give_back() -> None:
    """What importing needed and left behind, a tenth of a task's memory, to the system (glibc has a call for it)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _protect_early() -> None:
    """While the user's module is being imported; a stock component that is in it gets standard output back."""
    protect_stdout()
    plain = Component.__init__

    def init(self: Component, *args: Any, **options: Any) -> None:
        if not isinstance(self, Elastic):
            give_stdout_back()
        plain(self, *args, **options)

    Component.__init__ = init


if os.path.basename(sys.argv[0]) == "streamparse_run":
    _protect_early()
