"""Key groups straight from task to task: what fails on the way goes through Redis, and nothing is lost or doubled."""

from __future__ import annotations

import contextlib
import queue
import socket
import struct
import threading
import time

import msgpack
import pytest

from leeward.runtime.handover.direct import Incoming, Way
from leeward.runtime.handover.pieces import PIECE_BYTES
from leeward.runtime.handover.relay import Relay
from leeward.runtime.pacing import Pacing
from tests.helpers.courier_task import Task, key
from tests.helpers.servers import RedisServer

STATE = {f"k{n}": [n, 2.5, None, b"\x00", {"nested": "x" * 1000}] for n in range(2000)}  # some sixteen pieces
AT = "leeward:t-1:at"


@pytest.fixture
def two(server, client):
    """A sender and a receiver that listen, as tasks do once they have started."""
    tasks = Task(server, 1, host="127.0.0.1"), Task(server, 3, host="127.0.0.1")
    for task in tasks:
        task.warm()
    yield tasks
    for task in tasks:
        task.courier.cancel()
        task.courier._listener.close()


def test_redis_holds_none_of_it(two, client):
    sender, receiver = two
    before = client.info("commandstats")["cmdstat_xadd"]["calls"]  # by warming up, at least
    receiver.receive(3, (0, 1))
    sender.send(3, {3: {0: STATE, 1: {}}})
    assert sender.word() == "sent" and receiver.word() == "whole"
    assert receiver.groups == {0: STATE, 1: {}} and receiver.bytes > 15 * PIECE_BYTES
    assert client.info("commandstats")["cmdstat_xadd"]["calls"] == before


@pytest.mark.parametrize("tries", (1, 3))
def test_a_task_that_starts_while_redis_is_away_is_reached_when_it_is_back(tmp_path, tries):
    with RedisServer(tmp_path) as server:
        sender, receiver = Task(server, 1, host="127.0.0.1"), Task(server, 3, host="127.0.0.1")
        server.stop()
        receiver.warm()
        address = receiver.courier._listener.address
        for left in reversed(range(tries)):
            ((job, after_s),) = receiver.later
            receiver.later.clear()
            if not left:
                server.start()
            job()
            assert after_s > 0 and receiver.courier._listener.address == address
        assert receiver.later == [] and sender.courier.addresses() == {3: address}
        receiver.receive(3, (0,))
        sending = sender.send(3, {3: {0: {"a": 1}}})
        assert sender.word() == "sent" and receiver.word() == "whole" and sending._ways._ways[3]
        receiver.courier._listener.close()


def test_a_task_says_once_where_it_listens(two, client):
    _, receiver = two
    client.delete(AT)
    receiver.warm()
    assert not client.exists(AT) and receiver.later == []


@pytest.mark.parametrize("host", ["", "127.0.0.1"])
def test_a_task_that_cannot_be_reached_has_nothing_to_say_again(server, monkeypatch, host):
    def refuse(*about):
        raise OSError("too many open files")

    monkeypatch.setattr(socket, "create_server", refuse)
    alone = Task(server, 3, host=host)
    alone.courier._relay = Relay("redis://127.0.0.1:1/0", "t-1", 3)  # nobody is there
    alone.warm()
    assert alone.later == [] and alone.courier._listener is None


def test_what_comes_before_the_receiver_was_told_waits_for_that(two):
    """Also over a cancellation, which is of what was before: the sender was answered, and has none of it any more."""
    sender, receiver = two
    sender.send(3, {3: {0: STATE, 1: {"a": 1}}})
    assert sender.word() == "sent" and receiver.called.is_set()
    receiver.courier.cancel()
    assert receiver.said.empty() and not receiver.groups
    receiver.receive(3, (0, 1))
    assert receiver.word() == "whole" and receiver.groups == {0: STATE, 1: {"a": 1}}
    assert receiver.bytes > 15 * PIECE_BYTES


def test_what_came_before_the_receiver_was_told_is_held_against_what_it_is_told(two):
    sender, receiver = two
    sender.send(3, {3: {0: {"a": 1}, 7: {}}})
    assert sender.word() == "sent"
    receiver.receive(3, (0,))
    assert "brought group 7, which task 3 does not gain" in receiver.word()


