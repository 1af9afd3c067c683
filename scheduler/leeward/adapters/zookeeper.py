"""BarrierStore, ClusterStore, RequestStore and LeaderLock on ZooKeeper, by kazoo; ControlStore is in `control_store`.

While ZooKeeper is away every call waits (its session timeout decides how long); kazoo's callbacks only wake somebody.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import BadVersionError, KazooException, LockTimeout, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import ZnodeStat

from leeward.adapters.control_store import ZooControlStore as ZooControlStore
from leeward.adapters.control_store import answer, asking, commit
from leeward.control.ports import EventSink, Wake
from leeward.control.report.history import appended, entries
from leeward.core.control import Loss, Paths, Report
from leeward.core.errors import ClusterRefusedError, PlanError, ProtocolError
from leeward.core.outcome import Outcome
from leeward.core.plan import Placement
from leeward.core.secrets import NO_SECRETS, Secrets
from leeward.wire import zookeeper as wire

#: A session outlives an outage of ZooKeeper this long, seconds; a dead leader's lock is free after it.
SESSION_S = 15.0
#: Calls are tried again this long, seconds.
PATIENCE_S = 40.0
#: So many reports are read before they are known to be there, which is a round trip less.
GUESSES = 8


def connect(
    hosts: str, *, secrets: Secrets = NO_SECRETS, timeout_s: float = 15.0, session_s: float = SESSION_S
) -> KazooClient:
    """A started client. Raises ClusterRefusedError if no server answers in `timeout_s`."""
    client = wire.client(hosts, secrets=secrets, session_s=session_s, patience_s=PATIENCE_S)
    try:
        client.start(timeout=timeout_s)
    except KazooTimeoutError:
        client.stop()
        client.close()
        raise ClusterRefusedError(
            f"ZooKeeper at {hosts} has not answered in {timeout_s:g} s.",
            remedy="Check that it runs and that the address is right.",
        ) from None
    return client


def tell_outages(client: KazooClient, topology: str, sink: EventSink) -> None:
    """Events when the connection breaks and when it is there again; a call may wait for that for long."""

    def changed(state: str) -> None:
        about = {"topology": topology, "server": "ZooKeeper"}
        if state == KazooState.SUSPENDED:
            sink.emit("server_away", {**about, "why": "ZooKeeper does not answer; calls wait for it."})
        elif state == KazooState.CONNECTED:
            sink.emit("server_back", about)

    client.add_listener(changed)


def close_root(client: KazooClient, root: str) -> None:
    """Give the znodes that all topologies share to the owner of the secret, if an older installation left them open."""
    with asking(f"protect {root}"):
        for name in ("placement", "draining", "snapshot"):
            wire.close_to_others(client, f"{root}/{name}")
        for path in (f"{root}/topologies", root):
            wire.close_to_others(client, path, deep=False)


def close_topology(client: KazooClient, paths: Paths) -> None:
    """The same for the znodes of one topology, whose tasks know the secret, too."""
    with asking(f"protect {paths.base}"):
        wire.close_to_others(client, paths.base)


class _Watch:
    """A kazoo watch that wakes; equal for equal wakes, so that re-reading does not pile watches up."""

    def __init__(self, wake: Wake) -> None:
        self._wake = wake

    def __call__(self, _event: object) -> None:
        self._wake()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Watch) and self._wake == other._wake

    def __hash__(self) -> int:
        return hash(self._wake)


class ZooBarriers:
    """BarrierStore."""

    def __init__(self, client: KazooClient, paths: Paths) -> None:
        self._client, self._paths = client, paths
        self._losses: dict[int, Loss] = {}

    def reports(
        self, barrier: str, known: Iterable[int], wake: Wake, *, likely: Iterable[int] = ()
    ) -> Mapping[int, Report]:
        path, skip = self._paths.barrier(barrier), {str(task) for task in known}
        found: dict[int, Report] = {}
        with asking(f"read barrier {barrier}"):
            guesses = {str(task): self._client.get_async(f"{path}/{task}") for task in islice(likely, GUESSES)}
            tasks = [task for task in _children(self._client, path, wake) if task not in skip]
            texts = {}
            for task in guesses.keys() & set(tasks):
                with contextlib.suppress(KazooException):  # not there yet; a failed read is repeated below
                    texts[task] = guesses[task].get()[0]
            rest = [task for task in tasks if task not in texts]
            texts |= zip(rest, _texts(self._client, [f"{path}/{task}" for task in rest]), strict=True)
            for task in tasks:
                with contextlib.suppress(ProtocolError):  # created but not yet written
                    found[int(task)] = Report.from_json(texts[task])
        return found

    def recoveries(self, wake: Wake) -> Mapping[int, Loss]:
        parent = self._paths.recover(0).rsplit("/", 1)[0]
        with asking("read recovery requests"):
            epochs = {int(name) for name in _children(self._client, parent, wake)}
            for epoch in epochs - self._losses.keys():
                text, _ = self._client.retry(self._client.get, self._paths.recover(epoch))
                self._losses[epoch] = _loss(text)
        self._losses = {epoch: loss for epoch, loss in self._losses.items() if epoch in epochs}
        return dict(self._losses)

    def drop(self, *, below: int, epoch: int) -> None:
        barriers = self._paths.barriers
        recover = self._paths.recover(0).rsplit("/", 1)[0]
        with asking("drop barriers"):
            for name in _children(self._client, barriers):
                kind, _, number = name.partition("-")
                if int(number) < (below if kind == "cut" else epoch):
                    self._delete_whole(f"{barriers}/{name}")
            for name in _children(self._client, recover):
                if int(name) < epoch:
                    with contextlib.suppress(NoNodeError):
                        self._client.delete(f"{recover}/{name}")

    def _delete_whole(self, path: str) -> None:
        """A barrier in two requests, not two for each task; if one arrives meanwhile, all of it stays for next time."""
        with contextlib.suppress(NoNodeError):
            transaction = self._client.transaction()
            for task in self._client.retry(self._client.get_children, path):
                transaction.delete(f"{path}/{task}")
            transaction.delete(path)
            commit(transaction)


def _children(client: KazooClient, path: str, wake: Wake | None = None) -> list[str]:
    """Sorted; the znode is made if it is not there, so that it can be watched."""
    watch = _Watch(wake) if wake else None
    try:
        return sorted(client.retry(client.get_children, path, watch=watch))
    except NoNodeError:
        client.ensure_path(path)
        return sorted(client.retry(client.get_children, path, watch=watch))


def _texts(client: KazooClient, paths: Iterable[str]) -> list[bytes]:
    """All asked for before the first is there: each answer takes a while, however little it is."""

    def ask() -> list[bytes]:
        return [answer.get()[0] for answer in [client.get_async(path) for path in paths]]

    return list(client.retry(ask))


def _loss(text: bytes) -> Loss:
    """Tasks of an older release wrote the reason alone."""
    try:
        return Loss.from_json(text)
    except ProtocolError:
        return Loss(task=-1, why=text.decode(errors="replace"))


class _Newest:
    """The newest text of a znode, and its version. For several threads: one reads, the others wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version: tuple[object, ...] = ()
        self._text = ""

    def of(self, client: KazooClient, path: str, there: ZnodeStat) -> str:
        """The text; it is read only if `there` is another version. Raises NoNodeError."""
        with self._lock:
            if self._version != _version(client, path, there):
                text, read = client.retry(client.get, path)
                self._text, self._version = str(text, "utf-8", "replace"), _version(client, path, read)
            return self._text


