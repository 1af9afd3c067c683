"""Base classes of elastic components: streamparse's, with the task protocol between Storm and the user's code.

A component derives from one of three:
  ElasticBolt    stateless; its replicas take turns (`balanced()`)
  StatefulBolt   keeps `self.state` by the key that its input is routed by (`keyed("field")`)
  StatefulSpout  keeps `self.state` (offsets, say) and may send pulses

User code may define, besides streamparse's methods:
  resumed()          after `self.state` was loaded or re-loaded: rebuild everything derived from it
  regrouped(g, l)    after a handover brought the key groups g into `self.state` or took the groups l away; unless it
                     is defined, resumed() is called
  pulse(pulse)       (of replicas) the pulse is in from all replicas upstream; may emit; may return a dict to add to
                     what travels on
  before_checkpoint(n)  the state of this moment is about to become part of cut n: flush, or prepare output under n
  committed(...)     no restore goes back behind a cut any more. A spout gets a copy of self.state as of the cut: input
                     before it will not be asked for again. A bolt gets the cut's number: output prepared under it or
                     under a lower number can be made final

A warm task gets no call but `initialize`. Tuples that it emits nevertheless are dropped, and counted in its metrics. A
task that becomes a replica gets `activate` and `resumed` first; one that was a replica still gets `before_checkpoint`
and `committed`, as output of its last cuts may wait for them.

A sink writes under `self.fencing_token` (base, epoch): a store that compares it refuses what a process writes that was
replaced and does not know it yet.

State is kept in `self.state` alone. Attributes beside it that tuples change stay behind when key groups move, unless a
hook rebuilds them; a task notices them, and a reconfiguration that would move them is refused. The class attribute
`transient` names those that may be lost, as a cache; `transient = ()` says that a component without state has none.

`queue = ordered_by(...)` in the class of a bolt, or `spec(queue=...)`, orders the tuples that wait in front of it;
docs/protocol.md says what may overtake what. Without a worker it has no effect.

Look a list or dict in `self.state` up each time before you change it; do not keep it from one tuple to the next:
checkpoints and handovers copy state while work goes on.
"""

from __future__ import annotations

import copy
import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from streamparse import Bolt, Spout

from leeward.core.errors import NotOwnedError
from leeward.core.instructions import Deliver, DeliverPulse, Instruction, Kind, Marker, Send
from leeward.core.topology_conf import QUEUE, ROUTER
from leeward.runtime.dsl.inputs import Receiver, most_replicas, with_marker_inputs
from leeward.runtime.dsl.queues import Ordering, discipline_of, queue_conf
from leeward.runtime.dsl.routers import Routing, router_conf
from leeward.runtime.dsl.specs import (
    BOLT_CLASS,
    KIND,
    MARKER_STREAM,
    SPOUT_CLASS,
    ElasticBoltSpec,
    ElasticSpoutSpec,
    Piped,
    command_of,
    with_marker_output,
)
from leeward.runtime.pipe.forms import BinaryForm
from leeward.runtime.pipe.loop import Loop
from leeward.runtime.pipe.ordered_loop import OrderedLoop
from leeward.runtime.pipe.output import BoltOutput, SpoutOutput
from leeward.runtime.pipe.waiting import Queue, Waiting, line_of
from leeward.runtime.routing.returns import Answers, Recent
from leeward.runtime.routing.routes import SAMPLE
from leeward.runtime.state.keyed import NO_GROUP, Entries
from leeward.runtime.task.elastic import Elastic, Pulse
from leeward.runtime.task.mixins import (
    CUTS,
    forget_batches,
    is_batching,
    process_batches,
    refuse_mixins,
    refuse_queue,
    run_workerless,
)

__all__ = ["ElasticBolt", "Pulse", "StatefulBolt", "StatefulSpout"]


