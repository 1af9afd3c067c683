"""A topology as a task (SLA): the facts of its components, and back.

A topology is a chain: a source that is pinned to the node where its data is, services, and a sink that is pinned to the
node of delivery.  Facts of a component (key `leeward.facts`):

    mbps: Mbit/s of the events that it emits (not of the sink)
    service: its number;  cpu: units of CPU that it needs at the wanted rate (of a service)
    max_null;  price: $ for each byte delivered (of the source; 1 each, if left out)
    rate: events/s of the source;  event_bytes, selectivity: as the bolts of `bolts/dataflow` read them

A service may be pinned to several nodes; nodes that drain run none, and components of one list of `leeward.apart` share
no node.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from typing import Any

from leeward.core.fields import FieldError
from leeward.core.model import Component
from leeward.policies.bimodal.model.stream_file import HEADROOM, Stream
from leeward.policies.bimodal.model.values import Task

#: In the name of a task between the topology's id and the number of the try, from the second on.
TRY = "/try-"


def topology_of(task: str) -> str:
    """The id of a task's topology."""
    return task.partition(TRY)[0]


def task_of(
    name: str, components: Sequence[Component], streams: Sequence[tuple[str, str]], servers: Mapping[str, int], *,
    draining: Collection[str] = (), apart: Sequence[Sequence[str]] = (),
) -> Task:  # fmt: skip
    """The task of a topology; `servers`: node -> number. Raises `FieldError` for facts that are missing or wrong, and
    for a source or sink whose node drains.
    """
    chain = chain_of(components, streams)
    source, services, sink = chain[0], chain[1:-1], chain[-1]
    place = {component.id: number for number, component in enumerate(chain)}
    pairs = {tuple(sorted((place[a], place[b]))) for names in apart for a, b in combinations(sorted(set(names)), 2)}
    pins = tuple(_pins(one, servers) for one in services)
    return Task(
        name=name,
        source=_server(source, servers, draining),
        delivery=_server(sink, servers, draining),
        services=tuple(_whole(one, "service") for one in services),
        cpu=tuple(_number(one, "cpu") for one in services),
        bandwidth=tuple(HEADROOM * _number(one, "mbps") for one in chain[:-1]),
        max_null=_whole(source, "max_null", 1),
        price=_number(source, "price", 1),
        pins=pins if any(pins) else (),
        barred=tuple(sorted(servers[node] for node in draining if node in servers)),
        apart=tuple((a, b) for a, b in sorted(pairs)),
    )


def chain_of(components: Sequence[Component], streams: Sequence[tuple[str, str]]) -> tuple[Component, ...]:
    """Source, services and sink in the order of the stream. Raises `FieldError` if they are no chain."""
    after = dict(streams)
    by_id = {component.id: component for component in components}
    sources = [component.id for component in components if component.source]
    found = sources[:1]
    while found and found[-1] in after and len(found) <= len(components):
        found.append(after[found[-1]])
    if len(sources) != 1 or len(after) != len(streams) or sorted(found) != sorted(by_id) or len(found) < 3:
        raise FieldError(
            "components", [component.id for component in components], "are no chain of a source, services and a sink",
            remedy="give each component one input",
        )  # fmt: skip
    return tuple(by_id[id] for id in found)


def _server(component: Component, servers: Mapping[str, int], draining: Collection[str]) -> int:
    field = f"component {component.id}: pinned"
    if len(component.pinned) != 1:
        raise FieldError(field, list(component.pinned), "a source or sink is on one node", remedy="name one node")
    node = component.pinned[0]
    if node not in servers:
        raise FieldError(field, node, "has no agent", remedy="name it in the file of the agents")
    if node in draining:
        raise FieldError(field, node, "drains", remedy="undrain it, or submit the topology with another pin")
    return servers[node]


def _pins(component: Component, servers: Mapping[str, int]) -> tuple[int, ...]:
    found = tuple(sorted(servers[node] for node in component.pinned if node in servers))
    if component.pinned and not found:
        field, value = f"component {component.id}: pinned", list(component.pinned)
        raise FieldError(field, value, "none has an agent", remedy="name one of the file of the agents")
    return found


def _number(component: Component, name: str, default: float | None = None) -> float:
    field, value = f"component {component.id}: {name}", component.facts.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FieldError(field, value, "is no number", remedy="give it in the component's leeward.facts")
    return float(value)


def _whole(component: Component, name: str, default: int | None = None) -> int:
    value = _number(component, name, default)
    if not value.is_integer():
        raise FieldError(f"component {component.id}: {name}", value, "is no whole number", remedy="give one")
    return int(value)


def components_of(stream: Stream) -> tuple[Component, ...]:
    """The components of a task as they are submitted, in the order of the stream."""
    last = len(stream.services)
    source = {"mbps": stream.mbps[0], "rate": stream.rate, "max_null": stream.max_null, "price": stream.price}
    return (
        _component(0, {**source, "event_bytes": stream.event_bytes(0)}, source=True, pinned=stream.source),
        *(
            _component(
                i + 1,
                {
                    "service": service, "cpu": stream.cpu[i], "mbps": stream.mbps[i + 1],
                    "event_bytes": stream.event_bytes(i + 1), "selectivity": 1.0,
                },
            )
            for i, service in enumerate(stream.services)
        ),
        _component(last + 1, {}, pinned=stream.delivery),
    )  # fmt: skip


def _component(number: int, facts: Mapping[str, Any], *, source: bool = False, pinned: str = "") -> Component:
    return Component(
        id=f"c{number:02}", tasks=(number + 1,), stateful=not source, source=source, max_replicas=1,
        pinned=(pinned,) if pinned else (), facts=dict(facts),
    )  # fmt: skip
