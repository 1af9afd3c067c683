"""When a source says that its worker is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from leeward.runtime.task.beat import Stopped


def wait_for_state(pid: int, states: str) -> None:
    until = time.monotonic() + 10
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in states:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_source_sees_that_its_worker_is_stopped_and_that_it_goes_on():
    """A worker that was stopped for 8 s held the stream for 9.5 s where a source lived in it: all waited for its probe,
    as it never said that it was gone.
    """
    now = [100.0]
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as worker:
        try:
            stopped = Stopped(worker.pid, clock=lambda: now[0])
            assert stopped() == 0.0
            os.kill(worker.pid, signal.SIGSTOP)
            wait_for_state(worker.pid, "Tt")
            assert stopped() == 0.0, "seen first"
            now[0] = 102.0
            assert stopped() == 2.0
            os.kill(worker.pid, signal.SIGCONT)
            wait_for_state(worker.pid, "SR")
            now[0] = 103.0
            assert stopped() == 0.0
        finally:
            worker.kill()


def test_a_process_that_is_not_there_is_not_stopped():
    assert Stopped(2**22 + 1)() == 0.0
