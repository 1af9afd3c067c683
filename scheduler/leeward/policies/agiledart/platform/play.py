"""Nodes of the overlay in one process and in virtual time: messages take their time, are lost, nodes die and join.

The nodes are the protocol's own (`overlay/peer.py`), and a node's address is its number here.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any

from leeward.core.peers import Send
from leeward.policies.agiledart.overlay.ids import nearness
from leeward.policies.agiledart.overlay.messages import Contact, contact
from leeward.policies.agiledart.overlay.neighbours import Times
from leeward.policies.agiledart.overlay.peer import Peer
from leeward.policies.agiledart.platform.converged import Converged

#: Ticks of a node in a heartbeat.
TICKS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Delays and losses of messages. `delay_s`: of two addresses, one way."""

    delay_s: Callable[[int, int], float]
    loss: float = 0.0


class Play:
    """Nodes, and the messages between them in virtual time, which begins at 0. All chance comes from `rng`."""

    def __init__(self, network: Network, rng: Random, times: Times | None = None) -> None:
        self.network, self.times, self.now = network, times or Times(), 0.0
        self.peers: dict[int, Peer] = {}  #: those that live
        self.messages: Counter[str] = Counter()
        self.rng = rng
        self._order = count()
        self._queue: list[tuple[float, int, int, int, Any]] = []  #: when, order, to, from (or itself: a tick), message

    def add(self, peer: Peer) -> None:
        """A node comes to life."""
        self.peers[peer.me] = peer
        self._push(self.now + self.rng.random() * self.times.heartbeat / TICKS, peer.me, peer.me, peer)

    def kill(self, addresses: Iterable[int]) -> None:
        """Nodes die, without a word."""
        for address in addresses:
            self.peers.pop(address, None)

    def send(self, sender: int, sends: Iterable[Send]) -> None:
        """Messages on their way."""
        for to, message in sends:
            self.messages[type(message).__name__] += 1
            if not self.network.loss or self.rng.random() >= self.network.loss:
                self._push(self.now + self.network.delay_s(sender, to), to, sender, message)

    def run(self, until: float) -> None:
        """Let time pass."""
        queue = self._queue
        while queue and queue[0][0] <= until:
            self.now, _, to, sender, message = heapq.heappop(queue)
            peer = self.peers.get(to)
            if peer is None:
                continue
            if to != sender:
                self.send(to, peer.receive(sender, message, self.now, self.rng))
            elif message is peer:
                self.send(to, peer.tick(self.now, self.rng))
                self._push(self.now + self.times.heartbeat / TICKS, to, to, peer)
        self.now = until

    def beats(self, number: float) -> None:
        """Let so many heartbeats pass."""
        self.run(self.now + number * self.times.heartbeat)

    def root(self, key: int) -> Peer:
        """The living node that has joined and is nearest to a key."""
        joined = (peer for peer in self.peers.values() if peer.state == "joined")
        return min(joined, key=lambda peer: nearness(peer.contact.id, key))

    def _push(self, when: float, to: int, sender: int, message: Any) -> None:
        heapq.heappush(self._queue, (when, next(self._order), to, sender, message))


def settle(play: Play, converged: Converged, *, zones: int = 0, make: Callable[..., Peer] = Peer) -> dict[int, Contact]:
    """Enter the nodes of a converged overlay into a play, as if all had joined long ago: id -> contact.

    With `zones` the node at address a is in zone "a mod zones", and capacities are drawn by chance, 1 to 16.  `make`:
    takes what `Peer` takes.
    """
    contacts = {node: contact(node, at) for at, node in enumerate(converged.ids)}
    for node, mine in contacts.items():
        zone = f"zone-{mine.at % zones}" if zones else ""
        peer = make(mine, times=play.times, zone=zone, capacity=play.rng.randint(1, 16))
        tables, held = converged.tables(node), peer.neighbours
        peer.state, held.joined = "joined", True
        for other in sorted(tables.known()):
            round_trip = play.network.delay_s(mine.at, contacts[other].at) * 2 if other in tables.routes else None
            held.meet(contacts[other], 0.0, round_trip)
        play.add(peer)
    return contacts
