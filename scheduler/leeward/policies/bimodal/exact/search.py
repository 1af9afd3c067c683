"""The cheapest map of a task: A* over walks, guided by the bound and pruned by dominance.

A walk is dominated by another at the same server with the same services done if that one costs no more, has passed no
more empty servers, may go on in the same ways, and uses no more of any resource that could still run out.  So the
search is exact: by resources that the map itself uses too (*aggregated*), or for each use of a link alone (*per edge*).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

from leeward.policies.bimodal.exact.bound import Bound, HopCost, bound
from leeward.policies.bimodal.model.resources import Account, Resource, hop_resource
from leeward.policies.bimodal.model.values import Network, Task
from leeward.policies.bimodal.model.walk import (
    PUBLIC,
    START,
    Walk,
    begin,
    forward,
    held_apart,
    is_whole,
    may_forward,
    may_go_public,
    may_run_next,
    run,
    send_public,
)

Uses = dict[Resource, float]
#: (from server, to server) -> how many times as dear as the best a hop over the public network is, 1 or more.
Weight = Callable[[int, int], float]


def _even(here: int, there: int) -> float:
    return 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The cheapest map (None: there is none), and whether that is proven."""

    walk: Walk | None
    cost: float
    proven: bool
    looked_at: int  #: walks that were extended


def cheapest(
    task: Task, network: Network, account: Account | None = None, *, aggregated: bool = True,
    cost: HopCost | None = None, public: float | None = None, weight: Weight = _even, limit: int = 2_000_000,
) -> Found:  # fmt: skip
    """The map of least cost on what is free; after `limit` walks the search ends without a proof.

    `cost`: of a hop over a link (its own, if None).  `public`: of a hop over the public network, times its
    weight; None: not used.
    """
    return _Search(task, network, account or Account(network), aggregated, cost, public, weight).search(limit)


class _Search:
    def __init__(
        self, task: Task, network: Network, account: Account, aggregated: bool, cost: HopCost | None,
        public: float | None, weight: Weight,
    ) -> None:  # fmt: skip
        self.task, self.network, self.account = task, network, account
        self.aggregated, self.public, self.weight = aggregated, public, weight
        self.cost = cost or (lambda link: network.links[link].cost)
        self.rest: Bound = bound(task, network, account, self.cost, public)
        self.accepted: dict[tuple[int, int, int], list[tuple[int, Uses, frozenset[tuple[int, int]]]]] = {}

    def search(self, limit: int) -> Found:
        order, looked_at = count(), 0
        first = begin(self.task)
        heap: list[tuple[float, int, Walk, Uses]] = []
        if first.at in self.rest[0]:
            heap.append((self.rest[0][first.at], next(order), first, {}))
        while heap:
            value, _, walk, uses = heapq.heappop(heap)
            if is_whole(walk, self.task):
                return Found(walk=walk, cost=value, proven=True, looked_at=looked_at)
            if self._dominated(walk, uses):
                continue
            looked_at += 1
            if looked_at > limit:
                return Found(walk=None, cost=value, proven=False, looked_at=looked_at)
            spent = value - self.rest[walk.done][walk.at]
            for price, after, used in self._extensions(walk, uses):
                ahead = self.rest[after.done].get(after.at)
                if ahead is not None:
                    heapq.heappush(heap, (spent + price + ahead, next(order), after, used))
        return Found(walk=None, cost=float("inf"), proven=True, looked_at=looked_at)

    def _extensions(self, walk: Walk, uses: Uses) -> Iterator[tuple[float, Walk, Uses]]:
        """(price, walk after it, what that uses)."""
        task, network, done = self.task, self.network, walk.done
        hosted = done < len(task.services) and task.services[done] in network.servers[walk.at].services
        if hosted and may_run_next(walk, task, walk.at):
            cpu = Resource("cpu", walk.at)
            used = self._with(uses, cpu, task.cpu[done], adds=True)
            if used is not None:
                yield 0.0, run(walk, 1, self.account.load(walk.at, used[cpu])), used
        need = task.bandwidth[done]
        if may_forward(walk, task):
            for u, link in network.neighbours[walk.at]:
                used = self._with(uses, hop_resource(network, walk.at, link), need, adds=self.aggregated)
                if used is not None:
                    yield self.cost(link), forward(walk, u, link, self.cost(link)), used
        if self.public is not None and may_go_public(walk):
            used = self._with(uses, Resource("uplink", walk.at), need, adds=self.aggregated)
            if used is not None:
                for u in self._next_hosts(walk):
                    weight = self.weight(walk.at, u)
                    yield self.public * weight, send_public(walk, u, weight), used

    def _next_hosts(self, walk: Walk) -> tuple[int, ...]:
        """Servers that a stream may be sent to over the public network."""
        task = self.task
        whole = walk.done == len(task.services)
        if whole:
            return () if walk.at == task.delivery else (task.delivery,)
        hosts = self.network.hosts.get(task.services[walk.done], ())
        return tuple(u for u in hosts if u != walk.at and may_run_next(walk, task, u))

    def _with(self, uses: Uses, resource: Resource, amount: float, *, adds: bool) -> Uses | None:
        """The uses and this one; None if it does not fit. Without `adds` each use is looked at alone."""
        already = uses.get(resource, 0.0) if adds else 0.0
        if not self.account.has(resource, already + amount):
            return None
        return {**uses, resource: already + amount} if adds else uses

    def _dominated(self, walk: Walk, uses: Uses) -> bool:
        """Notes the walk, if it is not. Walks come by ascending value, so an earlier one here costs no more."""
        ways = 0 if walk.ran or walk.link == START else 2 if walk.link == PUBLIC else 1
        others = self.accepted.setdefault((walk.at, walk.done, ways), [])
        scarce = {resource: amount for resource, amount in uses.items() if self._may_run_out(resource, amount, walk)}
        held = held_apart(walk, self.task)
        for freer in range(ways + 1):
            for nulls, theirs, away in self.accepted.get((walk.at, walk.done, freer), ()):
                frugal = all(amount <= scarce.get(r, 0.0) + 1e-12 for r, amount in theirs.items())
                if nulls <= walk.nulls and away <= held and frugal:
                    return True
        others.append((walk.nulls, scarce, held))
        return False

    def _may_run_out(self, resource: Resource, amount: float, walk: Walk) -> bool:
        """The rest of the task could use more of it than is left."""
        task, done = self.task, walk.done
        if resource.kind == "cpu":
            services = self.network.servers[resource.number].services
            more = sum(c for s, c in zip(task.services[done:], task.cpu[done:], strict=True) if s in services)
        else:
            more = sum(task.bandwidth[done:]) * (task.max_null + 1)
        return amount + more > self.account.free(resource)
