"""A peer as a process: sealed frames over UDP, and a clock.

Unless its protocol numbers the peers itself, a peer's number is the address of its socket: an IPv4 address and a port
in one integer.  So a peer can be sent to by all who have learned its number from a message, and no list of peers is
needed.  Datagrams may be lost, and one that was overtaken is dropped as repeated; a protocol acknowledges and repeats.
A frame without its length is a datagram (`adapters/frames.py`); one that does not fit is not sent, as nothing here
splits it.
"""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address
from typing import Any

from leeward.adapters.frames import LENGTH, FrameError, Opener, Sealer
from leeward.adapters.peers import COMMON, AskTraffic, Traffic, TrafficIs
from leeward.adapters.ticks import ticking
from leeward.core.errors import LeewardError
from leeward.core.peers import Peer, Send

Address = tuple[str, int]
#: Bytes of the largest datagram that UDP carries over IPv4.
LARGEST = 65_507
_PORT_BITS = 16
#: Datagrams that are read before the loop looks at its other sockets and timers.
AT_ONCE = 64


def number_of(host: str, port: int) -> int:
    """The number of the peer at an address. Raises LeewardError unless that is an IPv4 address and a port."""
    try:
        packed = int(IPv4Address(host))
    except AddressValueError:
        raise LeewardError(f"address {host}: it is no IPv4 address.", remedy="Give one as 192.0.2.7.") from None
    if not 0 < port < 1 << _PORT_BITS:
        raise LeewardError(f"port {port}: it is out of range.", remedy="Give one of 1 to 65535.")
    return packed << _PORT_BITS | port


@lru_cache(maxsize=4096)  # an overlay sends to the same ones all the time
def address_of(number: int) -> Address:
    """The address of a peer; raises LeewardError if a number is none."""
    host, port = number >> _PORT_BITS, number & ((1 << _PORT_BITS) - 1)
    if not 0 < host < 1 << 32 or not port:
        raise LeewardError(f"peer {number}: it is no address.", remedy="Send the number of a socket.")
    return str(IPv4Address(host)), port


