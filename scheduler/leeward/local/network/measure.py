"""Measures round trips and rates between the nodes of an emulated network, with UDP sockets inside their namespaces.

One process has all sockets, so one clock counts. The kernel's time of arrival is taken, and the time that a probe
spends in this process before it is sent back is left out: the rest is the way.
"""

from __future__ import annotations

import random
import selectors
import socket
import statistics
import struct
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations, permutations

from leeward.core.network import Network, Pair
from leeward.local.network.plan import OUTSIDE, End
from leeward.local.network.sockets import datagrams, receive

Report = Callable[[str], None]

#: sort of probe, sender, receiver, round; and in an answer, the nanoseconds of the way there
_PROBE = struct.Struct("!BHHHq")
_ASK, _ANSWER = 1, 2
_UDP_HEADERS = 28
#: A train of packets takes this long on its link, and is sent so much faster than the link's rate.
_TRAIN_S, _FASTER = 0.2, 1.3
#: The relay lets an idle link catch up a little: the first packets of a train do not count.
_SKIPPED_NS = 10_000_000
_TRAIN_LEAST, _TRAIN_MOST = 24, 4000
_SMALLEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundTrip:
    """Between two nodes, in milliseconds."""

    a: str
    b: str
    expected_ms: float  #: as the file says
    least_ms: float | None  #: least of the rounds; None: no probe came back
    median_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """From one node to another, in Mbit/s of IP packets."""

    source: str
    target: str
    expected_mbps: float
    mbps: float | None  #: median of the trains; None: too few packets came


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """All of it."""

    round_trips: tuple[RoundTrip, ...]
    rates: tuple[Rate, ...]


def measure(
    network: Network,
    ends: Sequence[End],
    *,
    rounds: int = 7,
    trains: int = 3,
    most: int = 60,
    report: Report = lambda line: None,
) -> Measurement:
    """Round trips of all pairs, and rates of at most `most` directions that have one, drawn by the network's seed.

    Public paths whose rate varies have none to compare with.
    """
    nodes = [end for end in ends if end.node != OUTSIDE]
    with ExitStack() as stack:
        sockets = [stack.enter_context(datagrams(end)) for end in nodes]
        prober = _Prober(network, nodes, sockets)
        trips = prober.round_trips(rounds, report)
        limited = [
            (a, b)
            for a, b in permutations(range(len(nodes)), 2)
            if _expected_mbps(network, nodes[a].node, nodes[b].node) is not None
        ]
        if len(limited) > most:
            limited = sorted(random.Random(network.seed).sample(limited, most))
        rates = []
        for number, (a, b) in enumerate(limited, 1):
            report(f"rate {number} of {len(limited)}: {nodes[a].node} to {nodes[b].node}")
            rates.append(prober.rate(a, b, trains))
    return Measurement(round_trips=trips, rates=tuple(rates))


