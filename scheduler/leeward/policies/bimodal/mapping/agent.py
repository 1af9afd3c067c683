"""One server's part in mapping tasks: messages in, messages out. No clock, no input or output.

A task is mapped by a diffusing computation (`computing.py`) that its delivery server begins.  When it is over the
delivery server tries the feasible maps in the order of `Method.choice`: a probe reserves along the map, back to the
source (`reserving.py`).

Ours comes before it (`Method.surveys`): the delivery server searches the network as gossip has told it, and sends a
probe along the map that it finds.  A server without room sends its newest facts back, and the search is made again.

Each reservation has a lease. The delivery server renews it while the task runs; a server that hears nothing in time
releases its part, so one that dies leaves nothing behind.  While a task runs, each server gives the stream hops that it
sends ways anew (`sending.py`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from leeward.core.peers import Send
from leeward.policies.bimodal.exact.search import cheapest
from leeward.policies.bimodal.mapping.computing import Computations, Surroundings
from leeward.policies.bimodal.mapping.flows import Ways
from leeward.policies.bimodal.mapping.gossip import Fact, Knowledge, fact_of
from leeward.policies.bimodal.mapping.messages import (
    Ack,
    Asked,
    AskedWays,
    Diverted,
    End,
    Gossip,
    Granted,
    Map,
    Message,
    OnWay,
    Release,
    Renew,
    Reserve,
    Submit,
    Told,
    ToldWays,
    Undo,
)
from leeward.policies.bimodal.mapping.paths import PathRates, weight_of
from leeward.policies.bimodal.mapping.reserving import Reservations
from leeward.policies.bimodal.mapping.rules import Method
from leeward.policies.bimodal.mapping.sending import Sent, SentFlows
from leeward.policies.bimodal.model.resources import Account
from leeward.policies.bimodal.model.values import Network, Task
from leeward.policies.bimodal.model.walk import Walk

#: Searches for one task on what is known, each with the news of why the one before could not be reserved.
SURVEYS = 4
#: Servers that are told over the public network in one round of gossip.
FAR = 2
#: Leases after which a task that was refused or is over is forgotten: its submitter has asked by then.
REMEMBERED = 10
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
    reallocation: float | None = None  #: between two times that a server gives its flows ways anew; None: never


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
    ended_at: float | None = None  #: when it was first seen refused or over


class Agent:
    """See the module. `network`: the part that this server knows, itself and its links (`Network.around`)."""

    def __init__(
        self, me: int, network: Network, *, method: Method, hosts: Callable[[int], tuple[int, ...]] | None = None,
        times: Times | None = None, account: Account | None = None, peers: Sequence[int] = (), born: int = 0,
    ) -> None:  # fmt: skip
        """`hosts`: service -> servers that host it (None: as gossip has it). `account`: one of all servers together.
        `peers`: all servers, if it is to gossip by itself. `born`: greater than that of an earlier process of this
        server, by far, so that its facts are newer.
        """
        self.me, self.network, self.method = me, network, method
        self.knowledge = Knowledge(network.direction)
        self._told: Fact | None = None
        self._born = born
        self._told_at = 0.0
        self._peers, self._gossip_at = peers, 0.0
        self.times = times or Times()
        self.account = account or Account(network)
        self.reservations = Reservations(me, network, self.account, self._fact, alone=account is None)
        self.flows = SentFlows(me, self.reservations, self._fact, probe_s=self.times.probe, lease_s=self.times.lease)
        self.paths = PathRates()
        self._reallocate_at = 0.0
        self.portals: dict[str, Portal] = {}
        self.computations = Computations(
            Surroundings(
                me=me, network=network, account=self.account, method=method, hosts=hosts or self.knowledge.hosts,
                weight=self._weight, feasible=self._feasible, over=self._computed, lease_s=self.times.lease,
            )
        )  # fmt: skip

    # --- from outside

    def submit(self, task: Task, now: float) -> list[Send]:
        """Begin to map a task that is to be delivered here; one that is known already goes on."""
        if task.name in self.portals:
            return []
        # other servers may still hold parts for an earlier process of this one, under its numbers
        portal = self.portals[task.name] = Portal(spec=task, attempt=self._born)
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
        return [] if portal.walk is None else self._release(portal)

    def tick(self, now: float, rng: random.Random) -> list[Send]:
        """Time has passed: leases end, deadlines are over, running tasks are renewed, news is told."""
        self.reservations.expire(now)
        sends: list[Send] = self.flows.tick(now)
        self.computations.tick(now)
        for _, portal in sorted(self.portals.items()):
            if portal.status == "mapping" and now >= portal.until:
                sends += self._computed(portal.spec.name, now)
            elif portal.status == "reserving" and now >= portal.until:
                sends += [*self._release(portal), *self._try_next(portal, now)]
            elif portal.status == "running" and now >= portal.until:
                sends += [*self._release(portal), *self._begin(portal, now)]
            elif portal.status == "running" and now >= portal.renew_at:
                portal.renew_at = now + self.times.renewal
                sends.append(self._probe(Renew, portal))
        self._forget_ended(now)
        if self._peers and now >= self._gossip_at:
            self._gossip_at = now + self.times.gossip
            sends += self.gossip(self._peers, now, rng)
        if self.times.reallocation is not None and now >= self._reallocate_at:
            self._reallocate_at = now + self.times.reallocation
            sends += self._reallocate(self.times.reallocation, now)
        return sends

    def _forget_ended(self, now: float) -> None:
        """Tasks that were refused or are over, once their submitters have had time to hear of it."""
        for name, portal in list(self.portals.items()):
            if portal.status in ("refused", "over"):
                portal.ended_at = now if portal.ended_at is None else portal.ended_at
                if now - portal.ended_at > REMEMBERED * self.times.lease:
                    self.forget(name)

    def receive(self, sender: int, message: Message | Told, now: float, rng: random.Random) -> list[Send]:
        """Take one message in; the messages that follow from it."""
        match message:
            case Gossip():
                self.knowledge.take(message.facts, now, sender)
                return []
            case Map():
                return self.computations.map(sender, message, now, rng)
            case Ack():
                return self.computations.ack(sender, message, now)
            case Reserve():
                return self._reserve(message, now)
            case Undo():
                return self._undo(message, now)
            case Renew():
                return self._renew(message, now)
            case Release():
                return [*self.flows.end(message), *self.reservations.release(message)]
            case OnWay() | Diverted():
                return self._on_way(message, now)
            case Granted():
                return self._granted(message, now)
            case Submit():
                return self.submit(message.spec, now)
            case End():
                return self.end(message.task)
            case Asked() | AskedWays():
                return [Send(sender, self._told_to_client(message))]
            case _:  # an answer that nobody has asked for
                return []

    def _told_to_client(self, question: Asked | AskedWays) -> Told | ToldWays:
        if isinstance(question, AskedWays):
            return ToldWays(routes=tuple(sorted(self.flows.routes())), paths=tuple(self.paths.quantiles().items()))
        portal = self.portals.get(question.task)
        status, walk = (portal.status, portal.walk) if portal else ("", None)
        return Told(task=question.task, status=status, walk=walk, held=len(self.reservations.tasks))

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
        version = self._told.version if self._told else self._born
        fact = fact_of(self.me, self.network, self.account, version, self.paths.quantiles())
        if fact != self._told:
            fact = self._told = replace(fact, version=fact.version + 1)
        return fact

    def forget(self, task: str) -> None:
        """Nothing of a task is remembered, as all servers have heard that it is over."""
        self.portals.pop(task, None)
        self.computations.forget(task)
        self.flows.forget(task)

    # --- ways of stream hops

    def learn(self, to: int, part: float) -> None:
        """A public path from here has carried this part of what was wanted; see `PathRates.learn`."""
        self.paths.learn(to, part)

    def observe(self, task: str, hop: int, carried: float, seconds: float, *, limited: bool) -> None:
        """A stream hop from here has carried so much, bandwidth times seconds; `limited`: more of it waits."""
        for sent in self.flows:
            if (sent.flow.task, sent.flow.hop) != (task, hop):
                continue
            wanted = sent.flow.need * seconds
            sent.behind = max(0.0, sent.behind + wanted - carried) if limited else 0.0
            if sent.flow.public and wanted:
                self.learn(sent.flow.receiver, carried / wanted if limited else max(1.0, carried / wanted))

    def _weight(self, to: int) -> float:
        """Of the public path to a server."""
        return weight_of(self.paths.quantiles().get(to)) if self.method.learned else 1.0

    def _reserve(self, probe: Reserve, now: float) -> list[Send]:
        if self.reservations.holds(probe):  # it came before: the ways of its hop may have changed since
            return []
        sends = self.reservations.reserve(probe, now + self.times.lease)
        self.flows.begin(probe, now)
        return sends

    def _renew(self, probe: Renew, now: float) -> list[Send]:
        """Without a way of its hop the renewal ends here, and the delivery server maps the task again."""
        ways = self.flows.renew(probe, now)
        return [] if ways is None else [*ways, *self.reservations.renew(probe, now + self.times.lease)]

    def _on_way(self, message: OnWay | Diverted, now: float) -> list[Send]:
        if isinstance(message, OnWay):
            self.knowledge.take(message.news, now)
        return self.flows.receive(message, now)

    def _reallocate(self, period: float, now: float) -> list[Send]:
        """Give the hops from here ways anew, on the network as it is known here."""
        self.knowledge.take([self._fact()], now)
        network, account = self.knowledge.picture()
        quantiles = self.paths.quantiles() if self.method.learned else {}

        def priority(sent: Sent) -> float:
            """Price per byte times the bandwidth to be at the target again, and what the public path would lack."""
            lacks = 1.0 - quantiles.get(sent.flow.receiver, 1.0)
            return sent.price * (sent.flow.need * (1.0 + lacks) + sent.behind / period)

        return self.flows.reallocate(network, account, priority, Ways(public=self.method.public), now)

    # --- the delivery server

    def _feasible(self, walk: Walk, task: Task) -> None:
        portal = self.portals.get(task.name)
        if portal is not None and portal.status == "mapping":
            portal.feasible.append(walk)

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
        return self.computations.begin(task, portal.turn, now)

    def _computed(self, task: str, now: float) -> list[Send]:
        """It is over, or its time is."""
        portal = self.portals.get(task)
        if portal is None or portal.status != "mapping":
            return []
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
        limit, paths = self.method.limit, self.knowledge.paths()

        def weight(here: int, there: int) -> float:
            return weight_of(paths.get((here, there))) if self.method.learned else 1.0

        found = cheapest(task, network, account, cost=prices.__getitem__, public=public, weight=weight, limit=limit)
        return [] if found.walk is None else [found.walk]

    def _probe(self, kind: type[Reserve | Renew | Release], portal: Portal) -> Send:
        """To itself, as the walk's last visit is here."""
        assert portal.walk is not None
        last = len(portal.walk.visits) - 1
        probe = kind(task=portal.spec.name, attempt=portal.attempt, spec=portal.spec, walk=portal.walk, position=last)
        return Send(self.me, probe)

    def _release(self, portal: Portal) -> list[Send]:
        """Release the map that was tried; the message goes out before those of the next try, which need the room."""
        probe = self._probe(Release, portal).message
        return [*self.flows.end(probe), *self.reservations.release(probe)]

    def _undo(self, message: Undo, now: float) -> list[Send]:
        sends = [*self.flows.end(message), *self.reservations.undo(message)]
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
