"""The parts `deadlines`, `dispatch` and `simulation` of the benchmark of DSSP."""

from __future__ import annotations

import argparse
import asyncio
import base64
import gc
import hashlib
import multiprocessing
import os
import select
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from dssp_rows import Row, timed
from websockets.frames import Frame
from websockets.streams import StreamReader

from leeward.adapters.organisations.frames import Codec
from leeward.adapters.organisations.links import Address
from leeward.adapters.organisations.process import MemberProcess
from leeward.policies.dssp.agents.messages import KINDS, Ask, Offer
from leeward.policies.dssp.agents.pools import Service
from leeward.policies.dssp.agents.provider import Provider, ProviderSettings
from leeward.policies.dssp.disciplines import DISCIPLINES
from leeward.policies.dssp.latency.windows import Windows
from leeward.policies.dssp.model.area import Area
from leeward.policies.dssp.simulation.run import Simulation
from leeward.policies.dssp.simulation.setup import queries, scale

#: Of the specification: x_u of an arbitrary set, of one that is kept, an update; the rate and delay of dispatch.
ARBITRARY_S, KEPT_S, UPDATE_S, RATE, DELAY_S = 50e-6, 2e-6, 5e-6, 2000.0, 5e-3
#: And of a simulation of so many queries.
SIMULATED, SIMULATION_S = 50_000, 60.0
EVERYWHERE = Area(-180, -90, 180, 90)
#: Connections whose arrivals are timed.
TIMED = 50
#: Queries of a turn when they come back to back.
TOGETHER = 16
#: About the size of a frame of so many.
FRAME = bytes(2000)
#: At the beginning of paced queries that do not count.
WARM_S = 1.0
MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"  # of RFC 6455


def deadlines(options: argparse.Namespace) -> Iterator[Row]:
    """x_u of so many nodes with full windows."""
    nodes, rng = options.matches, np.random.default_rng(0)
    windows = Windows(nodes)
    for node in range(nodes):
        for seconds in rng.exponential(0.1, 1000):
            windows.add(node, seconds)
    every, kept = np.arange(nodes), windows.keep(range(nodes))
    samples, places = iter(rng.exponential(0.1, 10**6).tolist()), iter(rng.integers(0, nodes, 10**6).tolist())
    if windows.slowest(every, 99.0) != windows.slowest_kept(kept, 99.0):
        raise SystemExit("the sum that is kept is not the sum")
    for what, call, bound in (
        (f"of {nodes} histograms, any set", lambda: windows.slowest(every, 99.0), ARBITRARY_S),
        ("of a set that is kept", lambda: windows.slowest_kept(kept, 99.0), KEPT_S),
        ("a measurement, with a set kept", lambda: windows.add(next(places), next(samples)), UPDATE_S),
    ):
        yield _each("deadlines", what, call, options.times, bound_s=bound)


def simulation(options: argparse.Namespace) -> Iterator[Row]:
    """The largest setting at one rate, once the code is compiled; the last row learns the weights before."""
    drawn = Simulation(queries(scale(60, 300), SIMULATED, 0))
    calls = {
        "EDF": partial(drawn.weighted, 5.5, DISCIPLINES["EDF"], [1.0] * 4),
        "ours": partial(drawn.weighted, 5.5, DISCIPLINES["ours"], [1.0, 0.3, 0.3, 0.3]),
        "ours, and 40,000 to learn from": partial(drawn.outcome, 5.5, DISCIPLINES["ours"]),
    }
    for name, call in calls.items():
        bound_s = SIMULATION_S if "learn" not in name else None
        yield timed("simulation", f"18,000 nodes, {SIMULATED:,} queries, {name}", call, 1, warm=1, bound_s=bound_s)


def _each(part: str, what: str, call: Callable[[], object], times: int, *, bound_s: float, calls: int = 100) -> Row:
    """Of a call that is shorter than reading the clock: so many at a time."""

    def many() -> None:
        for _ in range(calls):
            call()

    row = timed(part, what, many, times)
    return Row(
        part=part, what=what, times=times * calls, best_s=row.best_s / calls, median_s=row.median_s / calls,
        p99_s=row.p99_s / calls, bound_s=bound_s,
    )  # fmt: skip


def dispatch(options: argparse.Namespace) -> Iterator[Row]:
    """One provider sends tasks to so many domains over WebSocket, each on a connection of its own."""
    with _domains(options.matches) as (port, _):
        yield _bare(options.matches, port)
    with _domains(options.matches) as (port, sink):
        yield from asyncio.run(_dispatch(options.matches, port, sink))


def _bare(domains: int, port: int) -> Row:
    """The same bytes to all, with nothing but the system's calls: no program in one thread is faster."""
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(domains)]
        for one in sockets:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one.sendall(b"Sec-WebSocket-Key: none\r\n\r\n")
            one.recv(4096)

        def send() -> None:
            for one in sockets:
                one.send(FRAME)

        return timed("dispatch", f"a frame to {domains} domains, bare sockets", send, 500)


