"""Namespaces and the relay that joins them, without a cluster: for experiments whose processes are their own."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leeward.core.network import Network
from leeward.local.errors import StartError
from leeward.local.layout import RELAY, ClusterSpec
from leeward.local.network import namespaces
from leeward.local.network.emulation import Emulation
from leeward.local.places import kept

#: Until the relay serves, and until it has ended, s.
START_S, END_S = 20.0, 10.0


class NetworkAlone:
    """See the module. `base_port` chooses the subnet."""

    def __init__(self, folder: Path, network: Network, *, base_port: int) -> None:
        self.folder = folder
        self.emulation = Emulation(ClusterSpec(dir=folder, base_port=base_port, network=network))
        self._child: subprocess.Popen[bytes] | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Raises NotInstalledError where no network can be emulated, PortsTakenError and StartError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.emulation.check(kept())
        try:
            self.emulation.create()
            self._start()
            yield
        finally:
            self._stop()
            namespaces.remove(self.folder)

    def change(self, network: Network) -> None:
        """To other links between the same nodes; the relay is away for a moment, and loses what comes meanwhile."""
        self._stop()
        self.emulation.reconfigure(network)
        self._start()

    def _start(self) -> None:
        self._child = subprocess.Popen(self.emulation.command_of(RELAY, kept(), []), start_new_session=True)
        until = time.monotonic() + START_S
        while not self.emulation.relay_ready:
            if self._child.poll() is not None or time.monotonic() > until:
                raise StartError("network: the relay does not start.", remedy="See what it printed.")
            time.sleep(0.002)

    def _stop(self) -> None:
        if self._child is not None:
            self._child.terminate()
            self._child.wait(END_S)
            self._child = None
