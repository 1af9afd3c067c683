"""Servers, links and tasks (spec of bi-modal links, section 1).  Units are the instance's own, the same throughout.

Symbols of the paper: C(v) -> `Server.cpu`; S(v) -> `Server.services`; B(u, v) -> `Link.bandwidth`; W -> `Link.cost`;
C(i) -> `Task.cpu`; B(i, i+1) -> `Task.bandwidth`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from leeward.core.fields import FieldError, check_number

#: Whether both directions of a dedicated link use one capacity, or each has it for itself.  The paper does not say.
Direction = Literal["shared", "each"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server; `uplink` is its bandwidth into the public network (0: none)."""

    id: int
    cpu: float
    services: frozenset[int]
    uplink: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A dedicated link between the servers `a` and `b`; `cost` is that of one hop over it."""

    a: int
    b: int
    bandwidth: float
    cost: float = 1.0
    delay: float = 0.0

    def other(self, end: int) -> int:
        """The server at the end that is not `end`."""
        return self.b if end == self.a else self.a


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An SLA: a chain of services between a source and a delivery server, and what each needs at the wanted rate.

    `bandwidth[i]` is needed in front of the i-th service, the last one behind the last service.
    """

    name: str
    source: int
    delivery: int
    services: tuple[int, ...]
    cpu: tuple[float, ...]
    bandwidth: tuple[float, ...]
    max_null: int  #: servers without a service that one stream hop may pass
    price: float = 1.0  #: per byte delivered
    #: Ours: the servers that may run each service, (): any; () for all of them: any.
    pins: tuple[tuple[int, ...], ...] = ()
    #: Ours: servers that run none of its services; they may forward.
    barred: tuple[int, ...] = ()
    #: Ours: pairs of places in the chain that share no server; 0 is the source, i + 1 service i, the last one the
    #: delivery.
    apart: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if not self.services:
            raise FieldError("task.services", [], "is empty", remedy="name a service")
        for name, values, wanted in (
            ("cpu", self.cpu, len(self.services)),
            ("bandwidth", self.bandwidth, len(self.services) + 1),
        ):
            if len(values) != wanted:
                reason = f"has {len(values)} numbers for {len(self.services)} services"
                raise FieldError(f"task.{name}", list(values), reason, remedy=f"give {wanted}")
            for i, value in enumerate(values):
                check_number(f"task.{name}[{i}]", value)
        if self.max_null < 0:
            raise FieldError("task.max_null", self.max_null, "must be 0 or more", remedy="give 0 or more")
        check_number("task.price", self.price, positive=True)
        if len(self.pins) not in (0, len(self.services)):
            reason = f"has {len(self.pins)} entries for {len(self.services)} services"
            raise FieldError("task.pins", list(self.pins), reason, remedy=f"give {len(self.services)}, or none")
        last = len(self.services) + 1
        for i, (a, b) in enumerate(self.apart):
            if not 0 <= a < b <= last:
                reason = f"is no pair of places from 0 to {last}, the lower one first"
                raise FieldError(f"task.apart[{i}]", [a, b], reason, remedy="name two places of the chain")


