"""A task's place in the network, by round trips to other tasks over real connections."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import msgpack
import pytest

from leeward.core.coordinates import Coordinate, round_trip_s
from leeward.core.errors import LeewardError
from leeward.runtime.handover.direct import Listener, ask
from leeward.runtime.task.distance import Distance

OTHER = Coordinate((0.01, 0.0), 0.001, 0.5)


def at(node: str) -> bytes:
    """An address there."""
    return msgpack.packb([node, 1, b""])


THERE = at("there")


@contextlib.contextmanager
def listening(count: int) -> Iterator[tuple[list[Distance], dict[int, bytes]]]:
    """Tasks 1 to count, and where they listen."""
    addresses: dict[int, bytes] = {}
    tasks = [Distance(lambda: addresses, task, f"n{task}") for task in range(1, count + 1)]
    pieces: list[object] = []
    listeners = [Listener("127.0.0.1", pieces.append, answer=task.answer) for task in tasks]
    addresses |= {number: listener.address for number, listener in enumerate(listeners, 1)}
    try:
        yield tasks, addresses
    finally:
        for listener in listeners:
            listener.close()
    assert not pieces, "a question brings no pieces"


def test_tasks_of_one_machine_find_that_they_are_near_each_other():
    with listening(4) as (tasks, _):
        for _ in range(150):
            for task in tasks:
                task.look()
        assert all(task.place.error < 0.6 for task in tasks)
        assert all(task.place.height < 0.01 for task in tasks)


def test_the_round_trip_is_the_handshakes_and_the_answer_the_place():
    with listening(1) as ((task,), addresses):
        seconds, answer = ask(addresses[1], 9)
        assert 0 < seconds < 1.0
        assert Coordinate.of(msgpack.unpackb(answer)) == task.place


def test_who_does_not_know_the_secret_is_not_answered():
    with listening(1) as (_, addresses):
        host, port, _ = msgpack.unpackb(addresses[1])
        _, answer = ask(msgpack.packb([host, port, b"x" * 16]), 9)
        assert answer == b""


@pytest.mark.parametrize("answer", [b"", b"\xc1", b"junk", msgpack.packb([1.0, 2.0]), msgpack.packb([0, 0, -1, 1])])
def test_an_answer_that_is_no_place_moves_nothing(answer):
    one = Distance(lambda: {2: THERE}, 1, "here", measure=lambda *_: (0.05, answer))
    one.look()
    assert one.place == Coordinate()


def test_the_shortest_of_the_last_round_trips_counts():
    other = msgpack.packb(OTHER.figures())

    def after(*trips: float) -> Coordinate:
        coming = iter(trips)
        one = Distance(lambda: {2: THERE}, 1, "here", measure=lambda *_: (next(coming), other))
        for _ in trips:
            one.look()
        return one.place

    assert after(0.02, 0.9, 0.8) == after(0.02, 0.02, 0.02) != after(0.9, 0.02, 0.8) == after(0.9, 0.02, 0.02)
    four, five = after(0.02, 0.5, 0.5, 0.5), after(0.02, 0.5, 0.5, 0.5, 0.5)
    assert four == after(0.02, 0.02, 0.02, 0.02) and round_trip_s(five, OTHER) > 2 * round_trip_s(four, OTHER)


class Ways:
    """The ways to 15 other nodes, and the questions that went along them."""

    def __init__(self) -> None:
        self.seconds = {f"n{number}": 0.01 for number in range(15)}
        self.asked: list[str] = []
        self.waits: list[float] = []  #: round trips that wait in a queue, the next first
        addresses = {number: at(node) for number, node in enumerate(self.seconds)}
        self.task = Distance(lambda: addresses, 99, "here", measure=self._measure)

    def _measure(self, address: bytes, *_: object) -> tuple[float, bytes]:
        node = msgpack.unpackb(address)[0]
        self.asked.append(node)
        return self.seconds[node] + (self.waits.pop(0) if self.waits else 0.0), b""

    def look(self) -> str:
        """Ask one, and say which."""
        self.task.look()
        return self.asked[-1]


def test_a_way_that_becomes_longer_is_asked_until_it_is_known():
    """With 15 nodes it took a quarter of an hour until the four last round trips to one were longer."""
    ways = Ways()
    for _ in range(200):
        ways.look()
    assert ways.task.pause_s() == 10.0 and set(ways.task.trips().values()) == {0.01}
    ways.seconds["n3"] = 0.05
    while ways.look() != "n3":
        assert ways.task.pause_s() == 10.0
    for _ in range(3):
        assert (ways.task.pause_s(), ways.task.trips()["n3"]) == (1.0, 0.01)
        assert ways.look() == "n3"
    assert (ways.task.pause_s(), ways.task.trips()["n3"]) == (10.0, 0.05)
    ways.seconds["n3"] = 0.01
    while ways.look() != "n3":
        pass
    assert (ways.task.pause_s(), ways.task.trips()["n3"]) == (10.0, 0.01)


def test_a_round_trip_that_waited_in_a_queue_changes_nothing():
    ways = Ways()
    for _ in range(200):
        ways.look()
    ways.waits = [0.5, 0.7]
    waited = ways.look()
    assert [ways.look(), ways.look()] == [waited, waited] and ways.task.pause_s() == 10.0
    assert set(ways.task.trips().values()) == {0.01}
    ways.waits = [0.0005]
    ways.look()
    assert ways.task.pause_s() == 10.0, "half a millisecond more is no other way"


def test_a_node_alone_and_a_server_that_is_away_are_told():
    alone = Distance(lambda: {1: at("here"), 2: at("here")}, 1, "here")
    alone.look()
    assert alone.place == Coordinate()

    def away() -> dict[int, bytes]:
        raise LeewardError("Redis is away", remedy="Start it.")

    with pytest.raises(LeewardError, match="Redis is away"):
        Distance(away, 1, "here").look()
