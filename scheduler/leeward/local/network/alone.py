"""Namespaces and the relay that joins them, without a cluster: for experiments whose processes are their own."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from leeward.core.network import Network
from leeward.local.errors import FolderError, StartError
from leeward.local.layout import RELAY, ClusterSpec
from leeward.local.network import namespaces
from leeward.local.network.emulation import Emulation
from leeward.local.places import kept

#: Until the relay serves, and until it has ended, s.
START_S, END_S = 20.0, 10.0


class NetworkAlone:
    """See the module. `base_port` chooses the subnet."""

    def __init__(self, folder: Path, network: Network, *, base_port: int) -> None:
        self.folder, self.network = folder, network
        self.emulation = Emulation(ClusterSpec(dir=folder, base_port=base_port, network=network))
        self.relay: subprocess.Popen[bytes] | None = None

    @contextmanager
    def running(self) -> Iterator[None]:
        """Raises NotInstalledError where no network can be emulated, FolderError, PortsTakenError and StartError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._claimed(), ExitStack() as stack:
            self.emulation.check(kept())
            stack.callback(namespaces.remove, self.folder)
            stack.callback(self.stop)
            self.emulation.create()
            self.start()
            yield

    @contextmanager
    def _claimed(self) -> Iterator[None]:
        """The namespaces are named after the folder, so another run there would end with them. Raises FolderError."""
        with (self.folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise FolderError(
                    f"dir: another run has its network in {self.folder}.", remedy="End it, or give another --dir."
                ) from None
            yield

    def change(self, network: Network) -> None:
        """To other links between the same nodes; the relay is away for a moment, and loses what comes meanwhile."""
        self.stop()
        self.network = network
        self.emulation.reconfigure(network)
        self.start()

    def start(self) -> None:
        """The relay, after it has ended. Raises StartError."""
        self.relay = subprocess.Popen(self.emulation.command_of(RELAY, kept(), []), start_new_session=True)
        until = time.monotonic() + START_S
        while not self.emulation.relay_ready:
            if self.relay.poll() is not None or time.monotonic() > until:
                raise StartError("network: the relay does not start.", remedy="See what it printed.")
            time.sleep(0.002)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int | None:
        """End the relay by a signal; its exit code, None if it does not run. The namespaces stay."""
        relay, self.relay = self.relay, None
        if relay is None:
            return None
        relay.send_signal(number)
        try:
            return relay.wait(END_S)
        except subprocess.TimeoutExpired:
            relay.kill()
            return relay.wait(END_S)
