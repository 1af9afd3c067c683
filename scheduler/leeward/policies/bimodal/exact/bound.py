"""A lower bound of what a walk still costs: the cheapest way on if no capacity is used up and nothing limits hops.

It is the paper's relaxed staged graph (section 4.2), but for two points that keep the bound below every map and make it
tighter: a link has to be wide enough for the one hop that uses it, and a server to have CPU for the one service.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from math import inf

from leeward.policies.bimodal.model.resources import Account, Resource, hop_resource
from leeward.policies.bimodal.model.values import Network, Task, may_run

#: The cost of a hop over a link, by number.
HopCost = Callable[[int], float]
#: For each number of services done: server -> least cost from there.
Bound = tuple[Mapping[int, float], ...]


def bound(task: Task, network: Network, account: Account, cost: HopCost, public: float | None) -> Bound:
    """`public`: cost of a hop over the public network; None: there is none.  Unreachable servers are left out."""
    layers: list[dict[int, float]] = []
    runs: dict[int, float] = {task.delivery: 0.0}
    for done in range(len(task.services), -1, -1):
        if done < len(task.services):
            need, service = task.cpu[done], task.services[done]
            hosts = (v for v in network.hosts.get(service, ()) if may_run(task, done, v))
            able = (v for v in hosts if account.has(Resource("cpu", v), need))
            runs = {v: layers[-1][v] for v in able if v in layers[-1]}
        layers.append(_layer(runs, task.bandwidth[done], network, account, cost, public))
    return tuple(reversed(layers))


def _layer(
    ends: Mapping[int, float], need: float, network: Network, account: Account, cost: HopCost, public: float | None
) -> dict[int, float]:
    """Server -> least cost to bring a stream that needs so much bandwidth to one of the ends, and on from there."""
    best = dict(ends)
    if public is not None and ends:
        over = public + min(ends.values())
        for v in network.servers:
            if account.has(Resource("uplink", v), need) and over < best.get(v, inf):
                best[v] = over
    heap = [(value, v) for v, value in best.items()]
    heapq.heapify(heap)
    while heap:
        value, v = heapq.heappop(heap)
        if value > best[v]:
            continue
        for u, link in network.neighbours[v]:
            if not account.has(hop_resource(network, u, link), need):
                continue
            if value + cost(link) < best.get(u, inf):
                best[u] = value + cost(link)
                heapq.heappush(heap, (best[u], u))
    return best
