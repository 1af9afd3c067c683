"""A public network and routes between real namespaces: rates that vary as the seed says, and ways that change."""

from __future__ import annotations

import hashlib
import random
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from leeward.core.errors import NotReadyError
from leeward.local.network import namespaces
from leeward.local.network.measure import measure
from leeward.local.network.plan import pipes_of
from leeward.local.network.sockets import receive
from tests.helpers.emulated_net import net

WHY = namespaces.hindrance()
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"needs hardware and rights to emulate a network: {WHY}")

#: How far a measured rate may be from the expected one: the machine does other things, too.
FACTOR = 1.5
ROUTED, USUAL = 6700, 6701
WAY = ("w1", "w2", "w3")


def document(**public: Any) -> dict[str, Any]:
    """Workers in sites a, b, c. Dedicated links lead from a to b and on to c, faster than the public network."""
    nodes = [{"id": "cloud", "site": "a"}, *({"id": f"w{n}", "site": site} for n, site in enumerate("abc", 1))]
    links = [
        {"between": ["a", "b"], "delay_ms": 10, "rate_mbps": 40},
        {"between": ["b", "c"], "delay_ms": 20, "rate_mbps": 20},
    ]
    network = {"site": [{"id": id} for id in "abc"], "node": nodes, "link": links, "mtu": 1500}
    return network | {"public": {"uplink_mbps": 4, "delay_ms": 2, **public}}


def about(value: float) -> Any:
    """Within the factor."""

    class About:
        def __eq__(self, other: object) -> bool:
            return isinstance(other, int | float) and value / FACTOR <= other <= value * FACTOR

        def __repr__(self) -> str:
            return f"about {value:g}"

    return About()


@contextmanager
def sending(source: socket.socket) -> Iterator[None]:
    """As much as TCP takes, while the block runs."""

    def send() -> None:
        with suppress(OSError):  # it was shut down
            while True:
                source.sendall(bytes(4096))

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        source.shutdown(socket.SHUT_RDWR)
        thread.join(20)


def came_in(target: socket.socket, seconds: float) -> int:
    """Bytes of TCP that arrive in that time."""
    until, total = time.monotonic() + seconds, 0
    target.settimeout(0.1)
    while time.monotonic() < until:
        try:
            total += len(target.recv(1 << 16))
        except TimeoutError:
            continue
    return total


def round_trip_ms(one: socket.socket, other: socket.socket) -> float:
    """The least of some."""
    found = []
    for _ in range(5):
        start = time.monotonic()
        one.sendall(b"x")
        other.sendall(other.recv(1))
        one.recv(1)
        found.append(1000 * (time.monotonic() - start))
    return min(found)


def test_workers_reach_each_other_over_the_public_network_at_its_rate(tmp_path: Path):
    with net(tmp_path / "run", document()) as running:
        found = measure(running.network, running.emulation.ends, trains=1)
        assert len(found.rates) == 6
        for rate in found.rates:
            assert rate.mbps == about(4), found.rates
        for trip in found.round_trips:
            expected = 0 if "cloud" in (trip.a, trip.b) else 4
            assert trip.expected_ms == expected and trip.least_ms == pytest.approx(expected, abs=2)


def test_all_paths_of_a_node_share_its_uplink(tmp_path: Path):
    with (
        net(tmp_path / "run", document()) as running,
        running.datagrams("w1") as here,
        running.datagrams("w2") as one,
        running.datagrams("w3") as other,
    ):
        for _ in range(60):  # 2 ms each, for a queue of 200 ms
            for target in (one, other):
                here.sendto(bytes(972), target.getsockname())
        time.sleep(0.6)
        times = arrivals(one) + arrivals(other)
        sent_s = 1000 * 8 * len(times) / 4e6
        assert (max(times) - min(times)) / 1e9 == about(sent_s)
        pipes = pipes_of(running.network, running.emulation.ends)
        counted = running.statistics()
        uplink, path = pipes.ways["w1", "w2"]
        assert counted.pipes[uplink].packets == len(times)
        assert counted.pipes[uplink].dropped == sum(pair.dropped for pair in counted.pairs.values()) == 120 - len(times)
        assert counted.pipes[path].packets == counted.pairs["w1", "w2"].packets


def arrivals(at: socket.socket) -> list[int]:
    """When each datagram came, in ns."""
    times = []
    while (got := receive(at, 2000)) is not None:
        times.append(got[1])
    return times


def test_a_routed_port_takes_the_dedicated_links_and_others_stay(tmp_path: Path):
    with net(tmp_path / "run", document()) as running:
        running.emulation.routes().set("w1", "w3", ROUTED, WAY)
        routed, usual = running.connected("w1", "w3", ROUTED), running.connected("w1", "w3", USUAL)
        with routed[0], routed[1], usual[0], usual[1]:
            assert round_trip_ms(*routed) == about(60)
            assert round_trip_ms(*usual) == pytest.approx(4, abs=4)
            with sending(routed[0]), sending(usual[0]), ThreadPoolExecutor(2) as readers:
                list(readers.map(came_in, (routed[1], usual[1]), (0.5, 0.5)))  # until TCP knows its rate
                found = [size * 8 / 2e6 for size in readers.map(came_in, (routed[1], usual[1]), (2, 2))]
        assert found == [about(20), about(4)]
        pipes, counted = pipes_of(running.network, running.emulation.ends), running.statistics()
        assert counted.routes == 2
        links = [counted.pipes[number] for number in pipes.over(WAY)]
        assert links[0].packets >= links[1].packets > 1000
        assert counted.pipes[pipes.over(WAY[::-1])[0]].packets > 0, "acknowledgements"


