"""The stream hops that one server sends, and their ways, which change while the tasks run (spec, section 3).

The sender of a hop decides alone, by what gossip tells it (`flows.reallocate`).  A way over dedicated links is reserved
by a message along it: each server takes its part, the receiver of the hop confirms, and the sender uses the new way and
releases the old one.  A server without room sends the message back.  The sender extends the leases of a way whenever
its task is renewed; a way that is not confirmed for a lease is lost, and then its task is mapped again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from leeward.core.peers import Send
from leeward.policies.bimodal.mapping.flows import Flow, Way, Ways, flows_of, reallocate
from leeward.policies.bimodal.mapping.gossip import Fact
from leeward.policies.bimodal.mapping.messages import Blocked, Divert, Diverted, Leave, OnWay, Probe, Reserve, Route
from leeward.policies.bimodal.mapping.reserving import Name, Reservations
from leeward.policies.bimodal.model.resources import Account, Resource
from leeward.policies.bimodal.model.values import Network
from leeward.policies.bimodal.model.walk import START

W = TypeVar("W", bound=OnWay)


class Key(NamedTuple):
    """A stream hop of one attempt."""

    task: str
    attempt: int
    hop: int


@dataclass(slots=True, kw_only=True)
class Sent:
    """A stream hop, and its way."""

    flow: Flow
    price: float
    way: OnWay  #: in use; without links: the public network
    confirmed: float  #: its lease is known to last until then
    trial: OnWay | None = None  #: is being reserved
    until: float = 0.0  #: deadline of the trial
    newest: int = 0  #: number of the newest way that was tried
    behind: float = 0.0  #: of what should have been carried, bandwidth times seconds


class SentFlows:
    """See the module."""

    def __init__(
        self, me: int, reservations: Reservations, fact: Callable[[], Fact], *, probe_s: float, lease_s: float
    ) -> None:
        """`fact`: gives the facts of this server; `probe_s`: deadline of a trial."""
        self._me, self._reservations, self._fact = me, reservations, fact
        self._probe_s, self._lease_s = probe_s, lease_s
        self._sent: dict[Key, Sent] = {}

    def __iter__(self) -> Iterator[Sent]:
        """By task and hop."""
        return iter(sent for _, sent in sorted(self._sent.items()))

    def routes(self) -> frozenset[Route]:
        """How each hop travels now."""
        return frozenset(
            Route(sent.flow.task, sent.flow.hop, sent.flow.receiver, sent.way.servers if sent.way.links else ())
            for sent in self._sent.values()
        )

    # --- the task begins, is renewed and ends

    def begin(self, probe: Reserve, now: float) -> None:
        """Note the hop that leaves a visit of a map that is being reserved."""
        here = probe.walk.visits[probe.position]
        if not (here.ran or here.link == START) or not self._holds(probe):
            return
        for flow in flows_of(probe.walk, probe.spec):
            if flow.sender == self._me and flow.hop == here.done:
                way = self._way_of(probe, flow)
                key = Key(probe.task, probe.attempt, flow.hop)
                self._sent[key] = Sent(flow=flow, price=probe.spec.price, way=way, confirmed=now + self._lease_s)

    def _way_of(self, probe: Reserve, flow: Flow) -> OnWay:
        """That of the map, under number 0."""
        visits = probe.walk.visits[probe.position : probe.position + len(flow.way) + 1]
        return OnWay(
            task=probe.task, attempt=probe.attempt, hop=flow.hop, number=0, need=flow.need,
            servers=tuple(visit.at for visit in visits), links=flow.way, position=0, first=probe.position,
        )  # fmt: skip

    def renew(self, probe: Probe, now: float) -> list[Send] | None:
        """Extend the leases of the ways of this visit's hop; None if one of them is lost."""
        sends: list[Send] = []
        for sent in self._of_visit(probe):
            if sent.way.number == 0:  # its parts are those of the visits
                continue
            if not sent.way.links:
                self._reservations.hold(_part(sent.way), _uplink(sent.way), now + self._lease_s)
            elif sent.confirmed <= now:
                return None
            else:
                sends.append(Send(self._me, _as(Divert, sent.way, 0)))
        return sends

    def end(self, probe: Probe) -> list[Send]:
        """The visit's part is released: so are the other ways of its hop."""
        sends: list[Send] = []
        for sent in self._of_visit(probe):
            del self._sent[Key(probe.task, probe.attempt, sent.flow.hop)]
            sends += [send for way in (sent.way, sent.trial) if way and way.number for send in self._leave(way)]
        return sends

    def tick(self, now: float) -> list[Send]:
        """Trials whose time is over are given up; hops whose visits have expired are forgotten."""
        sends: list[Send] = []
        for key, sent in sorted(self._sent.items()):
            if (key.task, key.attempt, sent.way.first) not in self._reservations:
                del self._sent[key]
            elif sent.trial is not None and now >= sent.until:
                sends += self._leave(sent.trial)
                sent.trial = None
        return sends

    def forget(self, task: str) -> None:
        """All hops of a task."""
        self._sent = {key: sent for key, sent in self._sent.items() if key.task != task}

    def _of_visit(self, probe: Probe) -> list[Sent]:
        key = Key(probe.task, probe.attempt, probe.walk.visits[probe.position].done)
        sent = self._sent.get(key)
        return [sent] if sent is not None and sent.way.first == probe.position else []

    def _holds(self, probe: Probe) -> bool:
        return (probe.task, probe.attempt, probe.position) in self._reservations

    # --- other ways

    def reallocate(
        self, network: Network, account: Account, priority: Callable[[Sent], float], ways: Ways, now: float
    ) -> list[Send]:
        """Ask for the ways that `flows.reallocate` finds on the network as it is known here."""
        flows: dict[int, tuple[Sent, Flow]] = {}
        for _, sent in sorted(self._sent.items()):
            known = sent.flow.receiver in network.servers and network.links.keys() >= set(sent.flow.way)
            if sent.trial is None and known:
                copy = replace(sent.flow)
                flows[id(copy)] = sent, copy

        def by_flow(flow: Flow) -> float:
            return priority(flows[id(flow)][0])

        changed = reallocate([copy for _, copy in flows.values()], by_flow, account, network, ways)
        sends: list[Send] = []
        for flow in sorted(changed, key=lambda flow: len(flow.way)):  # those that leave links go before
            sends += self._try(flows[id(flow)][0], flow.way, network, now)
        return sends

    def _try(self, sent: Sent, way: Way, network: Network, now: float) -> list[Send]:
        sent.newest += 1
        trial = replace(sent.way, number=sent.newest, servers=_servers(sent.flow, way, network), links=way)
        if way:
            sent.trial, sent.until = trial, now + self._probe_s
            return [Send(self._me, _as(Divert, trial, 0))]
        if self._reservations.hold(_part(trial), _uplink(trial), now + self._lease_s):
            return self._switch(sent, trial, now)
        return []

    def _switch(self, sent: Sent, way: OnWay, now: float) -> list[Send]:
        sends = self._leave(sent.way)
        sent.flow.way, sent.way, sent.trial, sent.confirmed = way.links, way, None, now + self._lease_s
        return sends

    def _leave(self, way: OnWay) -> list[Send]:
        if way.links:
            return [Send(self._me, _as(Leave, way, 0))]
        if way.number == 0:
            self._reservations.shrink((way.task, way.attempt, way.first), _uplink(way))
        else:
            self._reservations.drop(_part(way))
        return []

    # --- messages

    def receive(self, message: OnWay | Diverted, now: float) -> list[Send]:
        """Take one message about a way in; the messages that follow from it."""
        match message:
            case Divert():
                return self._divert(message, now)
            case Diverted():
                return self._diverted(message, now)
            case Blocked():
                return self._blocked(message)
            case Leave():
                return self._left(message)
            case _:
                return []

    def _divert(self, message: Divert, now: float) -> list[Send]:
        """Take this server's part of a way, or extend its lease, and pass the message on."""
        try:
            amounts = self._reservations.part_of_way(message)
        except KeyError:  # its sender knows another network
            return self._back(message)
        if not self._reservations.hold(_part(message), amounts, now + self._lease_s):
            return self._back(replace(message, news=(self._fact(),)))
        if message.position < len(message.links):
            return [_to(message, message.position + 1, Divert)]
        done = Diverted(task=message.task, attempt=message.attempt, hop=message.hop, number=message.number)
        return [Send(message.servers[0], done)]

    def _diverted(self, message: Diverted, now: float) -> list[Send]:
        """At the sender: use the new way, or note that the present one lasts."""
        sent = self._sent.get(Key(message.task, message.attempt, message.hop))
        if sent is None:
            return []
        if sent.trial is not None and sent.trial.number == message.number:
            return self._switch(sent, sent.trial, now)
        if sent.way.number == message.number:
            sent.confirmed = now + self._lease_s
        return []

    def _blocked(self, message: Blocked) -> list[Send]:
        """Give this part back, and pass it on towards the sender; there the trial is over."""
        self._reservations.drop(_part(message))
        if message.position > 0:
            return self._back(message)
        sent = self._sent.get(Key(message.task, message.attempt, message.hop))
        if sent is not None and sent.trial is not None and sent.trial.number == message.number:
            sent.trial = None
        elif sent is not None and sent.way.number == message.number:
            sent.confirmed = 0.0  # a part was lost, and others have taken it
        return []

    def _left(self, message: Leave) -> list[Send]:
        """Give this part back, and pass it on."""
        if message.number:
            self._reservations.drop(_part(message))
        else:
            name = message.task, message.attempt, message.first + message.position
            self._reservations.shrink(name, self._reservations.part_of_way(message))
        return [_to(message, message.position + 1, Leave)] if message.position < len(message.links) else []

    def _back(self, message: OnWay) -> list[Send]:
        """Towards the sender; at the sender itself too, whose trial is over."""
        return [_to(message, max(0, message.position - 1), Blocked)]


def _part(way: OnWay) -> Name:
    return way.task, way.attempt, (way.hop, way.number, way.position)


def _uplink(way: OnWay) -> dict[Resource, float]:
    return {Resource("uplink", way.servers[0]): way.need}


def _servers(flow: Flow, way: Way, network: Network) -> tuple[int, ...]:
    if not way:
        return flow.sender, flow.receiver
    found = [flow.sender]
    for link in way:
        found.append(network.links[link].other(found[-1]))
    return tuple(found)


def _as(kind: type[W], way: OnWay, position: int) -> W:
    return kind(
        task=way.task, attempt=way.attempt, hop=way.hop, number=way.number, need=way.need, servers=way.servers,
        links=way.links, position=position, first=way.first, news=way.news,
    )  # fmt: skip


def _to(way: OnWay, position: int, kind: type[OnWay]) -> Send:
    """The message of this kind to the server at another position of the way."""
    return Send(way.servers[position], _as(kind, way, position))
