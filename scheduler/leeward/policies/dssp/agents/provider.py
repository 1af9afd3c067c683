"""A provider: it makes a pool of domains for a service, sends each query to those that it concerns, and aggregates.

A query ends once all its domains have answered or refused, or its patience is over; its result names the missing ones.
A task whose answer does not come is sent once more under the same name, which its domain does not execute again.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from leeward.core.fields import FieldError
from leeward.core.members import To, ToAll
from leeward.policies.dssp.agents.messages import (
    Answer,
    Apart,
    Ask,
    Leaves,
    Negotiate,
    Offer,
    Provision,
    Refuse,
    Release,
    Tally,
    Terms,
)
from leeward.policies.dssp.agents.pools import Asked, Membership, Pool, Service, Standing
from leeward.policies.dssp.model.area import Area
from leeward.policies.dssp.model.budgets import task_percent
from leeward.policies.dssp.model.weights import LEARN, Weights

#: Of the running mean of the time that a task spends between provider and domain.
WEIGHT = 0.1
#: A domain is told of it when it has changed by so much, s and as a part.
NOTABLE_S, NOTABLE = 0.001, 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """How a provider works; times in s."""

    patience_s: float = 2.0  #: a query waits so long beyond its objective for what is missing
    repeat: float = 1.0  #: a task without answer is sent again after so many objectives
    negotiate_s: float = 2.0  #: until a domain that does not answer is written to again, doubled with each time
    renew_s: float = 60.0  #: at most; and until terms are renewed, or a domain that has refused is asked again
    misses: int = 3  #: a domain that did not answer so many queries in a row is left out until it offers again
    learn: int = LEARN  #: queries between two looks at how late the services are; 0: their weights stay as they are


class Result(NamedTuple):
    """Effect: a query is over. `ticket`: of the client."""

    ticket: Any
    query: str
    service: str
    tally: Tally
    seconds: float
    answered: tuple[str, ...]  #: domains
    missing: tuple[tuple[str, str], ...]  #: domain, and why
    failed: int  #: nodes without a reading in domains that answered
    late: bool  #: a subtask started after its queueing deadline, or the query took longer than its objective


@dataclass(slots=True)
class _Query:
    """A query in work."""

    ticket: Any
    pool: Pool
    began: float
    ask: Ask
    asked: Asked
    heard: set[str] = field(default_factory=set)
    tally: Tally = field(default_factory=Tally)
    answered: list[str] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)
    failed: int = 0
    late: bool = False
    repeated: bool = False

    @property
    def silent(self) -> tuple[str, ...]:
        """Domains that have not answered."""
        return tuple(name for name in self.asked.names if name not in self.heard)


@dataclass(slots=True, kw_only=True)
class Counts:
    """Since the start."""

    queries: int = 0
    late: int = 0
    partial: int = 0
    repeated: int = 0
    discarded: int = 0  #: answers that came too late, twice, or from a domain that was not asked


class Provider:
    """See the module; a `Member` (core/members.py). `incarnation`: of its process; queries are named by it."""

    def __init__(self, name: str, settings: ProviderSettings | None = None, *, incarnation: int = 0) -> None:
        self.name, self.settings, self.counts = name, settings or ProviderSettings(), Counts()
        self.pools: dict[str, Pool] = {}
        self._queries: dict[str, _Query] = {}
        self._alarms: list[tuple[float, str]] = []  # a heap: when to look at a query, if it is open then
        self._between: dict[str, float] = {}  # domain -> s of a task beside what it spends inside
        self._told: dict[str, float] = {}  # the same, as the domain was told it
        self._incarnation, self._number = incarnation, 0
        self.weights = Weights(self.settings.learn)

    # --- pools

    def open(self, service: Service, domains: Iterable[tuple[str, Sequence[Area]]], now: float) -> list[Any]:
        """Make a pool for a service, and ask these domains whether they keep its terms: each may get every query.

        Of one that is open already the terms change: domains that kept the old ones go on until they have answered.
        """
        before = self.pools.get(service.name)
        pool = self.pools[service.name] = Pool(service)
        self.weights.begin(service.name, service.weight)
        for name, areas in domains:
            known = before.members.pop(name, None) if before else None
            if known is None or known.standing is not Standing.READY:
                known = Membership(tuple(areas))
            known.areas = tuple(areas)
            pool.members[name] = known
        released = [To(name, Release(service=service.name)) for name in (before.members if before else ())]
        return [*released, *(self._write(pool, name, now) for name in pool.members)]

    def follow(self, service: str, domains: Mapping[str, Sequence[Area]], now: float) -> list[Any]:
        """Domains as they are registered now: new ones join, areas change; one that is gone and not ready is dropped.

        Domains that have agreed keep the terms that they have agreed to. Raises FieldError for an unknown service.
        """
        pool, found = self.pool(service), []
        for name in [name for name, member in pool.members.items() if name not in domains]:
            if pool.members[name].standing is not Standing.READY:
                del pool.members[name]
        for name, areas in domains.items():
            if name not in pool.members:
                pool.members[name] = Membership(tuple(areas))
                found.append(self._write(pool, name, now))
            pool.members[name].areas = tuple(areas)
        pool.changed()
        return found

    def leave(self, service: str, domain: str) -> list[Any]:
        """A domain less; tasks that it has are waited for."""
        pool = self.pool(service)
        member = pool.members.pop(domain, None)
        pool.changed()
        return [To(domain, Release(service=service))] if member else []

    def close(self, service: str) -> list[Any]:
        """The service is over. Raises FieldError for one that is not open."""
        pool = self.pool(service)
        del self.pools[service]
        self.weights.forget(service)
        return [To(domain, Release(service=service)) for domain in pool.members]

    def pool(self, service: str) -> Pool:
        """The pool of a service. Raises FieldError for one that is not open."""
        if service not in self.pools:
            names = ", ".join(sorted(self.pools)) or "none"
            raise FieldError("service", service, "is not open", remedy=f"open it first; open are: {names}")
        return self.pools[service]

    def _write(self, pool: Pool, name: str, now: float) -> To:
        """The terms, to a domain by its standing; and when to write the next time."""
        member, settings = pool.members[name], self.settings
        kind = Provision if member.standing in (Standing.OFFERED, Standing.READY) else Negotiate
        steady = member.standing in (Standing.READY, Standing.REFUSED)
        member.wait_s = settings.renew_s if steady else min(2 * member.wait_s or settings.negotiate_s, settings.renew_s)
        member.next_s = now + member.wait_s
        return To(name, kind(terms=self._terms(pool)))

    def _terms(self, pool: Pool) -> Terms:
        """Of one domain, as if every query went to all of the pool."""
        service, domains = pool.service, len(pool.members)
        return Terms(
            service=service.name, capability=service.capability, areas=service.areas, rate=service.rate,
            percent=task_percent(service.percent, domains), objective_s=service.objective_s, rank=service.rank,
        )  # fmt: skip

    # --- queries

    def query(self, ticket: Any, service: str, areas: Sequence[Area], now: float) -> list[Any]:
        """Send a query to all ready domains of these areas (none given: of all of the service).

        Raises FieldError for a service that is not open, and for areas outside every domain of its pool.
        """
        pool = self.pool(service)
        wanted = tuple(areas) or pool.service.areas
        asked = pool.asked(wanted)
        if asked is None:
            raise FieldError(
                "areas", [one.to_json() for one in wanted], "is outside every domain of the pool",
                remedy="ask for an area that one covers, or wait until one has joined",
            )  # fmt: skip
        self._number += 1
        number = f"{self._incarnation}-{self._number}"
        terms = pool.service
        ask = Ask(
            query=number, service=service, areas=wanted, percent=asked.percent,
            objective_s=terms.objective_s, weight=self.weights.of(service),
        )  # fmt: skip
        self._queries[number] = _Query(ticket, pool, now, ask, asked)
        heapq.heappush(self._alarms, (now + terms.objective_s * self.settings.repeat, number))
        self.counts.queries += 1
        return [ToAll(asked.names, ask)]

    @property
    def open_queries(self) -> int:
        """Not answered yet."""
        return len(self._queries)

    # --- a member

    def receive(self, sender: str, message: Any, now: float, rng: Random) -> list[Any]:
        """Take one message of a domain in; messages, and queries that are over by it."""
        handler = _HANDLERS.get(type(message))
        return list(handler(self, sender, message, now)) if handler else []

    def tick(self, now: float, rng: Random) -> list[Any]:
        """Send again what was not answered, and end what is overdue."""
        found: list[Any] = [
            self._write(pool, name, now)
            for pool in self.pools.values()
            for name, member in pool.members.items()
            if now >= member.next_s
        ]  # fmt: skip
        while self._alarms and self._alarms[0][0] < now:
            _, number = heapq.heappop(self._alarms)
            query = self._queries.get(number)
            if query is None:
                continue
            ends = query.began + query.pool.service.objective_s + self.settings.patience_s
            if now > ends:
                found.append(self._give_up(number, query, now))
                continue
            heapq.heappush(self._alarms, (ends, number))
            if not query.repeated:
                query.repeated = True
                self.counts.repeated += len(silent := query.silent)
                found.append(ToAll(silent, query.ask))
        return found

    def _give_up(self, number: str, query: _Query, now: float) -> Result:
        for name in query.silent:
            query.missing.append((name, "it did not answer in time"))
            member = query.pool.members.get(name)
            if member is not None:
                member.misses += 1
                if member.misses >= self.settings.misses:
                    self._ask_anew(query.pool, member)
        return self._end(number, now)

    def _answered(self, sender: str, message: Answer, now: float) -> Iterator[Any]:
        query = self._asked(sender, message.query)
        if query is None:
            return
        if not (message.tally.sane and message.failed >= 0 and 0 <= message.inside_s < math.inf):
            query.missing.append((sender, "its answer makes no sense"))
            yield from self._done(message.query, sender, now)
            return
        if (member := query.pool.members.get(sender)) is not None:
            member.misses = 0
        if not query.repeated:
            apart = max(0.0, now - query.began - message.inside_s)
            between = (1 - WEIGHT) * self._between.get(sender, apart) + WEIGHT * apart
            self._between[sender] = between
            if abs(between - self._told.get(sender, 0.0)) > max(NOTABLE_S, NOTABLE * between):
                self._told[sender] = between
                yield To(sender, Apart(seconds=between))
        query.tally += message.tally
        query.answered.append(sender)
        query.failed += message.failed
        query.late |= message.late
        yield from self._done(message.query, sender, now)

    def _refused(self, sender: str, message: Refuse, now: float) -> Iterator[Any]:
        query = self._asked(sender, message.query)
        if query is not None:
            query.missing.append((sender, message.why))
            member = query.pool.members.get(sender)
            if member is not None and not message.provisioned:  # it has started anew, say
                self._ask_anew(query.pool, member)
            yield from self._done(message.query, sender, now)

    def _asked(self, sender: str, number: str) -> _Query | None:
        query = self._queries.get(number)
        if query is None or sender not in query.asked.members or sender in query.heard:
            self.counts.discarded += 1
            return None
        return query

    def _done(self, number: str, sender: str, now: float) -> Iterator[Result]:
        query = self._queries[number]
        query.heard.add(sender)
        if len(query.heard) == len(query.asked.names):
            yield self._end(number, now)

    def _end(self, number: str, now: float) -> Result:
        query = self._queries.pop(number)
        seconds = now - query.began
        service = query.pool.service
        missed = seconds > service.objective_s
        self.weights.ended(service.name, missed=missed, percent=service.percent)
        late = query.late or missed
        self.counts.late += late
        self.counts.partial += bool(query.missing or query.failed)
        return Result(
            query.ticket, number, service.name, query.tally, seconds, tuple(sorted(query.answered)),
            tuple(sorted(query.missing)), query.failed, late,
        )  # fmt: skip

    def _offered(self, sender: str, message: Offer, now: float) -> Iterator[Any]:
        pool = self.pools.get(message.service)
        if pool is None or sender not in pool.members:
            return
        member = pool.members[sender]
        before, member.offer, member.misses = member.standing, message, 0
        if not message.accepted:
            member.standing = Standing.REFUSED
        elif message.provisioned:
            member.standing = Standing.READY
        elif before is not Standing.READY:
            member.standing = Standing.OFFERED
        pool.changed()
        if member.standing is Standing.REFUSED and before is Standing.READY:
            yield To(sender, Release(service=message.service))  # it has kept the terms of before
        if member.standing is Standing.OFFERED:
            member.wait_s = 0.0
            yield self._write(pool, sender, now)
        elif member.standing is not before:
            member.wait_s = self.settings.renew_s
            member.next_s = now + member.wait_s
        if member.standing is Standing.READY and before is not Standing.READY:
            self._told.pop(sender, None)  # it may be another process now

    def _ask_anew(self, pool: Pool, member: Membership) -> None:
        member.standing, member.wait_s, member.next_s = Standing.ASKED, 0.0, 0.0
        pool.changed()

    def _left(self, sender: str, message: Leaves, now: float) -> Iterator[Any]:
        pool = self.pools.get(message.service)
        if pool is not None:
            pool.members.pop(sender, None)
            pool.changed()
        yield from ()


_HANDLERS: dict[type, Callable[[Provider, str, Any, float], Iterator[Any]]] = {
    Offer: Provider._offered, Answer: Provider._answered, Refuse: Provider._refused, Leaves: Provider._left,
}  # fmt: skip
