"""The routes of a component in a worker (`runtime/routing/`), from its topology's configuration."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Protocol

from leeward.core.route import Route
from leeward.core.topology_conf import DIRECT
from leeward.runtime.dsl.routers import routers_of
from leeward.runtime.pipe.pipe import PipeSerializer
from leeward.runtime.routing.returns import Returns
from leeward.runtime.routing.routes import Routes, Sender

log = logging.getLogger(__name__)


class Component(Protocol):
    """The part of `elastic.Elastic` that is used here."""

    task_id: int
    component_name: str
    _protocol: Any
    _post: Callable[[Callable[[], None]], None]
    _emit_marker: Callable[[list[Any]], None]
    serializer: PipeSerializer


def routes_of(component: Any, conf: Mapping[str, Any], downstream: Sequence[str], host: str) -> Routes | None:
    """The routes of this task; None if no component downstream has a router. `host`: where other tasks reach it.

    Raises ConfigError for a router that cannot be imported or made.
    """
    routers = routers_of(conf, downstream)
    if not routers:
        return None
    name = f"task {component.task_id} of {component.component_name}"
    if not host:
        log.warning("%s uses no router, as %s is false: replicas cannot answer it", name, DIRECT.name)
        return None
    try:
        returns = Returns(host)
    except OSError as failure:
        log.warning("%s uses no router: it cannot be reached at %r (%s)", name, host, failure)
        return None
    return Routes(_sender(component, name), _seeded(routers, f"{conf['storm.id']}/{component.task_id}"), returns)


def _seeded(routers: Mapping[str, Any], seed: str) -> dict[str, Route]:
    """Senders choose apart from each other, and a task as before when it starts anew."""
    return {name: Route(router, Random(f"{seed}/{name}")) for name, router in routers.items()}


def _sender(component: Component, name: str) -> Sender:
    return Sender(
        name=name,
        works=lambda: component._protocol.open and component._protocol.works,
        emitted=component.serializer.emitted,
        emit=component._emit_marker,
        post=component._post,
    )
