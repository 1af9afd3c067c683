"""Carries the acts of people to ZooKeeper, by the ports that the services of the topologies have open anyway.

Every method may wait for a server, so none may be called in an event loop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from leeward.control.observe import status_of
from leeward.control.ports import EventSink, Ports, TopologyPorts
from leeward.control.report.history import read_entries
from leeward.control.report.values import Reconfiguration
from leeward.control.snapshot import nodes_of
from leeward.core.errors import ClusterRefusedError, ConfigError, NotReadyError, ProtocolError
from leeward.core.outcome import Outcome
from leeward.core.settings import Chosen


class Desk:
    """See the module. For several threads."""

    def __init__(self, sink: EventSink) -> None:
        self._sink, self._lock = sink, threading.Lock()
        self._ports: dict[str, Ports] = {}
        self._settings: Chosen | None = None
        self._open: dict[str, TopologyPorts] = {}

    @contextmanager
    def serving(self, topology: str, ports: Ports) -> Iterator[None]:
        """While the service of this topology has these ports open."""
        with self._lock:
            self._ports[topology] = ports
        try:
            yield
        finally:
            with self._lock:
                if self._ports.get(topology) is ports:  # another may have begun to serve it under the same name
                    del self._ports[topology]
                    self._open.pop(topology, None)

    def choose(self, settings: Chosen) -> None:
        """These settings are in force from now on."""
        self._settings = settings

    @property
    def settings(self) -> Chosen:
        """In force. Raises NotReadyError before the first ones are."""
        if self._settings is None:
            raise NotReadyError("the service has not begun yet.", remedy="Ask again in a second.")
        return self._settings

    def served(self) -> dict[str, Ports]:
        """Topology -> the ports that its service has open."""
        with self._lock:
            return dict(self._ports)

    def ports(self, topology: str) -> Ports:
        """Those of its service. They open the topology once: a lock that is opened hears of the session from then on.

        Raises NotReadyError.
        """
        return replace(self._served(topology), open_topology=lambda _: self._topology(topology))

    def ask(self, topology: str, act: str, request: Mapping[str, object]) -> str:
        """Leave a request for the topology's leader; its id. Raises ClusterRefusedError, NotReadyError."""
        name = self._topology(topology).requests.ask(request)
        self._sink.emit("asked", {"topology": topology, "act": act, "request": name})
        return name

    def answer(self, topology: str, request: str, wake: Callable[[], None] | None = None) -> Outcome | None:
        """Of a request; None while there is none, and then `wake` is called when it comes."""
        return self._topology(topology).requests.answer_to(request, wake)

    def history(self, topology: str) -> tuple[Reconfiguration, ...]:
        """The stored reconfigurations, oldest first."""
        return read_entries(list(self._topology(topology).history.read()))

    def status(self, topology: str) -> dict[str, object]:
        """As `leeward status` tells it. Raises NotReadyError, ClusterRefusedError, ConfigError."""
        return status_of(topology, self.ports(topology))

    def drain(self, node: str, draining: bool) -> None:
        """Set or clear the flag of a node. Raises ConfigError for a node without a supervisor that is to drain."""
        with self._lock:
            ports = next((self._ports[name] for name in sorted(self._ports)), None)
        if ports is None:
            raise NotReadyError("no topology is served.", remedy="Use leeward drain, or submit a topology first.")
        text = ports.cluster.snapshot(_nobody)
        known = _nodes(text)
        if node not in known and (draining or node not in ports.cluster.draining()):
            raise ConfigError(f"node {node!r} has no supervisor.", remedy=f"Name one of {known[:20]}.")
        ports.cluster.set_draining(node, draining)
        self._sink.emit("node_drains" if draining else "node_undrained", {"node": node})

    def _served(self, topology: str) -> Ports:
        with self._lock:
            ports = self._ports.get(topology)
        if ports is None:
            raise NotReadyError(f"topology {topology!r} is not served here now.", remedy="Ask again when it is.")
        return ports

    def _topology(self, topology: str) -> TopologyPorts:
        ports = self._served(topology)
        with self._lock:
            opened = self._open.get(topology)
        if opened is None:
            opened = ports.open_topology(ports.nimbus.structure(topology))
            opened.lock.release()  # it is not held: it hears of the session no more
            with self._lock:
                if self._ports.get(topology) is ports:
                    self._open[topology] = opened
        return opened


def _nodes(text: str | None) -> list[str]:
    """Nodes of the plugin's snapshot that have a supervisor."""
    try:
        return nodes_of(text)
    except ProtocolError as error:
        raise ClusterRefusedError(str(error)) from None


def _nobody() -> None:
    """Wakes nobody."""