class ElasticBolt(BoltOutput, Elastic, Bolt):  # type: ignore[misc]  # streamparse has no types
    """A stateless bolt whose replicas come and go; write it exactly like a streamparse Bolt."""

    _batching = False  # pystorm's BatchingBolt is among its classes

    def __init_subclass__(cls, **options: Any) -> None:
        """Raises ConfigError for mixins that would break a promise."""
        super().__init_subclass__(**options)
        refuse_mixins(cls)
        cls._batching = is_batching(cls)
        if cls._batching:
            cls._run = ElasticBolt._run  # type: ignore[method-assign]  # the mixin has one, and may stand first

    @classmethod
    def spec(
        cls, name: str | None = None, inputs: Any = None, par: int | None = None,
        config: dict[str, Any] | None = None, queue: Ordering | None = None, router: Routing | None = None,
    ) -> Any:  # fmt: skip
        """As streamparse's `Bolt.spec`; `par` is the number of tasks, the most replicas there can be. `queue`: from
        `ordered_by`, and `router`: from `routed_by`, instead of the class's own.

        Adds the marker stream to outputs and inputs. Raises ConfigError for inputs that no table can route, and for a
        queue or a router that cannot be.
        """
        conf, par, stateful = {**(cls.config or {}), **(config or {})}, par or cls.par, cls.kind == "stateful"
        receiver = Receiver(name or cls.__name__, most_replicas(par, conf), stateful=stateful)
        routed = with_marker_inputs(receiver, inputs)
        ordering = queue_conf(cls, receiver, inputs, routed, queue)
        if ordering and cls._batching:
            refuse_queue(cls)
        routing = router_conf(cls, receiver, routed, router)
        parts = {KIND: cls.kind, QUEUE.name: ordering, ROUTER.name: routing}
        spec = ElasticBoltSpec(
            cls,
            name=name,
            inputs=routed,
            par=par,
            config=conf | {name: part for name, part in parts.items() if part},
            outputs=with_marker_output(receiver.name, cls.outputs),
            **command_of(cls),
        )
        spec.component_object = Piped(spec.component_object.shell, BOLT_CLASS)
        return spec

    _late_tick: Any = None  # one that came when the state was not all there

    def _before_start(self) -> None:
        stateful = self.kind == "stateful"
        conf = self.storm_conf.get(QUEUE.name)
        self._answers = self._make_answers()
        loop: Callable[..., Loop] = partial(OrderedLoop, queue=self._make_queue(conf), wall=time.time) if conf else Loop
        self._loop = loop(
            self.serializer, self._protocol, _LoopEnd(self), self._meter, inbox=self._inbox, copier=self._handovers,
            state=self.state if stateful else None, load=self._group_load, plain=not self._server.seconds,
        )  # fmt: skip

    def _make_queue(self, conf: Mapping[str, Any]) -> Queue:
        framed = isinstance(self.serializer.form, BinaryForm)
        meter, server = self._meter, self._server
        return Queue(
            discipline_of(conf, type(self), self.component_name),
            conf["facts"],
            component=self.component_name,
            most=conf["most"],
            line=line_of(stateful=self.kind == "stateful", keyed=conf["keyed"], told=framed),
            mean_s=lambda: server.seconds or meter.mean_s,
        )

    def _make_answers(self) -> Answers:
        """To senders with a router. Tuples that were read ahead are in front of the next one."""
        meter, server = self._meter, self._server
        recent = Recent(lambda: meter.tuples, lambda: meter.busy_s, time.monotonic)
        return Answers(
            self.task_id,
            service_s=lambda: (server.seconds or recent.mean_s()) * (1 + self._read_ahead),
            ahead_s=lambda: 0.0 if self._routes is None else self._routes.ahead_s(),
        )

    def _run(self) -> None:
        if not self._connected:
            self._run_workerless()
            return
        self._current_tups, self._loop.at = [], None  # of an exception that was let pass
        try:
            if self._task.interrupted:
                self._carry_out(())
            self._loop.run()
        except NotOwnedError as error:
            group = self.state.here
            if group == NO_GROUP or group in self.state.owned:
                self._at_fault()
                raise  # the user's code keeps its state by another key than the one that the input is routed by
            self._current_tups = []
            self._task.misrouted(f"a tuple of group {group} came to {error}")
        except BaseException:
            self._at_fault()
            raise

    def _at_fault(self) -> None:
        """Name the tuple that pystorm is to report, and to fail; none for work that no tuple has brought."""
        if not self._current_tups and self._loop.at is not None:
            self._current_tups = [self._loop.at]

    def _handle_run_exception(self, exc: Exception) -> None:
        if not self._current_tups:
            self.raise_exception(exc)
        super()._handle_run_exception(exc)

    def _workerless_turn(self) -> None:
        if self._batching:
            run_workerless(self)
        else:
            Bolt._run(self)

    def _control(self, tup: Any) -> None:
        """A tuple that is no data."""
        if tup.stream == MARKER_STREAM:
            if tup.values[0] != SAMPLE:
                self._carry_out(self._protocol.on_marker(tup.task, _marker(tup.values, self.task_id)))
            elif self._protocol.open and self._protocol.works:
                self._answers.answer(tup.values[1], tup.values[4])
            self.ack(tup)
        elif self.is_heartbeat(tup):
            self.send_message({"command": "sync"})
        elif self.is_tick(tup):
            if self._late_tick is not None and self._batching:
                self.ack(self._late_tick)  # several become one
            self._late_tick = tup
            self._tick()
            if not self._batching:
                self.ack(tup)

    def _tick(self) -> None:
        """Give the replica its tick, if the state is all there; a warm task gets none."""
        if self._late_tick is None or not self._protocol.open:
            return
        tick, self._late_tick = self._late_tick, None
        if self._protocol.works:
            self.process_tick(tick)  # of a batching bolt: acks it itself
            self._current_tups = []
        elif self._batching:
            self.ack(tick)

    def _changing(self) -> None:
        self._loop.changing()
        super()._changing()

    def _changed(self) -> None:
        self._tick()
        super()._changed()

    def _in_turn(self, instructions: Iterable[Instruction]) -> Iterable[Instruction]:
        return self._loop.in_turn(instructions)

    def _pass_on(self, tup: Any, group: int | None, waiting: Waiting | None = None) -> None:
        """A data tuple that may have to wait."""
        self._carry_out(self._protocol.on_tuple(tup.task, (group, tup if waiting is None else waiting)))
        if self._handovers.epoch:
            self._handovers.look()

    @property
    def _in(self) -> Counter[str]:
        return self._loop.received()

    @property
    def _read_ahead(self) -> int:
        return self._loop.waiting

    def _process(self, tup: Any) -> None:
        self._current_tups = [tup]
        self.process(tup)
        if self.auto_ack and not self._batching:
            self.ack(tup)
        self._current_tups = []

    def _send(self, instruction: Send) -> None:
        if self._batching and instruction.marker.kind in CUTS:
            process_batches(self)
        super()._send(instruction)

    def _deliver_pulse(self, instruction: DeliverPulse) -> None:
        if self._batching:
            process_batches(self)
        super()._deliver_pulse(instruction)

    def _state_replaced(self) -> None:
        if self._batching:
            forget_batches(self)

    def _deliver(self, instruction: Deliver) -> None:
        start = time.perf_counter()
        group, tup = instruction.item
        if isinstance(tup, Waiting):
            self._current_tups = [tup.tup]
            tup = tup.checked()
        if self._server.seconds:
            if self.serializer.waited:
                self._server.rest()
            self.serializer.waited = False
            self.serializer.flush_all()
            time.sleep(max(0.0, self._server.serve(start) - start))
            start = time.perf_counter()
        if self.kind == "stateful":
            self.state.here = NO_GROUP if group is None else group
        self._process(tup)
        self._meter.tuples += 1
        # the emulated server is busy for its time, whatever of it passed before the sleep, or was slept too long
        self._meter.busy_s += max(self._server.seconds, time.perf_counter() - start)


