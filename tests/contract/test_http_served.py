"""The API on a real socket: live events, resumed; TLS; an end that waits for nobody."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
import time
from contextlib import contextmanager

import httpx
import pytest
import trustme

from leeward.adapters.http import stream as streaming
from leeward.adapters.http.server import Where, answering
from leeward.adapters.organisations import serving
from leeward.adapters.organisations.serving import listen
from leeward.cli._beside import EXPLAIN
from leeward.control.report.knowledge import Knowledge
from leeward.core.errors import ConfigError, LeewardError
from leeward.sim.memory import ListSink, ManualClock
from tests.helpers.http_api import ACTING, TOKEN

LONG_S = 20.0


@contextmanager
def served(knowledge: Knowledge, **where):
    """The address of an API over what this knows."""
    sink = ListSink()
    with answering(Where(host="127.0.0.1", port=0, **where), TOKEN, knowledge, sink, explain=EXPLAIN):
        (told,) = sink.of("http_listens")
        yield told["url"]


@pytest.fixture
def knowledge():
    return Knowledge(ManualClock())


class Listener:
    """Reads a stream on a thread; `events` grows."""

    def __init__(self, url: str, **headers: str) -> None:
        self.events: list[dict] = []
        self.names: list[str] = []
        self.begun, self.over = threading.Event(), threading.Event()
        self._url, self._headers = url, headers
        threading.Thread(target=self._read, daemon=True).start()
        assert self.begun.wait(LONG_S)

    def _read(self) -> None:
        try:
            with httpx.stream("GET", self._url, headers=self._headers, timeout=LONG_S) as answer:
                for line in answer.iter_lines():
                    self.begun.set()
                    if line.startswith("event: "):
                        self.names.append(line.removeprefix("event: "))
                    if line.startswith("data: "):
                        self.events.append(json.loads(line.removeprefix("data: ")))
        except httpx.HTTPError:
            pass
        finally:
            self.over.set()

    def wait(self, count: int) -> list[dict]:
        """So many events, or the test fails."""
        until = time.monotonic() + LONG_S
        while len(self.events) < count:
            assert time.monotonic() < until, self.events
            time.sleep(0.01)
        return self.events


def test_events_come_live_and_go_on_behind_the_last_id(knowledge):
    with served(knowledge) as url:
        first = Listener(f"{url}api/events")
        knowledge.emit("leading", {"topology": "taxi"})
        knowledge.emit("plan_refused", {"topology": "taxi", "why": "cool-down"})
        seen = first.wait(2)
        assert [event["action"] for event in seen] == ["leading", "plan_refused"]
        assert seen[1]["fields"] == {"why": "cool-down"} and seen[1]["topology"] == "taxi"
        knowledge.emit("measured", {"topology": "taxi", "rates": {"source": float("nan")}})
        knowledge.emit("waiting", {"why": "Nimbus is away"})
        again = Listener(f"{url}api/events", **{"Last-Event-ID": str(seen[0]["id"])})
        assert [event["action"] for event in again.wait(3)] == ["plan_refused", "measured", "waiting"]
        assert again.events[1]["fields"] == {"rates": {"source": None}}, "JSON has no NaN"
        mine = Listener(f"{url}api/events?topology=other&after={seen[0]['id']}")
        assert [event["action"] for event in mine.wait(1)] == ["waiting"]


def test_events_of_one_moment_are_one_piece(knowledge):
    """Between two pieces the server notices that a listener is gone; within one moment there were as many as events."""
    knowledge.emit("serving", {})
    seen = knowledge.newest_id
    for action in ("leading", "measured", "waiting"):
        knowledge.emit(action, {"topology": "taxi"})

    async def pieces(count: int) -> list[bytes]:
        source = streaming.stream(knowledge, seen, "", asyncio.Event())
        found = [await anext(source) for _ in range(count)]
        await source.aclose()
        return found

    begin, events = asyncio.run(pieces(2))
    assert begin == b"retry: 2000\n\n" and events.count(b"id: ") == events.count(b"\n\n") == 3


def test_a_listener_with_an_id_of_another_service_hears_that_it_has_missed_some_and_what_comes(knowledge):
    """Ids begin at the clock of a process: those of one that was started later are above all that are to come."""
    knowledge.emit("leading", {"topology": "taxi"})
    later = knowledge.newest_id + 1_000_000

    async def pieces() -> list[bytes]:
        source = streaming.stream(knowledge, later, "", asyncio.Event(), beat_s=0.01)
        found = [await anext(source) for _ in range(2)]
        knowledge.emit("plan_refused", {"topology": "taxi", "why": "cool-down"})
        found.append(await anext(source))
        await source.aclose()
        return found

    _, missed, event = asyncio.run(pieces())
    assert missed == b"event: missed\ndata: {}\n\n"
    assert event.startswith(b"id: %d\n" % knowledge.newest_id) and event.count(b"id: ") == 1


def test_a_listener_is_told_that_it_has_missed_something(knowledge):
    with served(knowledge) as url:
        late = Listener(f"{url}api/events?after=5")
        knowledge.emit("leading", {"topology": "taxi"})
        late.wait(2)
        assert late.names == ["missed"] and late.events[1]["action"] == "leading"


def test_listeners_are_bounded(knowledge, monkeypatch):
    import leeward.adapters.http.application as application

    monkeypatch.setattr(application, "LISTENERS", 1)
    with served(knowledge) as url:
        Listener(f"{url}api/events")
        refused = httpx.get(f"{url}api/events", timeout=LONG_S)
        assert refused.status_code == 503 and refused.json()["remedy"]


def whole(connection: socket.socket) -> bytes:
    """All that comes until the other side closes it."""
    return b"".join(iter(lambda: connection.recv(10_000), b""))


def test_connections_that_ask_nothing_are_closed_and_listeners_are_not(knowledge, monkeypatch):
    """The process that leads has about a thousand files open at most; without them it cannot reach its servers."""
    monkeypatch.setattr(serving, "HEAD_S", 0.3)
    with served(knowledge) as url:
        listener, address = Listener(f"{url}api/events"), httpx.URL(url)
        for said in (b"", b"GET / HTTP/1.1\r\nHost: "):
            with socket.create_connection((address.host, address.port), timeout=LONG_S) as silent:
                silent.sendall(said)
                assert silent.recv(1000) == b"", "closed by the service"
        with socket.create_connection((address.host, address.port), timeout=LONG_S) as kept:
            kept.sendall(f"GET /api/topologies HTTP/1.1\r\nHost: {address.host}\r\n\r\n".encode())
            assert kept.recv(10_000).startswith(b"HTTP/1.1 200")
            time.sleep(0.2)  # the answer is over: uvicorn's own timer runs, until the next byte
            kept.sendall(b"G")
            assert b"HTTP" not in whole(kept)
        time.sleep(0.3)
        knowledge.emit("leading", {"topology": "taxi"})
        listener.wait(1)
        assert not listener.over.is_set()


def test_a_body_that_does_not_come_is_given_up(knowledge, monkeypatch):
    monkeypatch.setattr(serving, "BODY_S", 0.3)
    with served(knowledge) as url:
        address = httpx.URL(url)
        with socket.create_connection((address.host, address.port), timeout=LONG_S) as client:
            head = f"POST /api/validate HTTP/1.1\r\nHost: {address.host}\r\nContent-Type: application/json\r\n"
            client.sendall(f"{head}Content-Length: 99\r\n\r\n{{".encode())
            answer = whole(client)
        assert answer.startswith(b"HTTP/1.1 408") and b"the rest of the body has not come" in answer


def test_a_stream_ends_with_the_service_and_a_closed_one_is_forgotten(knowledge):
    with served(knowledge) as url:
        listener = Listener(f"{url}api/events")
        with httpx.stream("GET", f"{url}api/events", timeout=LONG_S) as closed:
            next(closed.iter_lines())
        until = time.monotonic() + LONG_S
        while len(knowledge._listeners) > 1:
            knowledge.emit("serving", {})
            assert time.monotonic() < until
            time.sleep(0.01)
        began = time.monotonic()
    assert listener.over.wait(LONG_S) and time.monotonic() - began < streaming.BEAT_S
    knowledge.emit("serving", {})  # its loop is gone
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)


def test_tls_is_spoken_with_a_certificate_and_the_token_acts(knowledge, tmp_path):
    authority = trustme.CA()
    mine = authority.issue_cert("127.0.0.1", "leeward.example")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    mine.cert_chain_pems[0].write_to_path(certificate)
    mine.private_key_pem.write_to_path(key)
    trusts = ssl.create_default_context()
    authority.configure_trust(trusts)
    with served(knowledge, certificate=certificate, key=key, names=("leeward.example",)) as url:
        assert url.startswith("https://")
        answer = httpx.get(f"{url}api/topologies", verify=trusts, headers={"Host": "leeward.example"})
        assert answer.json()["acting"] is True
        acted = httpx.post(f"{url}api/nodes/n1/drain", verify=trusts, headers=ACTING)
        assert acted.status_code == 409 and "no topology is served" in acted.json()["error"]
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"{url.replace('https', 'http')}api/topologies")


def test_an_address_in_use_and_one_that_needs_tls_are_refused(knowledge):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        in_use = Where(host="127.0.0.1", port=port)
        opened = answering(in_use, TOKEN, knowledge, ListSink(), explain=EXPLAIN)
        with pytest.raises(LeewardError, match="cannot be used"), opened:
            pass
    plain = Where(host="10.9.8.7", port=0)
    opened = answering(plain, TOKEN, knowledge, ListSink(), explain=EXPLAIN)
    with pytest.raises(ConfigError, match="--tls-cert and"), opened:
        pass


def test_an_answer_does_not_wait_for_the_acknowledgement_of_its_head():
    """Head and body are two writes; with Nagle's algorithm the body waits 40 ms for a client that delays its answer."""
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