def test_what_is_damaged_before_the_receiver_was_told_fails_when_it_is(two):
    _, receiver = two
    way = Way(receiver.courier._listener.address, epoch=3, task=1)
    way.push([b"foreign"], threading.Event())
    assert receiver.called.wait(10)
    receiver.receive(3, (0,))
    assert "a piece of a handover is none" in receiver.word()
    way.close()


def test_what_a_receiver_was_never_told_of_is_forgotten_with_the_next_handover(two):
    sender, receiver = two
    sender.send(3, {3: {0: {"a": 1}}})
    assert sender.word() == "sent"
    receiver.receive(4, (0,))
    sender.send(4, {3: {0: {"a": 2}}})
    assert sender.word() == "sent" and receiver.word() == "whole" and receiver.groups == {0: {"a": 2}}


@pytest.mark.parametrize("untold", (0, 3))
def test_it_is_sent_only_when_it_is_taken(two, untold):
    """A receiver that was not told takes little. Until it does it is nowhere but in this process."""
    sender, receiver = two
    receiver.courier._pacing = Pacing(untold_pieces=untold)
    sender.send(3, {3: {0: STATE}})
    with pytest.raises(queue.Empty):
        sender.said.get(timeout=0.6)
    receiver.receive(3, (0,))
    assert sender.word() == "sent" and receiver.word() == "whole"
    assert receiver.groups == {0: STATE}


def test_a_receiver_that_was_not_told_is_called_before_anything_is_sent(two):
    sender, receiver = two
    sending = sender.courier.send(3, lambda: sender.said.put("sent"), sender.said.put)
    sending.reach([3])
    assert receiver.called.wait(10)
    receiver.receive(3, (0,))
    receiver.called.clear()
    sending.finish({3: {0: ([("a", 1)], ())}})
    assert sender.word() == "sent" and receiver.word() == "whole"
    assert not receiver.called.is_set() and not sender.called.is_set()


def test_a_sender_waits_for_a_receiver_that_is_far_behind(two, monkeypatch):
    sender, receiver = two
    big = {0: dict.fromkeys(range(40), "x" * 1_000_000)}
    ways = sender.send(3, {3: big})._ways._ways
    while not any(way.untaken for way in ways.values()):  # not connected yet
        time.sleep(0.01)
    (way,) = ways.values()
    before, behind = -1, 0
    while before < behind:  # until it makes no way any more
        with pytest.raises(queue.Empty):
            sender.said.get(timeout=0.6)
        before, behind = behind, len(way.untaken)
    assert 0 < behind < Pacing().ahead_pieces + 32
    receiver.receive(3, (0,))
    assert sender.word() == "sent" and receiver.word() == "whole" and receiver.groups == big


@pytest.mark.parametrize("answered", [True, False], ids=["answered", "not answered"])
@pytest.mark.parametrize("after", [0, 1, 5, 12])
def test_a_broken_connection_loses_and_doubles_nothing(two, monkeypatch, after, answered):
    sender, receiver = two
    count, taken = [], Incoming.taken

    def breaks(incoming):
        count.append(1)
        if len(count) <= after or answered:
            taken(incoming)
        if len(count) > after:
            raise ConnectionResetError("by the test")

    monkeypatch.setattr(Incoming, "taken", breaks)
    receiver.receive(3, (0,))
    sender.send(3, {3: {0: STATE}})
    assert sender.word() == "sent" and receiver.word() == "whole"
    assert receiver.groups == {0: STATE} and len(count) == after + 1, "it was not tried again"


@pytest.mark.parametrize("number", range(2))
def test_several_senders_by_different_ways(two, server, number):
    """One is on a node from which nobody can be reached."""
    _, receiver = two
    senders = [Task(server, 1, host="127.0.0.1"), Task(server, 2)]
    receiver.receive(3, (0, 1, 2))
    senders[number].send(3, {3: {0: STATE}})
    senders[1 - number].send(3, {3: {1: STATE, 2: {"b": 2}}})
    assert [task.word() for task in senders] == ["sent", "sent"] and receiver.word() == "whole"
    assert receiver.groups == {0: STATE, 1: STATE, 2: {"b": 2}}


