"""Workers as child processes: each carries out pieces of work that its parent hands it, several at a time.

A worker is forked before the parent's event loop begins, and again whenever it has died: its work is reported as failed
then.  Parent and worker speak JSON, one message a packet.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple

#: From the worker's number and a piece of work to a reading; None if there is none.
Work = Callable[[int, Any], Awaitable[float | None]]
#: Bytes of a message at most.
LARGEST = 1 << 16


class Done(NamedTuple):
    """The outcome of a piece of work."""

    seconds: float  #: within the worker
    value: float | None  #: None: it failed


class Executors:
    """`count` workers. Use it as `async with`, after it was made outside of any event loop."""

    def __init__(self, count: int, work: Work) -> None:
        self._work, self._number = work, 0
        self._open: list[dict[int, Callable[[Done], None]]] = [{} for _ in range(count)]
        self._workers = [self._fork(number) for number in range(count)]

    async def __aenter__(self) -> Executors:
        for number in range(len(self._workers)):
            self._listen(number)
        return self

    async def __aexit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for pid, end in self._workers:
            loop.remove_reader(end)
            end.close()
            _end(pid)

    def execute(self, number: int, work: Any, then: Callable[[Done], None]) -> None:
        """Hand a piece of work to a worker; `then` is called once, in the event loop."""
        self._number += 1
        self._open[number][self._number] = then
        try:
            self._workers[number][1].send(json.dumps([self._number, work]).encode())
        except OSError:  # it has just died, or takes nothing in: its reader learns the former
            del self._open[number][self._number]
            asyncio.get_running_loop().call_soon(then, Done(0.0, None))

    def _fork(self, number: int) -> tuple[int, socket.socket]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        gc.freeze()  # else the worker's collections would copy all pages
        pid = os.fork()
        if pid == 0:
            try:
                _close_others(theirs.fileno())
                _worker(number, theirs, self._work)
            finally:
                os._exit(0)
        theirs.close()
        ours.setblocking(False)
        return pid, ours

    def _listen(self, number: int) -> None:
        asyncio.get_running_loop().add_reader(self._workers[number][1], self._read, number)

    def _read(self, number: int) -> None:
        pid, end = self._workers[number]
        try:
            packet = end.recv(LARGEST)
        except BlockingIOError:
            return
        except OSError:
            packet = b""
        if packet:
            piece, seconds, value = json.loads(packet)
            self._open[number].pop(piece)(Done(seconds, value))
            return
        asyncio.get_running_loop().remove_reader(end)
        end.close()
        _end(pid)
        lost, self._open[number] = self._open[number], {}
        self._workers[number] = self._fork(number)
        self._listen(number)
        for then in lost.values():
            then(Done(0.0, None))


def _close_others(kept: int) -> None:
    """Else connections of the parent would stay open here after the parent has closed them."""
    for entry in os.listdir("/proc/self/fd"):
        if int(entry) not in (0, 1, 2, kept):
            with suppress(OSError):
                os.close(int(entry))


def _end(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _worker(number: int, end: socket.socket, work: Work) -> None:
    """Until the parent hangs up."""
    signal.set_wakeup_fd(-1)
    for sign in (signal.SIGINT, signal.SIGTERM):  # the parent ends it; programs that it runs do not inherit a handler
        signal.signal(sign, lambda *_: None)
    asyncio.set_event_loop(None)
    asyncio._set_running_loop(None)  # forked out of one, it has none
    end.setblocking(False)
    asyncio.run(_serve(number, end, work))


async def _serve(number: int, end: socket.socket, work: Work) -> None:
    loop, tasks, sending = asyncio.get_running_loop(), set[asyncio.Task[None]](), asyncio.Lock()

    async def one(piece: int, order: Any) -> None:
        began = time.monotonic()
        try:
            value = await work(number, order)
        except Exception:  # of the user's program; the parent hears that it failed
            value = None
        async with sending:  # a socket takes one sender at a time
            await loop.sock_sendall(end, json.dumps([piece, time.monotonic() - began, value]).encode())

    while packet := await loop.sock_recv(end, LARGEST):
        task = asyncio.create_task(one(*json.loads(packet)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
