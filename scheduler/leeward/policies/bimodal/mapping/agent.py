"""One server's part in mapping tasks: messages in, messages out. No clock, no input or output.

A task is mapped by a diffusing computation (Dijkstra and Scholten): the delivery server begins it with an empty map for
the source.  Each server that gets a map while it takes no part in the task's computation joins, with the sender as its
predecessor; it leaves when all that it has sent is acknowledged, and tells its predecessor then.  When the delivery
server has no message out any more, every map that could be found has been found.  It tries the feasible ones in the
order of `Method.choice`: a probe reserves along the map, back to the source.

Ours comes before it (`Method.surveys`): the delivery server searches the network as gossip has told it, and sends a
probe along the map that it finds.  A server without room sends its newest facts back, and the search is made again.

Each reservation has a lease. The delivery server renews it while the task runs; a server that hears nothing in time
releases its part, so one that dies leaves nothing behind.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from leeward.core.peers import Send
from leeward.policies.bimodal.exact.search import cheapest
from leeward.policies.bimodal.mapping.gossip import Fact, Knowledge, fact_of
from leeward.policies.bimodal.mapping.messages import (
    Ack,
    Asked,
    End,
    Gossip,
    Granted,
    Map,
    Message,
    Release,
    Renew,
    Reserve,
    Submit,
    Told,
    Undo,
)
from leeward.policies.bimodal.mapping.reserving import Reservations
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
    run,
    send_public,
    uplink_of,
)

#: Searches for one task on what is known, each with the news of why the one before could not be reserved.
SURVEYS = 4
#: Servers that are told over the public network in one round of gossip.
FAR = 2
Status = Literal["mapping", "reserving", "running", "refused", "over"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Seconds."""

    mapping: float = 10.0  #: after which the delivery server takes what has been found, as some server does not answer
    probe: float = 5.0  #: after which the next map is tried, as some server does not answer
    lease: float = 30.0  #: of what is reserved, and of what is remembered of a task
    gossip: float = 1.0  #: between two rounds of it
    #: A server of which nothing was heard for so long is not there; each tells its facts three times as often, changed
    #: or not.  None: only what has changed is told, and no server is forgotten.
    silence: float | None = None
    renewal: float = 10.0  #: between two renewals of a running task


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


@dataclass(slots=True, kw_only=True)
class Portal:
    """At the delivery server: how far a task is."""

    spec: Task
    status: Status = "mapping"
    feasible: list[Walk] = field(default_factory=list)
    walk: Walk | None = None  #: the map that is tried, or runs
    attempt: int = 0
    turn: int = 0  #: times that it was begun
    surveys: int = 0  #: searches since it was begun
    computed: bool = False  #: the diffusing computation has begun since
    until: float = 0.0  #: deadline of what it waits for
    renew_at: float = 0.0


