"""The pipe to Storm's worker: multilang JSON, read in large pieces, written in batches, and wakeable by other threads.

Differences from pystorm's JSON serializer, on the same wire format:
- file descriptor 1 is taken away from user code at once, so that a print() cannot reach the protocol stream;
- output collects until the input is drained (or 64 KiB) instead of two flushes for each message;
- `wake()` from any thread interrupts a read that waits, so that a paused task resumes at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import threading
from collections import deque
from collections.abc import Callable

from pystorm.exceptions import StormWentAwayError

from leeward.core.errors import LeewardError

_END = b"\nend\n"
_FLUSH_BYTES = 64 * 1024
_READ_BYTES = 256 * 1024
_ENCODE = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode

_protocol_fd: int | None = None


def protect_stdout() -> int:
    """Move the protocol stream to a private descriptor; from now on standard output goes to standard error."""
    global _protocol_fd
    if _protocol_fd is None:
        sys.stdout.flush()
        _protocol_fd = os.dup(1)
        os.dup2(2, 1)
    return _protocol_fd


class PipeSerializer:
    """Stands in for pystorm's JSONSerializer.

    `on_idle` is called in the reading thread whenever the task is woken or `timer_s` have passed without input.
    """

    TIMER_S = 0.25  #: usual `timer_s`
    output_stream = None  #: pystorm compares it with sys.stdout, to redirect that; protect_stdout has done so

    def __init__(self, read_fd: int, write_fd: int, *, timer_s: float = TIMER_S) -> None:
        self.on_idle: Callable[[], None] = lambda: None
        self.timer_s = timer_s
        self._read_fd, self._write_fd = read_fd, write_fd
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self.waited = True  #: no input was there when it was asked for; whoever cares sets it back
        self._rest = b""
        self._messages: deque[bytes] = deque()
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._lock = threading.Lock()

    def wake(self) -> None:
        """Make the reading thread call `on_idle` soon; callable from any thread."""
        with contextlib.suppress(BlockingIOError):  # full: it is awake already
            os.write(self._wake_write, b"!")

    def read_message(self) -> object:
        """The next message; raises StormWentAwayError at the end of input."""
        while not self._messages:
            self.flush()
            ready, _, _ = select.select([self._read_fd, self._wake_read], [], [], 0)
            if not ready:
                self.waited = True
                ready, _, _ = select.select([self._read_fd, self._wake_read], [], [], self.timer_s)
            if self._wake_read in ready:
                os.read(self._wake_read, 4096)
            if self._read_fd in ready:
                self._fill()
            if not ready or self._wake_read in ready:
                self.on_idle()
        return json.loads(self._messages.popleft())

    def _fill(self) -> None:
        piece = os.read(self._read_fd, _READ_BYTES)
        if not piece:
            raise StormWentAwayError()
        *messages, self._rest = (self._rest + piece).split(_END)
        self._messages.extend(messages)

    def send_message(self, message: dict) -> None:
        """Queue a message; it leaves when the input is drained. Raises LeewardError for what JSON cannot carry."""
        try:
            data = _ENCODE(message).encode() + _END
        except (TypeError, ValueError) as error:
            raise LeewardError(
                f"message {message!r:.200} cannot travel: {error}.",
                remedy="Emit None, bool, int, float, str, list and dict only.",
            ) from None
        with self._lock:
            self._out.append(data)
            self._out_bytes += len(data)
            full = self._out_bytes > _FLUSH_BYTES
        if full:
            self.flush()

    def flush(self) -> None:
        """Write everything that is queued."""
        with self._lock:
            if not self._out:
                return
            view = memoryview(b"".join(self._out))
            self._out.clear()
            self._out_bytes = 0
            try:
                while view:
                    view = view[os.write(self._write_fd, view) :]
            except OSError:
                raise StormWentAwayError() from None