def test_a_task_that_is_not_there_any_more_is_sent_to_by_redis(two, client):
    sender, receiver = two
    receiver.courier._listener.close()
    sender.send(3, {3: {0: {"a": 1}}})
    assert sender.word() == "sent" and client.xlen(key(3)) == 1
    receiver.receive(3, (0,))
    assert receiver.word() == "whole"


def test_a_task_that_could_not_be_reached_is_not_tried_again(two, client, monkeypatch):
    """Behind a firewall each try takes a second, while tuples wait; where it starts anew it has another address."""
    sender, receiver = two
    tried, connect = [], socket.create_connection

    def firewall(where, **options):
        tried.append(where)
        raise TimeoutError("timed out")

    monkeypatch.setattr(socket, "create_connection", firewall)
    for epoch in (3, 4):
        receiver.receive(epoch, (0,))
        sender.send(epoch, {3: {0: {"epoch": epoch}}})
        assert sender.word() == "sent" and receiver.word() == "whole"
        assert receiver.groups.pop(0) == {"epoch": epoch} and len(tried) == 1
    monkeypatch.setattr(socket, "create_connection", connect)
    again = Task(sender.server, 3, host="127.0.0.1")
    again.warm()
    again.receive(5, (0,))
    sending = sender.send(5, {3: {0: {"epoch": 5}}})
    assert sender.word() == "sent" and again.word() == "whole" and sending._ways._ways[3]
    again.courier._listener.close()


def test_a_sender_of_an_older_epoch_is_refused(two, client):
    """The receiver is in a newer handover, so the connection is closed, and Redis asks the fence."""
    sender, receiver = two
    client.set("leeward:t-1:fence", 4)
    receiver.receive(4, (0,))
    sender.send(3, {3: {0: {"a": 1}}})
    assert "FencedError" in sender.word()
    assert receiver.said.empty() and not receiver.groups


def test_who_does_not_know_the_secret_is_sent_away(two, client, caplog):
    sender, receiver = two
    host, port, secret = msgpack.unpackb(client.hget(AT, "3"))
    client.hset(AT, "3", msgpack.packb([host, port, bytes(len(secret))]))
    receiver.receive(3, (0,))
    sender.send(3, {3: {0: {"a": 1}}})
    assert sender.word() == "sent" and receiver.word() == "whole", "by Redis"
    assert "greeting is not for this task" in caplog.text
    with socket.create_connection((host, port)) as stranger:
        stranger.sendall(b"GET / HTTP/1.1\r\nHost: of a stranger\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):  # as not all of it was read
            assert stranger.recv(1) == b""


@pytest.mark.parametrize(("piece", "says"), [(b"nonsense", "is none (8 bytes)"), (None, "")])
def test_nonsense_from_one_who_knows_the_secret(two, client, piece, says):
    """A damaged piece fails the handover; a length that cannot be is no piece at all."""
    _, receiver = two
    receiver.receive(3, (0,))
    host, port, secret = msgpack.unpackb(client.hget(AT, "3"))
    with socket.create_connection((host, port)) as other:
        other.sendall(struct.pack(">3sB16sQI", b"LWD", 1, secret, 3, 1))
        other.sendall(struct.pack(">I", len(piece) if piece else 2**32 - 1) + (piece or b""))
        assert other.recv(1) == b""
    assert says in receiver.word() if says else receiver.said.empty()
    assert not receiver.groups


def test_cancel_ends_what_is_under_way(two):
    sender, receiver = two
    before = threading.active_count()
    sender.send(3, {3: {0: STATE}})
    receiver.receive(3, (0, 1))
    receiver.courier.cancel()
    sender.courier.cancel()
    for _ in range(100):
        if threading.active_count() <= before:
            break
        threading.Event().wait(0.1)
    assert threading.active_count() <= before
    assert sender.said.empty()
