"""Namespaces and a relay that joins them, without a cluster, for tests that measure what the relay does."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leeward.core.network_document import parse_network
from leeward.local import processes
from leeward.local.network import namespaces
from leeward.local.network.alone import NetworkAlone
from leeward.local.network.sockets import datagrams, within
from leeward.local.network.statistics import Statistics
from tests.helpers.servers import port_block

BASE = port_block()


class Net(NetworkAlone):
    """With counters and sockets."""

    def statistics(self) -> Statistics:
        assert self.relay is not None
        relay = processes.process_of(self.relay.pid)
        assert relay is not None
        return self.emulation.statistics(relay)

    def datagrams(self, node: str) -> socket.socket:
        return datagrams(self.emulation.end(node))

    def connected(self, source: str, target: str, port: int = 0) -> tuple[socket.socket, socket.socket]:
        """Both ends of a TCP connection to a port; 0: any."""
        address = self.emulation.end(target).address
        with within(self.emulation.end(target), lambda: socket.create_server((address, port))) as server:
            port = server.getsockname()[1]
            client = within(self.emulation.end(source), lambda: socket.create_connection((address, port), 10))
            return client, server.accept()[0]


@contextlib.contextmanager
def net(folder: Path, document: dict[str, Any], base_port: int = BASE) -> Iterator[Net]:
    found = Net(folder, parse_network(document), base_port=base_port)
    with found.running():
        yield found
    assert namespaces.left(folder) == []
