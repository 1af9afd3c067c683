"""A component without a worker, as users' unit tests make it: pystorm's own loop and messages, on streams in memory.

It owns all key groups, and knows neither ZooKeeper nor Redis nor markers. Until a worker's handshake is about to be
read every component is one.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from typing import Any

from pystorm.serializers.json_serializer import JSONSerializer

from leeward.runtime.pacing import Pacing
from leeward.runtime.pipe.forms import JsonForm


def descriptor(stream: Any) -> int | None:
    """The file descriptor of a stream; None if it has none, as in memory."""
    try:
        number: int = stream.fileno()
    except (AttributeError, OSError, ValueError):
        return None
    return number


def in_memory(stream: Any) -> Any:
    """The stream, if it is in memory. Another one must not go to pystorm, which would close it."""
    return io.BytesIO() if stream is None or descriptor(stream) is not None else stream


class WorkerlessPipe(JSONSerializer):  # type: ignore[misc]  # pystorm has no types
    """pystorm's serializer, with the part of `PipeSerializer` that emits use. Nothing waits to be sent."""

    def __init__(
        self, input_stream: Any, output_stream: Any, *,
        send: Callable[[dict[str, Any]], None], read_task_ids: Callable[[], list[int]], is_spout: bool,
        pacing: Pacing = Pacing(),
    ) -> None:  # fmt: skip
        """`send` and `read_task_ids` are looked up at the component each time: a test may replace them."""
        super().__init__(input_stream, output_stream, threading.RLock(), threading.RLock())
        self.task_ids, self.pacing = read_task_ids, pacing
        self.form = _Messages(send, is_spout=is_spout)
        self.out: tuple[bytes, ...] = ()
        self._emitted = 0

    def put(self, _sent: bytes) -> None:
        """It has been sent."""
        self._emitted += 1

    def put_other(self, _sent: bytes) -> None:
        """It has been sent."""

    def emitted(self) -> int:
        """Data tuples so far, on all streams."""
        return self._emitted

    def flush(self) -> None:
        """It has been sent."""


class _Messages(JsonForm):
    """Storm's JSON, but each emit becomes pystorm's message, which a test may look at."""

    def __init__(self, send: Callable[[dict[str, Any]], None], *, is_spout: bool) -> None:
        super().__init__()
        self._send, self._is_spout = send, is_spout

    def full_emission(
        self, stream: int, values: list[Any], anchors: list[Any], tup_id: Any, task: int, need_task_ids: bool
    ) -> bytes:
        given = {
            "anchors": None if self._is_spout else anchors,
            "id": tup_id,
            "stream": None if self._streams[stream] == "default" else self._streams[stream],
            "task": task or None,
            "need_task_ids": None if need_task_ids else False,
        }
        more = {key: value for key, value in given.items() if value is not None}
        self._send({"command": "emit", "tuple": values} | more)
        return b""
