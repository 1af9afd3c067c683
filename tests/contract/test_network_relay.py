"""The relay between real namespaces: delay, rate, queue and loss are those of the file, and nothing stays or leaks.

The figures are the kernel's times of arrival. They have to be within a tenth of the file's: that is what an emulation
is for. How much of the processor the relay takes is printed, and never a failure.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from leeward.local.errors import FolderError, PortsTakenError
from leeward.local.network import namespaces
from leeward.local.network.measure import measure
from leeward.local.network.plan import OUTSIDE
from leeward.local.network.sockets import receive, within
from leeward.local.places import kept
from tests.helpers.emulated_net import BASE, Net, net

WHY = namespaces.hindrance()
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"needs hardware and rights to emulate a network: {WHY}")


def two(**link: Any) -> dict[str, Any]:
    """The node "cloud" in site a, and "far" and "farther" in site b."""
    nodes = [{"id": "cloud", "site": "a"}, {"id": "far", "site": "b"}, {"id": "farther", "site": "b"}]
    return {"site": [{"id": "a"}, {"id": "b"}], "node": nodes, "link": [{"between": ["a", "b"], **link}]}


def three() -> dict[str, Any]:
    return {
        "inside": {"delay_ms": 2},
        "site": [{"id": "core"}, {"id": "north"}, {"id": "south"}],
        "node": [
            {"id": "cloud", "site": "core"},
            {"id": "n1", "site": "north"},
            {"id": "n2", "site": "north"},
            {"id": "s1", "site": "south"},
        ],
        "link": [
            {"between": ["core", "north"], "delay_ms": 20, "rate_mbps": 100},
            {"between": ["core", "south"], "delay_ms": 60, "rate_mbps": 20},
            {"from": "south", "to": "core", "delay_ms": 60, "rate_mbps": 0.5},
        ],
    }


def burst(running: Net, source: str, target: str, count: int, *, wait_s: float = 0.5) -> tuple[list[int], float]:
    """Numbers of the packets that came of `count` that were sent at once, and how long the sending took, in ms.

    Each has 1000 bytes with its headers.
    """
    with running.datagrams(source) as sender, running.datagrams(target) as receiver:
        start = time.monotonic()
        for number in range(count):
            sender.sendto(number.to_bytes(4, "big") + bytes(968), receiver.getsockname())
        took_ms = 1000 * (time.monotonic() - start)
        time.sleep(wait_s)
        came = []
        while (got := receive(receiver, 1000)) is not None:
            came.append(int.from_bytes(got[0][:4], "big"))
        return came, took_ms


def awaited(at: socket.socket) -> tuple[bytes, int, Any]:
    """The next datagram: the relay may have to wait for the processor."""
    assert select.select([at], [], [], 10)[0], "it comes"
    got = receive(at, 10)
    assert got is not None
    return got


def test_round_trips_and_rates_are_within_a_tenth_of_the_files(tmp_path: Path):
    with net(tmp_path / "run", three()) as running:
        found = measure(running.network, running.emulation.ends, rounds=9)
        assert len(found.round_trips) == 6 and len(found.rates) == 10
        for trip in found.round_trips:
            assert trip.least_ms == pytest.approx(trip.expected_ms, rel=0.1), found.round_trips
        for rate in found.rates:
            assert rate.mbps == pytest.approx(rate.expected_mbps, rel=0.1), found.rates
        assert {(rate.source, rate.target): rate.expected_mbps for rate in found.rates}["s1", "n1"] == 0.5
        assert running.statistics().failed == 0


def test_a_second_run_in_a_folder_is_refused_and_leaves_the_first_ones_network(tmp_path: Path):
    with net(tmp_path / "run", two(delay_ms=1)) as running:
        with (
            pytest.raises(FolderError, match="another run has its network in"),
            running.__class__(tmp_path / "run", running.network, base_port=BASE + 10).running(),
        ):
            raise AssertionError("it has begun")
        assert namespaces.left(tmp_path / "run")
        came, _ = burst(running, "cloud", "far", 3)
        assert came == [0, 1, 2]


def test_one_direction_may_be_slower_than_the_other(tmp_path: Path):
    document = two(delay_ms=5)
    document["link"].append({"from": "b", "to": "a", "delay_ms": 55})
    with (
        net(tmp_path / "run", document) as running,
        running.datagrams("cloud") as here,
        running.datagrams("far") as there,
    ):
        for source, target, delay in ((here, there, 5), (there, here, 55)):
            took: list[float] = []
            while len(took) < 9 or (min(took) > 1.1 * delay and len(took) < 90):  # the least of them had not to wait
                sent = time.time_ns()
                source.sendto(b"x", target.getsockname())
                took.append((awaited(target)[1] - sent) / 1e6)
            assert min(took) == pytest.approx(delay, rel=0.1)


def test_losses_are_as_many_as_the_file_says_and_the_same_for_the_same_seed(tmp_path: Path):
    came = []
    for seed in (7, 7, 8):
        with net(tmp_path / "run", two(loss=0.2) | {"seed": seed}) as running:
            came.append(burst(running, "far", "cloud", 4000)[0])
            pair = running.statistics().pairs["far", "cloud"]
            assert (pair.packets, pair.lost, pair.dropped) == (4000, 4000 - len(came[-1]), 0)
    assert all(3090 <= len(numbers) <= 3310 for numbers in came), "four standard deviations"
    assert came[0] == came[1] != came[2]


def test_a_queue_of_packets_takes_no_more_than_that(tmp_path: Path):
    with net(tmp_path / "run", two(rate_mbps=1, queue_packets=10)) as running:
        came, took_ms = burst(running, "far", "cloud", 200)  # a packet takes 8 ms
        pair = running.statistics().pairs["far", "cloud"]
        assert 10 <= len(came) <= 12 + took_ms / 8, "and the one that is being sent, and those sent meanwhile"
        assert came == sorted(came) and came[0] == 0
        assert pair.dropped == 200 - len(came) and pair.packets == len(came)


def test_a_queue_of_time_takes_what_is_sent_in_that_time(tmp_path: Path):
    with net(tmp_path / "run", two(rate_mbps=8, queue_ms=50)) as running:
        came, took_ms = burst(running, "far", "cloud", 400)  # a packet takes 1 ms
        assert 50 <= len(came) <= 54 + took_ms, "an idle link catches up 2 ms"
        assert running.statistics().pairs["far", "cloud"].dropped == 400 - len(came)


def test_pairs_share_a_rate_only_where_the_file_says_so(tmp_path: Path):
    for shared, expected_s in ((False, 0.2), (True, 0.4)):
        with (
            net(tmp_path / "run", two(rate_mbps=8, queue_packets=1000, shared=shared)) as running,
            running.datagrams("cloud") as here,
            running.datagrams("far") as far,
            running.datagrams("farther") as farther,
        ):
            for _ in range(200):  # 1 ms each
                far.sendto(bytes(972), here.getsockname())
                farther.sendto(bytes(972), here.getsockname())
            time.sleep(0.7)
            times = []
            while (got := receive(here, 1000)) is not None:
                times.append(got[1])
            assert len(times) == 400
            assert (max(times) - min(times)) / 1e9 == pytest.approx(expected_s, rel=0.1)


def test_forty_nodes(tmp_path: Path):
    """Each in a site of its own, ten milliseconds and one more for each step away."""
    ids = [f"s{i:02}" for i in range(40)]
    links = [
        {"between": [a, b], "delay_ms": 10 + abs(i - j), "rate_mbps": 50}
        for i, a in enumerate(ids)
        for j, b in enumerate(ids)
        if i < j
    ]
    nodes = [{"id": "cloud", "site": "s00"}, *({"id": f"n-{id}", "site": id} for id in ids[1:])]
    document = {"site": [{"id": id} for id in ids], "node": nodes, "link": links}
    with net(tmp_path / "run", document) as running:
        found = measure(running.network, running.emulation.ends, rounds=5, most=6)
        assert len(found.round_trips) == 40 * 39 / 2 and len(found.rates) == 6
        off = [trip for trip in found.round_trips if trip.least_ms != pytest.approx(trip.expected_ms, rel=0.1)]
        assert off == []
        assert all(rate.mbps == pytest.approx(50, rel=0.1) for rate in found.rates)
        counted = running.statistics()
        assert counted.failed == 0 and len(counted.pairs) == 40 * 39
        print(f"\n40 nodes: {counted.packets} packets, {counted.microseconds:.1f} us of processor for each")


def test_what_the_relay_takes_of_the_processor(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Printed, for a TCP connection as fast as its link of 100 Mbit/s, in packets of usual size."""
    with net(tmp_path / "run", two(delay_ms=20, rate_mbps=100) | {"mtu": 1500}) as running:
        source, target = running.connected("far", "cloud")
        with source, target:
            received = 0

            def take() -> None:
                nonlocal received
                while data := target.recv(1 << 20):
                    received += len(data)

            reader = threading.Thread(target=take)
            reader.start()
            before, start = running.statistics(), time.monotonic()
            while time.monotonic() < start + 2:
                source.sendall(bytes(65536))
            after, took = running.statistics(), time.monotonic() - start
            source.shutdown(socket.SHUT_WR)
            reader.join(30)
        packets, spent = after.packets - before.packets, after.processor_s - before.processor_s
        assert packets > 1000 and after.realtime
        with capsys.disabled():
            print(
                f"\n  relay: {packets / took:.0f} packets/s, {1e6 * spent / packets:.1f} us of processor for each"
                f" ({100 * spent / took:.0f} % of a core), TCP {received * 8 / took / 1e6:.0f} of 100 Mbit/s"
            )


