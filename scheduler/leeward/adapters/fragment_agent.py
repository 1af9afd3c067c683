"""An agent that keeps fragments of other nodes' state in files. It knows no scheme: a fragment is a name and bytes.

    FOLDER/<topology>/<cut>/<part>

A file has its name when its bytes are complete, checked and durable. Frames: `leeward.wire.fragments`.
"""

from __future__ import annotations

import hmac
import logging
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

from leeward.wire.fragments import BrokenWayError, Way

log = logging.getLogger(__name__)

#: Bytes that are received or written at once.
CHUNK = 256 * 1024
#: A client that is silent for so long has gone, s; and connections at the same time.
SILENT_S, CONNECTIONS = 60.0, 256
#: Before another connection is taken where one could not be, s.
AGAIN_S = 0.25
_DRAFTS = ".drafts"


class RefusedError(Exception):
    """The text says to the client why."""


class FragmentFiles:
    """Fragments in a folder, up to so many bytes. Every method may be called by several threads."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder, self._most, self._lock = folder, most, threading.Lock()
        shutil.rmtree(folder / _DRAFTS, ignore_errors=True)  # of a process that was killed
        (folder / _DRAFTS).mkdir(parents=True)
        self._number = 0
        self._sizes = {path: path.stat().st_size for path in folder.glob("*/*/*")}

    @property
    def count(self) -> int:
        """Fragments that are kept."""
        return len(self._sizes)

    def write(self, topology: str, cut: int, part: str, size: int, seal: bytes, way: Way) -> None:
        """Take the bytes that come, and keep them. Raises RefusedError when all were read, and OSError."""
        if size < 0:
            raise BrokenWayError(f"{size} bytes are announced")
        try:
            target = self._path(topology, cut, part)
        except RefusedError:
            _take(way, size, seal, None)
            raise
        with self._lock:
            self._number += 1
            draft = self._folder / _DRAFTS / str(self._number)
            room = sum(self._sizes.values()) + size <= self._most
            if room:
                self._sizes[draft] = size
        try:
            if not _take(way, size, seal, draft if room else None):
                raise RefusedError("the bytes are not those that were announced")
            if not room:
                raise RefusedError(f"{size} bytes more are over the {self._most} bytes that are kept here")
            with self._lock:  # `drop` may take the folder away
                target.parent.mkdir(parents=True, exist_ok=True)
                draft.replace(target)
                self._sizes[target] = size
            for folder in (target.parent, target.parent.parent, self._folder):
                _sync(folder)
        finally:
            with self._lock:
                self._sizes.pop(draft, None)
            draft.unlink(missing_ok=True)

    def open(self, topology: str, cut: int, part: str, begin: int, length: int) -> int:
        """A descriptor of the file that has these bytes; raises RefusedError if there is none."""
        path = self._path(topology, cut, part)
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            raise RefusedError("there is no such fragment") from None
        if begin < 0 or length < 0 or begin + length > os.fstat(descriptor).st_size:
            os.close(descriptor)
            raise RefusedError("the fragment has no such bytes")
        return descriptor

    def drop(self, topology: str, below: int) -> int:
        """Delete the fragments of all cuts below this number; how many."""
        root = self._folder / _safe(topology)
        with self._lock:
            cuts = [path for path in root.glob("*") if path.name.isdigit() and int(path.name) < below]
            doomed = [path for path in self._sizes if path.parent in cuts]
            for path in doomed:
                del self._sizes[path]
            for folder in cuts:
                shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):  # it has newer cuts, or is not there
                root.rmdir()
        return len(doomed)

    def _path(self, topology: str, cut: int, part: str) -> Path:
        if not isinstance(cut, int) or cut < 0:
            raise RefusedError(f"cut {cut!r:.60} is no number of one")
        return self._folder / _safe(topology) / str(cut) / _safe(part)


def _safe(name: str) -> str:
    """A file's name from any text; raises RefusedError for one that can be none."""
    if not isinstance(name, str) or not name or len(found := quote(name, safe="")) > 200:
        raise RefusedError(f"{name!r:.60} is no name")
    return found.replace(".", "%2E")


def _take(way: Way, size: int, seal: bytes, draft: Path | None) -> bool:
    """Receive so many bytes, to a durable file if there is one; whether they are the ones that were announced."""
    room, found, left = memoryview(bytearray(min(size, CHUNK))), sha256(), size
    with open(draft or os.devnull, "wb") as file:
        while left:
            got = way.socket.recv_into(room[: min(left, CHUNK)])
            if not got:
                raise BrokenWayError("the client has closed the connection")
            found.update(room[:got])
            file.write(room[:got])
            left -= got
        file.flush()
        if draft:
            os.fsync(file.fileno())
    return hmac.compare_digest(found.digest(), seal)


def _sync(folder: Path) -> None:
    with suppress(FileNotFoundError):  # dropped meanwhile
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class FragmentAgent:
    """Serves the files on an address. `secret`: of the cluster. Raises OSError if the address is taken.

    `near`: addresses of the agents next to this one in an overlay, the nearest first, from any thread; None: it is in
    none.
    """

    def __init__(
        self, files: FragmentFiles, address: tuple[str, int], secret: bytes,
        near: Callable[[], Sequence[str]] | None = None,
    ) -> None:  # fmt: skip
        self._files, self._secret, self._near = files, secret, near
        self._server = socket.create_server(address, backlog=CONNECTIONS)
        self._closed = False
        self._room = threading.BoundedSemaphore(CONNECTIONS)
        self.port: int = self._server.getsockname()[1]

    def run(self) -> None:
        """Until `close`."""
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError as error:  # a caller that hung up, say, or too many open files
                if self._closed:
                    return
                log.warning("fragments: no connection could be taken: %s", error)
                time.sleep(AGAIN_S)
                continue
            if not self._room.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(target=self._serve, args=(connection,), name="leeward-fragments", daemon=True).start()

    def close(self) -> None:
        """From any thread, or a signal's handler."""
        self._closed = True
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                connection.settimeout(SILENT_S)
                way = Way(connection, self._secret, agent=True)
                while True:
                    self._answer(way, way.receive())
        except OSError as error:
            if not isinstance(error, TimeoutError | BrokenWayError):
                log.info("fragments: a connection broke: %s", error)
        finally:
            self._room.release()

    def _answer(self, way: Way, request: list[Any]) -> None:
        try:
            match request:
                case ["put", topology, cut, part, int(size), bytes(seal)]:
                    self._files.write(topology, cut, part, size, seal, way)
                    way.send(["ok", size])
                case ["get", topology, cut, part, int(begin), int(length)]:
                    self._give(way, self._files.open(topology, cut, part, begin, length), begin, length)
                case ["drop", str(topology), int(below)]:
                    way.send(["ok", self._files.drop(topology, below)])
                case ["count"]:
                    way.send(["ok", self._files.count])
                case ["near"]:
                    if self._near is None:
                        raise RefusedError("it is in no overlay, and knows no agents near it")
                    way.send(["ok", list(self._near())])
                case _:
                    way.send(["no", "there is no such request"])
        except RefusedError as error:
            way.send(["no", str(error)])

    @staticmethod
    def _give(way: Way, descriptor: int, begin: int, length: int) -> None:
        with open(descriptor, "rb") as file:
            way.send(["ok", length])
            if length:
                way.socket.sendfile(file, begin, length)
