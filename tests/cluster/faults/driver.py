"""Asks for a reconfiguration every second or two, as `leeward reconfigure` does, but in this process."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

from leeward.adapters.zookeeper import ZooClusterStore, ZooRequests, connect
from leeward.control.snapshot import ClusterSnapshot, read_snapshot
from leeward.core.control import ControlRecord
from leeward.core.errors import LeewardError
from leeward.core.table import replicas
from tests.cluster.harness import ROOT, Running

#: Time between the end of one reconfiguration and the next request, in seconds.
EVERY_S = (1.0, 2.0)
#: The driver gives a request up after this time, in seconds, and goes on.
PATIENCE_S = 45.0
#: Weights of the components that are reconfigured, and the most replicas that each may have.
WEIGHTS = {"count": 4, "join": 4, "sink": 1, "passing": 1}
MOST = {"count": 3, "join": 3, "passing": 3, "sink": 1}
_UNREACHABLE = (KazooException, KazooTimeoutError, LeewardError)


@dataclass(slots=True)
class Request:
    """One request; `answered` is 0 while there is no answer."""

    component: str
    wanted: Mapping[str, int]
    name: str
    asked: float
    answered: float = 0.0
    answer: str = ""


@dataclass(slots=True)
class Driver:
    """A thread. `hold` stops it, so that the caller can send a request of its own."""

    running: Running
    rng: random.Random
    requests: list[Request] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)  #: requests that could not be sent
    _stop: threading.Event = field(default_factory=threading.Event)
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None
    _client: KazooClient = field(init=False)
    _store: ZooClusterStore = field(init=False)
    _requests: ZooRequests = field(init=False)

    def __enter__(self) -> Driver:
        cluster = self.running.cluster
        self._client = connect(cluster.zookeeper, secrets=cluster.secrets(), timeout_s=60)
        self._store = ZooClusterStore(self._client, ROOT)
        self._requests = ZooRequests(self._client, self.running.paths)
        self._thread = threading.Thread(target=self._drive, name="driver", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._client.stop()
        self._client.close()

    def stop(self) -> None:
        """Send no more requests."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(60)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Once the present request is answered, send none but the caller's."""
        with self._turn:
            yield

    def ask(self, component: str) -> Request | None:
        """Ask for another set of replicas of this component; None if ZooKeeper or Nimbus cannot be asked."""
        try:
            wanted = choose(self.rng, component, self._snapshot(), self.record())
            asked = time.time()
            name = self._requests.ask({"replicas": {component: wanted}})
        except _UNREACHABLE as error:
            self.failed.append(f"{time.time():.3f} {type(error).__name__} {error}")
            return None
        request = Request(component, wanted, name, asked)
        self.requests.append(request)
        return request

    def look(self, request: Request) -> bool:
        """Whether the answer is there."""
        if not request.answered:
            try:
                answer = self._requests.answer_to(request.name)
            except _UNREACHABLE:
                return False
            if answer is not None:
                request.answered, request.answer = time.time(), str(answer)
        return bool(request.answered)

    def record(self) -> ControlRecord:
        """The control record in force."""
        text, _ = self._client.retry(self._client.get, self.running.paths.control)
        return ControlRecord.from_json(text)

    def answered_since(self, t: float) -> float | None:
        """When a request sent after `t` was carried out first."""
        done = [r.answered for r in list(self.requests) if r.asked >= t and r.answered and r.answer.startswith("done")]
        return min(done, default=None)

    def outcomes(self) -> dict[str, int]:
        """How many requests ended in which way."""
        return dict(Counter(r.answer.partition(":")[0] or "no answer" for r in self.requests))

    def _snapshot(self) -> ClusterSnapshot:
        return read_snapshot(self._store.snapshot(lambda: None), self.running.id)

    def _drive(self) -> None:
        while not self._stop.wait(self.rng.uniform(*EVERY_S)):
            with self._turn:
                (component,) = self.rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
                request = self.ask(component)
                until = time.monotonic() + PATIENCE_S
                while request and not self.look(request) and time.monotonic() < until:
                    if self._stop.wait(0.1):
                        return


def choose(rng: random.Random, component: str, snapshot: ClusterSnapshot, record: ControlRecord) -> dict[str, int]:
    """Another deployment on the nodes where its tasks are, so that no executor has to move: node -> replicas."""
    nodes = {task: slot.node for task, slot in snapshot.assigned.slots.items() if snapshot.tasks[task] == component}
    return deployment(rng, nodes, replicas(record.tables[component]), MOST[component])


def deployment(rng: random.Random, nodes: Mapping[int, str], present: Sequence[int], most: int) -> dict[str, int]:
    """`nodes`: of each task that is placed; `present`: the tasks that own key groups now."""
    here = Counter(nodes[task] for task in present if task in nodes)
    candidates = []
    for _ in range(20):
        count = rng.randint(1, min(most, len(nodes)))
        counts = Counter(nodes[task] for task in rng.sample(sorted(nodes), count))
        candidates.append(counts)
    return dict(next((counts for counts in candidates if counts != here), candidates[-1]))