async def _dispatch(domains: int, port: int, sink: Connection) -> list[Row]:
    gc.freeze()  # as every process of `leeward dssp up`: what was imported is not looked at again and again
    provider = Provider("city", ProviderSettings(patience_s=1e9, repeat=1e9, negotiate_s=1e9, renew_s=1e9))
    names = [f"d{number}" for number in range(domains)]
    process = MemberProcess(
        provider, KINDS, tokens={}, seed=0, on_effect=lambda _: None,
        addresses={name: Address(url=f"http://127.0.0.1:{port}", token=f"{name:-<20}") for name in names},
    )  # fmt: skip
    stop = asyncio.Event()
    running = asyncio.create_task(process.run(stop))
    await process.started.wait()
    service = Service(
        name="s", capability="air", areas=(EVERYWHERE,), rate=1.0, percent=99.0, objective_s=1.0
    )  # fmt: skip
    process.take(provider.open(service, [(name, (EVERYWHERE,)) for name in names], process.now()))
    while len(process.links.open_links()) < domains:
        await asyncio.sleep(0.1)
    agreed = Offer(service="s", accepted=True, provisioned=True)
    for name in names:
        process.take(provider.receive(name, agreed, process.now(), process.rng))
    await asyncio.sleep(1.0)
    rows = [await _paced(process, provider, domains, sink), await _back_to_back(process, provider, domains)]
    stop.set()
    await running
    return rows


async def _paced(process: MemberProcess, provider: Provider, domains: int, sink: Connection) -> Row:
    """Queries at the wanted rate: from the time at which one is due until a domain has its task."""
    count, gap = int(WARM_S * RATE + 4 * RATE), 1 / RATE
    sink.send("time")
    await asyncio.sleep(0.5)
    began, due = time.monotonic() + 0.1, {}
    number = 0
    while number < count:
        now = time.monotonic()
        while number < count and began + number * gap <= now:
            (task,) = provider.query(None, "s", (), now)
            due[task.message.query] = began + number * gap
            process.take([task])
            number += 1
        await asyncio.sleep(0)
    await asyncio.sleep(1.0)
    sink.send("tell")
    while not sink.poll():
        await asyncio.sleep(0.05)
    arrived: list[tuple[str, float]] = sink.recv()
    if len(arrived) != len(due) * min(TIMED, domains):
        raise SystemExit(f"{len(arrived)} tasks arrived on the timed connections, not all")
    delays = sorted(when - due[query] for query, when in arrived if due[query] > began + WARM_S)
    return Row(
        part="dispatch", what=f"until a domain has a task: {RATE:g} queries/s to {domains} domains",
        times=len(delays), best_s=delays[0], median_s=statistics.median(delays),
        p99_s=delays[len(delays) * 99 // 100], bound_s=DELAY_S,
    )  # fmt: skip


async def _back_to_back(process: MemberProcess, provider: Provider, domains: int) -> Row:
    """As many as it can: s of a query."""
    seconds, sent = [], process.traffic.sent
    for _ in range(200):
        began = time.perf_counter()
        for _ in range(TOGETHER):
            process.take(provider.query(None, "s", (), process.now()))
        sent += TOGETHER * domains
        while process.traffic.sent < sent:
            await asyncio.sleep(0)
        seconds.append((time.perf_counter() - began) / TOGETHER)
    seconds.sort()
    return Row(
        part="dispatch", what=f"a query to {domains} domains, {TOGETHER} at a time", times=200 * TOGETHER,
        best_s=seconds[0], median_s=statistics.median(seconds), p99_s=seconds[198], bound_s=1 / RATE,
    )  # fmt: skip


# --- the domains


@contextmanager
def _domains(count: int) -> Iterator[tuple[int, Connection]]:
    """A process that reads the connections of so many; its port, and the line to tell it when to time."""
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listening:
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe()
        sink = context.Process(target=_sink, args=(listening, count, theirs))
        sink.start()
        try:
            yield listening.getsockname()[1], ours
        finally:
            sink.terminate()
            sink.join()


def _sink(listening: socket.socket, domains: int, told: Connection) -> None:
    """All domains: shakes hands, reads, and keeps what comes on a few connections, with its time."""
    poll, open_, kept = select.epoll(), {}, {}
    poll.register(listening.fileno(), select.EPOLLIN)
    poll.register(told.fileno(), select.EPOLLIN)
    timing = False
    while True:
        for number, _ in poll.poll():
            if number == listening.fileno():
                connection, _ = listening.accept()
                _shake_hands(connection)
                open_[connection.fileno()] = connection
                poll.register(connection.fileno(), select.EPOLLIN)
            elif number == told.fileno():
                if told.recv() == "time":
                    timing = True
                    kept = {one: [] for one in sorted(open_)[:: max(1, domains // TIMED)][:TIMED]}
                else:
                    timing = False
                    told.send([arrival for pieces in kept.values() for arrival in _arrivals(pieces)])
            else:
                piece = os.read(number, 1 << 18)
                if timing and number in kept:
                    kept[number].append((time.monotonic(), piece))


def _shake_hands(connection: socket.socket) -> None:
    """As the server of a WebSocket. The request comes at once."""
    request = b""
    while not request.endswith(b"\r\n\r\n"):
        request += connection.recv(4096)
    key = next(line for line in request.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key:")).split()[1]
    accept = base64.b64encode(hashlib.sha1(key + MAGIC).digest())
    connection.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
    )


def _arrivals(pieces: list[tuple[float, bytes]]) -> Iterator[tuple[str, float]]:
    """Query and time of every task that came on a connection."""
    reader, codec = StreamReader(), Codec(KINDS)
    for when, piece in pieces:
        reader.feed_data(piece)
        while len(reader.buffer) and (frame := _parsed(reader)) is not None:
            for message in codec.open(frame).messages:
                if isinstance(message, Ask):
                    yield message.query, when


def _parsed(reader: StreamReader) -> bytes | None:
    """The next frame; None if it is not all there."""
    whole = bytes(reader.buffer)
    parser: Any = Frame.parse(reader.read_exact, mask=True)
    try:
        next(parser)
    except StopIteration as done:
        return bytes(done.value.data)
    reader.buffer[:] = whole
    return None
