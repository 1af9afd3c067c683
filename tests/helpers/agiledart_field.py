"""Nodes of the overlay in virtual time, to which applications are deployed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

from leeward.policies.agiledart.deployment.agent import Agent
from leeward.policies.agiledart.deployment.messages import Announce, PlacementIs, Wanted
from leeward.policies.agiledart.overlay.ids import to_bytes
from leeward.policies.agiledart.platform.converged import drawn
from leeward.policies.agiledart.platform.play import Network, Play, settle

NEAR = Network(delay_s=lambda a, b: 0.005)
ZONE = "zone-0"


def chain(count: int, *, source: int | None = None, sink: int | None = None) -> tuple[Wanted, ...]:
    """Operators one behind the other; ids of the nodes of the ends."""
    pins = {0: source, count - 1: sink}
    return tuple(
        Wanted(
            name=f"op-{number}#0", upstream=(number - 1,) if number else (),
            nodes=(to_bytes(pins[number]),) if pins.get(number) is not None else (),
        )
        for number in range(count)
    )  # fmt: skip


class Field:
    """Nodes that have known each other for a while."""

    def __init__(
        self, nodes: int, *, capacity: int = 4, seed: int = 1, network: Network = NEAR, zones: int = 1
    ) -> None:
        self.play = Play(network, Random(seed))

        def make(*args: Any, **named: Any) -> Agent:
            return Agent(*args, **{**named, "capacity": capacity})

        settle(self.play, drawn(nodes, Random(seed)), zones=zones, make=make)
        self.play.beats(6)

    @property
    def agents(self) -> dict[int, Agent]:
        return {at: peer for at, peer in self.play.peers.items() if isinstance(peer, Agent)}

    def tell(self, at: int, message: object) -> list[Any]:
        """A client's message; the answers."""
        sends = self.play.peers[at].receive(-1, message, self.play.now, self.play.rng)
        self.play.send(at, [send for send in sends if send.to >= 0])
        return [send.message for send in sends if send.to < 0]

    def announce(self, at: int, application: str, operators: tuple[Wanted, ...], zone: str = ZONE) -> None:
        self.tell(at, Announce(application=application, zone=zone, operators=operators))

    def placement(self, at: int, application: str) -> PlacementIs:
        return self.agents[at].owners.placement(application)

    def until(self, condition: Callable[[], bool], beats: float = 40) -> None:
        until = self.play.now + beats * self.play.times.heartbeat
        while not condition():
            assert self.play.now < until, "it has not come about"
            self.play.beats(0.05)

    def decided(self, at: int, *applications: str, beats: float = 40) -> list[PlacementIs]:
        def over() -> bool:
            return all(self.placement(at, name).status in ("placed", "refused") for name in applications)

        self.until(over, beats)
        return [self.placement(at, name) for name in applications]

    def held(self) -> Counter[tuple[str, str]]:
        """Rooms of living nodes, by application and operator."""
        return Counter(room for agent in self.agents.values() for room in agent.rooms.operators())

    def check(self) -> None:
        """No node over its capacity."""
        for agent in self.agents.values():
            assert agent.rooms.load.held <= agent.rooms.capacity