def test_connections_live_on_when_the_relay_is_killed_and_started_again(tmp_path: Path):
    with net(tmp_path / "run", two(delay_ms=5)) as running:
        source, target = running.connected("far", "cloud")
        with source, target:
            source.sendall(b"before")
            assert target.recv(100) == b"before"
            assert running.stop(signal.SIGKILL) == -signal.SIGKILL
            source.sendall(b"while it is gone")
            running.start()
            target.settimeout(20)
            assert target.recv(100) == b"while it is gone"


def test_a_node_reaches_its_peers_and_the_machine_and_nobody_else(tmp_path: Path):
    with net(tmp_path / "run", two(delay_ms=5)) as running:
        far = running.emulation.end("far")
        with running.datagrams(OUTSIDE) as outside, running.datagrams("far") as sender:
            sender.sendto(b"x", outside.getsockname())
            assert awaited(outside)[0] == b"x"
            with pytest.raises(OSError, match="unreachable"):
                sender.sendto(b"x", ("192.0.2.1", 9))  # nowhere
        # in another's name
        subprocess.run(running.emulation.inside("far", ["ip", "addr", "add", "10.9.9.9/32", "dev", "lo"]), check=True)
        with (
            running.datagrams("cloud") as here,
            within(far, lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as stranger,
        ):
            stranger.bind(("10.9.9.9", 0))
            stranger.sendto(b"x", here.getsockname())
            until = time.monotonic() + 10
            while not running.statistics().strange:
                assert time.monotonic() < until, "the relay counts it"
            assert receive(here, 10) is None
        assert running.statistics().strange == 1


def test_a_command_inside_a_node_has_its_name_and_finds_the_others(tmp_path: Path):
    with net(tmp_path / "run", two()) as running:
        script = "hostname; getent hosts farther cloud localhost | cut -d' ' -f1; readlink /proc/$$/ns/net"
        done = subprocess.run(
            running.emulation.inside("far", ["sh", "-c", script]), capture_output=True, text=True, check=True
        )
        name, *addresses, space = done.stdout.split()
        assert name == "far"
        assert addresses[:2] == [running.emulation.end("farther").address, running.emulation.end("cloud").address]
        assert space != os.readlink("/proc/self/ns/net")
    assert socket.gethostname() != "far"


def test_what_a_crash_left_is_removed_and_a_subnet_in_use_is_named(tmp_path: Path):
    folder = tmp_path / "run"
    with net(folder, two()) as running:
        running.stop(signal.SIGKILL)
        assert len(namespaces.left(folder)) == 4
        taken = pytest.raises(PortsTakenError, match=rf"of the cluster in {folder}\. End it \(leeward cluster down")
        with taken, net(tmp_path / "other", two()):
            pass
        assert namespaces.left(tmp_path / "other") == []
        namespaces.remove(folder)
        assert namespaces.remove(folder) == []
        (folder / ".lock").unlink()  # the lock of a process that has crashed is free
        with net(folder, two()) as again:
            assert burst(again, "far", "cloud", 3, wait_s=0.1)[0] == [0, 1, 2]


def test_the_relay_serves_the_others_when_a_device_is_removed(tmp_path: Path):
    with net(tmp_path / "run", two()) as running:
        subprocess.run(["ip", "link", "del", "dev", running.emulation.end(OUTSIDE).device], check=True)
        before = running.statistics()
        assert burst(running, "far", "cloud", 3)[0] == [0, 1, 2]
        after = running.statistics()
        assert after.wakes - before.wakes < 1000, "it does not ask again and again for what is gone"


def test_a_configuration_that_it_does_not_understand_ends_it_with_the_line(tmp_path: Path):
    from leeward.local.network.emulation import relay_program

    config = tmp_path / "relay.conf"
    config.write_text("net 198.18.1 1 9000\npair 0 1 0\n")
    done = subprocess.run([relay_program(kept()), config, tmp_path / "statistics.json"], capture_output=True, text=True)
    assert done.returncode == 1 and "not understood: pair 0 1 0" in done.stderr
