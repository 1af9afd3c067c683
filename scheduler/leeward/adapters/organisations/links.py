"""All connections of a member. Messages to a peer go over the newest link to it, opened by either side.

A peer with an address is connected when the first message for it is there, and again whenever that link breaks.  A peer
without one opens the link itself, and is answered over it.  All messages that wait for a peer at the moment of sending
go out in one frame, so a busy link has few frames.  Order is kept within one link, but for messages that go to several
peers each: those to one set of peers and those to another may overtake each other.  A message that was on its way when
a link broke is lost, and counted where this side knows of it.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any
from urllib.parse import urlsplit

from websockets.exceptions import InvalidStatus, WebSocketException

from leeward.adapters.organisations.channels import Channel, Dialled, GoneError, wire_of
from leeward.adapters.organisations.frames import HEAD, LARGEST, Codec
from leeward.adapters.organisations.rounds import TURN, Round, Turn
from leeward.adapters.organisations.tls import client_tls, refuse_plain
from leeward.core.errors import ConfigError

#: Messages that wait for a peer, and their bytes; the oldest are dropped beyond.
WAITING, WAITING_BYTES = 10_000, 32 << 20
#: Between two tries to connect, s: the first, doubled with each failure, and the longest.
RETRY_S, LONGEST_RETRY_S = 0.2, 5.0
#: A link that held for so long, s, was a good one: when it breaks, the next try is made at once.
STEADY_S = 5.0
#: Links that one peer may have at a time; the oldest is closed beyond. A peer whose link died without a word opens one
#: more, and this side may not have noticed yet.
LINKS_OF_ONE = 4
#: At the end, messages that still wait have so long to go out, s.
FLUSH_S = 1.0
#: Path of links at every organisation.
LINK_PATH = "/link"
#: Close codes of WebSocket.
GOING_AWAY, POLICY = 1001, 1008

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Traffic:
    """Counts of one member since its start."""

    sent: int = 0  #: messages
    received: int = 0  #: messages
    frames_sent: int = 0
    frames_received: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    links_opened: int = 0  #: by either side
    #: Messages by fault: unsent (too many waited), lost (the link broke), oversize, unknown (no such peer), malformed,
    #: failed (the member or the wiring raised an error).
    dropped: Counter[str] = field(default_factory=Counter)
    #: Connections by fault, of others: unauthorised, closing; of ours: refused, tls, away.
    unopened: Counter[str] = field(default_factory=Counter)

    def counts(self) -> dict[str, int]:
        """All of them by name, faults as `dropped_lost` or `unopened_tls`."""
        found = {name: getattr(self, name) for name in self.__slots__ if name not in ("dropped", "unopened")}
        for kind in ("dropped", "unopened"):
            found |= {f"{kind}_{fault}": count for fault, count in sorted(getattr(self, kind).items()) if count}
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """How to reach a peer."""

    url: str  #: http(s)://host:port, or ws(s)
    token: str = field(repr=False)  #: which the peer knows us by

    def link_url(self, name: str) -> str:
        """Where its links are; `name` for errors. Raises ConfigError if the URL is wrong, or plain and not loopback."""
        at = f"address of {name!r}"
        try:
            parts = urlsplit(self.url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            parts, host = urlsplit(""), None
        schemes = {"http": "ws", "ws": "ws", "https": "wss", "wss": "wss"}
        if parts.scheme not in schemes or not host or parts.username is not None or parts.query or parts.fragment:
            raise ConfigError(f"{at}: {self.url!r} cannot be used.", remedy="Write https://host:port.")
        scheme = schemes[parts.scheme]
        if scheme == "ws":
            refuse_plain(at, host, "Write https:// and give the CA file.")
        return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}{LINK_PATH}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Limits and pace of a member's links."""

    gather_s: float = 0.0  #: how long a message may wait for others; 0: until the next turn of the event loop
    turn: int = TURN  #: peers that a message to several is written to before the event loop does other work
    waiting: int = WAITING  #: messages for one peer
    waiting_bytes: int = WAITING_BYTES  #: of these messages
    largest: int = LARGEST  #: bytes of a frame
    retry_s: float = RETRY_S
    longest_retry_s: float = LONGEST_RETRY_S


