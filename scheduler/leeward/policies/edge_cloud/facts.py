"""The facts of a view as the model's values, and back: those of nodes, network and components.

Storm and the simulator give the same facts.  A node's are in its `meta` (`supervisor.scheduler.meta`):

    class: edge or cloud;  speed: 1 is the benchmark's device
    battery_mAh, base_mA, recharge_s: of an edge

A component's are in `facts` (key `leeward.facts`):

    type: a name of `benchmark.TYPES`;  kind: source, query or sink
    selectivity;  event_bytes;  rate: events/s of a source

A source is pinned to the edge that has its sensor; another component may be pinned to several nodes.  Sites and links
are those of the view's network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leeward.core.apart import rivals_of
from leeward.core.fields import FieldError, check_number
from leeward.core.model import ClusterView, Component, Node
from leeward.core.network import Network as Sites
from leeward.policies.edge_cloud.benchmark import NUMBER, TYPES
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.fabric import Fabric
from leeward.policies.edge_cloud.model.values import Cloud, Edge, Kind, Network, Query, Resource, check_one_of
from leeward.policies.edge_cloud.planning.limits import Limits
from leeward.policies.edge_cloud.settings import EdgeCloudSettings

EDGE, CLOUD = "edge", "cloud"
CLASSES = (EDGE, CLOUD)
BITS_PER_MBIT = 1e6
SECONDS_PER_MS = 1e-3
NAMES = tuple(NUMBER)
#: Of a link whose rate nothing limits, bit/s.
UNLIMITED_BPS = 1e18


def fabric_of(nodes: Sequence[Node], sites: Sites | None, settings: EdgeCloudSettings) -> Fabric:
    """The resources in the order of `nodes`; raises `FieldError` for a node without class, or without its numbers."""
    if not nodes:
        raise FieldError("nodes", [], "the cluster has none", remedy="start a supervisor")
    classes = [_class(node) for node in nodes]
    speeds = [_meta(node, "speed", 1.0, positive=True) for node in nodes]
    lam, eps = [], []
    for one in TYPES:
        both = {EDGE: one.edge_s, CLOUD: one.cloud_s}
        lam.append(tuple(both[kind] / speed for kind, speed in zip(classes, speeds, strict=True)))
        eps.append(
            tuple(one.edge_mah / speed if kind == EDGE else 0.0 for kind, speed in zip(classes, speeds, strict=True))
        )
    return Fabric(
        resources=tuple(_resource(node, kind) for node, kind in zip(nodes, classes, strict=True)),
        lam_s=tuple(lam),
        eps_mah=tuple(eps),
        network=_network(nodes, sites),
        pi_edge=_overheads(settings.pi_edge_step, settings.pi_edge_most),
        pi_cloud=_overheads(settings.pi_cloud_step, settings.pi_cloud_most),
        mode=settings.mode,  # type: ignore[arg-type]
    )


def _class(node: Node) -> str:
    kind = node.meta.get("class", "")
    check_one_of(f"node {node.id}: meta.class", kind, CLASSES)
    return kind


def _meta(node: Node, name: str, default: float | None = None, *, positive: bool = False) -> float:
    field = f"node {node.id}: meta.{name}"
    text = node.meta.get(name, default)
    if text is None:
        raise FieldError(field, None, "is missing", remedy="set it in supervisor.scheduler.meta")
    try:
        value = float(text)
    except ValueError:
        raise FieldError(field, text, "is no number", remedy="give a number") from None
    check_number(field, value, positive=positive)
    return value


def _resource(node: Node, kind: str) -> Resource:
    if kind == CLOUD:
        return Cloud()
    return Edge(
        battery_mah=_meta(node, "battery_mAh", positive=True),
        base_ma=_meta(node, "base_mA"),
        recharge_s=_meta(node, "recharge_s", positive=True),
    )


def _overheads(step: float, most: float) -> tuple[float, ...]:
    """pi(m) = min(step (m - 1), most)."""
    found = [0.0, 0.0]
    while step > 0 and found[-1] < most:
        found.append(min(step * (len(found) - 1), most))
    return tuple(found)


def _network(nodes: Sequence[Node], sites: Sites | None) -> Network:
    """Latency and bandwidth between the sites of the nodes; where no network is known, events take no time."""
    if sites is None:
        return Network(site=(0,) * len(nodes), latency_s=((0.0,),), bandwidth_bps=((UNLIMITED_BPS,),))
    try:
        homes = [sites.node(node.id).site for node in nodes]
    except KeyError as error:
        raise FieldError(
            "network", error.args[0], "no such node is in it", remedy="add the node to the network"
        ) from None
    known = sorted(set(homes))
    links = [[sites.between(a, b) for b in known] for a in known]
    number = {site: position for position, site in enumerate(known)}
    return Network(
        site=tuple(number[home] for home in homes),
        latency_s=tuple(tuple(link.delay_ms * SECONDS_PER_MS for link in row) for row in links),
        bandwidth_bps=tuple(
            tuple(UNLIMITED_BPS if link.rate_mbps is None else link.rate_mbps * BITS_PER_MBIT for link in row)
            for row in links
        ),
    )


def dataflow_of(
    name: str, components: Sequence[Component], streams: Sequence[tuple[str, str]], numbers: Mapping[str, int]
) -> Dataflow:
    """The dataflow of a topology: a query for each component, in their order; `numbers`: node -> resource.

    Raises `FieldError` for a fact that is missing or wrong, and for a sensor's edge that does not exist.
    """
    position = {component.id: v for v, component in enumerate(components)}
    return Dataflow(
        name=name,
        queries=tuple(_query(component, numbers) for component in components),
        edges=tuple((position[a], position[b]) for a, b in streams),
    )


def limits_of(view: ClusterView, numbers: Mapping[str, int]) -> Limits:
    """Pins of components that are no source, and components of one list of `leeward.apart`; `numbers`: as above."""
    position = {component.id: v for v, component in enumerate(view.components)}
    return Limits(
        pinned={
            position[component.id]: frozenset(numbers[node] for node in component.pinned if node in numbers)
            for component in view.components
            if component.pinned and component.facts.get("kind") != "source"
        },
        rivals={
            position[name]: frozenset(position[other] for other in others)
            for name, others in sorted(rivals_of(view.apart).items())
        },
    )


def _query(component: Component, numbers: Mapping[str, int]) -> Query:
    facts, field = component.facts, f"component {component.id}: {{}}".format
    kind = _fact(field("kind"), facts, "kind")
    name = _fact(field("type"), facts, "type")
    check_one_of(field("type"), name, NAMES)
    source = kind == "source"
    return Query(
        type=NUMBER[name],
        selectivity=1.0 if source else _number(field("selectivity"), facts, "selectivity"),
        event_bytes=_number(field("event_bytes"), facts, "event_bytes"),
        kind=kind,
        rate=_number(field("rate"), facts, "rate") if source else None,
        pin=_sensor(field("pinned"), component, numbers) if source and component.pinned else None,
    )


def _fact(field: str, facts: Mapping[str, object], name: str) -> Any:
    if name not in facts:
        raise FieldError(field, None, "is missing", remedy="give it in the component's leeward.facts")
    return facts[name]


def _number(field: str, facts: Mapping[str, object], name: str) -> float:
    value = _fact(field, facts, name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FieldError(field, value, "is no number", remedy="give a number")
    return float(value)


def _sensor(field: str, component: Component, numbers: Mapping[str, int]) -> int:
    if len(component.pinned) > 1:
        raise FieldError(field, list(component.pinned), "a sensor is on one edge", remedy="name one node")
    name = component.pinned[0]
    if name not in numbers:
        reason = "there is no such node, or it drains"
        raise FieldError(field, name, reason, remedy="name the node that has the sensor")
    return numbers[name]


def components_of(dataflow: Dataflow, names: Sequence[str]) -> tuple[Component, ...]:
    """The components of a dataflow as they are submitted, one task each; `names`: resource -> node."""
    digits = len(str(len(dataflow.queries) - 1))
    return tuple(
        Component(
            id=f"q{v:0{digits}}",
            tasks=(v + 1,),
            stateful=query.kind != "source",
            source=query.kind == "source",
            max_replicas=1,
            pinned=() if query.pin is None else (names[query.pin],),
            facts=_facts(query),
        )
        for v, query in enumerate(dataflow.queries)
    )


def _facts(query: Query) -> dict[str, object]:
    kind: Kind = query.kind
    facts: dict[str, object] = {"kind": kind, "type": TYPES[query.type].name, "event_bytes": query.event_bytes}
    if kind == "source":
        return {**facts, "rate": query.rate}
    return {**facts, "selectivity": query.selectivity}
