"""Work goes on only while this process is elected."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from leeward.control import elected
from leeward.control.elected import while_elected


class Sink:
    def __init__(self) -> None:
        self.all: list[tuple[str, dict]] = []

    def emit(self, action, fields) -> None:
        self.all.append((action, dict(fields)))


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_work_begins_and_ends_with_the_election():
    chosen, stop, sink = threading.Event(), threading.Event(), Sink()
    begun: list[threading.Event] = []

    def work(over: threading.Event) -> None:
        begun.append(over)
        over.wait()

    thread = threading.Thread(target=while_elected, args=(chosen.is_set, work, sink, stop))
    thread.start()
    assert not begun
    chosen.set()
    until(lambda: len(begun) == 1)
    chosen.clear()
    until(begun[0].is_set)
    chosen.set()
    until(lambda: len(begun) == 2)
    stop.set()
    thread.join(10)
    assert not thread.is_alive() and begun[1].is_set() and not sink.all


def test_work_that_fails_is_told_and_begun_again(monkeypatch):
    monkeypatch.setattr(elected, "RETRY_S", 0.01)
    stop, sink, tries = threading.Event(), Sink(), []

    def work(over: threading.Event) -> None:
        tries.append(over)
        if len(tries) < 3:
            raise OSError("no way")
        over.wait()

    thread = threading.Thread(target=while_elected, args=(lambda: True, work, sink, stop))
    thread.start()
    until(lambda: len(tries) == 3)
    stop.set()
    thread.join(10)
    assert sink.all == [("service_failed", {"why": "OSError: no way"})] * 2