def test_a_transfer_is_whole_when_its_route_changes(tmp_path: Path):
    data = random.Random(1).randbytes(3_000_000)
    with net(tmp_path / "run", document(uplink_mbps=16)) as running:
        routes = running.emulation.routes()
        source, target = running.connected("w1", "w3", ROUTED)
        with source, target:
            sender = threading.Thread(target=lambda: (source.sendall(data), source.shutdown(socket.SHUT_WR)))
            digest, received, changed = hashlib.sha256(), 0, 0
            changes = cycle([
                lambda: routes.set("w1", "w3", ROUTED, WAY),
                lambda: routes.set("w1", "w3", ROUTED),
                lambda: routes.set("w1", "w3", ROUTED, WAY),
                lambda: routes.clear("w1", "w3", ROUTED),
            ])  # fmt: skip
            sender.start()
            target.settimeout(20)
            while got := target.recv(1 << 16):
                digest.update(got)
                received += len(got)
                if received > changed * 200_000:
                    next(changes)()
                    changed += 1
            sender.join(20)
        assert received == len(data) and digest.digest() == hashlib.sha256(data).digest()
        pipes, counted = pipes_of(running.network, running.emulation.ends), running.statistics()
        assert changed > 10
        for number in (*pipes.over(WAY), *pipes.ways["w1", "w3"]):
            assert counted.pipes[number].packets > 50, "it took both"
        assert counted.strange == 0


def test_the_rate_of_a_path_varies_as_the_seed_says(tmp_path: Path):
    """Arrivals in the middle of each interval, from a sender that sends all that the uplink takes."""
    every_ns, count = 500_000_000, 5
    varied = document(sigma=1.5, every_ms=500, uplink_mbps=8, queue_ms=100) | {"seed": 6}
    with (
        net(tmp_path / "run", varied) as running,
        running.datagrams("w1") as source,
        running.datagrams("w2") as target,
    ):
        pipes = pipes_of(running.network, running.emulation.ends)
        number = pipes.ways["w1", "w2"][1]
        began_ns = running.statistics().began_ns + time.time_ns() - time.monotonic_ns()
        first = (time.time_ns() - began_ns) // every_ns + 1
        last_ns = began_ns + (first + count) * every_ns
        sent, start = 0, time.monotonic()
        while time.time_ns() < last_ns:
            for _ in range(int((time.monotonic() - start) * 1200) - sent):  # each has 8000 bits with its headers
                source.sendto(bytes(972), target.getsockname())
                sent += 1
            time.sleep(0.002)
        times = arrivals(target)
        path = pipes.pipes[number]
        expected = [min(8, path.rate_mbps(running.network.seed, number, n)) for n in range(first, first + count)]
        for n, rate in enumerate(expected, first):
            middle = [time_ns for time_ns in times if 0.3 < (time_ns - began_ns) / every_ns - n < 0.9]
            assert len(middle) * 8000 / (0.6 * every_ns / 1e9) / 1e6 == about(rate), expected
        assert max(expected) > 2 * min(expected), "this seed's"


def test_lines_that_are_not_understood_are_counted_and_end_nothing(tmp_path: Path):
    with net(tmp_path / "run", document()) as running:
        wrong = (
            "nonsense", "route", "route 1 2", "route 1 2 80", "route 1 2 0 1", "route 1 2 65536 1", "route 1 2 80 999",
            "route 1 2 80 -1", "route 1 1 80 1", "route 9 1 80 1", "route 1 2 80 1x", "unroute 1 2 80 1", "unroute 1 2",
            "route 1 2 80" + 65 * " 1", "route 1 2 80 1\0", "\xff", "pair 1 2 0", "x" * 5000,
        )  # fmt: skip
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.settimeout(5)
            told.connect(str(running.emulation.control))
            told.send("\n".join(wrong).encode() + b"\n\nroute 1 2 80 1 0\nunroute 2 1 80\n")
            told.send(b"")
            told.send(b"unroute 1 3 80")
        counted = running.statistics()
        assert (counted.refused, counted.routes) == (len(wrong), 1)
        source, target = running.connected("w1", "w2")
        with source, target:
            source.sendall(b"x")
            assert target.recv(1) == b"x"
        running.emulation.routes().clear("w1", "w2", 80)
        assert running.statistics().routes == 0


def test_a_relay_that_was_started_anew_knows_no_routes(tmp_path: Path):
    with net(tmp_path / "run", document()) as running:
        routes = running.emulation.routes()
        routes.set("w1", "w3", ROUTED, WAY)
        assert running.stop() == 0
        assert not running.emulation.control.exists()
        with pytest.raises(NotReadyError, match="it does not listen"):
            routes.set("w1", "w3", ROUTED, WAY)
        running.start()
        assert running.statistics().routes == 0
        routes.set("w1", "w3", ROUTED, WAY)
        assert running.statistics().routes == 2
