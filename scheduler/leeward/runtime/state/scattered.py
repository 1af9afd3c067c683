"""Bytes of checkpoints in fragments at agents: the shell of a scheme (`leeward.core.fragments`).

The bytes of a task's groups are one state, which the scheme cuts and encodes. Each fragment goes to another agent, all
at the same time. The record that Redis keeps for the task says where they are, and the scheme's own record goes with
it; so fragments count once Redis has taken that record under its fence, and those of a fenced writer never do.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, NamedTuple

from leeward.core.errors import ClusterRefusedError, LeewardError, SnapshotError
from leeward.core.fragments import Ask, Buffer, Rebuilding, Scheme, Spread
from leeward.runtime.state.nearby import Nearby
from leeward.wire.fragments import AgentClient

log = logging.getLogger(__name__)

#: To connect to an agent, and for it to take some bytes of a fragment or make it durable, s.
CONNECT_S, TAKE_S = 3.0, 10.0
#: Between two looks at the time while a rebuild waits, s.
TICK_S = 0.05
_REMEDY = "Start the agents that leeward.state.agents names, or look into their logs."


class Place(NamedTuple):
    """Where fragments of one task's state are to be found at each of their holders."""

    topology: str
    cut: int
    part: str

    def name(self, fragment: int) -> str:
        """Of a fragment."""
        return f"{self.part}.{fragment}"


class Kept(NamedTuple):
    """A state that the agents have."""

    record: dict[str, Any]  #: by which `Scattered.get` finds it
    period_s: float  #: longest time until the next checkpoint that the scheme's settings allow; 0: any


class Scattered:
    """One node's access to the agents. `agents`: by their addresses, or those near one, which are found for each `put`.

    `node`: agents on it are not used, as they would fail with it.
    """

    def __init__(
        self, scheme: Scheme, agents: Sequence[str] | Nearby, secret: bytes, *, node: str = "",
        connect_s: float = CONNECT_S,
    ) -> None:  # fmt: skip
        self._scheme, self._secret, self._connect_s = scheme, secret, connect_s
        self._nearby = agents if isinstance(agents, Nearby) else None
        self._named = () if isinstance(agents, Nearby) else _shared(agents, node)

    @property
    def agents(self) -> tuple[str, ...]:
        """In the order in which this node uses them. Raises ClusterRefusedError if nobody tells those near an agent."""
        return self._nearby.find() if self._nearby else self._named

    def put(
        self, topology: str, cut: int, part: str, blobs: Mapping[int, bytes],
        tell: Callable[[Sequence[str]], None] = lambda agents: None,
    ) -> Kept:  # fmt: skip
        """Store the groups' bytes. `part`: its own for each writer and epoch. `tell`: called with agents before any of
        them is given a fragment.

        Raises ConfigError for too few agents, ClusterRefusedError if fewer fragments could be stored than the state
        needs. With fewer than all, but enough, so many failures less are survived.
        """

        def find() -> tuple[str, ...]:
            found = self.agents
            tell(found)
            return found

        agents = find()
        place, places, at = Place(topology, cut, part), {}, 0
        for group, blob in blobs.items():
            places[group] = (at, len(blob))
            at += len(blob)
        spread = self._scheme.spread(b"".join(blobs.values()), neighbours=len(agents))
        holders = _Putting(spread, self._client, agents, place, find).run()
        return Kept({"part": place.part, "places": places, "record": spread.record(holders)}, spread.period_s)

    def _client(self, address: str) -> AgentClient:
        client = AgentClient(address, self._secret, self._connect_s)
        client.way.socket.settimeout(TAKE_S)
        return client

    def get(self, topology: str, cut: int, record: Mapping[str, Any], groups: Iterable[int]) -> dict[int, Buffer]:
        """Bytes of the groups; those that were not stored are left out. Raises SnapshotError."""
        place = Place(topology, cut, record["part"])
        ranges = {group: record["places"][group] for group in groups if group in record["places"]}
        rebuilding = self._scheme.rebuild(record["record"], list(ranges.values()))
        try:
            state = _Getting(rebuilding, self._secret, self._connect_s, place).run()
        except SnapshotError as error:
            raise SnapshotError(
                f"cut {place.cut}, fragments of {place.part}: {error}",
                remedy="The coordinator falls back to an older cut.",
            ) from error
        return {group: state[begin : begin + length] for group, (begin, length) in ranges.items()}


def _shared(agents: Sequence[str], node: str) -> tuple[str, ...]:
    """In an order that is another one for each node, so that all agents get their share."""
    others = [address for address in dict.fromkeys(agents) if address.rpartition(":")[0] != node]
    return tuple(sorted(others, key=lambda address: sha256(f"{node} {address}".encode()).digest()))