def _version(client: KazooClient, path: str, stat: ZnodeStat) -> tuple[object, ...]:
    """The time is part of it, as a ZooKeeper that has lost its data counts from the beginning."""
    return tuple(sorted(client.hosts)), path, stat.czxid, stat.mzxid, stat.mtime


#: A long text that changes seldom, which each topology's service asks for every second.
_SNAPSHOT = _Newest()


class ZooClusterStore:
    """ClusterStore."""

    def __init__(self, client: KazooClient, root: str) -> None:
        self._client, self._root = client, root

    def snapshot(self, wake: Wake) -> str | None:
        path, watch = Paths.snapshot(self._root), _Watch(wake)
        with asking("read snapshot"):
            there = self._client.retry(self._client.exists, path, watch=watch)
            with contextlib.suppress(NoNodeError):
                return None if there is None else _SNAPSHOT.of(self._client, path, there)
        return None

    def placements(self) -> Mapping[str, Placement]:
        found: dict[str, Placement] = {}
        with asking("read placements"):
            for name in _children(self._client, f"{self._root}/placement"):
                with contextlib.suppress(NoNodeError, PlanError):
                    text = self._client.retry(self._client.get, Paths.placement(self._root, name))[0]
                    found[name] = Placement.from_json(text)
        return found

    def draining(self) -> frozenset[str]:
        with asking("read draining nodes"):
            return frozenset(_children(self._client, f"{self._root}/draining"))

    def set_draining(self, node: str, draining: bool) -> None:
        path = f"{self._root}/draining/{node}"
        with asking(f"{'drain' if draining else 'undrain'} {node}"):
            if draining:
                self._client.ensure_path(path)
            else:
                with contextlib.suppress(NoNodeError):
                    self._client.delete(path)


