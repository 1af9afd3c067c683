"""Base classes of elastic components: streamparse's, with the task protocol between Storm and the user's code.

A component derives from one of three:
  ElasticBolt    stateless; its replicas take turns (`balanced()`)
  StatefulBolt   keeps `self.state` by the key that its input is routed by (`keyed("field")`)
  StatefulSpout  keeps `self.state` (offsets, say) and may send pulses

User code may define, besides streamparse's methods:
  resumed()          after `self.state` was loaded or re-loaded: rebuild whatever is derived from it
  regrouped(g, l)    after a handover brought the key groups g into `self.state` or took the groups l away; unless it
                     is defined, resumed() is called
  pulse(pulse)       the pulse is in from all upstream tasks; may emit; may return a dict to add to what travels on
  committed(state)   (spout) a cut is durable; `state` is a copy of self.state as of the oldest cut still kept:
                     input before it will not be asked for again

Look a list or dict in `self.state` up each time before you change it; do not keep it from one tuple to the next:
checkpoints and handovers copy state while work goes on.
"""

from __future__ import annotations

import json
import time
from typing import Any

from streamparse import Bolt, Spout

from leeward.core.errors import ConfigError
from leeward.core.instructions import Deliver, Kind, Marker, Send
from leeward.runtime.dsl import KIND, MARKER_STREAM, RoutedBoltSpec, with_marker_inputs, with_marker_output
from leeward.runtime.elastic import Elastic, Pulse

__all__ = ["ElasticBolt", "Pulse", "StatefulBolt", "StatefulSpout"]

#: A paused spout lets Storm ask this often. # seconds
_IDLE_S = 0.005


class ElasticBolt(Elastic, Bolt):
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
        spec.__class__ = RoutedBoltSpec
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
            if self._handovers.epoch:
                self._handovers.look()

    def _deliver(self, instruction: Deliver) -> None:
        start = time.perf_counter()
        if self._server.seconds:
            if self.serializer.waited:
                self._server.rest()
            self.serializer.waited = False
            time.sleep(max(0.0, self._server.serve(start) - start))
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


class StatefulSpout(Elastic, Spout):
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
        if not self._protocol.open or self._server.busy_for(start):
            time.sleep(_IDLE_S if not self._protocol.open else min(_IDLE_S, self._server.busy_for(start)))
            return
        sent = self._out.total() - self._out[MARKER_STREAM]
        self.next_tuple()
        sent = self._out.total() - self._out[MARKER_STREAM] - sent
        if not sent:
            self._server.rest()
            return
        self._server.serve(start, sent)
        self._busy_s += sent * self._server.seconds or time.perf_counter() - start
        self._processed += sent


def _marker(values: Any, task: int) -> Marker:
    kind, number, _tables, counts, body = values
    sent = None
    for entry in counts.split(",") if counts else ():
        receiver, _, count = entry.partition(":")
        if int(receiver) == task:
            sent = int(count)
    return Marker(kind=Kind(kind), number=number, sent=sent, body=json.loads(body))
