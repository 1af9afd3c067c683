"""The base of every elastic component: the task protocol between Storm and the user's code."""

from __future__ import annotations

import contextlib
import ctypes
import io
import json
import logging
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from pystorm.exceptions import StormWentAwayError

from leeward.core.control import ControlRecord, Paths
from leeward.core.instructions import Deliver, DeliverPulse, Instruction, Kind, Marker, Send
from leeward.core.metrics import TaskMetrics
from leeward.core.protocol import TaskProtocol
from leeward.core.table import first_tables, tables_text
from leeward.core.topology_conf import REPLICAS, SWAP_DIR, ZOOKEEPER_ROOT
from leeward.core.view import View
from leeward.runtime.dsl.specs import MARKER_STREAM
from leeward.runtime.handover.courier import Courier
from leeward.runtime.pacing import Pacing
from leeward.runtime.pipe.forms import BinaryForm
from leeward.runtime.pipe.loop import Meter
from leeward.runtime.pipe.output import Output
from leeward.runtime.pipe.pipe import PipeSerializer, protect_stdin, protect_stdout
from leeward.runtime.routing.routes import Routes
from leeward.runtime.state.fencing import FencingToken
from leeward.runtime.state.keyed import Entries, KeyedState
from leeward.runtime.state.outside import Outside, uses_state
from leeward.runtime.state.sampling import GroupLoad
from leeward.runtime.state.schemes import scattered_of
from leeward.runtime.state.store import TaskStore
from leeward.runtime.state.swap import drop_gone
from leeward.runtime.task.beat import Beat, Stopped
from leeward.runtime.task.conf import direct, redis_url, service_time, zookeeper
from leeward.runtime.task.distance import Distance
from leeward.runtime.task.emulated import Server
from leeward.runtime.task.link import Link
from leeward.runtime.task.memory import resident_bytes
from leeward.runtime.task.routed import routes_of
from leeward.runtime.task.task import Task
from leeward.runtime.task.user_code import UserCode
from leeward.runtime.task.workerless import WorkerlessPipe, descriptor, in_memory
from leeward.wire.secrets import secrets_of

log = logging.getLogger(__name__)

_BY_STREAMPARSE = os.path.basename(sys.argv[0]) == "streamparse_run"  # a worker has started this process


@dataclass(frozen=True, slots=True)
class Pulse:
    """A cut through the stream by the data's own clock."""

    number: int  #: increasing along the stream
    data: dict[str, Any]  #: entries of the spout and of the operators on the way, merged over all channels