class ZooRequests:
    """RequestStore."""

    def __init__(self, client: KazooClient, paths: Paths) -> None:
        self._client, self._paths = client, paths

    def ask(self, body: Mapping[str, object]) -> str:
        with asking("write a request"):
            path = f"{self._paths.requests}/r-"
            made = self._client.create(path, json.dumps(dict(body)).encode(), sequence=True, makepath=True)
        return str(made.rpartition("/")[2])

    def pending(self, wake: Wake) -> Mapping[str, Any] | None:
        with asking("read the requests"):
            names = _children(self._client, self._paths.requests, wake)
            if not names:
                return None
            text, _ = self._client.retry(self._client.get, f"{self._paths.requests}/{names[0]}")
        return {**_body(text), "id": names[0]}

    def answer(self, name: str, result: Outcome) -> None:
        with asking("answer a request"):
            self._client.ensure_path(self._paths.answers)
            both = self._client.transaction()
            answer(both, self._paths, name, result)
            both.commit()

    def answer_to(self, name: str, wake: Wake | None = None) -> Outcome | None:
        path, watch = f"{self._paths.answers}/{name}", _Watch(wake) if wake else None
        with asking("read an answer"):
            while True:
                with contextlib.suppress(NoNodeError):
                    return Outcome.from_json(self._client.retry(self._client.get, path)[0])
                if not self._client.retry(self._client.exists, path, watch=watch):
                    return None


def _body(text: bytes) -> dict[str, Any]:
    """A request; one that cannot be read asks for nothing, and is refused for that."""
    with contextlib.suppress(ValueError, RecursionError):
        if isinstance(body := json.loads(text), dict):
            return body
    return {}


class ZooHistory:
    """HistoryStore: one znode. A leader that has lost the lock may still add what it has seen end: it is true."""

    def __init__(self, client: KazooClient, paths: Paths) -> None:
        self._client, self._path = client, paths.history

    def add(self, entry: Mapping[str, object]) -> None:
        with asking("write the history"):
            while True:
                try:
                    text, stat = self._client.retry(self._client.get, self._path)
                    self._client.retry(self._client.set, self._path, appended(text, entry), version=stat.version)
                except NoNodeError:
                    with contextlib.suppress(NodeExistsError):
                        self._client.retry(self._client.create, self._path, appended(b"", entry), makepath=True)
                        return
                except BadVersionError:
                    continue  # the other entry, or the answer to our own write was lost: `appended` keeps one
                else:
                    return

    def read(self) -> list[Mapping[str, Any]]:
        with asking("read the history"), contextlib.suppress(NoNodeError):
            return entries(self._client.retry(self._client.get, self._path)[0])
        return []


class ZooLock:
    """LeaderLock: kazoo's lock; gone with the session."""

    def __init__(self, client: KazooClient, paths: Paths) -> None:
        self._client, self._path = client, f"{paths.base}/leader"
        self._lock = client.Lock(self._path, identifier=f"{socket.gethostname()}:{os.getpid()}")
        self._held, self._tried = False, False
        self._listener: Callable[[str], None] = self._changed
        client.add_listener(self._listener)

    def acquire(self, timeout_s: float) -> bool:
        with asking("wait for leadership"):
            if not self._tried:
                self._drop_remains()
            self._tried = True
            try:
                self._held = self._lock.acquire(blocking=timeout_s > 0, timeout=timeout_s or None)
            except LockTimeout:
                self._held = False
        return self._held

    def _drop_remains(self) -> None:
        """A node that a lock before this one could not delete while ZooKeeper was away. Its session may have survived,
        as it does where ZooKeeper was started anew: then this process would wait for itself for ever.
        """
        ask = self._client.retry
        with contextlib.suppress(NoNodeError):
            for name in ask(self._client.get_children, self._path):
                there = ask(self._client.exists, f"{self._path}/{name}")
                if there is not None and there.owner_session_id == self._client.client_id[0]:
                    ask(self._client.delete, f"{self._path}/{name}")

    def held(self) -> bool:
        return self._held

    def release(self) -> None:
        self._client.remove_listener(self._listener)
        if self._held:
            self._held = False
            with contextlib.suppress(KazooException, KazooTimeoutError):
                self._lock.release()

    def _changed(self, state: str) -> None:
        if state == KazooState.LOST:
            self._held = False
