"""`router=routed_by(...)` of a stateless bolt: the router by which its senders weigh the rotation over its replicas."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from streamparse.dsl.component import ComponentSpec

from leeward.core.errors import ConfigError
from leeward.core.policy import Router
from leeward.core.topology_conf import ROUTER, ROUTERS
from leeward.runtime.dsl.inputs import Receiver
from leeward.runtime.dsl.specs import BALANCED_CLASS
from leeward.runtime.named import load, located

log = logging.getLogger(__name__)

#: Entry points of routers, as `control/registry.py` finds them.
GROUP = "leeward.routers"


@dataclass(frozen=True, slots=True)
class Routing:
    """The router of a bolt's senders as the bolt's author wrote it."""

    router: str | type  #: its name, or its class
    options: Mapping[str, Any]  #: arguments of the class


def routed_by(router: str | type, **options: Any) -> Routing:
    """Each task that sends tuples to the bolt by `balanced()` learns which of its replicas is how far away.

    `router` is a name (an entry point in `leeward.routers`, or `module:Class`) or a class; `core.policy.Router` says
    what it has. `options` are its arguments, JSON values:

        router = routed_by("agiledart-thompson", slot_s=0.005)

    Give it as the class attribute `router`, or as `spec(router=...)`.
    """
    return Routing(router, options)


def router_conf(component: type, receiver: Receiver, routed: Mapping[Any, Any], given: object) -> Any:
    """The router that a spec gives, or else the class, as it travels; None if there is none.

    `routed`: the inputs with their groupings. Raises ConfigError for a router that cannot be made in a worker, and for
    a bolt without an input that a router may route.
    """
    own = getattr(component, "router", None)
    routing = given if given is not None else own if isinstance(own, Routing) else None
    if routing is None:
        return None
    name = receiver.name
    if not isinstance(routing, Routing):
        raise ConfigError(
            f"{name}: router is {routing!r:.60}, which routes nothing.",
            remedy="Write router=routed_by('agiledart-thompson', slot_s=0.005), say.",
        )
    java = [grouping.custom_object for grouping in routed.values()]
    if receiver.stateful or not any(one.full_class_name == BALANCED_CLASS for one in java):
        raise ConfigError(
            f"{name}: a router may only choose where any replica will do, and {name} has no such input.",
            remedy="Take the input of a stateless bolt by balanced(), or leave the router out.",
        )
    conf = {"router": _where(routing.router, name), "options": dict(routing.options)}
    _made(conf, f"{name}: router is {conf['router']}")
    return conf


def collected(specs: Iterable[ComponentSpec]) -> dict[str, Any]:
    """Component -> the router of its senders, from the specs of a topology."""
    confs = {str(spec.name): json.loads(spec.common.json_conf or "{}") for spec in specs}
    return {name: conf[ROUTER.name] for name, conf in confs.items() if ROUTER.name in conf}


def routers_of(conf: Mapping[str, Any], downstream: Iterable[str]) -> dict[str, Router]:
    """Component downstream -> its router, in a worker. Raises ConfigError if one cannot be imported or made."""
    all_of_them = conf.get(ROUTERS.name) or {}
    if ROUTER.name in conf and not all_of_them:
        log.warning("no sender has a router, as the topology's class is streamparse's: derive it from leeward.runtime")
    mine = {name: all_of_them[name] for name in downstream if name in all_of_them}
    return {name: _made(one, f"{name}: router is {one['router']}") for name, one in mine.items()}


def _where(router: Any, name: str) -> str:
    """`module:Class`."""
    if isinstance(router, str):
        return located(router, GROUP, "router")
    if not isinstance(router, type):
        raise ConfigError(
            f"{name}: router is an object, {router!r:.60}, which cannot travel to a worker.",
            remedy="Name its class, and give its arguments to routed_by.",
        )
    if router.__module__ == "__main__" or "<" in router.__qualname__:
        raise ConfigError(
            f"{name}: router is {router.__qualname__}, which a worker cannot import.",
            remedy="Define the class at the top of a module in src/.",
        )
    return f"{router.__module__}:{router.__qualname__}"


def _made(conf: Mapping[str, Any], use: str) -> Router:
    kind = load(conf["router"], use)
    for method in ("next_hop", "learn"):
        if not callable(getattr(kind, method, None)):
            raise ConfigError(
                f"{use}, which has no method {method}.", remedy="Give it the methods of leeward.core.policy.Router."
            )
    try:
        json.dumps(conf["options"])
        router: Router = kind(**conf["options"])
    except TypeError as error:
        raise ConfigError(f"{use}, which does not take its options ({error}).", remedy="See its class.") from error
    return router
