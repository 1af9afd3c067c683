"""How a command ends when it is told to: in order, and without a server that does not answer."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

#: Work ends in order within so long, s.
ORDERLY_S = 12.0


@contextmanager
def signals(
    orderly_s: float = ORDERLY_S, leave: Callable[[int], object] = os._exit
) -> Iterator[tuple[threading.Event, threading.Event]]:
    """(stop, interrupted): SIGTERM and the first Ctrl-C end the work in order, a second Ctrl-C at once.

    Where a server is away, a call of it may wait for ever, and so may each that gives something back. `orderly_s` after
    `stop` the process ends all the same, with 128 and the signal's number as `leave` gets it: its locks go with its
    sessions. In the main thread.
    """
    stop, interrupted = threading.Event(), threading.Event()
    told: list[int] = []

    def handle(number: int, _frame: object) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        if number == signal.SIGINT:
            interrupted.set()
        if not stop.is_set():
            told.append(number)
            signal.setitimer(signal.ITIMER_REAL, orderly_s)
        stop.set()

    def overdue(_number: int, _frame: object) -> None:
        typer.echo(f"ended without a server that did not answer within {orderly_s:g} s.", err=True)
        sys.stdout.flush()
        sys.stderr.flush()
        leave(128 + told[0])

    handlers = {signal.SIGINT: handle, signal.SIGTERM: handle, signal.SIGALRM: overdue}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield stop, interrupted
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        for number, handler in before.items():
            signal.signal(number, handler)