class Links:
    """See the module. `on_message(sender, message)` is called in the event loop, for each message in its order.

    `callers`: names that may open links to this member; `addresses`: of peers that it may open links to;
    `tls`: of these links; without it the machine's authorities are trusted.
    """

    def __init__(
        self, kinds: Sequence[type], on_message: Callable[[str, Any], None], *, callers: frozenset[str],
        addresses: Mapping[str, Address], rng: Random, tls: ssl.SSLContext | None = None, rules: Rules | None = None,
    ) -> None:  # fmt: skip
        self.traffic = Traffic()
        self.codec, self.rules, self.rng, self.on_message = Codec(kinds), rules or Rules(), rng, on_message
        self._urls = {name: (address.link_url(name), address.token) for name, address in addresses.items()}
        secure = any(url.startswith("wss:") for url, _ in self._urls.values())
        self.tls = client_tls() if tls is None and secure else tls
        self._known, self._lines = callers | self._urls.keys(), dict[str, _Line]()
        self._rounds: dict[tuple[str, ...], Round] = {}  # of messages that wait to go to all of these peers
        self._closing = False

    def know(self, name: str, address: Address) -> None:
        """A peer that links may be opened to, or its new address. Raises ConfigError as the constructor does."""
        known = address.link_url(name), address.token
        if known[0].startswith("wss:") and self.tls is None:
            self.tls = client_tls()
        self._urls[name] = known
        self._known |= {name}
        if name in self._lines:
            self._lines[name].address = known

    def send(self, to: str, message: object) -> None:
        """Soon, or when the peer is there. Raises LeewardError if the protocol does not have the message's type."""
        packed = self.codec.pack(message)
        if to not in self._known:
            self.traffic.dropped["unknown"] += 1
        elif len(packed) + HEAD > self.rules.largest:
            self.traffic.dropped["oversize"] += 1
        elif self._closing:
            self.traffic.dropped["unsent"] += 1
        else:
            for round_ in self._rounds.values():  # earlier messages go out first
                if (turn := round_.of(to)) is not None:
                    self._write_all(turn)
            self._line(to).put(packed)

    def send_all(self, names: tuple[str, ...], message: object) -> None:
        """The same message to several peers, soon (rounds.py): packed once, in one frame with others to the same peers.

        A peer that other messages wait for, or that has no link yet, gets it after these.
        """
        packed = self.codec.pack(message)
        if self._closing or len(packed) + HEAD > self.rules.largest or not self._known.issuperset(names):
            for name in names:
                self.send(name, message)
            return
        round_ = self._rounds.get(names)
        if round_ is None:
            round_ = self._rounds[names] = Round(names, self.rules.turn)
            loop, gather_s, turn = asyncio.get_running_loop(), self.rules.gather_s, partial(self._turn, names, round_)
            if gather_s:
                loop.call_later(gather_s, turn)
            else:
                loop.call_soon(turn)
        round_.put(packed)

    def _turn(self, names: tuple[str, ...], round_: Round) -> None:
        """The next one of a round, and so on until nothing waits."""
        turn = round_.next()
        if turn is None:
            del self._rounds[names]
            return
        asyncio.get_running_loop().call_soon(self._turn, names, round_)  # first: a fault must not end the round
        self._write_all(turn)

    def _write_all(self, turn: Turn) -> None:
        """The waiting messages of a turn: one frame, written to each connection, or into the queue of its peer."""
        waiting, written = turn.take(), 0
        frame = self.codec.frame(waiting)
        wire = wire_of(frame) if len(frame) <= self.rules.largest and not self._closing else None
        for line in [self._line(name) for name in turn.names]:
            if wire is not None and line.write(wire):
                written += 1
                continue
            for packed in waiting:
                line.put(packed)
        self.traffic.sent += written * len(waiting)
        self.traffic.frames_sent += written
        self.traffic.bytes_sent += written * len(frame)

    async def serve(self, name: str, channel: Channel) -> None:
        """A link that a peer has opened, until it ends."""
        if self._closing:
            self.traffic.unopened["closing"] += 1
            await channel.close(GOING_AWAY, "the organisation ends")
            return
        line = self._line(name)
        line.attach(channel)
        await line.read(channel)

    def open_links(self) -> dict[str, int]:
        """Peer -> links to it that are open now."""
        return {name: len(line.channels) for name, line in self._lines.items() if line.channels}

    def waiting(self) -> dict[str, int]:
        """Peer -> messages that wait for it."""
        found = Counter({name: len(line.waiting) for name, line in self._lines.items() if line.waiting})
        for round_ in self._rounds.values():
            found.update(round_.waiting())
        return dict(found)

    async def close(self) -> None:
        """Send what waits and can go out at once, close all links with code 1001, and end every task."""
        self._closing = True
        for round_ in self._rounds.values():
            while (turn := round_.next()) is not None:
                self._write_all(turn)  # into the queues: the links send these before they end
        await asyncio.gather(*(line.close() for line in self._lines.values()))

    def _line(self, name: str) -> _Line:
        line = self._lines.get(name)
        if line is None:
            line = self._lines[name] = _Line(self, name, self._urls.get(name))
        return line