class _LoopEnd:
    """`runtime.pipe.loop.Bolt` of a component. An object of its own, as `_Shell`."""

    def __init__(self, bolt: ElasticBolt) -> None:
        self._bolt = bolt
        self.process_and_ack, self.control = bolt._process, bolt._control
        self.pass_on, self.attend = bolt._pass_on, bolt._attend

    @property
    def process(self) -> Any:
        return self._bolt.process

    def fields(self, component: str | None, stream: str) -> type | None:
        return self._bolt._source_tuple_types[component].get(stream)


class StatefulBolt(ElasticBolt):
    """A bolt whose `self.state` is a mapping by the key of its keyed input; the state moves with the key groups."""

    kind = "stateful"


class StatefulSpout(SpoutOutput, Elastic, Spout):  # type: ignore[misc]  # streamparse has no types
    """A spout whose `self.state` (offsets) belongs to the cuts. One of its tasks works; further ones are spares."""

    kind = "source"

    def __init_subclass__(cls, **options: Any) -> None:
        """Raises ConfigError for mixins that would break a promise."""
        super().__init_subclass__(**options)
        refuse_mixins(cls)

    _rest: Iterator[tuple[Any, Any]] | None = None  # of the input read last

    @classmethod
    def spec(cls, name: str | None = None, par: int | None = None, config: dict[str, Any] | None = None) -> Any:
        """As streamparse's `Spout.spec`. One task emits, for any `par`: its state has no key to split by. With
        `par=2` a spare takes over in about a second when the worker of the first is lost.
        """
        spec = ElasticSpoutSpec(
            cls,
            name=name,
            par=par or cls.par,
            config={**(cls.config or {}), **(config or {}), KIND: cls.kind},
            outputs=with_marker_output(name or cls.__name__, cls.outputs),
            **command_of(cls),
        )
        spec.component_object = Piped(spec.component_object.shell, SPOUT_CLASS)
        return spec

    def _durable(self, cut: int, state: Entries | None) -> None:
        if state is not None:  # a spare has none
            self.committed(copy.deepcopy(state))

    def emit_pulse(self, number: int, data: dict[str, Any] | None = None) -> None:
        """Cut the stream here. `number` must increase; `data` holds JSON values."""
        self._send(Send(Marker(kind=Kind.PULSE, number=number, body=data or {})))

    def _run(self) -> None:
        if not self._connected:
            self._run_workerless()
            return
        if self._task.interrupted:
            self._carry_out(())
        if self._rest is None:
            batch = self.serializer.batch()
            self._rest = zip(batch[::2], batch[1::2], strict=True)
        for name, tup_id in self._rest:
            self._attend()
            if name == "next":
                self._next()
            elif name in ("ack", "fail") and self._protocol.works:
                getattr(self, name)(tup_id)
            elif name in ("activate", "deactivate"):
                self._user.activation(name)
            # Storm sends nothing more before it has this, so it leaves as soon as there is no input
            self.serializer.put_other(self.serializer.form.message({"command": "sync"}), waits=True)
        self._rest = None

    def _workerless_turn(self) -> None:
        Spout._run(self)

    def _next(self) -> None:
        start = time.perf_counter()
        emits = self._protocol.open and self._protocol.works
        if not emits or self._server.busy_for(start):
            paused_s = self._pacing.paused_s
            time.sleep(paused_s if not emits else min(paused_s, self._server.busy_for(start)))
            return
        sent = self._next_tuples(start)
        if not sent:
            self._server.rest()
            return
        self._server.serve(start, sent)
        self._meter.busy_s += sent * self._server.seconds or time.perf_counter() - start
        self._meter.tuples += sent

    def _next_tuples(self, start: float) -> int:
        """Storm asks for one call. While they emit, more of them share its way; with ackers Storm counts them."""
        pipe = self.serializer
        before, until = pipe.emitted(), start + self._pacing.late_s
        self.next_tuple()
        total = pipe.emitted()
        if total == before or pipe.form.ids or self._server.seconds:
            return total - before
        pipe.flush()  # the next call may find nothing, and wait for it
        pipe.flush_in_background()
        last = before
        while total > last and not self._inbox and self._protocol.open and time.perf_counter() < until:
            self.next_tuple()
            last, total = total, pipe.emitted()
        return total - before


def _marker(values: Any, task: int) -> Marker:
    kind, number, _tables, counts, body = values
    sent = None
    for entry in counts.split(",") if counts else ():
        receiver, _, count = entry.partition(":")
        if int(receiver) == task:
            sent = int(count)
    return Marker(kind=Kind(kind), number=number, sent=sent, body=json.loads(body))