class _Putting:
    """Fragments on their way to agents, a thread for each. An agent that does not take one is replaced by a spare.

    `find`: the agents of now; asked once where there is no spare left, as another node may have come.
    """

    def __init__(
        self, spread: Spread, client: Any, agents: Sequence[str], place: Place, find: Callable[[], Sequence[str]]
    ) -> None:
        self._spread, self._client, self._place = spread, client, place
        count = len(spread.fragments)
        self._agents, self._first, self._spares = agents, agents[:count], deque(agents[count:])
        self._holders, self._failures = [""] * count, list[str]()
        self._find: Callable[[], Sequence[str]] | None = find
        self._lock = threading.Lock()  # guards it, and the spares

    def run(self) -> list[str]:
        """The holder of each fragment; "" where nobody has it."""
        threads = [
            threading.Thread(target=self._store, args=pair, name="leeward-put", daemon=True)
            for pair in enumerate(self._first)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stored = sum(map(bool, self._holders))
        if stored < self._spread.least:
            raise ClusterRefusedError(
                f"cut {self._place.cut}: {stored} of {len(self._holders)} fragments could be stored, and "
                f"{self._spread.least} are needed ({'; '.join(self._failures)}).",
                remedy=_REMEDY,
            )
        for failure in self._failures:
            log.warning("cut %d: %s; %d of %d fragments", self._place.cut, failure, stored, len(self._holders))
        return self._holders

    def _store(self, fragment: int, address: str) -> None:
        while True:
            try:
                client = self._client(address)
                try:
                    place = self._place
                    client.put(place.topology, place.cut, place.name(fragment), self._spread.fragments[fragment])
                finally:
                    client.close()
                self._holders[fragment] = address
                return
            except (OSError, LeewardError) as error:
                self._failures.append(f"agent {address}: {error}")
            spare = self._spare()
            if spare is None:
                return
            address = spare

    def _spare(self) -> str | None:
        with self._lock:
            if not self._spares and self._find is not None:
                find, self._find = self._find, None
                try:
                    self._spares.extend(one for one in find() if one not in self._agents)
                except Exception as error:  # Redis or the agent is away: the fragments that are stored may be enough
                    self._failures.append(str(error))
            return self._spares.popleft() if self._spares else None


#: A holder's answer: the ask and its bytes, or the holder that is not there, and why.
_Event = tuple[Ask, Buffer] | tuple[str, str]


class _Getting:
    """A rebuild: its asks go to the holders' threads, which put the answers into one queue."""

    def __init__(self, rebuilding: Rebuilding, secret: bytes, connect_s: float, place: Place) -> None:
        self._rebuilding, self._secret, self._connect_s, self._place = rebuilding, secret, connect_s, place
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._holders: dict[str, _Holder] = {}
        self._ticked = 0.0

    def run(self) -> memoryview:
        """The state, when it is rebuilt."""
        rebuilding = self._rebuilding
        try:
            self._send(rebuilding.begin(time.monotonic()))
            while not rebuilding.over:
                self._send(self._next())
            return rebuilding.state()
        finally:
            for holder in self._holders.values():
                holder.close()

    def _next(self) -> Sequence[Ask]:
        """The asks that follow from the next event, or from the time that has passed."""
        now = time.monotonic()
        if now >= self._ticked + TICK_S:  # also while others answer all the time
            self._ticked = now
            return self._rebuilding.tick(now)
        try:
            about, answer = self._events.get(timeout=self._ticked + TICK_S - now)
        except queue.Empty:
            return ()
        now = time.monotonic()
        if isinstance(about, Ask):
            assert not isinstance(answer, str)
            return self._rebuilding.received(about, answer, now)
        log.warning("cut %d: agent %s gives no fragment: %s", self._place.cut, about, answer)
        return self._rebuilding.gone(about, now)

    def _send(self, asks: Iterable[Ask]) -> None:
        for ask in asks:
            holder = self._holders.get(ask.holder)
            if holder is None or not holder.ask(ask):
                holder = _Holder(ask.holder, self._secret, self._connect_s, self._place, self._events)
                holder.ask(ask)
                self._holders[ask.holder] = holder


class _Holder:
    """The connection to one agent; its thread ends with the first failure, or when the agent closes an idle one."""

    def __init__(
        self, address: str, secret: bytes, connect_s: float, place: Place, events: queue.SimpleQueue[_Event]
    ) -> None:
        self._address, self._secret, self._connect_s = address, secret, connect_s
        self._place, self._events = place, events
        self._client: AgentClient | None = None
        self._closed = False
        self._asked: deque[Ask] = deque()  # not answered; while there is no client, not sent either
        self._lock = threading.Lock()  # guards these
        threading.Thread(target=self._run, name="leeward-get", daemon=True).start()

    def ask(self, ask: Ask) -> bool:
        """Send it now, or when the connection is there; False if the connection has ended."""
        with self._lock:
            if self._closed:
                return False
            self._asked.append(ask)
            if self._client is not None:
                with suppress(OSError):  # its thread says so
                    self._send(self._client, ask)
            return True

    def close(self) -> None:
        """Nothing more is wanted."""
        with self._lock:
            self._closed = True
            if self._client is not None:
                self._client.close()

    def _send(self, client: AgentClient, ask: Ask) -> None:
        place = self._place
        client.way.send(["get", place.topology, place.cut, place.name(ask.fragment), ask.begin, ask.length])

    def _run(self) -> None:
        try:
            client = AgentClient(self._address, self._secret, self._connect_s)
            client.way.socket.settimeout(None)  # the scheme knows how long an answer may take
            with self._lock:
                self._client = client
                if self._closed:
                    client.close()
                for ask in self._asked:
                    self._send(client, ask)
            while True:
                verdict, answer = client.way.receive()
                if verdict != "ok":
                    raise ConnectionError(answer)
                ask = self._asked[0]
                if answer != ask.length:
                    raise ConnectionError(f"{answer} bytes are announced, {ask.length} were asked for")
                data = client.way.read(ask.length)
                with self._lock:
                    self._asked.popleft()
                self._events.put((ask, data))
        except (OSError, ValueError, IndexError) as error:
            self.close()
            if self._client is None or self._asked:
                self._events.put((self._address, str(error)))
