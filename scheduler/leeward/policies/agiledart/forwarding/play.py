"""Forwarders in one process, over links with delay and loss, in virtual time.  For experiments and tests."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from leeward.core.peers import Send
from leeward.policies.agiledart.forwarding.forwarder import Forwarder
from leeward.policies.agiledart.forwarding.messages import Name


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One direction."""

    delay_s: float
    loss: float = 0.0


class World:
    """Forwarders by their numbers, and the links between them; a pair without a link loses everything.

    `tick_s`: from one tick of every forwarder to the next, as their shells have it.  `links` may change at any time.
    """

    def __init__(
        self, forwarders: Mapping[int, Forwarder], links: dict[tuple[int, int], Link], rng: Random, *, tick_s: float
    ) -> None:
        self.forwarders, self.links, self.now = forwarders, links, 0.0
        self._rng, self._tick_s, self._ticked_s = rng, tick_s, 0.0
        self._coming: list[tuple[float, int, int, int, Any]] = []  # due, order, receiver, sender, message
        self._order = 0

    def submit(self, source: int, body: bytes = b"") -> Name:
        """A packet at its source."""
        name, sends = self.forwarders[source].submit(body, self.now, self._rng)
        self._send(source, sends)
        return name

    def run(self, until_s: float) -> None:
        """Until then."""
        while self.now < until_s:
            self.now = min(self._ticked_s + self._tick_s, until_s)
            while self._coming and self._coming[0][0] <= self.now:
                due, _, to, sender, message = heapq.heappop(self._coming)
                self._send(to, self.forwarders[to].receive(sender, message, due, self._rng), due)
            if self.now >= self._ticked_s + self._tick_s:
                self._ticked_s = self.now
                for number, forwarder in self.forwarders.items():
                    self._send(number, forwarder.tick(self.now, self._rng))

    def _send(self, sender: int, sends: Iterable[Send], now: float | None = None) -> None:
        for to, message in sends:
            link = self.links.get((sender, to))
            if link is not None and self._rng.random() >= link.loss:
                self._order += 1
                due = (self.now if now is None else now) + link.delay_s
                heapq.heappush(self._coming, (due, self._order, to, sender, message))
