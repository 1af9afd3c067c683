"""Emits and acknowledgements of elastic components: streamparse's methods, on the short way to the pipe.

Without ackers (`topology.acker.executors: 0`) Storm ignores anchors, acks and fails, so none are sent: the pipe only
reports how many tuples were taken. With ackers they mean what they mean in streamparse.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from pystorm.component import Tuple

from leeward.core.errors import LeewardError
from leeward.runtime.dsl.specs import MARKER_STREAM
from leeward.runtime.pipe.forms import UnfitError
from leeward.runtime.pipe.host import BoltHost, Host
from leeward.runtime.pipe.pipe import PipeSerializer

_LARGE_BYTES = 32 * 1024


class Slot:
    """A stream on which the task emits."""

    __slots__ = ("count", "counted", "data", "number")

    def __init__(self, number: int, *, data: bool, counted: bool) -> None:
        self.number = number  #: in the pipe's form
        self.data = data  #: it is not the markers'
        self.counted = counted  #: each tuple is; those of the first stream are all that the pipe has less all others
        self.count = 0  #: tuples emitted; on the first stream, when `_out` was last asked


class Output(Host):
    """Mixed in before streamparse's classes."""

    serializer: PipeSerializer
    counters: Counter[str]
    _slots: dict[str | None, Slot]
    _dropped = 0  # tuples that it emitted while it was no replica

    def _open_output(self) -> None:
        """Call it once the handshake is over."""
        self._slots = {}
        self._opening = threading.Lock()

    @property
    def _out(self) -> Counter[str]:
        """Tuples emitted, by stream; any thread may ask, and gets no less than the last time."""
        emitted = self.serializer.emitted()  # at first: a tuple of another stream is counted before it is queued
        with self._opening:  # while a stream opens, the table grows
            slots = {name: slot for name, slot in self._slots.items() if name is not None}
        others = sum(slot.count for slot in slots.values() if slot.data and slot.counted)
        for slot in slots.values():
            if not slot.counted:
                slot.count = max(slot.count, emitted - others)
        return Counter({name: slot.count for name, slot in slots.items()})

    def _slot(self, stream: str | None) -> Slot:
        name = "default" if stream is None else stream
        with self._opening:
            slot = self._slots.get(name)
            if slot is None:
                number, definition = self.serializer.form.stream(name)
                if definition:
                    self.serializer.put_other(definition)
                data = name != MARKER_STREAM
                first = data and all(other.counted for other in self._slots.values())
                slot = self._slots[name] = Slot(number, data=data, counted=not first)
            self._slots[stream] = slot
        return slot

    def _emit_plainly(self, tup: list[Any], slot: Slot) -> None:
        """The short way, for almost every tuple."""
        pipe = self.serializer
        try:
            data = pipe.form.emission(slot.number, tup)
        except UnfitError as error:
            self._report_unfit(error, slot)
            return
        if slot.counted:
            slot.count += 1
        pipe.put(data)
        if len(pipe.out) > pipe.pacing.many or len(data) > _LARGE_BYTES:
            pipe.flush()

    def _emit(
        self, tup: Any, stream: str | None, anchors: Iterable[Any], tup_id: Any, task: int | None, need_task_ids: bool
    ) -> list[int] | None:
        slot = self._slots.get(stream) or self._slot(stream)
        pipe = self.serializer
        try:
            data = pipe.form.full_emission(
                slot.number, _values(tup), list(anchors), tup_id, task or 0, need_task_ids and task is None
            )
        except UnfitError as error:
            self._report_unfit(error, slot)
            return [] if need_task_ids else None
        if slot.counted:
            slot.count += 1
        (pipe.put if slot.data else pipe.put_other)(data)
        if not need_task_ids:
            return None
        return pipe.task_ids() if task is None else [task]

    def _drop_emits(self, drop: bool) -> None:
        """Drop all emits but markers, while the task is no replica; or send them again.

        User code may have kept `self.emit`, so that stays, and the methods behind it change.
        """
        mine = vars(self)
        if drop and "_emit" not in mine:
            mine["_emit_plainly"] = lambda tup, slot: self._drop()
            mine["_emit"] = lambda tup, stream, anchors, tup_id, task, need_task_ids: self._drop(need_task_ids)
        elif not drop and "_emit" in mine:
            del mine["_emit_plainly"], mine["_emit"]

    def _drop(self, need_task_ids: bool = False) -> list[int] | None:
        if not self._dropped:
            self.logger.warning(
                "%s (task %s) is no replica: its emits are dropped, and counted", self.component_name, self.task_id
            )
        self._dropped += 1
        return [] if need_task_ids else None

    def _emit_marker(self, values: list[Any]) -> None:
        """To every task downstream, also from a warm task."""
        slot = self._slots.get(MARKER_STREAM) or self._slot(MARKER_STREAM)
        slot.count += 1
        self.serializer.put_other(self.serializer.form.emission(slot.number, values))

    def _report_unfit(self, error: LeewardError, slot: Slot) -> None:
        """Report the tuple in Storm's UI and log, and go on."""
        stream = next(name for name, other in list(self._slots.items()) if other is slot and name is not None)
        self.counters["unfit"] += 1
        text = f"{self.component_name} (task {self.task_id}), stream {stream!r}: {error}"
        self.serializer.send_message({"command": "error", "msg": f"A tuple was not sent: {text}"})
        self.logger.error("a tuple was not sent: %s", text)


class BoltOutput(Output, BoltHost):
    """Emits as streamparse's Bolt."""

    def emit(
        self,
        tup: Any,
        stream: str | None = None,
        anchors: Sequence[Any] | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """As streamparse's. A tuple with a value that cannot travel is reported to Storm, and dropped."""
        pipe = self.serializer
        if direct_task is None and not need_task_ids and not pipe.form.ids and tup.__class__ is list:
            self._emit_plainly(tup, self._slots.get(stream) or self._slot(stream))
            return None
        if not pipe.form.ids:
            anchors = ()
        elif anchors is None:
            anchors = [a.id for a in self._current_tups] if self.auto_anchor else ()
        else:
            anchors = [a.id if isinstance(a, Tuple) else a for a in anchors]
        return self._emit(tup, stream, anchors, None, direct_task, need_task_ids)

    def _emit_marker(self, values: list[Any]) -> None:
        anchors = [a.id for a in self._current_tups] if self.auto_anchor and self.serializer.form.ids else []
        Output._emit(self, values, MARKER_STREAM, anchors, None, None, False)

    def ack(self, tup: Any) -> None:
        """As streamparse's; without ackers there is nothing to do."""
        if self.serializer.form.ids:
            super().ack(tup)

    def fail(self, tup: Any) -> None:
        """As streamparse's; without ackers there is nothing to do."""
        if self.serializer.form.ids:
            super().fail(tup)


class SpoutOutput(Output):
    """Emits as streamparse's Spout."""

    def emit(
        self,
        tup: Any,
        tup_id: Any = None,
        stream: str | None = None,
        direct_task: int | None = None,
        need_task_ids: bool = False,
    ) -> list[int] | None:
        """As streamparse's. A tuple with a value that cannot travel is reported to Storm, and dropped."""
        if tup_id is None and direct_task is None and not need_task_ids and tup.__class__ is list:
            self._emit_plainly(tup, self._slots.get(stream) or self._slot(stream))
            return None
        return self._emit(tup, stream, (), tup_id, direct_task, need_task_ids)


def _values(tup: Any) -> list[Any]:
    if not isinstance(tup, (list, tuple)):
        raise TypeError(f"All Tuples must be either lists or tuples, received {type(tup)!r} instead.")
    return list(tup)
