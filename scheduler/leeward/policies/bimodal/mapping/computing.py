"""The diffusing computation by which the maps of a task are found (Dijkstra and Scholten; spec, section 2).

Each server that gets a map while it takes no part in the task's computation joins, with the sender as its predecessor;
it leaves when all that it has sent is acknowledged, and tells its predecessor then.  So when the delivery server, which
began it, has no message out any more, every map that could be found has been found.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from leeward.core.peers import Send
from leeward.policies.bimodal.mapping.messages import Ack, Map
from leeward.policies.bimodal.mapping.rules import Method, Table
from leeward.policies.bimodal.model.resources import Account, Resource, hop_resource
from leeward.policies.bimodal.model.values import Network, Task
from leeward.policies.bimodal.model.walk import (
    Walk,
    bandwidth_on,
    begin,
    cpu_at,
    forward,
    is_whole,
    may_forward,
    may_go_public,
    may_run_next,
    run,
    send_public,
    uplink_of,
)


@dataclass(slots=True, kw_only=True)
class _Part:
    """One task's computation as this server knows it."""

    spec: Task
    turn: int
    pred: int | None = None  #: the server that made it join; None: it takes no part now
    count: int = 0  #: messages that are not acknowledged
    knows: set[int] = field(default_factory=set)  #: servers that have the specification
    table: Table = field(default_factory=dict)
    until: float = 0.0  #: then it is forgotten


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The server and what it asks others of its parts."""

    me: int
    network: Network  #: itself and its links
    account: Account
    method: Method
    hosts: Callable[[int], tuple[int, ...]]  #: service -> servers that host it
    weight: Callable[[int], float]  #: of the public path to a server
    feasible: Callable[[Walk, Task], None]  #: a whole map has come
    over: Callable[[str, float], list[Send]]  #: the computation that began here is over: (task, now)
    lease_s: float


class Computations:
    """The part of one server in the computations of all tasks."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._parts: dict[str, _Part] = {}

    def begin(self, task: Task, turn: int, now: float) -> list[Send]:
        """An empty map for the source; this is the delivery server."""
        me, until = self._around.me, now + self._around.lease_s
        self._parts[task.name] = _Part(spec=task, turn=turn, pred=me, count=1, until=until)
        return [Send(task.source, Map(task=task.name, turn=turn, spec=task, walk=begin(task)))]

    def tick(self, now: float) -> None:
        """Computations of which nothing has been heard for a lease are forgotten."""
        self._parts = {name: part for name, part in self._parts.items() if part.until > now}

    def forget(self, task: str) -> None:
        """The task is decided."""
        self._parts.pop(task, None)

    def map(self, sender: int, message: Map, now: float, rng: random.Random) -> list[Send]:
        """Join, extend the map that came, and pass it on."""
        part = self._parts.get(message.task)
        if message.spec is not None and (part is None or part.turn < message.turn):
            part = self._parts[message.task] = _Part(spec=message.spec, turn=message.turn)
        if part is None or part.turn != message.turn:  # its deadline at the delivery server is over
            return [Send(sender, Ack(task=message.task, turn=message.turn, last=True))]
        part.until = now + self._around.lease_s
        joins = part.pred is None
        sends: list[Send] = []
        if joins:
            part.pred = sender
        else:
            sends.append(Send(sender, Ack(task=message.task, turn=part.turn, last=False)))
        onward = self._extend(message.walk, part, rng)
        part.count += len(onward)
        return [*sends, *onward, *self._leave(message.task, part, now)]

    def ack(self, sender: int, message: Ack, now: float) -> list[Send]:
        """One message less is out."""
        part = self._parts.get(message.task)
        if part is None or part.pred is None or part.turn != message.turn:
            return []  # its time was over
        part.knows.add(sender)
        part.count -= 1
        return self._leave(message.task, part, now)

    def active(self) -> Mapping[str, int]:
        """Task -> messages that are not acknowledged, of the computations in which it takes part."""
        return {name: part.count for name, part in self._parts.items() if part.pred is not None}

    def _leave(self, task: str, part: _Part, now: float) -> list[Send]:
        """With nothing out any more this server takes no part; at the delivery server the computation is over."""
        if part.count or part.pred is None:
            return []
        pred, part.pred = part.pred, None
        if pred == self._around.me:
            return self._around.over(task, now)
        return [Send(pred, Ack(task=task, turn=part.turn, last=True))]

    # --- extending a map

    def _extend(self, walk: Walk, part: _Part, rng: random.Random) -> list[Send]:
        """Every extension by services of this server, passed on as the rule says."""
        task, me, account, sends = part.spec, self._around.me, self._around.account, list[Send]()
        already = cpu_at(walk, me, task)
        services, cpu, need = self._around.network.servers[me].services, Resource("cpu", me), 0.0
        for count in range(len(task.services) - walk.done + 1):
            if count:
                number = walk.done + count - 1
                need += task.cpu[number]
                hosted = task.services[number] in services and may_run_next(walk, task, me, count - 1)
                if not hosted or not account.has(cpu, already + need):
                    break
            extended = run(walk, count, account.load(me, already + need))
            if is_whole(extended, task):
                self._around.feasible(extended, task)
            elif self._around.method.rule.passes(extended, part.table, rng):
                sends += self._pass_on(extended, part, rng)
        return sends

    def _pass_on(self, walk: Walk, part: _Part, rng: random.Random) -> list[Send]:
        task, need, sends = part.spec, part.spec.bandwidth[walk.done], list[Send]()
        me, network, account, method = self._around.me, self._around.network, self._around.account, self._around.method
        if method.dedicated and may_forward(walk, task):
            for to, link in self._chosen(rng):
                resource = hop_resource(network, me, link)
                if account.has(resource, need + self._on_link(walk, resource, task)):
                    sends.append(_map(to, forward(walk, to, link, network.links[link].cost), part))
        if method.public and may_go_public(walk):
            own = uplink_of(walk, me, task) if method.aggregated else 0.0
            if account.has(Resource("uplink", me), need + own):
                weight = self._around.weight
                sends += [_map(to, send_public(walk, to, weight(to)), part) for to in self._next_hosts(walk, task)]
        return sends

    def _chosen(self, rng: random.Random) -> Sequence[tuple[int, int]]:
        """(neighbour, number of the link) of those to which a walk is passed on."""
        everyone, count = self._around.network.neighbours[self._around.me], self._around.method.neighbours
        return everyone if count is None else rng.sample(everyone, min(count, len(everyone)))

    def _on_link(self, walk: Walk, resource: Resource, task: Task) -> float:
        """Bandwidth of a link that the walk itself uses already."""
        if not self._around.method.aggregated:
            return 0.0
        return bandwidth_on(walk, (resource.number, resource.to_a), task, self._around.network)

    def _next_hosts(self, walk: Walk, task: Task) -> list[int]:
        whole = walk.done == len(task.services)
        me = self._around.me
        if whole:
            return [] if me == task.delivery else [task.delivery]
        hosts = self._around.hosts(task.services[walk.done])
        return [server for server in hosts if server != me and may_run_next(walk, task, server)]


def _map(to: int, walk: Walk, part: _Part) -> Send:
    spec = None if to in part.knows else part.spec
    return Send(to, Map(task=part.spec.name, turn=part.turn, spec=spec, walk=walk))
