"""The coordinator's connection to ZooKeeper breaks in the middle of a write: before it got there, or its answer."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from leeward.adapters.zookeeper import ZooControlStore, connect
from leeward.control.errors import LostLeadershipError
from leeward.core.control import ControlRecord, Paths
from leeward.core.journal import Journal
from tests.helpers.control_twins import FIRST

#: ZooKeeper's numbers of requests: setData and multi.
WRITES = {5, 14}


class Way:
    """A way to ZooKeeper that breaks once at a write, and then lets nobody through until it is mended."""

    def __init__(self, port: int) -> None:
        self._server = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.hosts = f"127.0.0.1:{self._listening.getsockname()[1]}"
        self.loses = ""  #: "request" or "answer", of the next write
        self.broken, self.mended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """For good; its client has hung up."""
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                with client, contextlib.suppress(ConnectionError):
                    if not self.broken.is_set() or self.mended.is_set():
                        self._carry(client)

    def _carry(self, client: socket.socket) -> None:
        write = b""  # the number that the answer will bear
        with socket.create_connection(("127.0.0.1", self._server)) as server:
            while True:
                for side in select.select([client, server], [], [])[0]:
                    if not (data := side.recv(1 << 16)):
                        return
                    number, kind = data[4:8], int.from_bytes(data[8:12], "big")
                    if side is client and self.loses and kind in WRITES:
                        write = number
                    if number == write and side is (client if self.loses == "request" else server):
                        self.loses = ""
                        self.broken.set()
                        return
                    (server if side is client else client).sendall(data)


class Scene:
    """A coordinator behind a way that breaks, and what znodes hold as everybody else sees them."""

    def __init__(self, way: Way, hosts: str, name: str) -> None:
        self.way, self.paths = way, Paths(f"/test-{name}", "app-1-1")
        self.clients = [connect(way.hosts, timeout_s=60), connect(hosts, timeout_s=60)]
        self.control, self.rival = (ZooControlStore(client, self.paths, "app") for client in self.clients)
        self.control.claim()
        self.control.write_record(ControlRecord(epoch=1, tables=FIRST), journal=Journal(epoch=1))
        self._writer = ThreadPoolExecutor(1)

    def close(self) -> None:
        """Whatever became of the test: nobody is left waiting for the way."""
        self.way.mended.set()
        self._writer.shutdown()
        for client in self.clients:
            client.stop()
            client.close()
        self.way.close()

    def write_and_lose(self, loses: str) -> Future[None]:
        """Write epoch 2, in record and journal; the way breaks meanwhile."""
        self.way.loses = loses
        record, journal = ControlRecord(epoch=2, tables=FIRST), Journal(epoch=2)
        writing = self._writer.submit(self.control.write_record, record, journal=journal)
        assert self.way.broken.wait(10)
        return writing

    def epochs(self) -> list[int]:
        """Of the record, of what all tasks are told and of the journal."""
        paths = (self.paths.control, self.paths.told, self.paths.journal)
        return [json.loads(self.clients[1].get(path)[0])["epoch"] for path in paths]


@pytest.fixture
def scene(zoo, request) -> Iterator[Scene]:
    scene = Scene(Way(zoo.port), zoo.hosts, request.node.name.replace("[", "-").replace("]", ""))
    yield scene
    scene.close()


@pytest.mark.parametrize(("loses", "there"), [("request", 1), ("answer", 2)])
def test_a_record_its_journal_and_what_is_told_of_it_are_written_all_or_none(scene, loses, there):
    writing = scene.write_and_lose(loses)
    assert scene.epochs() == [there] * 3  # a coordinator that dies here leaves this
    scene.way.mended.set()
    writing.result(30)
    assert scene.epochs() == [2] * 3
    scene.control.write_journal(Journal(epoch=3))  # it still knows the version of each
    scene.control.write_record(ControlRecord(epoch=3, tables=FIRST))
    assert scene.epochs() == [3] * 3


@pytest.mark.parametrize("loses", ["request", "answer"])
def test_who_was_replaced_while_the_way_was_broken_is_told_so(scene, loses):
    writing = scene.write_and_lose(loses)
    scene.rival.claim()
    scene.rival.write_record(ControlRecord(epoch=3, tables=FIRST), journal=Journal(epoch=3))
    scene.way.mended.set()
    with pytest.raises(LostLeadershipError):
        writing.result(30)
    assert scene.epochs() == [3] * 3


@pytest.mark.parametrize("deleted", ["control", "journal"])
@pytest.mark.parametrize("loses", ["request", "answer"])
def test_what_is_deleted_while_the_way_is_broken_is_written_with_the_rest(scene, loses, deleted):
    writing = scene.write_and_lose(loses)
    scene.clients[1].delete(getattr(scene.paths, deleted))
    scene.way.mended.set()
    writing.result(30)
    assert scene.epochs() == [2] * 3
    scene.control.write_record(ControlRecord(epoch=3, tables=FIRST), journal=Journal(epoch=3))
    assert scene.epochs() == [3] * 3