class Agent:
    """See the module. `network`: the part that this server knows, itself and its links (`Network.around`)."""

    def __init__(
        self, me: int, network: Network, *, method: Method, hosts: Callable[[int], tuple[int, ...]] | None = None,
        times: Times | None = None, account: Account | None = None, peers: Sequence[int] = (),
    ) -> None:  # fmt: skip
        """`hosts`: service -> servers that host it (None: as gossip has it). `account`: one of all servers together.
        `peers`: all servers, if it is to gossip by itself.
        """
        self.me, self.network, self.method = me, network, method
        self.knowledge = Knowledge(network.direction)
        self._told: Fact | None = None
        self._told_at = 0.0
        self._peers, self._gossip_at = peers, 0.0
        self._hosts = hosts or self.knowledge.hosts
        self.times = times or Times()
        self.account = account or Account(network)
        self.reservations = Reservations(me, network, self.account, self._fact, alone=account is None)
        self.portals: dict[str, Portal] = {}
        self._parts: dict[str, _Part] = {}

    # --- from outside

    def submit(self, task: Task, now: float) -> list[Send]:
        """Begin to map a task that is to be delivered here; one that is known already goes on."""
        if task.name in self.portals:
            return []
        portal = self.portals[task.name] = Portal(spec=task)
        return self._begin(portal, now)

    def _begin(self, portal: Portal, now: float) -> list[Send]:
        """Map it; also again, where a server of its map does not answer any more. Its attempts are counted on."""
        portal.turn, portal.feasible, portal.surveys, portal.computed = portal.turn + 1, [], 0, False
        return self._try_next(portal, now)

    def end(self, task: str) -> list[Send]:
        """A task that is delivered here is over."""
        portal = self.portals.get(task)
        if portal is None or portal.status in ("refused", "over"):
            return []
        portal.status = "over"
        return [] if portal.walk is None else [self._probe(Release, portal)]

    def tick(self, now: float, rng: random.Random) -> list[Send]:
        """Time has passed: leases end, deadlines are over, running tasks are renewed, news is told."""
        self.reservations.expire(now)
        self._parts = {name: part for name, part in self._parts.items() if part.until > now}
        sends: list[Send] = []
        for _, portal in sorted(self.portals.items()):
            if portal.status == "mapping" and now >= portal.until:
                sends += self._computed(portal, now)
            elif portal.status == "reserving" and now >= portal.until:
                sends += [self._probe(Release, portal), *self._try_next(portal, now)]
            elif portal.status == "running" and now >= portal.until:
                sends += [self._probe(Release, portal), *self._begin(portal, now)]
            elif portal.status == "running" and now >= portal.renew_at:
                portal.renew_at = now + self.times.renewal
                sends.append(self._probe(Renew, portal))
        if self._peers and now >= self._gossip_at:
            self._gossip_at = now + self.times.gossip
            sends += self.gossip(self._peers, now, rng)
        return sends

    def receive(self, sender: int, message: Message | Told, now: float, rng: random.Random) -> list[Send]:
        """Take one message in; the messages that follow from it."""
        match message:
            case Gossip():
                self.knowledge.take(message.facts, now, sender)
                return []
            case Map():
                return self._map(sender, message, now, rng)
            case Ack():
                return self._ack(sender, message, now)
            case Reserve():
                return self.reservations.reserve(message, now + self.times.lease)
            case Undo():
                return self._undo(message, now)
            case Renew():
                return self.reservations.renew(message, now + self.times.lease)
            case Release():
                return self.reservations.release(message)
            case Granted():
                return self._granted(message, now)
            case Submit():
                return self.submit(message.spec, now)
            case End():
                return self.end(message.task)
            case Asked():
                portal = self.portals.get(message.task)
                status, walk = (portal.status, portal.walk) if portal else ("", None)
                held = len(self.reservations.tasks)
                return [Send(sender, Told(task=message.task, status=status, walk=walk, held=held))]
            case _:  # an answer that nobody has asked for
                return []

    def gossip(self, peers: Sequence[int], now: float, rng: random.Random) -> list[Send]:
        """Tell each neighbour, and two of the `peers` over the public network, what is new for them."""
        if self.times.silence is not None and now >= self._told_at + self.times.silence / 3 and self._told is not None:
            self._told = replace(self._told, version=self._told.version + 1)
            self._told_at = now
        self.knowledge.take([self._fact()], now)
        if self.times.silence is not None:
            self.knowledge.forget(now - self.times.silence)
        near = {to for to, _ in self.network.neighbours[self.me]}
        far = rng.sample(peers, min(FAR, len(peers))) if self.method.public else []
        found = [(to, self.knowledge.news(to)) for to in sorted({*near, *far} - {self.me})]
        return [Send(to, Gossip(facts=facts)) for to, facts in found if facts]

    def _fact(self) -> Fact:
        """Its facts now; under a new number if they have changed."""
        fact = fact_of(self.me, self.network, self.account, self._told.version if self._told else 0)
        if fact != self._told:
            fact = self._told = replace(fact, version=fact.version + 1)
        return fact

    def forget(self, task: str) -> None:
        """Nothing of a task is remembered, as all servers have heard that it is over."""
        self.portals.pop(task, None)
        self._parts.pop(task, None)

    # --- the diffusing computation

    def _map(self, sender: int, message: Map, now: float, rng: random.Random) -> list[Send]:
        part = self._parts.get(message.task)
        if message.spec is not None and (part is None or part.turn < message.turn):
            part = self._parts[message.task] = _Part(spec=message.spec, turn=message.turn)
        if part is None or part.turn != message.turn:  # its deadline at the delivery server is over
            return [Send(sender, Ack(task=message.task, turn=message.turn, last=True))]
        part.until = now + self.times.lease
        joins = part.pred is None
        sends: list[Send] = []
        if joins:
            part.pred = sender
        else:
            sends.append(Send(sender, Ack(task=message.task, turn=part.turn, last=False)))
        onward = self._extend(message.walk, part, rng)
        part.count += len(onward)
        return [*sends, *onward, *self._leave(message.task, part, now)]

    def _extend(self, walk: Walk, part: _Part, rng: random.Random) -> list[Send]:
        """Every extension by services of this server, passed on as the rule says."""
        task, sends = part.spec, list[Send]()
        already = cpu_at(walk, self.me, task)
        services, cpu, need = self.network.servers[self.me].services, Resource("cpu", self.me), 0.0
        for count in range(len(task.services) - walk.done + 1):
            if count:
                number = walk.done + count - 1
                need += task.cpu[number]
                if task.services[number] not in services or not self.account.has(cpu, already + need):
                    break
            extended = run(walk, count, self.account.load(self.me, already + need))
            if is_whole(extended, task):
                self._feasible(extended, task)
            elif self.method.rule.passes(extended, part.table, rng):
                sends += self._pass_on(extended, part, rng)
        return sends

    def _feasible(self, walk: Walk, task: Task) -> None:
        portal = self.portals.get(task.name)
        if portal is not None and portal.status == "mapping":
            portal.feasible.append(walk)

    def _pass_on(self, walk: Walk, part: _Part, rng: random.Random) -> list[Send]:
        task, need, sends = part.spec, part.spec.bandwidth[walk.done], list[Send]()
        if self.method.dedicated and may_forward(walk, task):
            for to, link in self._chosen(rng):
                resource = hop_resource(self.network, self.me, link)
                if self.account.has(resource, need + self._on_link(walk, resource, task)):
                    sends.append(self._send(to, forward(walk, to, link, self.network.links[link].cost), part))
        if self.method.public and may_go_public(walk):
            own = uplink_of(walk, self.me, task) if self.method.aggregated else 0.0
            if self.account.has(Resource("uplink", self.me), need + own):
                sends += [self._send(to, send_public(walk, to), part) for to in self._next_hosts(walk, task)]
        return sends

    def _chosen(self, rng: random.Random) -> Sequence[tuple[int, int]]:
        """(neighbour, number of the link) of those to which a walk is passed on."""
        everyone, count = self.network.neighbours[self.me], self.method.neighbours
        return everyone if count is None else rng.sample(everyone, min(count, len(everyone)))

    def _on_link(self, walk: Walk, resource: Resource, task: Task) -> float:
        """Bandwidth of a link that the walk itself uses already."""
        if not self.method.aggregated:
            return 0.0
        return bandwidth_on(walk, (resource.number, resource.to_a), task, self.network)

    def _next_hosts(self, walk: Walk, task: Task) -> list[int]:
        whole = walk.done == len(task.services)
        hosts = (task.delivery,) if whole else self._hosts(task.services[walk.done])
        return [server for server in hosts if server != self.me]

    def _send(self, to: int, walk: Walk, part: _Part) -> Send:
        spec = None if to in part.knows else part.spec
        return Send(to, Map(task=part.spec.name, turn=part.turn, spec=spec, walk=walk))

    def _ack(self, sender: int, message: Ack, now: float) -> list[Send]:
        part = self._parts.get(message.task)
        if part is None or part.pred is None or part.turn != message.turn:
            return []  # its time was over
        part.knows.add(sender)
        part.count -= 1
        return self._leave(message.task, part, now)

    def _leave(self, task: str, part: _Part, now: float) -> list[Send]:
        """With nothing out any more this server takes no part; at the delivery server the computation is over."""
        if part.count or part.pred is None:
            return []
        pred, part.pred = part.pred, None
        portal = self.portals.get(task)
        if pred == self.me and portal is not None:
            return self._computed(portal, now) if portal.status == "mapping" else []
        return [Send(pred, Ack(task=task, turn=part.turn, last=True))]

    # --- the delivery server

    def _try_next(self, portal: Portal, now: float) -> list[Send]:
        """Reserve along the best map that was not tried; without one look for others, and refuse it at last."""
        portal.walk = None
        if not portal.feasible and not portal.computed:
            if self.method.surveys and portal.surveys < SURVEYS:
                portal.surveys += 1
                portal.feasible = self._survey(portal.spec, now)
            if not portal.feasible:
                return self._compute(portal, now)
        if not portal.feasible:
            portal.status = "refused"
            return []
        portal.walk = portal.feasible.pop(0)
        portal.status, portal.attempt, portal.until = "reserving", portal.attempt + 1, now + self.times.probe
        return [self._probe(Reserve, portal)]

    def _compute(self, portal: Portal, now: float) -> list[Send]:
        """Begin the diffusing computation: an empty map for the source."""
        task, portal.computed = portal.spec, True
        portal.status, portal.until = "mapping", now + self.times.mapping
        self._parts[task.name] = _Part(spec=task, turn=portal.turn, pred=self.me, count=1, until=now + self.times.lease)
        return [Send(task.source, Map(task=task.name, turn=portal.turn, spec=task, walk=begin(task)))]

    def _computed(self, portal: Portal, now: float) -> list[Send]:
        """It is over, or its time is."""
        portal.feasible = self.method.choice(portal.feasible)
        return self._try_next(portal, now)

    def _survey(self, task: Task, now: float) -> list[Walk]:
        """The cheapest map on the network as it is known here, or none."""
        self.knowledge.take([self._fact()], now)
        network, account = self.knowledge.picture()
        if task.source not in network.servers:
            return []
        price, public = self.method.price, self.method.public_cost
        prices = {n: link.cost if price is None else price(network, account, n) for n, link in network.links.items()}
        limit = self.method.limit
        found = cheapest(task, network, account, cost=prices.__getitem__, public=public, limit=limit)
        return [] if found.walk is None else [found.walk]

    def _probe(self, kind: type[Reserve | Renew | Release], portal: Portal) -> Send:
        """To itself, as the walk's last visit is here."""
        assert portal.walk is not None
        last = len(portal.walk.visits) - 1
        probe = kind(task=portal.spec.name, attempt=portal.attempt, spec=portal.spec, walk=portal.walk, position=last)
        return Send(self.me, probe)

    def _undo(self, message: Undo, now: float) -> list[Send]:
        sends = self.reservations.undo(message)
        self.knowledge.take(message.news, now)
        portal = self.portals.get(message.task)
        last = len(message.walk.visits) - 1
        current = portal is not None and portal.status == "reserving" and portal.attempt == message.attempt
        if message.position >= last and portal is not None and current:
            sends += self._try_next(portal, now)
        return sends

    def _granted(self, message: Granted, now: float) -> list[Send]:
        portal = self.portals.get(message.task)
        if portal is None or portal.attempt != message.attempt:
            return []
        if portal.status == "reserving":
            portal.status, portal.feasible = "running", []
            portal.renew_at = now + self.times.renewal
        if portal.status == "running":
            portal.until = now + self.times.lease
        return []

    # --- for those who look on

    def computing(self) -> Mapping[str, int]:
        """Task -> messages that are not acknowledged, of the computations in which it takes part."""
        return {name: part.count for name, part in self._parts.items() if part.pred is not None}
