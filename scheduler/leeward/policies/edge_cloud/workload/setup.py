"""Clusters of edge devices and virtual machines from a seed, in two flavours of network.

The paper prints no number of its network, its devices or its interference.  The ranges here are those under which an
independent implementation saw the paper's claims hold (spec of edge and cloud, section 5): REF, and TH, whose slower
links and larger events let the transfer count as much as the latency.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from leeward.core.fields import FieldError
from leeward.core.model import Node
from leeward.core.network import NIMBUS, Link, Network, NetworkNode, Site

#: As in the paper: 4 of 100 resources are machines of the cloud, 40 of 1,000.
CLOUD_SHARE = 0.04
#: Edges stand at so many sites at most; a site of many edges is a switch.
SITES_MOST = 96
#: One way, ms: between two edges of a site, from a site to the campus, between two machines of the cloud.
SITE_MS, CAMPUS_MS, CLOUD_MS = 2.0, (1.0, 3.0), 0.5
LAN_MBPS, CLOUD_MBPS = 100.0, 1000.0
#: Latency to the cloud, one way, ms.
WAN_MS = (22.0, 28.0)
#: Devices of one type differ by this much.
SPEED = (0.85, 1.15)
BATTERY_MAH, BASE_MA, RECHARGE_S = (7500.0, 12000.0), 230.0, 86400.0
#: Storm's first port. Every topology sees it free: the paper bounds no number of dataflows on a resource.
PORT = 6700
#: The paper bounds a resource by throughput and energy alone.
CAPACITY = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavour:
    """The two things in which the flavours differ."""

    name: str
    #: Bandwidth to the cloud, Mbit/s.
    wan_mbps: tuple[float, float]
    #: Size of an event, bytes.
    event_bytes: tuple[float, float]


REF = Flavour(name="ref", wan_mbps=(5.0, 20.0), event_bytes=(100.0, 20_000.0))
TH = Flavour(name="th", wan_mbps=(2.0, 8.0), event_bytes=(100.0, 50_000.0))


def cluster(nodes: int, flavour: Flavour, rng: random.Random) -> tuple[tuple[Node, ...], Network]:
    """Edges first, then machines of the cloud, in the order of their names; raises `FieldError` for under 2 nodes."""
    if nodes < 2:
        raise FieldError("nodes", nodes, "an edge and a machine of the cloud are needed", remedy="give 2 or more")
    clouds = max(1, round(nodes * CLOUD_SHARE))
    edges = nodes - clouds
    sites = min(SITES_MOST, edges)
    digits = len(str(nodes))
    found = [
        *(_edge(f"edge-{number:0{digits}}", rng) for number in range(edges)),
        *(_cloud(f"vm-{number:0{digits}}", rng) for number in range(clouds)),
    ]
    homes = [f"site-{number * sites // edges:02}" for number in range(edges)] + ["dc"] * clouds
    return tuple(found), _network(found, homes, flavour, rng)


def _edge(name: str, rng: random.Random) -> Node:
    meta = {
        "class": "edge",
        "speed": f"{rng.uniform(*SPEED):.4f}",
        "battery_mAh": f"{rng.uniform(*BATTERY_MAH):.0f}",
        "base_mA": f"{BASE_MA:g}",
        "recharge_s": f"{RECHARGE_S:g}",
    }
    return Node(id=name, ports=(PORT,), capacity=CAPACITY, meta=meta)


def _cloud(name: str, rng: random.Random) -> Node:
    return Node(
        id=name, ports=(PORT,), capacity=CAPACITY, meta={"class": "cloud", "speed": f"{rng.uniform(*SPEED):.4f}"}
    )


def _network(nodes: list[Node], homes: list[str], flavour: Flavour, rng: random.Random) -> Network:
    """A campus joins the sites; each has a link of its own to the data centre."""
    edge_sites = sorted(set(homes) - {"dc"})
    inside = Link(delay_ms=SITE_MS, rate_mbps=LAN_MBPS)
    links: dict[tuple[str, str], Link] = {}
    for site in edge_sites:
        lan = Link(delay_ms=rng.uniform(*CAMPUS_MS), rate_mbps=LAN_MBPS)
        wan = Link(delay_ms=rng.uniform(*WAN_MS), rate_mbps=rng.uniform(*flavour.wan_mbps))
        links |= {(site, "campus"): lan, ("campus", site): lan, (site, "dc"): wan, ("dc", site): wan}
    return Network(
        sites=(
            *(Site(id=site, inside=inside) for site in edge_sites),
            Site(id="campus"),
            Site(id="dc", inside=Link(delay_ms=CLOUD_MS, rate_mbps=CLOUD_MBPS)),
        ),
        nodes=(
            *(NetworkNode(id=node.id, site=home) for node, home in zip(nodes, homes, strict=True)),
            NetworkNode(id="nimbus", site="dc", role=NIMBUS),
        ),
        links=links,
    )
