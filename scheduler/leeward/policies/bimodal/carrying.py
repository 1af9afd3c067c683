"""Which TCP connections of Storm carry the stream hops of a server, by which ways, and how much they carry. Pure.

Storm keeps one connection from a worker to each other one, at the port of its slot, and a topology has slots of its
own.  So a hop is known by the node of its receiver and the ports of its topology there.  Hops of one task between the
same two servers share their connections; the first of them says the way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from leeward.policies.bimodal.facts import topology_of
from leeward.policies.bimodal.mapping.messages import Route
from leeward.policies.bimodal.model.stream_file import BITS_PER_BYTE, BITS_PER_MBIT, HEADROOM

#: Topology id -> node -> ports of its slots.
Ports = Mapping[str, Mapping[str, tuple[int, ...]]]


class Port(NamedTuple):
    """The receiving end of connections."""

    node: str
    port: int


class Carrier(NamedTuple):
    """The hop whose connections these are, and their way: nodes from sender to receiver; (): publicly."""

    task: str
    hop: int
    way: tuple[str, ...]


class Bytes(NamedTuple):
    """Counters of the connections to one port."""

    acked: int
    unsent: int


class Carried(NamedTuple):
    """By a hop, since the look before: bandwidth times seconds, with headroom as in what is reserved."""

    task: str
    hop: int
    mbit: float
    seconds: float
    limited: bool  #: more waited for the network


def carriers(routes: Iterable[Route], ports: Ports, nodes: Mapping[int, str]) -> dict[Port, Carrier]:
    """The connections of each hop. `nodes`: server -> node."""
    found: dict[Port, Carrier] = {}
    for route in sorted(routes):
        node = nodes.get(route.receiver)
        if node is None:
            continue
        way = tuple(nodes[server] for server in route.servers)
        for port in ports.get(topology_of(route.task), {}).get(node, ()):
            found.setdefault(Port(node, port), Carrier(route.task, route.hop, way))
    return found


class Meter:
    """Remembers counters from one look to the next."""

    def __init__(self) -> None:
        self._acked: dict[Port, int] = {}
        self._at: float | None = None

    def look(self, carriers: Mapping[Port, Carrier], seen: Mapping[Port, Bytes], now: float) -> list[Carried]:
        """The bytes of each hop since the look before; none of a port that is new or was opened anew."""
        seconds, before = now - (self._at if self._at is not None else now), self._acked
        self._acked, self._at = {port: counted.acked for port, counted in seen.items()}, now
        if seconds <= 0:
            return []
        sums: dict[tuple[str, int], list[int]] = defaultdict(lambda: [0, 0])
        for port, carrier in carriers.items():
            if port in seen and port in before and seen[port].acked >= before[port]:
                sums[carrier.task, carrier.hop][0] += seen[port].acked - before[port]
                sums[carrier.task, carrier.hop][1] += seen[port].unsent
        return [
            Carried(task, hop, HEADROOM * acked * BITS_PER_BYTE / BITS_PER_MBIT, seconds, unsent > 0)
            for (task, hop), (acked, unsent) in sorted(sums.items())
        ]