class _Prober:
    def __init__(self, network: Network, ends: Sequence[End], sockets: Sequence[socket.socket]) -> None:
        self._network, self._ends, self._sockets = network, ends, sockets
        self._addresses = [each.getsockname() for each in sockets]
        self._selector = selectors.DefaultSelector()
        for number, each in enumerate(sockets):
            self._selector.register(each, selectors.EVENT_READ, number)
        self._left: dict[tuple[int, int], int] = {}  #: when a probe was sent, by pair

    def round_trips(self, rounds: int, report: Report) -> tuple[RoundTrip, ...]:
        """Of all pairs."""
        pairs = list(combinations(range(len(self._ends)), 2))
        found: dict[tuple[int, int], list[float]] = {pair: [] for pair in pairs}
        for number in range(rounds):
            report(f"round trips: round {number + 1} of {rounds}")
            self._round(pairs, number, found)
        return tuple(self._round_trip(a, b, found[a, b]) for a, b in pairs)

    def _round(self, pairs: Iterable[tuple[int, int]], number: int, found: dict[tuple[int, int], list[float]]) -> None:
        pairs = list(pairs)
        for a, b in pairs:
            self._left[a, b] = time.time_ns()
            self._sockets[a].sendto(_PROBE.pack(_ASK, a, b, number, 0), self._addresses[b])
            self._answer(0.0005, number, found)  # one after the other, so that they do not wait for each other
        slowest = max((self._network.round_trip_ms(*self._names(a, b)) for a, b in pairs), default=0.0)
        until = time.monotonic() + slowest / 1000 + 0.5
        missing = len(pairs) - sum(len(times) > number for times in found.values())
        while missing > 0 and time.monotonic() < until:
            missing -= self._answer(0.05, number, found)

    def _answer(self, wait_s: float, number: int, found: dict[tuple[int, int], list[float]]) -> int:
        """Send back what asks, note what is back; how many are."""
        back = 0
        for key, _ in self._selector.select(wait_s):
            while (got := receive(key.fileobj, _PROBE.size)) is not None:  # type: ignore[arg-type]
                if len(got[0]) != _PROBE.size:
                    continue  # a late packet of a train
                kind, a, b, of, there = _PROBE.unpack(got[0])
                if of != number:
                    continue
                if kind == _ASK:
                    there = got[1] - self._left[a, b]
                    self._left[a, b] = time.time_ns()
                    self._sockets[b].sendto(_PROBE.pack(_ANSWER, a, b, of, there), self._addresses[a])
                else:
                    found[a, b].append((there + got[1] - self._left[a, b]) / 1e6)
                    back += 1
        return back

    def rate(self, a: int, b: int, trains: int) -> Rate:
        """Median over the trains."""
        names = self._names(a, b)
        link, expected = self._network.pair(*names), _expected_mbps(self._network, *names)
        assert expected is not None
        carried = expected * 1e6 / 8 * _TRAIN_S
        size = min(max(int(carried / _TRAIN_LEAST), _SMALLEST), self._network.mtu)
        count = min(max(round(carried * _FASTER / size), _TRAIN_LEAST), _TRAIN_MOST)
        each_s = size * 8 / (expected * 1e6) / _FASTER
        longest_s = (link.delay_ms + (link.queue_ms or 0)) / 1000 + count * each_s * _FASTER + 0.3
        payload = bytes(size - _UDP_HEADERS)
        seen = [rate_of(self._train(a, b, payload, count, each_s, longest_s)) for _ in range(trains)]
        rates = [rate for rate in seen if rate is not None]
        return Rate(
            source=names[0],
            target=names[1],
            expected_mbps=expected,
            mbps=statistics.median(rates) if rates else None,
        )

    def _train(
        self, a: int, b: int, payload: bytes, count: int, each_s: float, longest_s: float
    ) -> list[tuple[int, int]]:
        """Send `count` packets, one each `each_s`; (arrival in ns, bytes) of those that came."""
        source, target = self._sockets[a], self._sockets[b]
        came: list[tuple[int, int]] = []
        start, sent = time.monotonic(), 0
        while (now := time.monotonic()) < start + longest_s:
            for _ in range(min(count, int((now - start) / each_s) + 1) - sent):
                source.sendto(payload, self._addresses[b])
                sent += 1
            while (got := receive(target, len(payload))) is not None:
                if got[2] == self._addresses[a]:
                    came.append((got[1], len(got[0]) + _UDP_HEADERS))
            if len(came) == count:
                break
            time.sleep(0.001)
        return came

    def _round_trip(self, a: int, b: int, times: list[float]) -> RoundTrip:
        names = self._names(a, b)
        return RoundTrip(
            a=names[0],
            b=names[1],
            expected_ms=self._network.round_trip_ms(*names),
            least_ms=min(times, default=None),
            median_ms=statistics.median(times) if times else None,
        )

    def _names(self, a: int, b: int) -> Pair:
        return self._ends[a].node, self._ends[b].node


def _expected_mbps(network: Network, a: str, b: str) -> float | None:
    """None: there is no limit, or the rate varies, so that no figure of the file can be expected."""
    rate, public = network.pair(a, b).rate_mbps, network.public
    if rate is None or public is None or not network.is_public(a, b):
        return rate
    return min(rate, network.uplink_mbps(a)) if public.sigma == 0 else None


def rate_of(came: Sequence[tuple[int, int]]) -> float | None:
    """Mbit/s of a train by the arrivals of its packets (ns, bytes); None if too few came to tell."""
    counted = [entry for entry in came if entry[0] >= came[0][0] + _SKIPPED_NS]
    if len(counted) < 3:
        return None
    return sum(size for _, size in counted[1:]) * 8 * 1e3 / (counted[-1][0] - counted[0][0])
