"""A peer as a process: frames over TCP, and a clock.

A connection carries the frames of the server that opened it; answers to a client go back on its own.  TCP keeps the
order of one sender's messages.  Frames that were on their way when a connection broke are lost, so a protocol needs
deadlines and leases.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from leeward.adapters.frames import LENGTH, FrameError, Opener, Received, Sealer, length_of
from leeward.adapters.ticks import ticking
from leeward.core.errors import LeewardError
from leeward.core.peers import Peer, Send

Address = tuple[str, int]
#: Number of a client in its frames; each of several at a time has another, below 0.
CLIENT = -1
TICK_S = 0.5
#: Frames that wait for a server that does not answer; the oldest is dropped beyond.
WAITING = 10_000
#: Between two tries to connect, s, and how many: a server that is away for longer is dead to the protocol, too.
RETRY_S, TRIES = 0.2, 25
#: A client waits so long for an answer, s. A peer that plans answers late; one with another secret never does.
ANSWER_S = 30.0


@dataclass(slots=True)
class Traffic:
    """Frames of this process."""

    sent: int = 0
    sent_bytes: int = 0
    dropped: Counter[str] = field(default_factory=Counter)  #: kind of fault -> frames


@dataclass(frozen=True, slots=True, kw_only=True)
class AskTraffic:
    """From a client: how many frames has this process sent?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficIs:
    """The answer."""

    sent: int
    sent_bytes: int
    dropped: dict[str, int]


#: Messages of every protocol.
COMMON: tuple[type, ...] = (AskTraffic, TrafficIs)


class PeerProcess:
    """See the module. `kinds`: the protocol's types of messages; `addresses`: of all servers."""

    def __init__(
        self, peer: Peer, kinds: Sequence[type], addresses: Mapping[int, Address], key: bytes, *, seed: int,
        tick_s: float = TICK_S,
    ) -> None:  # fmt: skip
        self.peer, self.traffic = peer, Traffic()
        self._addresses, self._tick_s = addresses, tick_s
        self._sealer = Sealer((*COMMON, *kinds), key, peer.me, time.time_ns())
        self._opener, self._rng = Opener((*COMMON, *kinds), key), random.Random(seed)
        self._queues: dict[int, asyncio.Queue[bytes]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`. Raises OSError if the address is taken, and any error of a tick."""
        server = await asyncio.start_server(self._serve, *self._addresses[self.peer.me])
        try:
            await ticking(self._tick, self._tick_s, stop)
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _tick(self) -> None:
        self._send(self.peer.tick(time.monotonic(), self._rng))

    # --- receiving

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task: asyncio.Task[None] | None = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while True:
                received = await self._read(reader)
                if received is not None:
                    await self._take(received, writer)
        except FrameError as error:  # its length makes no sense, so the beginning of the next one is not known
            self.traffic.dropped[error.kind] += 1
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the other side has hung up, or this process ends
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> Received | None:
        frame = await reader.readexactly(length_of(await reader.readexactly(LENGTH.size)))
        try:
            return self._opener.open(frame)
        except FrameError as error:
            self.traffic.dropped[error.kind] += 1
            return None

    async def _take(self, received: Received, writer: asyncio.StreamWriter) -> None:
        sender, message = received
        if isinstance(message, AskTraffic):
            answers: Iterable[Any] = [self._counts()]
        else:
            sends = self.peer.receive(sender, message, time.monotonic(), self._rng)
            answers = [send.message for send in sends if send.to == sender < 0]
            self._send([send for send in sends if send.to >= 0])
        for answer in answers:
            writer.write(self._sealer.seal(answer))
        await writer.drain()

    def _counts(self) -> TrafficIs:
        traffic = self.traffic
        return TrafficIs(sent=traffic.sent, sent_bytes=traffic.sent_bytes, dropped=dict(traffic.dropped))

    # --- sending

    def _send(self, sends: Iterable[Send]) -> None:
        """Messages to itself are taken in at once, and all that follows."""
        left = deque(sends)
        while left:
            to, message = left.popleft()
            if to == self.peer.me:
                left.extend(self.peer.receive(to, message, time.monotonic(), self._rng))
            elif to in self._addresses:
                self._enqueue(to, self._sealer.seal(message))

    def _enqueue(self, to: int, frame: bytes) -> None:
        queue = self._queues.get(to)
        if queue is None:
            queue = self._queues[to] = asyncio.Queue(WAITING)
            self._tasks.add(asyncio.create_task(self._carry(to, queue)))
        if queue.full():
            queue.get_nowait()
            self.traffic.dropped["unsent"] += 1
        queue.put_nowait(frame)

    async def _carry(self, to: int, queue: asyncio.Queue[bytes]) -> None:
        """Frames to one server, over one connection as long as it lasts."""
        writer: asyncio.StreamWriter | None = None
        while True:
            frame = await queue.get()
            for _ in range(TRIES):
                try:
                    if writer is None or writer.is_closing():
                        _, writer = await asyncio.open_connection(*self._addresses[to])
                    writer.write(frame)
                    await writer.drain()
                except OSError:
                    writer = None
                    await asyncio.sleep(RETRY_S)
                    continue
                self.traffic.sent += 1
                self.traffic.sent_bytes += len(frame)
                break
            else:
                self.traffic.dropped["unsent"] += 1


class PeerClient:
    """Sends to peers and waits for their answers, one at a time. Raises LeewardError if a peer is not there."""

    def __init__(
        self, kinds: Sequence[type], addresses: Mapping[int, Address], key: bytes, *, number: int = CLIENT
    ) -> None:
        self._addresses = addresses
        self._sealer = Sealer((*COMMON, *kinds), key, number, time.time_ns())
        self._opener = Opener((*COMMON, *kinds), key)
        self._open: dict[int, tuple[asyncio.StreamReader, asyncio.StreamWriter]] = {}

    async def send(self, to: int, message: object) -> None:
        """Without an answer."""
        _, writer = await self._connected(to)
        writer.write(self._sealer.seal(message))
        await writer.drain()

    async def ask(self, to: int, message: object) -> Any:
        """The answer; none in `ANSWER_S` is an error, too."""
        try:
            frame = await asyncio.wait_for(self._asked(to, message), ANSWER_S)
        except (TimeoutError, EOFError, ConnectionError):
            if (opened := self._open.pop(to, None)) is not None:  # a late answer would be the next question's
                opened[1].close()
            host, port = self._addresses[to]
            raise LeewardError(
                f"server {to} at {host}:{port} gives no answer.",
                remedy="Give the secret that its agent was started with, and see whether it runs.",
            ) from None
        return self._opener.open(frame).message

    async def _asked(self, to: int, message: object) -> bytes:
        reader, _ = await self._connected(to)
        await self.send(to, message)
        return await reader.readexactly(length_of(await reader.readexactly(LENGTH.size)))

    async def _connected(self, to: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if to not in self._open:
            host, port = self._addresses[to]
            for _ in range(TRIES):
                with suppress(OSError):
                    self._open[to] = await asyncio.open_connection(host, port)
                    break
                await asyncio.sleep(RETRY_S)
            else:
                raise LeewardError(f"server {to} at {host}:{port} does not answer.", remedy="Start its agent.")
        return self._open[to]

    def close(self) -> None:
        """Hang up."""
        for _, writer in self._open.values():
            writer.close()
