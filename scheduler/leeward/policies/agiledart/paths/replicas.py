"""Replicas of a bolt and one sender in virtual time: the tuples go round as the sender's route weighs the replicas.

Service times are exponential, arrivals Poisson. The decisions are those of a task on Storm (`core/route.py`,
`core/rotation.py`); an answer to a sample comes when the tuples before it are done.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from statistics import fmean

from leeward.core.policy import Router
from leeward.core.rotation import rotation
from leeward.core.route import Route, RoutePacing
from leeward.core.table import even_table

#: Share of a run, at its begin, that its figures leave out.
WARM_UP = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The tuples of a run, and the replicas' mean times for one."""

    rate: float  #: tuples/s
    services_s: tuple[float, ...]  #: by replica, 0, 1, ...
    seconds: float = 120.0  #: of arrivals
    change: tuple[float, tuple[float, ...]] | None = None  #: (s, services from then on)

    def services_at(self, now: float) -> tuple[float, ...]:
        """Mean times, s."""
        return self.change[1] if self.change and now >= self.change[0] else self.services_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Delays of the tuples from sending to done, s, and the shares of the replicas."""

    mean_s: float
    p99_s: float
    shares: tuple[float, ...]


class Queues:
    """One queue for each replica, first in first out."""

    def __init__(self, load: Load, rng: Random) -> None:
        self._load, self._rng = load, rng
        self._free_at = [0.0] * len(load.services_s)

    def waits_until(self, replica: int, now: float) -> float:
        """When a tuple that is sent now would begin."""
        return max(self._free_at[replica], now)

    def send(self, replica: int, now: float) -> float:
        """When the tuple is done."""
        service = self._load.services_at(now)[replica]
        self._free_at[replica] = self.waits_until(replica, now) + self._rng.expovariate(1.0 / service)
        return self._free_at[replica]

    def shortest(self, now: float) -> int:
        """The replica that is expected to be done first: no sender knows that."""
        services = self._load.services_at(now)
        return min(range(len(services)), key=lambda replica: self.waits_until(replica, now) + services[replica])


@dataclass(slots=True)
class Sender:
    """A route, with the samples that are under way."""

    route: Route
    load: Load
    turns: Sequence[int]
    due: float = 0.0
    number: int = 0
    answers: list[tuple[float, int, int]] = field(default_factory=list)  #: (s, replica, sample), a heap

    def look(self, now: float, queues: Queues) -> None:
        """Take the turn that is due."""
        if now < self.due:
            return
        self.due, self.number = now + self.route.pacing.every_s, self.number + 1
        while self.answers and self.answers[0][0] <= now:
            at, replica, number = heapq.heappop(self.answers)
            self.route.answered(replica, number, at, service_s=self.load.services_at(at)[replica])
        turn = self.route.turn(self.number, now)
        for replica in turn.samples:
            heapq.heappush(self.answers, (queues.waits_until(replica, now), replica, self.number))
        if turn.weights is not None:
            self.turns = rotation(turn.weights)


def play(
    load: Load, router: Router | None, *, seed: int, shortest: bool = False, pacing: RoutePacing = RoutePacing()
) -> Outcome:
    """One run. No router: even rotation, or with `shortest` the queue that is done first."""
    rng = Random(seed)
    queues, replicas = Queues(load, rng), range(len(load.services_s))
    sender = Sender(Route(router, Random(seed + 1), pacing), load, replicas) if router else None
    if sender:
        sender.route.follow(even_table(replicas))
    sent: list[tuple[int, float]] = []
    now = 0.0
    while (now := now + rng.expovariate(load.rate)) < load.seconds:
        if sender:
            sender.look(now, queues)
        turns = sender.turns if sender else replicas
        replica = queues.shortest(now) if shortest else turns[len(sent) % len(turns)]
        sent.append((replica, queues.send(replica, now) - now))
    return _outcome(sent, len(replicas))


def _outcome(sent: list[tuple[int, float]], replicas: int) -> Outcome:
    sent = sent[int(WARM_UP * len(sent)) :]
    counts, delays = Counter(replica for replica, _ in sent), sorted(delay for _, delay in sent)
    shares = tuple(counts[replica] / len(sent) for replica in range(replicas))
    return Outcome(mean_s=fmean(delays), p99_s=delays[int(0.99 * len(delays))], shares=shares)
