"""ControlStore on ZooKeeper: control record, journal and placement, written by the coordinator that claimed last."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, ConnectionLoss, KazooException, NoAuthError, NoNodeError, RolledBackError
from kazoo.handlers.threading import KazooTimeoutError

from leeward.control.errors import LostLeadershipError
from leeward.control.ports import Claim
from leeward.core.control import ControlRecord, Paths, Phase
from leeward.core.errors import ClusterRefusedError, PlanError, ProtocolError
from leeward.core.journal import Journal
from leeward.core.outcome import Outcome
from leeward.core.plan import Placement
from leeward.core.secrets import FILE_KEY, FILE_VARIABLE
from leeward.core.standing import Standing

log = logging.getLogger(__name__)


@contextmanager
def asking(what: str) -> Iterator[None]:
    try:
        yield
    except NoAuthError as error:
        raise ClusterRefusedError(
            f"ZooKeeper, {what}: the znode belongs to clients that know the cluster's secret.",
            remedy=f"Name the cluster's secrets file: {FILE_VARIABLE}, or {FILE_KEY} in Storm's configuration.",
        ) from error
    except (KazooException, KazooTimeoutError) as error:
        raise ClusterRefusedError(
            f"ZooKeeper, {what}: {type(error).__name__} {error}.", remedy="Check that ZooKeeper runs."
        ) from error


class ZooControlStore:
    """ControlStore: every write is conditional on the versions that the claim left behind.

    A claim raises the versions of control record and journal together, so a znode that is gone while the other one has
    the expected version was not claimed by another coordinator: it is written again.
    """

    def __init__(self, client: KazooClient, paths: Paths, topology: str) -> None:
        self._client, self._paths = client, paths
        self._placement = Paths.placement(paths.root, topology)
        self._versions: dict[str, int] = {}  # of the claimed znodes
        self._last: dict[str, bytes] = {}  # content of each of them, and of `told`, when it was read or written last

    def claim(self) -> Claim:
        with asking("claim"):
            while True:
                self._refuse_half()
                found = {path: self._ensure(path) for path in (self._paths.control, self._paths.journal)}
                told, _ = self._ensure(self._paths.told)
                self._make_parents()
                transaction = self._client.transaction()
                for path, (text, version) in found.items():
                    transaction.set_data(path, text, version=version)
                if not any(isinstance(result, Exception) for result in commit(transaction)):
                    break
        self._versions = {path: version + 1 for path, (_, version) in found.items()}
        self._last = {path: text for path, (text, _) in found.items()} | {self._paths.told: told}
        record, journal = (found[path][0] for path in (self._paths.control, self._paths.journal))
        return Claim(
            record=ControlRecord.from_json(record) if record else None,
            journal=Journal.from_json(journal) if journal else None,
        )

    def write_record(
        self, record: ControlRecord, *, told: bool = True, journal: Journal | None = None, barrier: str = ""
    ) -> None:
        texts = {self._paths.control: record.to_json().encode()}
        if told:
            texts[self._paths.told] = texts[self._paths.control]
        if journal is not None:
            texts[self._paths.journal] = journal.to_json().encode()

        def also(transaction: Any) -> None:
            if barrier:
                transaction.create(self._paths.barrier(barrier))
            if record.phase is Phase.RESTORE:
                transaction.set_data(self._paths.halt, str(record.epoch).encode())

        self._write(texts, also)

    def write_journal(self, journal: Journal) -> None:
        def also(transaction: Any) -> None:
            if journal.answers and journal.result:
                answer(transaction, self._paths, journal.request, journal.result)

        self._write({self._paths.journal: journal.to_json().encode()}, also)

    def write_placement(self, placement: Placement | None) -> None:
        with asking("write placement"):
            self._write_document(self._placement, placement.to_json() if placement else None)

    def write_standing(self, standing: Standing) -> None:
        with asking("write standing"):
            self._write_document(self._paths.standing, standing.to_json())

    def write_learnt(self, text: str) -> None:
        with asking("write what was learnt"):
            self._write_document(self._paths.learnt, text)

    def _write_document(self, path: str, text: str | None) -> None:
        """Of no version; None takes it away. Raises LostLeadershipError."""
        while True:
            there = self._client.retry(self._client.exists, path)
            if text is None and not there:
                return
            transaction = self._client.transaction()
            transaction.check(self._paths.journal, self._version(self._paths.journal))
            if text is None:
                transaction.delete(path)
            elif there:
                transaction.set_data(path, text.encode())
            else:
                self._client.ensure_path(path.rsplit("/", 1)[0])
                transaction.create(path, text.encode())
            checked, done = commit(transaction)
            if isinstance(checked, Exception) and not isinstance(checked, RolledBackError):
                self._settle({})
            if not isinstance(done, Exception):
                return

    def read_record(self) -> ControlRecord | None:
        with asking("read control record"):
            text, _ = self._read(self._paths.control) or (b"", 0)
        return ControlRecord.from_json(text) if text else None

    def read_journal(self) -> Journal | None:
        with asking("read journal"):
            text, _ = self._read(self._paths.journal) or (b"", 0)
        return Journal.from_json(text) if text else None

    def read_placement(self) -> Placement | None:
        with asking("read placement"):
            text, _ = self._read(self._placement) or (b"", 0)
        with contextlib.suppress(PlanError):
            return Placement.from_json(text) if text else None
        return None

    def read_standing(self) -> Standing | None:
        with asking("read standing"):
            text, _ = self._read(self._paths.standing) or (b"", 0)
        try:
            return Standing.from_json(text) if text else None
        except ProtocolError as error:
            return Standing.unread(error.message)

    def read_learnt(self) -> str | None:
        with asking("read what was learnt"):
            text, _ = self._read(self._paths.learnt) or (b"", 0)
        return text.decode(errors="replace") or None

    def _read(self, path: str) -> tuple[bytes, int] | None:
        """Data and version; None if the znode is not there."""
        with contextlib.suppress(NoNodeError):
            text, stat = self._client.retry(self._client.get, path)
            return text, stat.version
        return None

    def _ensure(self, path: str) -> tuple[bytes, int]:
        self._client.ensure_path(path)
        text, stat = self._client.retry(self._client.get, path)
        return text, stat.version

    def _refuse_half(self) -> None:
        """Without the record that tasks run under, their cuts and tables are not known: a first one would be wrong."""
        journal = self._read(self._paths.journal)
        epoch = Journal.from_json(journal[0]).epoch if journal and journal[0] else 0
        if epoch and self._read(self._paths.control) is None:
            raise ClusterRefusedError(
                f"the control record {self._paths.control} is gone, and the journal beside it is in epoch {epoch}.",
                remedy="Write it again from a backup, or submit the topology again: it starts without its state.",
            )

    def _make_parents(self) -> bool:
        """Whether the znodes of answers, barriers or halts were not there; now they are."""
        needed = (self._paths.answers, self._paths.barriers, self._paths.halt)
        gone = [path for path in needed if not self._client.exists(path)]
        for path in gone:
            self._client.ensure_path(path)
        return bool(gone)

    def _version(self, path: str) -> int:
        if path not in self._versions:
            raise LostLeadershipError(f"{path} is written without a claim.", remedy="Claim the topology first.")
        return self._versions[path]

    def _write(self, texts: Mapping[str, bytes], also: Callable[[Any], None]) -> None:
        """At all of these paths or at none; the versions of the claimed ones decide whether it may.

        `also(transaction)` adds what goes with it, unless it cannot be done or was done before.
        """
        path = next(iter(texts))
        self._version(path)
        with asking(f"write {path}"):
            while True:
                try:
                    self._client.retry(self._set, texts, also)
                except (NoNodeError, BadVersionError):
                    if self._settle(texts):
                        return
                else:
                    self._written(texts)
                    return

    def _set(self, texts: Mapping[str, bytes], also: Callable[[Any], None]) -> None:
        transaction = self._client.transaction()
        for path, text in texts.items():
            transaction.set_data(path, text, version=self._versions.get(path, -1))
        for path in self._versions.keys() - texts.keys():  # one that was written again has a version of long ago
            transaction.check(path, self._versions[path])
        conditions = len(transaction.operations)
        also(transaction)
        for number, result in enumerate(transaction.commit()):
            if isinstance(result, Exception) and not isinstance(result, RolledBackError):
                if number < conditions:
                    raise result
                again = isinstance(result, NoNodeError) and self._make_parents()
                self._set(texts, also if again else lambda _: None)
                return

    def _written(self, texts: Mapping[str, bytes]) -> None:
        for path in self._versions.keys() & texts.keys():
            self._versions[path] += 1
        self._last |= texts

    def _settle(self, texts: Mapping[str, bytes]) -> bool:
        """After a write that failed: whether it had been carried out, and the connection broke before the answer.

        Znodes that were deleted are there again. Raises LostLeadershipError if another coordinator can have claimed.
        """
        found = {path: self._read(path) for path in self._versions}
        carried_out = any(
            found[path] == (texts[path], version + 1) for path, version in self._versions.items() if path in texts
        )
        for path, there in found.items():
            expected = self._versions[path] + (carried_out and path in texts)
            if there is not None and there[1] != expected:
                raise LostLeadershipError(
                    f"another coordinator has claimed the topology: {path} has version {there[1]}, not {expected}.",
                    remedy="Stop this one.",
                )
        if carried_out:
            self._written(texts)
        self._put_back([path for path, there in found.items() if there is None])
        return carried_out

    def _put_back(self, gone: list[str]) -> None:
        """Write deleted znodes again, unless another coordinator has made one of them since: `_settle` finds that."""
        lost = [*gone, *([] if self._client.exists(self._paths.told) else [self._paths.told])]
        if not lost:
            return
        self._client.ensure_path(self._paths.base)
        transaction = self._client.transaction()
        for path in self._versions.keys() - set(gone):
            transaction.check(path, self._versions[path])
        for path in lost:
            transaction.create(path, self._last.get(path, b""))
        if not any(isinstance(result, Exception) for result in commit(transaction)):
            self._versions |= dict.fromkeys(gone, 0)
            for path in lost:
                log.warning("%s was deleted; it is written again as it was", path)


def commit(transaction: Any) -> list[Any]:
    """The results; if the connection broke, an answer that makes the caller look and try again."""
    try:
        return list(transaction.commit())
    except ConnectionLoss:
        return [RolledBackError(), RolledBackError()]


def answer(transaction: Any, paths: Paths, name: str, result: Outcome) -> None:
    """In one transaction: a death in between would lose a request, or let it be carried out twice."""
    transaction.create(f"{paths.answers}/{name}", result.to_json().encode())
    transaction.delete(f"{paths.requests}/{name}")
