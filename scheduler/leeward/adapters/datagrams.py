"""A peer as a process over UDP: one sealed frame in each datagram, and a clock.

Datagrams get lost, and come in another order: protocols repeat what is not acknowledged.  Frames are those of
`frames.py`, so a frame that is overtaken by a later one of its sender is dropped as repeated; to a protocol it is lost.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from leeward.adapters.frames import LENGTH, FrameError, Opener, Sealer, length_of
from leeward.adapters.peers import Address, Traffic
from leeward.core.peers import Peer, Send

TICK_S = 0.005
#: Bytes of a datagram's payload at most: UDP over IPv4 carries no more.
LARGEST = 65_507


class DatagramProcess(asyncio.DatagramProtocol):
    """See the module. `kinds`: the protocol's types of messages; `addresses`: of all peers.

    Messages to peers without an address, and frames that no datagram can carry, are dropped and counted.
    """

    def __init__(
        self, peer: Peer, kinds: Sequence[type], addresses: Mapping[int, Address], key: bytes, *, seed: int,
        tick_s: float = TICK_S,
    ) -> None:  # fmt: skip
        self.peer, self.traffic = peer, Traffic()
        self._addresses, self._tick_s = addresses, tick_s
        self._sealer, self._opener = Sealer(kinds, key, peer.me, time.time_ns()), Opener(kinds, key)
        self._rng = random.Random(seed)
        self._transport: asyncio.DatagramTransport | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`. Raises OSError if the address is taken."""
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: self, self._addresses[self.peer.me])
        self._transport = transport
        try:
            while not stop.is_set():
                self.act(self.peer.tick)
                await asyncio.sleep(self._tick_s)
        finally:
            self._transport = None
            transport.close()

    def act(self, do: Callable[[float, random.Random], Iterable[Send]]) -> None:
        """Do something with the peer, at this moment, and send the messages that follow."""
        self._send(do(time.monotonic(), self._rng))

    def datagram_received(self, data: bytes, addr: Address) -> None:
        """See asyncio.DatagramProtocol."""
        try:
            if len(data) < LENGTH.size or length_of(data[: LENGTH.size]) != len(data) - LENGTH.size:
                raise FrameError("malformed", f"it has {len(data)} bytes")
            sender, message = self._opener.open(data[LENGTH.size :])
        except FrameError as error:
            self.traffic.dropped[error.kind] += 1
            return
        self.act(lambda now, rng: self.peer.receive(sender, message, now, rng))

    def error_received(self, exc: Exception) -> None:
        """See asyncio.DatagramProtocol: a peer is not there, and the datagram is lost."""
        self.traffic.dropped["unsent"] += 1

    def _send(self, sends: Iterable[Send]) -> None:
        """Messages to itself are taken in at once, and all that follows."""
        left = deque(sends)
        while left:
            to, message = left.popleft()
            if to == self.peer.me:
                left.extend(self.peer.receive(to, message, time.monotonic(), self._rng))
                continue
            frame = self._sealer.seal(message)
            if to not in self._addresses or len(frame) > LARGEST or self._transport is None:
                self.traffic.dropped["unsent"] += 1
                continue
            self._transport.sendto(frame, self._addresses[to])
            self.traffic.sent += 1
            self.traffic.sent_bytes += len(frame)
