"""A cluster and dataflows small enough to run on one machine, in times that its own overhead does not hide.

The devices are those of `setup`, the times longer: a device has a `speed` far below 1, so an event takes tens of
milliseconds, and delays are stretched.  Events are few, as all nodes share the machine's processors.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from leeward.core.fields import FieldError
from leeward.core.model import Node
from leeward.core.network import NIMBUS, Link, Network, NetworkNode, Site
from leeward.policies.edge_cloud.benchmark import TYPES
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.values import Query
from leeward.policies.edge_cloud.workload import setup
from leeward.policies.edge_cloud.workload.catalogue import random_edges

#: Of eight nodes three are machines of the cloud; at least two, so that one can be drained.
CLOUD_SHARE, CLOUDS_LEAST = 3 / 8, 2
#: The name of the site with the cloud machines, and of Nimbus' node there.
CENTRE, HOST = "dc", "nimbus"
#: Queries of a dataflow, sources and sinks included.
SIZES = (4, 6)
EVENT_BYTES = (100.0, 5000.0)
#: A query passes on at least this share, so that sinks see enough events, and at most all: outputs of one input leave
#: together, and all but the first would wait, which the model does not know.
SELECTIVITY = (0.5, 1.0)
#: Ports are the local cluster's matter.
PORT = 6700


def live_network(nodes: int, speed: float, stretch: float, rng: random.Random) -> Network:
    """Edges, each at a site of its own, then cloud machines; raises `FieldError` for under 3 nodes.

    `speed`: of all devices, beside their own differences; `stretch`: of all delays.
    """
    clouds = max(CLOUDS_LEAST, round(nodes * CLOUD_SHARE))
    if nodes <= clouds:
        raise FieldError("nodes", nodes, f"{clouds} are cloud machines, and an edge is needed", remedy="give 3 or more")
    edges = nodes - clouds
    sites = [f"site-{number}" for number in range(1, edges + 1)]
    lan = Link(delay_ms=setup.SITE_MS * stretch, rate_mbps=setup.LAN_MBPS)
    links: dict[tuple[str, str], Link] = {}
    for site in sites:
        campus = Link(delay_ms=_ms(setup.CAMPUS_MS, stretch, rng), rate_mbps=setup.LAN_MBPS)
        wan = Link(delay_ms=_ms(setup.WAN_MS, stretch, rng), rate_mbps=round(rng.uniform(*setup.REF.wan_mbps), 1))
        links |= {(site, "campus"): campus, ("campus", site): campus, (site, CENTRE): wan, (CENTRE, site): wan}
    return Network(
        sites=(
            *(Site(id=site, inside=lan) for site in sites),
            Site(id="campus"),
            Site(id=CENTRE, inside=Link(delay_ms=setup.CLOUD_MS * stretch, rate_mbps=setup.CLOUD_MBPS)),
        ),
        nodes=(
            *(NetworkNode(id=f"edge-{n}", site=site, meta=_edge(speed, rng)) for n, site in enumerate(sites, 1)),
            *(NetworkNode(id=f"vm-{n}", site=CENTRE, meta=_cloud(speed, rng)) for n in range(1, clouds + 1)),
            NetworkNode(id=HOST, site=CENTRE, role=NIMBUS),
        ),
        links=links,
    )


def nodes_of(network: Network) -> tuple[Node, ...]:
    """The workers of a network as a policy sees them, in the network's order."""
    return tuple(Node(id=node.id, ports=(PORT,), capacity=setup.CAPACITY, meta=node.meta) for node in network.workers)


def small_dataflow(
    name: str, sensors: Sequence[int], rate: float, rng: random.Random, *, joins: bool = True
) -> Dataflow:
    """A dataflow of one source, with `rate` events/s, on one of the `sensors` (numbers of edges).

    Without `joins` no query has two inputs.
    """
    size = rng.randint(*SIZES)
    sinks = 2 if size == SIZES[1] and rng.random() < 0.5 else 1
    queries = [_query(v, size, sinks, rng) for v in range(1, size)]
    source = Query(
        type=queries[0].type, selectivity=1.0, event_bytes=_bytes(rng), kind="source", rate=rate,
        pin=sensors[rng.randrange(len(sensors))],
    )  # fmt: skip
    return Dataflow(
        name=name,
        queries=(source, *queries),
        edges=tuple(sorted(random_edges(size, 1, sinks, rng) if joins else _chain(size, sinks, rng))),
    )


def _chain(size: int, sinks: int, rng: random.Random) -> set[tuple[int, int]]:
    """One query after another; the last leads to a sink, and any to each further one."""
    inner = size - sinks
    along = {(v - 1, v) for v in range(1, inner + 1)}
    return along | {(rng.randrange(inner), sink) for sink in range(inner + 1, size)}


def _query(v: int, size: int, sinks: int, rng: random.Random) -> Query:
    least, most = SELECTIVITY
    fitting = [n for n, one in enumerate(TYPES) if one.selectivity[1] >= least and one.selectivity[0] <= most]
    number = rng.choice(fitting)
    low, high = TYPES[number].selectivity
    selectivity = round(rng.uniform(max(low, least), min(high, most)), 2)
    kind = "sink" if v >= size - sinks else "query"
    return Query(type=number, selectivity=selectivity, event_bytes=_bytes(rng), kind=kind)  # type: ignore[arg-type]


def _bytes(rng: random.Random) -> float:
    return float(round(math.exp(rng.uniform(*map(math.log, EVENT_BYTES)))))


def _ms(between: tuple[float, float], stretch: float, rng: random.Random) -> float:
    return round(rng.uniform(*between) * stretch, 1)


def _edge(speed: float, rng: random.Random) -> dict[str, str]:
    return {
        "class": "edge",
        "speed": f"{speed * rng.uniform(*setup.SPEED):.5f}",
        "battery_mAh": f"{rng.uniform(*setup.BATTERY_MAH):.0f}",
        "base_mA": f"{setup.BASE_MA:g}",
        "recharge_s": f"{setup.RECHARGE_S:g}",
    }


def _cloud(speed: float, rng: random.Random) -> dict[str, str]:
    return {"class": "cloud", "speed": f"{speed * rng.uniform(*setup.SPEED):.5f}"}
