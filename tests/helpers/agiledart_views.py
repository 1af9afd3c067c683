"""Views of chains for AgileDART's policy, and agents of the overlay beside it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from leeward.core.model import ClusterView, Component, Node
from leeward.core.peers import Letter
from leeward.core.plan import Plan
from leeward.core.table import even_table
from leeward.policies.agiledart.deployment.agent import Agent
from leeward.policies.agiledart.overlay.ids import id_of
from leeward.policies.agiledart.overlay.messages import contact
from leeward.policies.agiledart.platform.play import Network, Play
from tests.helpers.control_views import node

TWELVE = tuple(node(f"n{number}") for number in range(12))


def carried_out(shown: ClusterView, plan: Plan) -> ClusterView:
    return replace(shown, tables=plan.tables, assignment=plan.placement, first=False)


def chain(
    length: int = 10, nodes: tuple[Node, ...] = TWELVE, *, pins: dict[str, tuple[str, ...]] | None = None, **changes
) -> ClusterView:
    """c0 -> c1 -> ...; three tasks each, one replica, nothing placed yet, on nodes n0, n1, ... of two slots."""
    names = [f"c{number}" for number in range(length)]
    components = tuple(
        Component(
            id=name, tasks=tuple(range(3 * at + 1, 3 * at + 4)), stateful=at > 0, source=at == 0, max_replicas=3,
            pinned=(pins or {}).get(name, ()),
        )
        for at, name in enumerate(names)
    )  # fmt: skip
    shown = ClusterView(
        topology="chain", topology_id="chain-1-1", epoch=0, nodes=nodes,
        components=components, streams=tuple(pairwise(names)),
        tables={one.id: even_table(one.tasks[:1]) for one in components}, assignment={}, first=True,
    )  # fmt: skip
    return replace(shown, **changes)


class Beside:
    """A `Post` to the agent of the first node; each exchange takes a tenth of a heartbeat."""

    def __init__(self, names: Sequence[str], capacity: int = 8) -> None:
        self.play = Play(Network(delay_s=lambda a, b: 0.002), random.Random(1))
        for at, name in enumerate(names):
            me = contact(id_of(name), at)
            agent = Agent(me, machine=name, times=self.play.times, seeds=[0][:at], zone="z", capacity=capacity)
            self.play.add(agent)
            self.play.beats(0.3)
        self.play.beats(8)
        self.at = 0

    def exchange(self, letters: Sequence[Letter]) -> Sequence[tuple[int, Any]]:
        found = []
        for letter in letters:
            sends = self.play.peers[self.at].receive(-1, letter.message, self.play.now, self.play.rng)
            self.play.send(self.at, [send for send in sends if send.to >= 0])
            found += [(letter.to, send.message) for send in sends if send.to < 0]
        self.play.beats(0.1)
        return found

    def held(self) -> dict[str, int]:
        self.play.beats(3)
        return {peer.machine: peer.rooms.load.held for peer in self.play.peers.values() if isinstance(peer, Agent)}