def host_towards(host: str) -> str:
    """The address of this machine from which it sends to another one; 0.0.0.0 would reach no one back."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, 9))  # sends nothing
        return str(probe.getsockname()[0])


class Endpoint:
    """A UDP socket of the running loop, whose datagrams are read as long as there are some.

    asyncio's own transport reads one each time that it looks at its sockets, into 256 KiB of new memory; that takes
    more time than to open the frame.  A datagram that the kernel has no room for now is lost, as on its way.
    """

    def __init__(self, address: Address, take: Callable[[bytes], None], failed: Callable[[], None]) -> None:
        """`take`: is given each datagram; `failed`: the kernel could not deliver one. Raises OSError."""
        self._take, self._failed = take, failed
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        try:
            self._socket.bind(address)
        except OSError:
            self._socket.close()
            raise
        self.address: Address = self._socket.getsockname()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket, self._read)

    def send(self, frame: bytes, address: Address) -> bool:
        """Whether the kernel has taken it."""
        try:
            self._socket.sendto(frame, address)
        except BlockingIOError:
            return False
        except OSError:
            self._failed()
        return True

    def close(self) -> None:
        """Listen no more."""
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
            self._socket.close()

    def _read(self) -> None:
        for _ in range(AT_ONCE):
            if self._socket.fileno() < 0:  # the one before has ended it
                return
            try:
                datagram = self._socket.recv(LARGEST)
            except BlockingIOError:
                return
            except OSError:
                self._failed()
            else:
                self._take(datagram)


class DatagramProcess:
    """See the module. `kinds`: the protocol's types of messages.

    `address`: of a peer by its number; raises LeewardError for a number that is none.  Messages that cannot be sent are
    counted by their reason.
    """

    def __init__(
        self, peer: Peer, kinds: Sequence[type], key: bytes, *, seed: int, tick_s: float,
        address: Callable[[int], Address] = address_of,
    ) -> None:  # fmt: skip
        self.peer, self.traffic = peer, Traffic()
        self._address, self._tick_s = address, tick_s
        self._sealer = Sealer((*COMMON, *kinds), key, peer.me, time.time_ns())
        self._opener, self._rng = Opener((*COMMON, *kinds), key), random.Random(seed)
        self._endpoint: Endpoint | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`. Raises OSError if the address is taken, and any error of a tick."""
        self._endpoint = Endpoint(self._address(self.peer.me), self._take, self._undelivered)
        try:
            await ticking(lambda: self.act(self.peer.tick), self._tick_s, stop)
        finally:
            endpoint, self._endpoint = self._endpoint, None
            endpoint.close()

    @property
    def listening(self) -> bool:
        """Its socket is open."""
        return self._endpoint is not None

    def act(self, do: Callable[[float, random.Random], Iterable[Send]]) -> None:
        """Call the peer, at this moment, and send the messages that follow."""
        self.send(do(time.monotonic(), self._rng))

    def send(self, sends: Iterable[tuple[int, Any]]) -> None:
        """Messages by the numbers of their receivers. Those to itself are taken in at once, and all that follows."""
        left = deque(sends)
        while left:
            to, message = left.popleft()
            if to == self.peer.me:
                left.extend(self.peer.receive(to, message, time.monotonic(), self._rng))
            else:
                self._send(to, message)

    def _send(self, to: int, message: object) -> None:
        frame = self._sealer.seal(message)[LENGTH.size :]
        try:
            address = self._address(to)
        except LeewardError:  # from a message that nobody has checked
            self.traffic.dropped["unaddressed"] += 1
            return
        if self._endpoint is None or len(frame) > LARGEST or not self._endpoint.send(frame, address):
            self.traffic.dropped["unsent"] += 1
            return
        self.traffic.sent += 1
        self.traffic.sent_bytes += len(frame)

    def _take(self, datagram: bytes) -> None:
        """One frame; the sealed number of its sender counts, not the address that the datagram came from."""
        try:
            sender, message = self._opener.open(datagram)
        except FrameError as error:
            self.traffic.dropped[error.kind] += 1
            return
        if isinstance(message, AskTraffic):
            traffic = self.traffic
            counts = TrafficIs(sent=traffic.sent, sent_bytes=traffic.sent_bytes, dropped=dict(traffic.dropped))
            self.send([(sender, counts)])
        else:
            self.act(lambda now, rng: self.peer.receive(sender, message, now, rng))

    def _undelivered(self) -> None:
        """The kernel could not deliver a datagram: its receiver is gone, as the protocol will find."""
        self.traffic.dropped["undelivered"] += 1


class DatagramClient:
    """Sends messages to peers and collects those that come back. Its number is the address of its socket."""

    def __init__(self, kinds: Sequence[type], key: bytes) -> None:
        self.number = 0
        self.received: asyncio.Queue[Any] = asyncio.Queue()
        self._kinds, self._key = (*COMMON, *kinds), key
        self._opener = Opener(self._kinds, key)
        self._sealer: Sealer | None = None
        self._endpoint: Endpoint | None = None

    async def open(self, host: str) -> DatagramClient:
        """Listen on a port that the kernel chooses."""
        self._endpoint = Endpoint((host, 0), self._take, lambda: None)
        self.number = number_of(*self._endpoint.address)
        self._sealer = Sealer(self._kinds, self._key, self.number, time.time_ns())
        return self

    def send(self, to: int, message: object) -> None:
        """To the peer of a number; an answer may come, or not."""
        assert self._endpoint and self._sealer, "it is open"
        self._endpoint.send(self._sealer.seal(message)[LENGTH.size :], address_of(to))

    def _take(self, datagram: bytes) -> None:
        """An answer; frames that are not sealed with the key are dropped."""
        try:
            self.received.put_nowait(self._opener.open(datagram).message)
        except FrameError:
            return

    def close(self) -> None:
        """Listen no more."""
        if self._endpoint is not None:
            self._endpoint.close()
