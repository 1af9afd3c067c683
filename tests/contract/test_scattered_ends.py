"""A rebuild from holders whose connections end: an idle one is opened again, one that breaks in an answer is gone."""

from __future__ import annotations

import socket
import threading

import pytest

from leeward.adapters import fragment_agent
from leeward.adapters.fragment_agent import FragmentAgent, FragmentFiles
from leeward.core.fragments import Ask
from leeward.runtime.state.scattered import Scattered
from leeward.wire.fragments import Way

SECRET = b"of this test"


@pytest.fixture
def agent(tmp_path, monkeypatch):
    """In this process; it closes connections that are idle for a moment."""
    monkeypatch.setattr(fragment_agent, "SILENT_S", 0.1)
    agent = FragmentAgent(FragmentFiles(tmp_path, 1000), ("127.0.0.1", 0), SECRET)
    threading.Thread(target=agent.run, daemon=True).start()
    yield f"127.0.0.1:{agent.port}"
    agent.close()


class Pausing:
    """A scheme and a rebuild of it: the second half is asked for half a second after the first."""

    def __init__(self, holder: str) -> None:
        self.holder, self.halves, self.asked_at, self.gone_at = holder, [], None, []

    def spread(self, state, *, neighbours):
        self.fragments, self.least, self.period_s = ((state,),), 1, 7.5
        return self

    def record(self, holders):
        return b""

    def rebuild(self, record, ranges):
        return self

    @property
    def over(self):
        return len(self.halves) == 2

    def begin(self, now):
        return [Ask(self.holder, 0, 0, 3)]

    def received(self, ask, data, now):
        self.halves.append(bytes(data))
        self.asked_at = now + 0.5 if len(self.halves) == 1 else None
        return []

    def tick(self, now):
        if self.asked_at is None or now < self.asked_at:
            assert self.asked_at is None or now < self.asked_at + 10
            return []
        self.asked_at = None
        return [Ask(self.holder, 0, 3, 3)]

    def gone(self, holder, now):
        raise AssertionError("the holder is there")

    def state(self):
        return memoryview(b"".join(self.halves))


def test_an_idle_holder_is_connected_again(agent):
    scheme = Pausing(agent)
    access = Scattered(scheme, [agent], SECRET)
    record = access.put("t-1", 1, "a", {0: b"abcdef"}).record
    assert access.get("t-1", 1, record, [0]) == {0: b"abcdef"}


class Expecting(Pausing):
    """Asks once; the holder is to be found gone."""

    def gone(self, holder, now):
        self.halves = [b"", b""]
        return []

    def tick(self, now):
        self.until = getattr(self, "until", now + 5)
        assert now < self.until, "nobody said that the holder is gone"
        return []


def test_a_holder_that_dies_in_the_middle_of_its_answer_is_gone():
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = server.accept()
        way = Way(connection, SECRET, agent=True)
        way.receive()
        way.send(["ok", 3], [b"a"])
        way.close()

    threading.Thread(target=serve, daemon=True).start()
    address = f"127.0.0.1:{server.getsockname()[1]}"
    scheme = Expecting(address)
    Scattered(scheme, [address], SECRET).get("t-1", 1, {"part": "a", "places": {0: (0, 0)}, "record": b""}, [0])
    server.close()


def test_an_agent_goes_on_where_one_connection_could_not_be_taken(tmp_path, monkeypatch):
    agent = FragmentAgent(FragmentFiles(tmp_path, 1000), ("127.0.0.1", 0), SECRET)
    accept, failed = agent._server.accept, []

    class Server:
        def accept(self):
            if not failed:
                failed.append(OSError(24, "too many open files"))
                raise failed[0]
            return accept()

        def __getattr__(self, name):
            return getattr(server, name)

    server, agent._server = agent._server, Server()
    running = threading.Thread(target=agent.run, daemon=True)
    running.start()
    with socket.create_connection(("127.0.0.1", agent.port), timeout=10) as caller:
        Way(caller, SECRET, agent=False).close()
    assert failed and running.is_alive()
    agent.close()
    running.join(10)
    assert not running.is_alive()
