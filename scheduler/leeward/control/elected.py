"""Works only while this process is elected: a service that is begun and ended as the election goes."""

from __future__ import annotations

import threading
from collections.abc import Callable

from leeward.control.ports import EventSink

#: Between two looks at the election, seconds, and before work that failed is begun again.
LOOK_S, RETRY_S = 0.1, 5.0


def while_elected(
    elected: Callable[[], bool], work: Callable[[threading.Event], None], sink: EventSink, stop: threading.Event
) -> None:
    """Until `stop`. `work` is called on a thread of its own and returns soon after its event is set.

    Work that fails is told to `sink`, and begun again after a while.
    """
    while not stop.is_set():
        if not elected():
            stop.wait(LOOK_S)
            continue
        over, failed = threading.Event(), threading.Event()

        def run(over: threading.Event = over, failed: threading.Event = failed) -> None:
            try:
                work(over)
            except Exception as error:  # the agent goes on, and others may be elected
                failed.set()
                sink.emit("service_failed", {"why": f"{type(error).__name__}: {error}"})

        worker = threading.Thread(target=run, name="leeward-elected", daemon=True)
        worker.start()
        while elected() and worker.is_alive() and not stop.wait(LOOK_S):
            pass
        over.set()
        worker.join()
        if failed.is_set():
            stop.wait(RETRY_S)
