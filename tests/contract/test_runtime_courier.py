"""Key groups from task to task through a real Redis: whole, in bounded pieces, fenced, and never silently wrong."""

from __future__ import annotations

import queue
import threading

import msgpack
import pytest

from leeward.runtime.handover.pieces import PIECE_BYTES, pack
from leeward.runtime.pacing import Pacing
from tests.helpers.courier_task import LONG_S, PACING, Task, key
from tests.helpers.servers import RedisServer


def test_warming_up_sends_a_piece_to_itself_and_leaves_nothing(server, client):
    task = Task(server, 3)
    read = []
    task.courier._relay._read = lambda *args, ask=task.courier._relay._read: read.append(ask(*args)) or read[-1]
    task.warm()
    assert len(read[0]) == 1
    client.set("leeward:t-1:fence", 5)  # as a process finds it that starts later
    task.warm()
    assert read[1] == [] and client.keys("leeward:t-1:handover:*") == []


def test_groups_of_several_owners_come_together_and_leave_nothing_behind(server, client):
    first, second, third = (Task(server, number) for number in (1, 2, 3))
    third.receive(3, (0, 1, 2, 5))
    state = {f"k{n}": [n, 2.5, None, True, b"\x00", "é", {"nested": [n]}] for n in range(20_000)}
    first.send(3, {3: {0: state, 1: {}}})
    second.send(3, {3: {2: {7: "seven"}, 5: {}}, 1: {9: {}}})
    assert first.word() == second.word() == "sent"
    assert third.word() == "whole"
    assert third.groups == {0: state, 1: {}, 2: {7: "seven"}, 5: {}}
    assert third.bytes > 5 * PIECE_BYTES
    for _ in range(200):
        if not client.exists(key(3)):
            break
        threading.Event().wait(0.02)
    assert client.keys("leeward:t-1:handover:3:3") == []
    assert 0 < client.ttl(key(1)) <= PACING.expiry_s


def test_a_handover_that_was_given_up_is_not_read_for_any_more(server):
    donor, receiver = Task(server, 1, "127.0.0.1"), Task(server, 3, "127.0.0.1")
    for task in (donor, receiver):
        task.warm()
    before = {thread for thread in threading.enumerate() if thread.name == "leeward-receive"}
    receiver.receive(3, {0})
    sending = donor.send(4, {3: {0: {"a": 1}}})  # the next one begins, and its first piece comes before its record
    assert receiver.called.wait(LONG_S)
    receiver.courier.cancel()
    receiver.receive(4, {0})
    assert receiver.word() == "whole" and donor.word() == "sent" and sending
    for _ in range(500):
        if {thread for thread in threading.enumerate() if thread.name == "leeward-receive"} <= before:
            break
        threading.Event().wait(0.02)
    assert {thread for thread in threading.enumerate() if thread.name == "leeward-receive"} <= before


def test_what_was_copied_counts_when_the_receiver_has_taken_it(server):
    """Else the rest, for which tuples wait, would queue behind it."""
    first, third = Task(server, 1), Task(server, 3)
    sending = first.courier.send(3, lambda: first.said.put("sent"), first.said.put)
    packer = msgpack.Packer(autoreset=False)
    pack(packer, 0, {"big": bytes(PIECE_BYTES)}.items(), (), last=False, owner="task 1")
    sending.put({3: packer.bytes()})
    sending.when_nearly_taken(lambda: first.said.put("taken"))
    with pytest.raises(queue.Empty):
        first.said.get(timeout=0.1)
    third.receive(3, {0})
    assert first.word() == "taken" and not third.groups, "its last chunk is still to come"
    sending.finish({3: {0: ([("small", 1)], [])}})
    assert first.word() == "sent" and third.word() == "whole"
    assert third.groups == {0: {"big": bytes(PIECE_BYTES), "small": 1}}


def test_a_copy_that_fills_no_piece_is_sent_ahead_all_the_same(server, client):
    """Else all of it would follow the marker, and be decoded while tuples wait."""
    first, third = Task(server, 1), Task(server, 3)
    sending = first.courier.send(3, lambda: first.said.put("sent"), first.said.put)
    packer = msgpack.Packer(autoreset=False)
    pack(packer, 0, {"a": 1, "b": 1}.items(), (), last=False, owner="task 1")
    sending.put({3: packer.bytes()})
    sending.when_nearly_taken(lambda: first.said.put("taken"))
    with pytest.raises(queue.Empty):
        first.said.get(timeout=0.1)
    assert client.xlen(key(3)) == 1
    third.receive(3, {0})
    assert first.word() == "taken" and not third.groups
    sending.finish({3: {0: ([("b", 2)], [])}})
    assert first.word() == "sent" and third.word() == "whole"
    assert third.groups == {0: {"a": 1, "b": 2}}


