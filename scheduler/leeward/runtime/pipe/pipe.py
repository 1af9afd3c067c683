"""The pipe to Storm's worker: read in large pieces, written in batches, and wakeable by other threads.

Differences from pystorm's serializers:
- binary frames, if the worker offers them in its handshake, else JSON (`forms`);
- file descriptor 1 is taken away from user code, so that nothing it writes can reach the protocol stream;
- output collects until the input is drained, or for a millisecond, instead of two flushes for each message;
- `wake()` from any thread interrupts a read that waits, so that a paused task resumes at once.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from pystorm.exceptions import StormWentAwayError

from leeward.runtime.pacing import Pacing
from leeward.runtime.pipe.forms import OFFER, TASK_IDS, VERSION, BinaryForm, Form, JsonForm

_READ_BYTES = 256 * 1024


def protect_stdin() -> int:
    """Move the protocol stream to a private descriptor: a program that the user's code starts would read it. Once."""
    protocol_fd = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return protocol_fd


def protect_stdout() -> int:
    """Move the protocol stream to a private descriptor; from now on standard output goes to standard error. Once."""
    protocol_fd = os.dup(1)
    os.dup2(2, 1)
    return protocol_fd


class PipeSerializer:
    """Stands in for pystorm's serializer.

    `on_idle` is called in the reading thread whenever the task is woken or `timer_s` have passed without input.
    Only the task's own thread may read; any thread may write.
    """

    output_stream = None  #: pystorm compares it with sys.stdout, to redirect that; protect_stdout has done so

    def __init__(self, read_fd: int, write_fd: int, *, pacing: Pacing = Pacing()) -> None:
        self.on_idle: Callable[[], None] = lambda: None
        self.pacing, self.timer_s = pacing, pacing.idle_s
        self.form: Form = JsonForm()
        self.taken = 0  #: tuples looked at and not yet reported to the worker
        self.waited = True  #: no input was there when it was asked for; the reader of this flag sets it back
        self.blocks = 0  #: number of times that no input was there when it was asked for
        self.flushed_at = 0.0  #: time.perf_counter() at which nothing was held back
        self.waits_since: float | None = None  #: time.monotonic() from when on input is waited for; None: it is not
        self._read_fd, self._write_fd = read_fd, write_fd
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(read_fd, False)
        os.set_blocking(self._wake_read, False)
        os.set_blocking(self._wake_write, False)
        self._poll, self._input = select.poll(), select.poll()
        for poll in (self._poll, self._input):
            poll.register(read_fd, select.POLLIN)
        self._poll.register(self._wake_read, select.POLLIN)
        self._pairs: deque[Any] = deque()  # read, but not asked for yet
        self.out: list[bytes] = []
        self.put: Callable[[bytes], None] = self.out.append  #: queue a data tuple of the form's making
        self._written, self._others = 0, 0  # messages taken from `out`; those queued that are no data tuple
        self._counting = threading.Lock()  # for `out` and both counts as of one moment; never held for a write
        self._lock = threading.Lock()
        self._late, self._told, self._lates, self._has_thread = threading.Event(), False, 0, False

    def wake(self) -> None:
        """Make the reading thread call `on_idle` soon; callable from any thread."""
        with contextlib.suppress(BlockingIOError):  # full: it is awake already
            os.write(self._wake_write, b"!")

    # --- input

    def handshake(self) -> dict[str, Any]:
        """Read Storm's handshake."""
        message: dict[str, Any]
        _, message, *rest = self.batch()
        self._pairs += rest
        return message

    def answer(self, handshake: dict[str, Any], pid: int) -> None:
        """Send Storm this process' id, and use from now on the best form that both know."""
        offer = handshake.get(OFFER) or {}
        reply = {"pid": pid}
        if offer.get("version") == VERSION:
            reply[OFFER] = VERSION
        self.put_other(self.form.message(reply))
        self.flush()
        if OFFER in reply:
            self.form = BinaryForm(ids=bool(offer["ids"]))

    def batch(self) -> list[Any]:
        """The next pairs of input, flat (see `forms`); waits for them. Raises StormWentAwayError at its end."""
        if self._pairs:
            pairs = list(self._pairs)
            self._pairs.clear()
            return pairs
        while True:
            piece = self._piece()
            if piece and (pairs := self.form.take(piece)):
                return pairs

    def at_hand(self) -> list[Any]:
        """The next pairs of input, flat, if they are there; does not wait. Raises StormWentAwayError at its end."""
        if self._pairs:
            return self.batch()
        piece = self._read()
        return self.form.take(piece) if piece else []

    def task_ids(self) -> list[int]:
        """The tasks that got the tuple just emitted; input that comes before stays for later.

        The user's code is in the middle of a tuple, and its state may not be whole: posted work waits, too.
        """
        while True:
            piece = self._piece(attends=False)
            pairs = self.form.take(piece) if piece else []
            tasks: list[int] | None = None
            for code, value in zip(pairs[::2], pairs[1::2], strict=True):
                if code == TASK_IDS:
                    tasks = value
                else:
                    self._pairs += (code, value)
            if tasks is not None:
                return tasks

    def _piece(self, *, attends: bool = True) -> bytes:
        """Some input; none if it was woken, or nothing has come for a while. `attends`: calls `on_idle` then."""
        self.flush_all()
        piece = self._read()
        if piece:
            return piece
        self.waited = True
        self.blocks += 1
        if self.waits_since is None:
            self.waits_since = time.monotonic()
        ready = (self._poll if attends else self._input).poll(self.timer_s * 1000)
        self.flushed_at = time.perf_counter()
        fds = [fd for fd, _ in ready]
        if self._wake_read in fds:
            os.read(self._wake_read, 4096)
            self.on_idle()  # before input is read, as an exception of what was posted would lose it
        elif attends and not fds:
            self.on_idle()
        return self._read() if self._read_fd in fds else piece

    def _read(self) -> bytes:
        """Input that is there. Raises StormWentAwayError at its end."""
        try:
            piece = os.read(self._read_fd, _READ_BYTES)
        except BlockingIOError:
            return b""
        self.waits_since = None
        if not piece:
            if self.form.unfinished:  # to the worker's log: Storm takes no more messages
                print(f"pipe: the worker went away after {self.form.unfinished}", file=sys.stderr)
            raise StormWentAwayError()
        return piece

    # --- output

    def send_message(self, message: dict[str, Any]) -> None:
        """Queue a message as pystorm makes it (no emit); it leaves when the input is drained, or within 1 ms."""
        self.put_other(self.form.message(message))

    def put_other(self, data: bytes, *, waits: bool = False) -> None:
        """Queue any other message. `waits`: it leaves when the input is drained, however long that takes."""
        with self._counting:
            self._others += 1
            (self.out.append if waits else self.put)(data)

    def emitted(self) -> int:
        """Data tuples queued so far, on all streams; any thread may ask. A difference: to emit one counts nothing."""
        with self._counting:
            return self._written + len(self.out) - self._others

    def flush_all(self) -> None:
        """For the task's own thread: flush, and report the tuples taken."""
        if self.taken:
            self.put_other(self.form.taken(self.taken))
            self.taken = 0
        self.flush()

    def flush(self) -> None:
        """Write everything that is queued."""
        out = self.out
        self.flushed_at = time.perf_counter()
        if not out:
            return
        with self._lock:
            count = len(out)  # other threads may append meanwhile
            if not count:
                return
            view = memoryview(self.form.batch(out[:count]))
            with self._counting:
                self._written += count
                del out[:count]
            try:
                while view:
                    view = view[os.write(self._write_fd, view) :]
            except OSError:
                raise StormWentAwayError() from None

    def late(self, tuples: int) -> None:
        """The last of so many tuples since output was flushed took long: user code, or another process had its turn.

        If tuples usually take long, output will no longer wait for them.
        """
        self._lates = self._lates + 1 if tuples <= 2 else 0
        if self._lates == self.pacing.long_tuples:
            self.flush_in_background()

    def flush_in_background(self) -> None:
        """From now on a thread flushes output in time, also while the task's own thread is busy."""
        if not self._has_thread:
            self._has_thread = True
            self.put = self._put_and_tell
            threading.Thread(target=self._flush_late_ones, name="late output", daemon=True).start()

    def _put_and_tell(self, data: bytes) -> None:
        self.out.append(data)
        if not self._told:
            self._told = True
            self._late.set()

    def _flush_late_ones(self) -> None:
        with contextlib.suppress(StormWentAwayError):  # the reading thread sees that as well
            while True:
                self._late.wait()
                self._late.clear()
                time.sleep(self.pacing.late_s)
                self._told = False
                self.flush()