class Elastic(Output):
    """The common part of spouts and bolts. Mixed in before streamparse's class."""

    kind = "stateless"
    reads = ""  #: a source sets it: the stream of the datastore that it reads; the service looks for backlog there
    writes = ""  #: a sink sets it: the stream that it writes, with the fields of `core/metrics.py`, for response times
    shown: View | None = None  #: a sink sets it: its newest result as a picture, for the service's page
    #: The other parts; tests have their own.
    _pacing, _make_courier, _make_link, _make_beat, _make_distance = Pacing(), Courier, Link, Beat, Distance
    _task: Task  # there once Storm has told which task it is

    _routes: Routes | None = None  # where no component downstream has a router
    _connected = False  # to a worker
    _begun = False  # without a worker: resumed() was called
    _downstream: Sequence[str] = ("a unit test",)  # components that take markers

    def __init__(self, input_stream: Any = None, output_stream: Any = None, **options: Any) -> None:
        """As pystorm's, with the process' standard streams as defaults. Without a worker at their other end the
        component works as streamparse's do: `process(tup)` may be called, and JSON be read from streams in memory.
        """
        before = set(vars(self))  # of the user's constructor
        options.pop("serializer", None)
        streams = in_memory(input_stream), in_memory(output_stream)
        super().__init__(input_stream=io.BytesIO(), output_stream=io.BytesIO(), **options)
        self._streams = input_stream or sys.__stdin__, output_stream or sys.__stdout__
        self.serializer = WorkerlessPipe(
            *streams, send=lambda message: self.send_message(message), read_task_ids=lambda: self.read_task_ids(),
            is_spout=self.kind == "source", pacing=self._pacing,
        )  # fmt: skip
        self._open_output()
        self.counters: Counter[str] = Counter()  #: the user's own counts, published with the metrics
        self._inbox: deque[Callable[[], None]] = deque()
        self._meter = Meter()
        self._timer_due = 0.0
        self._wall_offset_s = time.time() - time.monotonic()  # rates must not see the wall clock step
        self.state = KeyedState("a component without a worker")
        self._ours = set(vars(self)) - before
        if _BY_STREAMPARSE:
            self._connect()  # at once: nothing that the user's constructor prints may reach the worker

    # --- start ---

    def _connect(self) -> bool:
        """Take the two streams for a worker's pipe. False if they are in memory."""
        read_fd, write_fd = map(descriptor, self._streams)
        if self._connected or read_fd is None or write_fd is None:
            return self._connected
        read_fd = protect_stdin() if read_fd == 0 else read_fd
        write_fd = protect_stdout() if write_fd == 1 else write_fd
        self.serializer = PipeSerializer(read_fd, write_fd, pacing=self._pacing)
        self.serializer.on_idle = self._on_idle
        self.state.begin("a component that has not started", {})
        self._connected = True
        return True

    def read_handshake(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """As pystorm's; also finds the node's swap area, beside the supervisor's other local files."""
        if not self._connect():
            return super().read_handshake()
        handshake = self.serializer.handshake()
        pid_dir = Path(handshake["pidDir"])
        (pid_dir / str(self.pid)).touch()
        self.serializer.answer(handshake, self.pid)
        self._open_output()
        if not isinstance(self.serializer.form, BinaryForm):
            log.warning("no frames, as topology.multilang.serializer is another: derive from leeward.runtime.Topology")
        self._swap = Path(handshake["conf"].get(SWAP_DIR.name) or pid_dir.parents[2] / "leeward-swap")
        return handshake["conf"], handshake["context"]

    def _setup_component(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        before = set(vars(self))
        super()._setup_component(conf, context)
        if not self._connected:
            return
        sys.setswitchinterval(self._pacing.switch_s)
        _interrupt_nobody()
        self._node = conf.get("storm.local.hostname") or os.uname().nodename
        components = {int(task): name for task, name in context["task->component"].items()}
        sources = {
            name for name, streams in context.get("source->stream->grouping", {}).items() if MARKER_STREAM in streams
        }
        self._downstream = sorted(context.get("stream->target->grouping", {}).get(MARKER_STREAM) or ())
        self._group_load = GroupLoad() if self.kind == "stateful" else None
        self._protocol = TaskProtocol(
            self.task_id,
            [task for task, name in components.items() if name in sources],
            component=self.component_name,
            group_of=itemgetter(0) if self.kind == "stateful" else None,
        )
        self._protocol.practice(self._pacing.practice)
        self._direct = direct(conf)
        secrets = secrets_of(conf)
        owner = f"task {self.task_id} of {self.component_name}"
        courier = self._make_courier(
            redis_url(conf), conf["storm.id"], self.task_id, owner, self._post, self._node if self._direct else "",
            lambda: self._link.look(), secrets, self._pacing,
        )  # fmt: skip
        self._distance = self._make_distance(courier.addresses, self.task_id, self._node, self._pacing)
        courier.answer = self._distance.answer
        self._server = Server(service_time(conf))
        self._user = UserCode(self, self._protocol, self._server.rest)
        self._task = Task(_Shell(self), self._user, self._protocol, courier, pacing=self._pacing, in_turn=self._in_turn)
        self._handovers = self._task.handovers
        paths = Paths(conf.get(ZOOKEEPER_ROOT.name) or "/leeward", conf["storm.id"])
        store = TaskStore(
            redis_url(conf), conf["storm.id"], self.component_name, self.task_id,
            node=self._node, swap=self._swap, secrets=secrets, scattered=scattered_of(conf, self._node, secrets),
        )  # fmt: skip
        self._clock_ahead: Callable[[], float | None] = lambda: store.ahead_s
        self._transfers = store.transfers
        self._link = self._make_link(
            zookeeper=zookeeper(conf),
            secrets=secrets,
            paths=paths,
            store=store,
            task=self.task_id,
            post=self._post,
            on_record=self._on_record,
            default=ControlRecord(tables=first_tables(components, conf.get(REPLICAS.name))),
            metrics=self._metrics,
            hurry=lambda: self._task.hurries,
            leisure=self._until_told,
            pacing=self._pacing,
        )
        self._task.link = self._link
        self._worker_stopped = Stopped(os.getppid())
        self._beat = self._make_beat(
            redis_url(conf), conf["storm.id"], self.task_id, self._worker_silence, secrets=secrets, pacing=self._pacing
        )
        self._routes = routes_of(self, conf, self._downstream, self._node if self._direct else "")
        self._before_start()
        self._ours |= {*vars(self)} - before | {"_ours", "_swap"}
        self._user.watch(Outside(self, self._ours) if self.kind != "stateless" else None)
        self._start_threads(conf)
        if self.kind == "stateful":
            self._link.soon(lambda: courier.warm(self._link.soon))
        _give_back()

    def _start_threads(self, conf: dict[str, Any]) -> None:
        """All parts are there. The beat begins at the first record."""
        self._link.start()
        if self._direct:
            self._distance.start()
        if self._routes is not None:
            self._routes.start()
        if not conf.get(SWAP_DIR.name):  # else it may be shared with tasks of another cluster
            self._link.soon(lambda: self._drop_swaps(conf), self._pacing.after_s)

    def _before_start(self) -> None:
        """All parts are there; no other thread runs yet."""

    def _drop_swaps(self, conf: dict[str, Any]) -> None:
        storms = f"{(conf.get('storm.zookeeper.root') or '/storm').rstrip('/')}/storms"
        drop_gone(self._swap, conf["storm.id"], lambda name: self._link.exists(f"{storms}/{name}"), time.time())

    def _run_workerless(self) -> None:
        """One turn of pystorm's loop."""
        if not self._begun:
            self._begun = True
            self.resumed()
        self._workerless_turn()

    def _workerless_turn(self) -> None:
        raise NotImplementedError  # bolts and spouts have pystorm's own

    def _state_replaced(self) -> None:
        """The state is another one: bolts forget input that comes again."""

    # --- the task's own thread ---

    def _post(self, work: Callable[[], None]) -> None:
        """Queue work for the task's own thread; callable from any thread."""
        self._inbox.append(work)
        self.serializer.wake()

    def _on_record(self, record: ControlRecord, first: bool) -> None:
        """The link sends in order: no beat precedes the request for a reset that the first record may lead to."""
        try:
            self._task.on_record(record, first)
        finally:
            if not self._beat.begun:
                self._link.soon(self._beat.start)

    def _on_idle(self) -> None:
        while self._inbox:
            self._inbox.popleft()()
        now = time.monotonic()
        if now >= self._timer_due:
            self._timer_due = now + self._pacing.timer_s
            self._carry_out(self._protocol.on_timer())
        if self._handovers.copying:
            self._handovers.step()

    def _attend(self) -> None:
        """Between two messages: work posted by other threads or due by the clock."""
        if self._inbox or (self._protocol.timed and time.monotonic() >= self._timer_due):
            self._on_idle()
        elif self._handovers.copying:
            self._handovers.step()

    def _until_told(self) -> float:
        """Delay in seconds before re-reading the record. Owners may have to copy ahead: 0. A donor's connection
        prompts a receiver; where tasks do not reach each other it reads soon. The others take part through markers
        alone: they read when a handover is likely to be over.
        """
        if self.kind == "stateful":
            if self.state.groups:
                return 0.0
            if not self._direct:
                return self._task.turn_s / 2
        return self._pacing.after_s + self._task.turn_s

    def _carry_out(self, instructions: Iterable[Instruction]) -> None:
        self._task.carry_out(instructions)

    def _in_turn(self, instructions: Iterable[Instruction]) -> Iterable[Instruction]:
        """As they are to be carried out; bolts with a queue order the tuples among them."""
        return instructions

    def _changing(self) -> None:
        """The protocol has decided something: bolts forget which channels were clear."""
        self._user.changing()

    def _changed(self) -> None:
        """It is carried out: bolts see to what had to wait."""
        self._user.changed()

    def _send(self, instruction: Send) -> None:
        marker = instruction.marker
        if self._downstream:
            tables = ""
            if instruction.tables is not None:
                tables = tables_text({name: instruction.tables[name] for name in self._downstream})
            body = json.dumps(marker.body, separators=(",", ":"))
            self._emit_marker([str(marker.kind), marker.number, tables, "", body])
            if self._routes is not None and instruction.tables is not None:
                self._routes.follow(instruction.tables)

    def _deliver(self, instruction: Deliver) -> None:
        raise NotImplementedError  # spouts have no input; bolts define it

    def _durable(self, cut: int, state: Entries | None) -> None:
        self.committed(cut)

    def _deliver_pulse(self, instruction: DeliverPulse) -> None:
        data: dict[str, Any] = {}
        for body in instruction.bodies:
            data |= body
        more = self.pulse(Pulse(instruction.number, dict(data)))
        self._send(Send(Marker(kind=Kind.PULSE, number=instruction.number, body=data | (more or {}))))

    def _worker_silence(self) -> float:
        """Seconds since the worker sent a message, as far as one is due; for a source: that it has been stopped."""
        if self.kind == "source":
            return self._worker_stopped()
        since = self.serializer.waits_since
        return 0.0 if since is None else time.monotonic() - since

    def _exit(self, status_code: int) -> None:
        """As pystorm's, but what explains the exit reaches Storm first, and the service learns of it."""
        if hasattr(self, "_beat"):
            self._beat.farewell()
        with contextlib.suppress(StormWentAwayError):
            self.serializer.flush()
        super()._exit(status_code)

    # --- measurements ---

    @property
    def _in(self) -> Counter[str]:
        """Data tuples that came, by upstream component."""
        return Counter()

    @property
    def _read_ahead(self) -> int:
        """Data tuples that wait for their turn in a bolt's queue."""
        return 0

    def _metrics(self) -> str:
        load, outside, unused = self._group_load, self._user.outside(self._meter.tuples), False
        if self.kind != "stateless" and self._meter.tuples and not self.state:
            unused = not uses_state(type(self))
        more = {
            "task": self.task_id,
            "node": self._node,
            "epoch": self._protocol.record.epoch if self._protocol.record else -1,
            "state_keys": len(self.state),
            "counters": dict(self.counters),
        } | ({"weights": self._routes.weights()} if self._routes is not None else {})
        return TaskMetrics(
            component=self.component_name,
            mode=str(self._protocol.mode),
            pid=self.pid,
            t=self._wall_offset_s + time.monotonic(),
            received=dict(self._in),
            sent=dict(self._out),
            dropped=self._dropped,
            processed=self._meter.tuples,
            busy_s=self._meter.busy_s,
            sojourns=self._meter.sojourns.tuples,
            sojourn_s=self._meter.sojourns.seconds,
            buffered=self._protocol.buffered + self._read_ahead,
            groups=dict(load.tuples) if load else {},
            looked_at=load.looked_at if load else 0,
            resident_bytes=resident_bytes(),
            state_bytes=self._task.state_bytes,
            **self._transfers.figures(),
            reads=self.reads,
            writes=self.writes,
            outside=outside,
            state_unused=unused,
            ahead_s=self._clock_ahead(),
            place=self._distance.place,
            trips=self._distance.trips(),
            view=self.shown,
            more=more,
        ).to_line()

    # --- hooks of the user ---

    def resumed(self) -> None:
        """Called after self.state was loaded or re-loaded."""

    def regrouped(self, gained: tuple[int, ...], lost: tuple[int, ...]) -> None:
        """Called after a handover added key groups to self.state, or took some away."""
        self.resumed()

    def pulse(self, pulse: Pulse) -> dict[str, Any] | None:
        """Called when the pulse is in from all replicas upstream, of replicas only: warm tasks get no pulses."""

    def before_checkpoint(self, cut: int) -> None:
        """Called when the state of this moment is about to become part of a cut: flush what is buffered, or begin to
        make it final under this number. Tuples emitted here belong to the cut.
        """

    def committed(self, cut: Any) -> None:
        """Called when no restore goes back behind a cut any more (a spout: with its state as of that cut)."""

    @property
    def fencing_token(self) -> FencingToken:
        """The fencing token of a sink; see `leeward.runtime.state.fencing`."""
        return self._task.fencing_token if hasattr(self, "_task") else FencingToken(0, 0)


class _Shell:
    """`runtime.ports.Shell` of a component. An object of its own, so that its methods meet no names of the user's."""

    def __init__(self, component: Elastic) -> None:
        self.state, self._pipe = component.state, component.serializer
        self.kind, self.task_id, self.component_name = component.kind, component.task_id, component.component_name
        self.post, self.send = component._post, component._send
        self.changing, self.changed = component._changing, component._changed

    def pace(self, seconds: float | None) -> None:
        self._pipe.timer_s = self._pipe.pacing.idle_s if seconds is None else seconds


def _interrupt_nobody() -> None:
    """Where processors are scarce, a task that gets input waits for its turn, and then has more of it to work on."""
    with contextlib.suppress(OSError, AttributeError):  # Linux has this policy
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def _give_back() -> None:
    """Return the memory that imports left behind to the system, a tenth of a task's (glibc has a call for it)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


if _BY_STREAMPARSE:
    # Output of the user's module while it is imported is not for Storm. A stock component in it has the stream itself
    # from the default of its constructor.
    sys.stdout = sys.stderr