def test_a_piece_is_bounded_whatever_the_size_of_a_value(server, client):
    value = bytes(range(256)) * 5000  # ten times a piece
    Task(server, 1).send(3, {3: {0: {"big": value}, 1: {"small": 1}}})
    receiver = Task(server, 3)
    for _ in range(200):
        pieces = [fields[b"p"] for _, fields in client.xrange(key(3))]
        if len(pieces) >= 10:
            break
        threading.Event().wait(0.02)
    assert len(pieces) >= 10 and max(map(len, pieces)) < PIECE_BYTES + 100
    receiver.receive(3, (0, 1))
    assert receiver.word() == "whole"
    assert receiver.groups == {0: {"big": value}, 1: {"small": 1}}


def test_a_sender_of_an_older_epoch_is_refused(server, client):
    client.set("leeward:t-1:fence", 4)
    task = Task(server, 1)
    client.xadd(key(3), {"p": b"of a time when it was allowed"})
    task.send(3, {3: {0: {"a": 1}}})
    assert "FencedError" in task.word()
    assert not client.exists(key(3))


def test_what_cannot_travel_is_named(server, client):
    task = Task(server, 1)
    task.send(3, {3: {0: {"bad": {1, 2}}}})
    word = task.word()
    assert "SnapshotError" in word and "'bad'" in word and "set" in word


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda pieces: [pieces[0][:-1] + b"?", *pieces[1:]], "piece 0 of task 1 in handover 3 is damaged"),
        (lambda pieces: [pieces[0], *pieces[2:]], "piece 2 of task 1 in handover 3 came, piece 1 did not"),
        (lambda pieces: [b"nonsense"], "is none (8 bytes)"),
        (lambda pieces: [pieces[0][:3] + b"\x09" + pieces[0][4:]], "has version 9"),
    ],
)
def test_a_damaged_piece_is_never_silent(server, client, spoil, says):
    sender = Task(server, 1)
    sender.send(3, {3: {0: dict.fromkeys(range(1000), "x" * 1000)}})
    assert sender.word() == "sent"
    pieces = [fields[b"p"] for _, fields in client.xrange(key(3))]
    assert len(pieces) > 3
    client.delete(key(3))
    for piece in spoil(pieces):
        client.xadd(key(3), {"p": piece})
    receiver = Task(server, 3)
    receiver.receive(3, (0,))
    assert says in receiver.word() and not receiver.groups


def test_a_piece_that_was_sent_twice_counts_once(server, client):
    sender = Task(server, 1)
    sender.send(3, {3: {0: dict.fromkeys(range(1000), "x" * 1000)}})
    assert sender.word() == "sent"
    pieces = [fields[b"p"] for _, fields in client.xrange(key(3))]
    client.delete(key(3))
    for piece in pieces:
        client.xadd(key(3), {"p": piece})
        client.xadd(key(3), {"p": piece})
    receiver = Task(server, 3)
    receiver.receive(3, (0,))
    assert receiver.word() == "whole" and len(receiver.groups[0]) == 1000


def test_what_is_sent_later_of_a_key_counts(server, client):
    sender, receiver = Task(server, 1), Task(server, 3)
    receiver.receive(3, (0,))
    sending = sender.courier.send(3, lambda: sender.said.put("sent"), sender.said.put)
    for entries in ([("a", 1), ("b", 1), ("c", 1)], [("b", 2)]):
        packer = msgpack.Packer(autoreset=False)
        pack(packer, 0, entries, ["c"] if len(entries) == 1 else [], last=False, owner="count")
        sending.put({3: packer.bytes()})
    sending.finish({3: {0: ([("a", 3)], ["d"])}})
    assert sender.word() == "sent" and receiver.word() == "whole"
    assert receiver.groups == {0: {"a": 3, "b": 2}}


def test_a_sender_that_is_far_ahead_waits_for_its_receiver(server, client):
    sender, receiver = Task(server, 1, pacing=Pacing(relay_pieces=3)), Task(server, 3)
    sender.send(3, {3: {0: dict.fromkeys(range(2000), "x" * 1000)}})
    with pytest.raises(queue.Empty):
        sender.said.get(timeout=0.5)
    assert client.xlen(key(3)) == 3
    receiver.receive(3, (0,))
    assert receiver.word() == "whole" and sender.word() == "sent"


def test_redis_away_is_waited_for_and_cancel_ends_that(tmp_path):
    server = RedisServer(tmp_path)
    sender, receiver = Task(server, 1), Task(server, 3)
    server.stop()
    receiver.receive(3, (0,))
    sender.send(3, {3: {0: {"a": 1}}})
    with pytest.raises(queue.Empty):
        sender.said.get(timeout=0.5)
    assert receiver.said.empty()
    before = threading.active_count()
    sender.courier.cancel()
    receiver.courier.cancel()
    for _ in range(100):
        if threading.active_count() <= before - 2:
            break
        threading.Event().wait(0.1)
    assert threading.active_count() <= before - 2
    assert sender.said.empty() and receiver.said.empty()
