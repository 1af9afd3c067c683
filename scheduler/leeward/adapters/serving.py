"""Services on real servers: for one topology, or for all of the cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, closing

from leeward.adapters.clock import SystemClock
from leeward.adapters.nimbus import NimbusClient
from leeward.adapters.wiring import Addresses, open_ports
from leeward.control.fleet import Fleet
from leeward.control.ports import Clock, EventSink, Ports
from leeward.control.presence import patiently
from leeward.control.registry import Policies
from leeward.control.reservations import Reservations
from leeward.control.service import Service
from leeward.core.collecting import seldom_collected
from leeward.core.errors import ConfigError
from leeward.core.settings import Chosen

#: Told of the ports of a topology, for as long as they are open.
Opened = Callable[[str, Ports], AbstractContextManager[None]]


def serve_one(
    topology: str,
    addresses: Addresses,
    chosen: Chosen,
    policies: Policies,
    sink: EventSink,
    stop: threading.Event,
    *,
    reservations: Reservations | None = None,
    clock: Clock | None = None,
    follow: bool = True,
    opened: Opened | None = None,
) -> None:
    """Until `stop`, or until the topology is gone; `follow`: and does not run under another id either.

    `opened(topology, ports)` is entered while its ports are open. `reservations` and `clock`: those of all topologies
    that this process serves.

    Waits while a server does not answer. Raises ConfigError if the topology does not run, or is not Leeward's.
    """
    gone = False
    try:
        _serve_one(
            topology, addresses, chosen, policies, sink, stop, reservations=reservations, clock=clock, follow=follow,
            opened=opened,
        )  # fmt: skip
        gone = not stop.is_set()
    finally:
        policies.forget(topology, gone=gone)


def _serve_one(
    topology: str, addresses: Addresses, chosen: Chosen, policies: Policies, sink: EventSink, stop: threading.Event, *,
    reservations: Reservations | None, clock: Clock | None, follow: bool, opened: Opened | None,
) -> None:  # fmt: skip
    settings = chosen.of(topology).service
    served: Service | None = None
    while not stop.is_set() and (served is None or (follow and served.successor)):
        with ExitStack() as stack:

            def open_all(stack: ExitStack = stack) -> Ports:
                return stack.enter_context(
                    open_ports(
                        topology, addresses, session_s=settings.session_s, sink=sink, network=settings.network,
                        clock=clock,
                    )
                )  # fmt: skip

            ports = patiently(open_all, stop, lambda why: sink.emit("waiting", {"topology": topology, "why": why}))
            if ports is not None:
                if opened is not None:
                    stack.enter_context(opened(topology, ports))
                served = Service(
                    topology=topology, ports=ports, settings=settings, policy=policies.of(topology),
                    reservations=reservations,
                )  # fmt: skip
                served.run(stop)


def serve_all(
    addresses: Addresses, chosen: Chosen, policies: Policies, sink: EventSink, stop: threading.Event, *,
    opened: Opened | None = None,
) -> None:  # fmt: skip
    """Every topology whose components are all Leeward's, until `stop`."""
    reservations = Reservations(chosen.service.at_once)
    clock = SystemClock()  # one, as turns are given by the times at which several topologies ask
    sink.emit("serving", {})
    with closing(NimbusClient(addresses.nimbus)) as nimbus, seldom_collected():

        def is_ours(name: str) -> bool:
            try:
                return all(component.kind for component in nimbus.structure(name).components)
            except ConfigError:  # it was killed a moment ago
                return False

        def serve(name: str, stop: threading.Event) -> None:
            serve_one(
                name, addresses, chosen, policies, sink, stop, reservations=reservations, clock=clock, follow=False,
                opened=opened,
            )  # fmt: skip

        look_s = chosen.service.look_s
        Fleet(nimbus=nimbus, is_ours=is_ours, serve=serve, sink=sink, look_s=look_s).run(stop)
