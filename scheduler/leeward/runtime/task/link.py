"""A task's link to ZooKeeper and Redis: one thread that does what may block, so that the task never does.

Results come back through `post`, which queues a callable for the task's own thread.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping

from kazoo.exceptions import NoAuthError, NodeExistsError, NoNodeError
from kazoo.protocol.states import KazooState

from leeward.core.control import ControlRecord, Loss, Paths, Report
from leeward.core.errors import ConfigError, SnapshotError
from leeward.core.secrets import FILE_KEY, NO_SECRETS, Secrets
from leeward.runtime.pacing import Pacing
from leeward.runtime.state.keyed import Entries
from leeward.runtime.state.store import TaskStore
from leeward.wire.zookeeper import client

log = logging.getLogger(__name__)

Post = Callable[[Callable[[], None]], None]
Job = Callable[[], object]  # its result is not used


class Link:
    """See the module. `on_record(record, first)` is posted for each control record; `metrics()` is published."""

    def __init__(
        self,
        *,
        zookeeper: str,
        secrets: Secrets = NO_SECRETS,
        paths: Paths,
        store: TaskStore,
        task: int,
        post: Post,
        on_record: Callable[[ControlRecord, bool], None],
        default: ControlRecord,
        metrics: Callable[[], str],
        hurry: Callable[[], bool],
        leisure: Callable[[], float],
        pacing: Pacing = Pacing(),
    ) -> None:
        """`hurry()`: a new record must be known at once, else after `leisure()` seconds."""
        # a task without ZooKeeper goes on processing and reports when it is back
        self._client = client(zookeeper, secrets=secrets)
        self._paths, self._store, self._task = paths, store, task
        self._post, self._on_record, self._default, self._metrics = post, on_record, default, metrics
        self._hurry, self._leisure, self._pacing = hurry, leisure, pacing
        self._asked = -1  # epoch in which it asked for a reset
        self._known = False  # there was a record: if there is none any more, somebody has deleted it
        self._numbers = itertools.count()
        self._jobs: queue.SimpleQueue[tuple[float, int, Job]] = queue.SimpleQueue()
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
        report: Callable[[str, float, float], Report],
        after_s: float = 0.0,
    ) -> None:
        """Encode and write this task's part of a cut, then report at the barrier.

        `report` is called with the error ("": none), the seconds that it took, and those until the next checkpoint that
        the store allows (0: any).

        `encode()`, called in the background, gives by group what goes to Redis and what to the node's swap area.
        """

        def job() -> None:
            start, error, period_s = time.perf_counter(), "", 0.0
            try:
                blobs, swap = encode()
                period_s = self._store.export(cut, epoch, blobs, owned, swap)
            except Exception as failure:
                log.warning("export of cut %d failed: %s", cut, failure)
                error = f"{type(failure).__name__}: {failure}"
            self._create(
                f"{self._paths.barrier(barrier)}/{self._task}",
                report(error, time.perf_counter() - start, period_s).to_json(),
            )

        self.soon(job, after_s)

    def load(
        self,
        cut: int,
        groups: Iterable[int],
        done: Callable[[dict[int, Entries], int, float], None],
        failed: Callable[[str, bool], None],
    ) -> None:
        """Read groups of a cut; `done(entries, bytes, seconds)` or `failed(why, bad_cut)` is posted."""

        def job() -> None:
            start = time.perf_counter()
            try:
                entries, size = self._store.load(cut, groups)
            except Exception as failure:
                log.warning("import of cut %d failed: %s", cut, failure)
                bad_cut = isinstance(failure, SnapshotError)
                why = f"{type(failure).__name__}: {failure}"
                self._post(lambda: failed(why, bad_cut))
                return
            seconds = time.perf_counter() - start
            self._post(lambda: done(entries, size, seconds))

        self.soon(job)

    def report(self, barrier: str, report: Report, after_s: float = 0.0) -> None:
        """Arrive at a barrier."""
        path = f"{self._paths.barrier(barrier)}/{self._task}"
        self.soon(lambda: self._create(path, report.to_json()), after_s)

    def recover(self, epoch: int, reason: str, fresh: bool) -> None:
        """Ask the coordinator for a reset."""

        def job() -> None:
            self._create(self._paths.recover(epoch), Loss(task=self._task, why=reason, fresh=fresh).to_json())
            if self._asked != epoch:  # the record in force may be newer than the one that this task has
                self._asked = epoch
                self._look()

        self.soon(job)

    def look(self) -> None:
        """Read the record now, if that was put off; it is read again when it changes."""
        self.soon(self._look)

    def exists(self, path: str) -> bool:
        """Whether the znode is there; waits for ZooKeeper, so it is for jobs."""
        return self._client.retry(self._client.exists, path) is not None

    def soon(self, job: Job, after_s: float = 0.0) -> None:
        """Do something that may block, not before so many seconds have passed."""
        self._jobs.put((time.monotonic() + after_s, next(self._numbers), job))

    def _work(self) -> None:
        logging.getLogger("kazoo").setLevel(logging.ERROR)
        while not self._client.connected:
            try:
                self._client.start(timeout=30)
            except Exception as failure:
                log.warning("ZooKeeper does not answer (%s); still trying", failure)
        try:
            self._first = self._create(f"{self._paths.joined}/{self._task}", "")
        except NoAuthError:
            self._post(self._refused)
            return
        self._client.add_listener(self._connection_changed)
        self.soon(self._watch_halt)
        self.soon(self._look)
        self.soon(self._publish_metrics)
        waiting: list[tuple[float, int, Job]] = []
        while True:
            wait = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
            try:
                heapq.heappush(waiting, self._jobs.get(timeout=wait))
            except queue.Empty:
                self._do(heapq.heappop(waiting)[2])

    def _refused(self) -> None:
        """In the task's own thread, so that Storm shows the error with the component."""
        raise ConfigError(
            f"ZooKeeper does not let task {self._task} write to {self._paths.base}.",
            remedy=f"Give the node the cluster's secrets file, and name it by {FILE_KEY} in Storm's configuration.",
        )

    @staticmethod
    def _do(job: Job) -> None:
        try:
            job()
        except Exception:
            log.exception("background work failed")

    def _look(self) -> None:
        """Read the record; it is read again when one comes that this task has to know."""
        ask = self._client.retry
        path = self._paths.control if self._hurry() else self._paths.told
        try:
            data, _stat = ask(self._client.get, path, watch=self._record_changed)
        except NoNodeError:
            if ask(self._client.exists, path, watch=self._record_changed):
                self.soon(self._look)
            data = b""
            self._deleted(path)
        if self._known and not data:
            return  # this task goes on under the record that it knows; the coordinator writes it again
        self._known = bool(data)
        record = ControlRecord.from_json(data) if data else self._default
        self._post(lambda: self._on_record(record, self._first))

    def _deleted(self, path: str) -> None:
        """Write the znode again that keeps this task's next process from taking itself for the first one: it may have
        been deleted with the record.
        """
        if self._known:
            log.warning("%s was deleted; this task goes on under the record that it read last", path)
            self._create(f"{self._paths.joined}/{self._task}", "")

    def _record_changed(self, _event: object) -> None:
        self.soon(self._look, 0.0 if self._hurry() else self._leisure())

    def _watch_halt(self) -> None:
        self._client.retry(self._client.exists, self._paths.halt, watch=self._halted)

    def _halted(self, _event: object) -> None:
        """The topology is restored, and waits for every task."""
        self.soon(self._watch_halt)
        self.soon(self._look)

    def _connection_changed(self, state: KazooState) -> None:
        if state == KazooState.CONNECTED:  # no watch fired for changes meanwhile
            self.soon(self._look)

    def _publish_metrics(self) -> None:
        try:
            self._store.publish_metrics(self._metrics())
        except Exception as failure:
            log.debug("metrics not published: %s", failure)
        self.soon(self._publish_metrics, self._pacing.metrics_s)

    def _create(self, path: str, text: str) -> bool:
        """Create or overwrite; False if it was there."""
        try:
            self._client.retry(self._client.create, path, text.encode(), makepath=True)
            return True
        except NodeExistsError:
            self._client.retry(self._client.set, path, text.encode())
            return False
