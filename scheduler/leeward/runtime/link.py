"""A task's link to ZooKeeper and Redis: one thread that does what may block, so that the task never does.

Results come back through `post`, which queues a callable for the task's own thread.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError
from kazoo.retry import KazooRetry

from leeward.core.control import ControlRecord, Paths, Report
from leeward.runtime.store import TaskStore

log = logging.getLogger(__name__)

_METRICS_S = 1.0
#: Retry for ever: a task without ZooKeeper goes on processing and reports when it is back.
_RETRY = {"max_tries": -1, "delay": 0.1, "max_delay": 1.0}

Post = Callable[[Callable[[], None]], None]


class Link:
    """See the module. `on_record(record, first)` is posted for each control record; `metrics()` is published."""

    def __init__(
        self,
        *,
        zookeeper: str,
        paths: Paths,
        store: TaskStore,
        task: int,
        post: Post,
        on_record: Callable[[ControlRecord, bool], None],
        default: ControlRecord,
        metrics: Callable[[], str],
    ) -> None:
        self._client = KazooClient(
            hosts=zookeeper, connection_retry=KazooRetry(**_RETRY), command_retry=KazooRetry(**_RETRY)
        )
        self._paths, self._store, self._task = paths, store, task
        self._post, self._on_record, self._default, self._metrics = post, on_record, default, metrics
        self._jobs: queue.Queue[Callable[[], None]] = queue.Queue()
        self._thread = threading.Thread(target=self._work, name="leeward-link", daemon=True)

    def start(self) -> None:
        """Connect in the background; the first record is posted when ZooKeeper answers."""
        self._thread.start()

    def export(
        self,
        cut: int,
        epoch: int,
        encode: Callable[[], tuple[Mapping[int, bytes], Mapping[int, bytes]]],
        owned: Iterable[int],
        barrier: str,
        report: Callable[[str, float], Report],
    ) -> None:
        """Encode and write this task's part of a cut, then report at the barrier (the error, if it failed).

        `encode()`, called in the background, gives by group what goes to Redis and what to the node's swap area.
        """

        def job() -> None:
            start, error = time.perf_counter(), ""
            try:
                blobs, swap = encode()
                self._store.export(cut, epoch, blobs, owned, swap)
            except Exception as failure:
                log.warning("export of cut %d failed: %s", cut, failure)
                error = f"{type(failure).__name__}: {failure}"
            self._create(
                f"{self._paths.barrier(barrier)}/{self._task}",
                report(error, time.perf_counter() - start).to_json(),
            )

        self._jobs.put(job)

    def load(
        self,
        cut: int,
        groups: Iterable[int],
        done: Callable[[dict[int, dict], int, float], None],
        failed: Callable[[str], None],
    ) -> None:
        """Read groups of a cut; `done(entries, bytes, seconds)` or `failed(why)` is posted."""

        def job() -> None:
            start = time.perf_counter()
            try:
                entries, size = self._store.load(cut, groups)
            except Exception as failure:
                log.warning("import of cut %d failed: %s", cut, failure)
                why = f"{type(failure).__name__}: {failure}"
                self._post(lambda: failed(why))
                return
            seconds = time.perf_counter() - start
            self._post(lambda: done(entries, size, seconds))

        self._jobs.put(job)

    def report(self, barrier: str, report: Report) -> None:
        """Arrive at a barrier."""
        self._jobs.put(lambda: self._create(f"{self._paths.barrier(barrier)}/{self._task}", report.to_json()))

    def soon(self, job: Callable[[], None]) -> None:
        """Do something that may block."""
        self._jobs.put(job)

    def recover(self, epoch: int, reason: str) -> None:
        """Ask the coordinator for a reset."""
        self._jobs.put(lambda: self._create(self._paths.recover(epoch), reason))

    def _work(self) -> None:
        logging.getLogger("kazoo").setLevel(logging.ERROR)
        while not self._client.connected:
            try:
                self._client.start(timeout=30)
            except Exception as failure:
                log.warning("ZooKeeper does not answer (%s); still trying", failure)
        first = self._create(f"{self._paths.joined}/{self._task}", "")
        self._client.DataWatch(self._paths.control, self._changed(first))
        due = time.monotonic()
        while True:
            try:
                self._jobs.get(timeout=max(0.0, due - time.monotonic()))()
            except queue.Empty:
                due = time.monotonic() + _METRICS_S
                self._publish_metrics()
            except Exception:
                log.exception("background work failed")

    def _changed(self, first: bool) -> Callable:
        def changed(data: bytes | None, _stat: object) -> None:
            record = self._default if not data else ControlRecord.from_json(data)
            self._post(lambda: self._on_record(record, first))

        return changed

    def _publish_metrics(self) -> None:
        try:
            self._store.publish_metrics(self._metrics())
        except Exception as failure:
            log.debug("metrics not published: %s", failure)

    def _create(self, path: str, text: str) -> bool:
        """Create or overwrite; False if it was there."""
        try:
            self._client.retry(self._client.create, path, text.encode(), makepath=True)
            return True
        except NodeExistsError:
            self._client.retry(self._client.set, path, text.encode())
            return False
