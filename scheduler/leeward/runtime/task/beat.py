"""A task's sign of life in Redis, twice a second, by a thread of its own: the link's thread may have to wait.

A process whose worker has been silent for a while leaves a farewell, although it is there: no tuple reaches it
and nothing that it emits leaves. So does one that ends because its worker did.

The first beat is sent once the task has read the control record. A task that then asks for a reset has sent that
request before, so the coordinator begins no plan that the reset would end.

A worker sends heartbeats to bolts only. It may leave a source alone for long, as under backpressure. So a source looks
at the state of its worker's process instead.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import redis

from leeward.core.control import GONE
from leeward.core.secrets import NO_SECRETS, Secrets
from leeward.runtime.pacing import Pacing
from leeward.wire.redis import client


class Stopped:
    """For how long a process has been stopped (SIGSTOP, a debugger), by its state in /proc; 0 where there is none."""

    def __init__(self, pid: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._stat, self._clock = Path(f"/proc/{pid}/stat"), clock
        self._since: float | None = None

    def __call__(self) -> float:
        """Seconds since a call saw it stopped first, and each call since; call it often."""
        try:
            state = self._stat.read_text().rpartition(")")[2].split()[0]  # behind "pid (name)"
        except (OSError, IndexError):
            state = ""
        if state not in ("T", "t"):
            self._since = None
            return 0.0
        self._since = self._clock() if self._since is None else self._since
        return self._clock() - self._since


class Beat:
    """See the module."""

    def __init__(
        self, url: str, topology_id: str, task: int, silence: Callable[[], float],
        *, secrets: Secrets = NO_SECRETS, pacing: Pacing = Pacing(),
    ) -> None:  # fmt: skip
        """`silence()`: seconds since the worker was heard; 0 while it need not be. `secrets` hold Redis' password."""
        self._pacing = pacing
        self._redis = client(url, secrets=secrets, timeout_s=pacing.farewell_s, connect_s=1.0, tries=1)
        self._key, self._task, self._silence = f"leeward:{topology_id}:alive", str(task), silence
        self._numbers = itertools.count()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="leeward-beat", daemon=True)

    def start(self) -> None:
        """Beat from now on; one that has begun goes on."""
        if not self.begun:
            self._thread.start()

    @property
    def begun(self) -> bool:
        """It was started."""
        return self._thread.ident is not None

    def farewell(self) -> None:
        """This process is about to end: nobody needs to wait for its silence."""
        self._stop.set()
        self._say(f"{GONE}{os.getpid()}")

    def _work(self) -> None:
        while not self._stop.is_set():
            gone = self._silence() > self._pacing.worker_silent_s
            self._say(f"{GONE if gone else ''}{os.getpid()}:{next(self._numbers)}")
            self._stop.wait(self._pacing.beat_s)

    def _say(self, text: str) -> None:
        with contextlib.suppress(redis.RedisError, OSError):  # the next one is due in a moment
            self._redis.hset(self._key, self._task, text)