class _Line:
    """One peer: messages that wait for it, and links to it."""

    def __init__(self, links: Links, name: str, address: tuple[str, str] | None) -> None:
        self._links, self._name, self.address = links, name, address
        self.waiting: deque[bytes] = deque()
        self._bytes = 0  #: of these
        self.channels: list[Channel] = []  #: the newest last
        self._changed, self._linked = asyncio.Event(), asyncio.Event()
        self._tries = 0  #: to connect, since a link held
        self._carrier = asyncio.create_task(self._carry(), name=f"messages to {name}")
        self._tasks: set[asyncio.Task[None]] = set()  #: that read our own connections, or close one

    def put(self, packed: bytes) -> None:
        """Into the queue; drops the oldest of too many."""
        rules = self._links.rules
        self.waiting.append(packed)
        self._bytes += len(packed)
        while len(self.waiting) > rules.waiting or self._bytes > rules.waiting_bytes:
            self._bytes -= len(self.waiting.popleft())
            self._links.traffic.dropped["unsent"] += 1
        self._changed.set()

    def write(self, wire: bytes) -> bool:
        """Send a whole frame at once, past nothing that waits; False if that is not possible."""
        return not self.waiting and bool(self.channels) and self.channels[-1].write(wire)

    async def close(self) -> None:
        """See Links.close."""
        if self.channels and self.waiting:
            with suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_S):
                    while self.channels and self.waiting:
                        await self._flush()
        self._carrier.cancel()
        await asyncio.gather(self._carrier, return_exceptions=True)
        await asyncio.gather(*(channel.close(GOING_AWAY, "the organisation ends") for channel in self.channels))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._links.traffic.dropped["unsent"] += len(self.waiting)
        self.waiting.clear()

    # --- receiving

    def attach(self, channel: Channel) -> None:
        """From now on messages go over this link."""
        self.channels.append(channel)
        self._links.traffic.links_opened += 1
        self._linked.set()
        self._changed.set()
        if len(self.channels) > LINKS_OF_ONE:
            self._spawn(self.channels.pop(0).close(POLICY, f"more than {LINKS_OF_ONE} links"))

    async def read(self, channel: Channel) -> None:
        """Give every message of this link to the member, until the link ends."""
        began, traffic = time.monotonic(), self._links.traffic
        try:
            while True:
                frame = await channel.receive()
                traffic.frames_received += 1
                if frame is None:  # text
                    traffic.dropped["malformed"] += 1
                    continue
                traffic.bytes_received += len(frame)
                opened = self._links.codec.open(frame)
                traffic.received += len(opened.messages)
                traffic.dropped["malformed"] += opened.malformed
                for message in opened.messages:
                    self._links.on_message(self._name, message)
        except GoneError as error:
            _log.info("link to %s has ended: %s", self._name, error)
        finally:
            self._detach(channel)
            if time.monotonic() - began >= STEADY_S:
                self._tries = 0

    def _detach(self, channel: Channel) -> None:
        if channel in self.channels:
            self.channels.remove(channel)
        if not self.channels:
            self._linked.clear()
        self._changed.set()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=f"link to {self._name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- sending

    async def _carry(self) -> None:
        while True:
            self._changed.clear()
            try:
                if self.channels and self.waiting:
                    await self._gather()
                elif not self.channels and self.address is not None:
                    await self._connect(*self.address)
                else:
                    await self._changed.wait()
            except Exception:  # a fault must not stop the messages to this peer for good
                _log.exception("messages to %s are held up", self._name)
                await asyncio.sleep(RETRY_S)

    async def _gather(self) -> None:
        """Send all that waits, and what comes while it does."""
        if self._links.rules.gather_s:
            await asyncio.sleep(self._links.rules.gather_s)
        while self.channels and self.waiting:
            await self._flush()

    async def _flush(self) -> None:
        """One frame with all that waits, as far as it fits. There is a link, and a message."""
        traffic, room = self._links.traffic, self._links.rules.largest - HEAD
        packed: list[bytes] = []
        while self.waiting and len(self.waiting[0]) <= room:
            room -= len(self.waiting[0])
            packed.append(self.waiting.popleft())
        self._bytes -= self._links.rules.largest - HEAD - room
        frame, channel = self._links.codec.frame(packed), self.channels[-1]
        try:
            await channel.send(frame)
        except GoneError:  # it may have gone out in part, and a message must not come twice
            traffic.dropped["lost"] += len(packed)
            self._detach(channel)
            return
        except asyncio.CancelledError:  # at the end, when the peer does not read
            traffic.dropped["lost"] += len(packed)
            raise
        traffic.sent += len(packed)
        traffic.frames_sent += 1
        traffic.bytes_sent += len(frame)

    async def _connect(self, url: str, token: str) -> None:
        """One try, after a wait if the last one failed. A link that the peer opens in the meantime will do."""
        rules, rng, traffic = self._links.rules, self._links.rng, self._links.traffic
        if self._tries:
            wait_s = min(rules.longest_retry_s, rules.retry_s * 2 ** min(self._tries - 1, 20))
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s * rng.uniform(0.5, 1.0)):
                    await self._linked.wait()
                    return
        self._tries += 1
        tls = self._links.tls if url.startswith("wss:") else None
        try:
            channel = await Dialled.open(url, token, tls, rules.largest)
        except (OSError, WebSocketException, EOFError, UnicodeError) as error:  # the last: of a name that is no host's
            traffic.unopened[_kind_of(error)] += 1
            _log.log(logging.WARNING if self._tries == 1 else logging.DEBUG, "%s is not reached: %s", self._name, error)
            return
        self.attach(channel)
        self._spawn(self.read(channel))


def _kind_of(error: Exception) -> str:
    """Why a connection could not be opened, for the counts."""
    if isinstance(error, InvalidStatus):
        return "refused"
    return "tls" if isinstance(error, ssl.SSLError) else "away"
