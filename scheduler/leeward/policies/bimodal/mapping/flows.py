"""Stream hops of running tasks, and their re-allocation by each server (spec of bi-modal links, section 3).

A flow leads from a server that runs a service (or has the source) to the one that runs the next (or is the delivery
server): over dedicated links, one or several, or over the public network.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from leeward.policies.bimodal.model.resources import Account, Resource, hop_resource
from leeward.policies.bimodal.model.values import Network, Task
from leeward.policies.bimodal.model.walk import PUBLIC, START, Walk, is_whole

#: Numbers of the dedicated links from end to end; empty: the public network.
Way = tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class Flow:
    """See the module."""

    task: str
    hop: int  #: number of the stream hop in the task
    sender: int
    receiver: int
    need: float  #: bandwidth
    way: Way

    @property
    def public(self) -> bool:
        """It goes over the public network."""
        return not self.way


def flows_of(walk: Walk, task: Task) -> list[Flow]:
    """The flows of a whole map, from the source on; none where both ends are on one server."""
    found: list[Flow] = []
    sender, way = task.source, list[int]()
    for visit in walk.visits[1:]:
        assert visit.before is not None
        if visit.link != PUBLIC:
            way.append(visit.link)
        if (visit.ran or is_whole(visit, task)) and sender == visit.at:
            way = []  # a loop: nothing has to travel
        elif visit.ran or is_whole(visit, task):
            hop = visit.before.done
            found.append(
                Flow(
                    task=task.name, hop=hop, sender=sender, receiver=visit.at, need=task.bandwidth[hop],
                    way=() if visit.link == PUBLIC else tuple(way),
                )
            )  # fmt: skip
            sender, way = visit.at, []
    return found


def amounts(flow: Flow, network: Network, way: Way | None = None) -> dict[Resource, float]:
    """Amounts that a flow uses on its way, or on another one."""
    way = flow.way if way is None else way
    if not way:
        return {Resource("uplink", flow.sender): flow.need}
    found: dict[Resource, float] = {}
    at = flow.sender
    for link in way:
        resource = hop_resource(network, at, link)
        found[resource] = found.get(resource, 0.0) + flow.need
        at = network.links[link].other(at)
    return found


#: Price per byte times the bandwidth that it needs in the next epoch to be at its target again.
Priority = Callable[[Flow], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """Ways that there are: over the public network, and over at most so many dedicated links (None: no limit)."""

    public: bool = True
    hop_limit: int | None = None


def reallocate(flows: Iterable[Flow], priority: Priority, account: Account, network: Network, ways: Ways) -> list[Flow]:
    """One server gives its flows ways anew; those whose way is another afterwards.

    `flows`: all that it sends.  A group of flows to one server stays as it is if not all of them would find a way.
    """
    changed: list[Flow] = []
    groups: dict[int, list[Flow]] = {}
    for flow in flows:
        groups.setdefault(flow.receiver, []).append(flow)
    for _, group in sorted(groups.items()):
        ordered = sorted(group, key=lambda flow: (-priority(flow), flow.task, flow.hop))
        changed += _group(ordered, account, network, ways)
    return changed


def _group(ordered: Sequence[Flow], account: Account, network: Network, ways: Ways) -> list[Flow]:
    before = {id(flow): flow.way for flow in ordered}
    for flow in ordered:
        account.give_back(amounts(flow, network))
    after: list[Way] = []
    for flow in ordered:
        way = shortest(flow, account, network, ways.hop_limit)
        if way is None and ways.public and account.fits(amounts(flow, network, ())):
            way = ()
        if way is None:
            break
        account.take(amounts(flow, network, way))
        after.append(way)
    if len(after) < len(ordered):
        for flow, way in zip(ordered, after, strict=False):
            account.give_back(amounts(flow, network, way))
        after = [flow.way for flow in ordered]
        for flow in ordered:
            account.take(amounts(flow, network))
    for flow, way in zip(ordered, after, strict=True):
        flow.way = way
    return [flow for flow in ordered if flow.way != before[id(flow)]]


def shortest(flow: Flow, account: Account, network: Network, hop_limit: int | None = None) -> Way | None:
    """The dedicated way with fewest links that has room for the flow, the direct link first; None if there is none.

    It stands for the probe that a server sends: breadth first, by the numbers of the neighbours.
    """
    came: dict[int, tuple[int, int]] = {flow.sender: (-1, -1)}
    queue = deque([(flow.sender, 0)])
    while queue:
        at, hops = queue.popleft()
        if at == flow.receiver:
            return _way_back(came, at)
        if hop_limit is not None and hops >= hop_limit:
            continue
        for to, link in network.neighbours[at]:
            if to not in came and account.has(hop_resource(network, at, link), flow.need):
                came[to] = (at, link)
                queue.append((to, hops + 1))
    return None


def _way_back(came: Mapping[int, tuple[int, int]], at: int) -> Way:
    way: list[int] = []
    while came[at][1] != START:
        at, link = came[at]
        way.append(link)
    return tuple(reversed(way))
