"""A walk: a map that is being extended, from the source on.  It is what a `map` message carries.

At each server that it visits, a walk runs the next services of the task, or none and is only forwarded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from leeward.policies.bimodal.model.values import Network, Task, may_run

#: In place of a link's number: the walk begins here, or came over the public network.
START, PUBLIC = -1, -2


class Walk(NamedTuple):
    """The newest visit of a walk, and the walk before it."""

    at: int  #: server
    link: int  #: by which it came here: a link's number, START or PUBLIC
    done: int = 0  #: services that run on the servers so far, this one included
    ran: int = 0  #: of those, how many it runs in this visit
    nulls: int = 0  #: servers that only forward, since the newest service
    cost: float = 0.0  #: of the links
    public: int = 0  #: hops over the public network
    strain: float = 0.0  #: their weights: 1 each, and more where a path is known to carry less than is wanted of it
    load: float = 0.0  #: used by total CPU of the server, once this walk is reserved; of a server that runs none: 0
    loads: float = 0.0  #: sum of the loads of its servers, each once
    hosts: int = 0  #: those servers
    before: Walk | None = None

    @property
    def visits(self) -> tuple[Walk, ...]:
        """From the source on."""
        found: list[Walk] = []
        one: Walk | None = self
        while one is not None:
            found.append(one)
            one = one.before
        return tuple(reversed(found))

    def back(self) -> Iterator[Walk]:
        """The visits, newest first."""
        one: Walk | None = self
        while one is not None:
            yield one
            one = one.before


def begin(task: Task) -> Walk:
    """Nothing is mapped yet."""
    return Walk(at=task.source, link=START)


def run(walk: Walk, count: int, load: float) -> Walk:
    """The next `count` services run at the server where the walk is; its `load` follows from that."""
    if count == 0:
        return walk
    earlier = _load_at(walk)
    return Walk(
        walk.at, walk.link, walk.done + count, walk.ran + count, 0, walk.cost, walk.public, walk.strain, load,
        walk.loads + load - (earlier or 0.0), walk.hosts + (earlier is None), walk.before,
    )  # fmt: skip


def may_run_next(walk: Walk, task: Task, server: int, ahead: int = 0) -> bool:
    """Whether a server may run the next service but `ahead`: by its pin, and apart from those that have run.

    Those between run on the same server.
    """
    number = walk.done + ahead
    if not may_run(task, number, server):
        return False
    rivals = {a for a, b in task.apart if b == number + 1}
    if not rivals:
        return True
    if any(walk.done < place <= number for place in rivals):
        return False
    return not any(visit.at == server and not rivals.isdisjoint(_places(visit)) for visit in walk.back())


def keeps_limits(walk: Walk, task: Task) -> bool:
    """Whether a whole map runs each service where the task allows it, and apart from its rivals."""
    servers = servers_of(walk)
    at = (task.source, *servers, task.delivery)
    return all(may_run(task, i, v) for i, v in enumerate(servers)) and all(at[a] != at[b] for a, b in task.apart)


def _places(visit: Walk) -> range:
    """Of the services that run in a visit, in the chain."""
    return range(visit.done - visit.ran + 1, visit.done + 1)


def held_apart(walk: Walk, task: Task) -> frozenset[tuple[int, int]]:
    """(place, server) of the services that have run, and that another one which has not is to be apart from."""
    waited = {a for a, b in task.apart if walk.done < b <= len(task.services)}
    if not waited:
        return frozenset()
    return frozenset((place, visit.at) for visit in walk.back() for place in _places(visit) if place in waited)


def _load_at(walk: Walk) -> float | None:
    """The load of the server where the walk is, from its newest visit that runs a service; None if there is none."""
    one: Walk | None = walk
    while one is not None:
        if one.at == walk.at and one.ran:
            return one.load
        one = one.before
    return None


def may_forward(walk: Walk, task: Task) -> bool:
    """The server may pass it on over a dedicated link: it runs a service, or few enough servers were empty before.

    The server where it begins does not count as empty; a walk that came over the public network is not forwarded empty.
    """
    if walk.ran or walk.link == START:
        return True
    return walk.link != PUBLIC and walk.nulls < task.max_null


def may_go_public(walk: Walk) -> bool:
    """It may be sent straight to a server that hosts the next service."""
    return bool(walk.ran) or walk.link == START


def forward(walk: Walk, to: int, link: int, cost: float) -> Walk:
    """Over a dedicated link."""
    empty = not walk.ran and walk.link != START
    return Walk(
        to, link, walk.done, 0, walk.nulls + empty, walk.cost + cost, walk.public, walk.strain, 0.0, walk.loads,
        walk.hosts, walk,
    )  # fmt: skip


def send_public(walk: Walk, to: int, weight: float = 1.0) -> Walk:
    """Over the public network, which costs nothing; `weight`: of this path (`mapping/paths.py`)."""
    return Walk(
        to, PUBLIC, walk.done, 0, 0, walk.cost, walk.public + 1, walk.strain + weight, 0.0, walk.loads, walk.hosts,
        walk,
    )  # fmt: skip


def cpu_at(walk: Walk, server: int, task: Task) -> float:
    """CPU that the walk uses at a server."""
    used = 0.0
    one: Walk | None = walk
    while one is not None:
        if one.at == server and one.ran:
            used += sum(task.cpu[one.done - one.ran : one.done])
        one = one.before
    return used


def bandwidth_on(walk: Walk, channel: tuple[int, bool], task: Task, network: Network) -> float:
    """Bandwidth that the walk uses of a link, or of a direction of it (`Network.channel`)."""
    used = 0.0
    for visit in walk.back():
        before = visit.before
        if visit.link == channel[0] and before is not None and network.channel(visit.link, before.at) == channel:
            used += task.bandwidth[before.done]
    return used


def uplink_of(walk: Walk, server: int, task: Task) -> float:
    """Bandwidth that the walk uses of a server's uplink."""
    return sum(
        task.bandwidth[visit.before.done]
        for visit in walk.back()
        if visit.link == PUBLIC and visit.before is not None and visit.before.at == server
    )


def is_whole(walk: Walk, task: Task) -> bool:
    """All services run somewhere, and the walk is at the delivery server."""
    return walk.done == len(task.services) and walk.at == task.delivery


def servers_of(walk: Walk) -> tuple[int, ...]:
    """Where each service runs, in the task's order."""
    return tuple(visit.at for visit in walk.visits for _ in range(visit.ran))


def paths_of(walk: Walk, task: Task) -> tuple[tuple[tuple[int, int], ...], ...]:
    """For each stream hop the pairs (from, to) of servers that it passes; empty where both ends are one server."""
    paths: list[list[tuple[int, int]]] = [[] for _ in task.bandwidth]
    for visit in walk.visits:
        if visit.before is not None:
            paths[visit.before.done].append((visit.before.at, visit.at))
    return tuple(map(tuple, paths))


def load_factor(walk: Walk) -> float:
    """Mean over its servers of used to total CPU (spec, section 2: the smaller the better); 0 if it uses none."""
    return walk.loads / walk.hosts if walk.hosts else 0.0


def dedicated_hops(walk: Walk) -> int:
    """Hops over dedicated links."""
    return sum(visit.link >= 0 for visit in walk.back())
