"""Latency of a tuple by delays and service times alone: no queue, and nothing of Storm's own. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from leeward.core.network import Network
from leeward.policies.agiledart.experiments.latency_setup import Ends

MS = 1e-3
#: Component -> the nodes of its replicas.
Hosts = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """The components of a topology."""

    inputs: Mapping[str, Sequence[str]]  #: of each component: those that it reads from
    service_s: Mapping[str, float]  #: s for a tuple; of one that is not there: 0
    source: str
    sink: str


def between_s(network: Network, here: Sequence[str], there: Sequence[str], *, scale: float = 1.0) -> float:
    """One way from a replica to a replica, the mean over all pairs, as tuples are spread evenly. `scale`: of delays."""
    return scale * MS * fmean(network.pair(a, b).delay_ms for a in here for b in there)


def outside_s(network: Network, hosts: Hosts, graph: Graph, ends: Ends, *, scale: float = 1.0) -> float:
    """From the sensors to the source, and from the sink to the users."""
    come = between_s(network, [ends.sensors], hosts[graph.source], scale=scale)
    return come + between_s(network, hosts[graph.sink], [ends.users], scale=scale)


def modelled_s(network: Network, hosts: Hosts, graph: Graph, ends: Ends, *, scale: float = 1.0) -> float:
    """From the sensors to the users on the longest way through the graph. `scale`: of the network's delays."""
    longest: dict[str, float] = {}

    def until(name: str) -> float:
        """From the source until this component has served the tuple; circles are cut."""
        if name not in longest:
            longest[name] = 0.0
            before = [
                until(other) + between_s(network, hosts[other], hosts[name], scale=scale)
                for other in graph.inputs.get(name, ())
            ]
            longest[name] = max(before, default=0.0) + graph.service_s.get(name, 0.0)
        return longest[name]

    return until(graph.sink) + outside_s(network, hosts, graph, ends, scale=scale)