class Network:
    """Servers, and the dedicated links between them. Raises `FieldError` for one that makes no sense."""

    def __init__(
        self, servers: Sequence[Server], links: Sequence[Link] | Mapping[int, Link], *, direction: Direction = "shared"
    ) -> None:
        """`links`: by number, or in the order of their numbers."""
        self.servers: Mapping[int, Server] = {server.id: server for server in servers}
        #: By number.
        self.links: Mapping[int, Link] = dict(links if isinstance(links, Mapping) else enumerate(links))
        self.direction = direction
        if len(self.servers) < len(servers):
            raise FieldError("servers", [server.id for server in servers], "an id is given twice", remedy="change one")
        for server in servers:
            check_number(f"server {server.id}: cpu", server.cpu)
            check_number(f"server {server.id}: uplink", server.uplink)
        neighbours: dict[int, list[tuple[int, int]]] = {server.id: [] for server in servers}
        for number, link in self.links.items():
            _check_link(number, link, self.servers)
            neighbours[link.a].append((link.b, number))
            neighbours[link.b].append((link.a, number))
        #: Server -> (neighbour, number of the link), by neighbour.
        self.neighbours: Mapping[int, tuple[tuple[int, int], ...]] = {
            v: tuple(sorted(n)) for v, n in neighbours.items()
        }
        hosts: dict[int, list[int]] = {}
        for server in sorted(servers, key=lambda server: server.id):
            for service in server.services:
                hosts.setdefault(service, []).append(server.id)
        #: Service -> the servers that host it, ascending.
        self.hosts: Mapping[int, tuple[int, ...]] = {service: tuple(found) for service, found in sorted(hosts.items())}

    def around(self, server: int) -> Network:
        """All that a server knows: itself and its links.  Of its neighbours it knows no more than that they exist."""
        mine = {number: self.links[number] for _, number in self.neighbours[server]}
        others = [Server(id=v, cpu=0.0, services=frozenset()) for v, _ in self.neighbours[server]]
        known = {one.id: one for one in (*others, self.servers[server])}
        return Network(list(known.values()), mine, direction=self.direction)

    def channel(self, link: int, sender: int) -> tuple[int, bool]:
        """The capacity that a hop over this link uses: that of the link, or of its direction."""
        return link, self.direction == "each" and sender == self.links[link].b


def _check_link(number: int, link: Link, servers: Mapping[int, Server]) -> None:
    for end in (link.a, link.b):
        if end not in servers:
            raise FieldError(f"links[{number}]", end, "there is no such server", remedy="name a server")
    if link.a == link.b:
        raise FieldError(f"links[{number}]", link.a, "leads from a server to itself", remedy="name two servers")
    for name in ("bandwidth", "cost", "delay"):
        check_number(f"links[{number}].{name}", getattr(link, name))


def check_ends(task: Task, network: Network) -> None:
    """Raises `FieldError` if the task begins or ends at a server that does not exist."""
    for name in ("source", "delivery"):
        server = getattr(task, name)
        if server not in network.servers:
            raise FieldError(f"task.{name}", server, "there is no such server", remedy="name a server of the network")


def may_run(task: Task, number: int, server: int) -> bool:
    """Whether a server may run a service of this number, beside the task's source and delivery."""
    if server in task.barred or (task.pins and task.pins[number] and server not in task.pins[number]):
        return False
    place, last = number + 1, len(task.services) + 1
    return not any(
        ((a, b) == (0, place) and server == task.source) or ((a, b) == (place, last) and server == task.delivery)
        for a, b in task.apart
    )


def _ends_apart(task: Task) -> bool:
    return (0, len(task.services) + 1) in task.apart


def why_impossible(task: Task, network: Network) -> str:
    """The tightest bound that no map of this task can meet on the empty network; empty if none is seen."""
    for i, service in enumerate(task.services):
        everywhere = network.hosts.get(service, ())
        if not everywhere:
            return f"service {service} is hosted nowhere"
        hosts = [v for v in everywhere if may_run(task, i, v)]
        if not hosts:
            return f"service {service} may run on no server that hosts it, by its pin, a drain or leeward.apart"
        most = max(network.servers[v].cpu for v in hosts)
        if task.cpu[i] > most:
            return f"service {service} needs {task.cpu[i]:g} CPU, the largest server that hosts it has {most:g}"
    if task.source == task.delivery:
        return f"its source and its delivery are to be apart, and are on server {task.source}" * _ends_apart(task)
    widest = max(
        (*(link.bandwidth for link in network.links.values()), *(server.uplink for server in network.servers.values())),
        default=0.0,
    )
    # on the way from source to delivery one hop at least is between servers
    least = min(task.bandwidth)
    return f"each hop needs {least:g} or more, the widest link has {widest:g}" if least > widest else ""
