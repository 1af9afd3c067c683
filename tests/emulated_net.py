"""Namespaces and a relay that joins them, without a cluster, for tests that measure what the relay does."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from servers import port_block

from leeward.core.network import Network
from leeward.core.network_document import parse_network
from leeward.local import ClusterSpec, processes
from leeward.local.layout import RELAY
from leeward.local.network import namespaces
from leeward.local.network.emulation import Emulation
from leeward.local.network.sockets import datagrams, within
from leeward.local.network.statistics import Statistics
from leeward.local.places import kept

BASE = port_block()


class Net:
    """Namespaces and a relay, without a cluster."""

    def __init__(self, folder: Path, network: Network, base_port: int = BASE) -> None:
        self.network, self.spec = network, ClusterSpec(dir=folder, base_port=base_port, network=network)
        self.emulation = Emulation(self.spec)
        folder.mkdir(exist_ok=True)
        self.emulation.check(kept())
        self.emulation.create()
        self.start()

    def start(self) -> None:
        """The relay."""
        self.child = subprocess.Popen(self.emulation.command_of(RELAY, kept(), []))
        until = time.monotonic() + 10
        while not self.emulation.relay_ready:
            assert self.child.poll() is None and time.monotonic() < until
            time.sleep(0.01)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.child.send_signal(number)
        return self.child.wait(10)

    def statistics(self) -> Statistics:
        relay = processes.process_of(self.child.pid)
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
    running = Net(folder, parse_network(document), base_port)
    try:
        yield running
    finally:
        if running.child.poll() is None:
            running.stop()
        namespaces.remove(folder)
        assert namespaces.left(folder) == []
