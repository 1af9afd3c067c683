"""The emulated network of one cluster: its files, its namespaces, its relay, and commands inside its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from leeward.core.network import Network
from leeward.local import native
from leeward.local.layout import RELAY, ClusterSpec
from leeward.local.network import namespaces
from leeward.local.network.plan import End, end_of, ends_of, hosts, inside, relay_config
from leeward.local.network.routes import Routes, check_path
from leeward.local.network.statistics import Statistics, fetch_statistics
from leeward.local.processes import Process

#: Parts of one program: each has the static names of those before it.
_SOURCES = ("pipes.c", "relay.c")


class Emulation:
    """Of a cluster whose spec has a network that is emulated."""

    def __init__(self, spec: ClusterSpec) -> None:
        assert spec.network is not None
        self._spec, self._network = spec, spec.network
        self.ends: tuple[End, ...] = ends_of(spec)
        folder = spec.dir / "network"
        self._config, self._hosts = folder / "relay.conf", folder / "hosts"
        self._statistics = folder / "statistics.json"
        self.control = folder / "control.sock"  #: the relay's socket for routes, if the network has a public one

    def check(self, kept: Path) -> None:
        """Before anything is changed. Raises NotInstalledError, and ConfigError for a run folder of too long a path."""
        namespaces.check_possible()
        if self._network.public is not None:
            check_path(self.control)
        relay_program(kept)

    def create(self) -> None:
        """Write the files into the run folder, and make namespaces and devices. Raises PortsTakenError, StartError."""
        namespaces.check_subnet(self.ends)
        self._config.parent.mkdir(exist_ok=True)
        self._config.write_text(relay_config(self._network, self.ends))
        self._hosts.write_text(hosts(self.ends))
        namespaces.create(self._spec.dir, self.ends, self._network.mtu)

    def reconfigure(self, network: Network) -> None:
        """Other links between the same nodes, from the next start of the relay on."""
        self._network = network
        self._config.write_text(relay_config(network, self.ends))

    def command_of(self, daemon: str, kept: Path, command: Sequence[str]) -> list[str]:
        """The command line of a daemon at its place."""
        if daemon == RELAY:
            self._statistics.unlink(missing_ok=True)  # its return says that the relay is ready
            control = [] if self._network.public is None else [str(self.control)]
            return [str(relay_program(kept)), str(self._config), str(self._statistics), *control]
        return inside(end_of(self._spec, daemon), self._hosts, command)

    def end(self, node: str) -> End:
        """The end of a node; raises KeyError."""
        return {end.node: end for end in self.ends}[node]

    def inside(self, node: str, command: Sequence[str]) -> list[str]:
        """The command line that runs a command inside a node."""
        return inside(self.end(node), self._hosts, command)

    @property
    def relay_ready(self) -> bool:
        """The relay has opened all devices."""
        return self._statistics.exists()

    def routes(self) -> Routes:
        """Changes the routes of the running relay. Raises ConfigError without a public network."""
        return Routes(self._network, self.ends, self.control)

    def statistics(self, relay: Process) -> Statistics:
        """The relay's counters. Raises NotReadyError if it does not answer."""
        return fetch_statistics(relay, self._statistics, self.ends)


def relay_program(kept: Path) -> Path:
    """The compiled relay. Raises NotInstalledError without a compiler."""
    target = kept / "native" / "relay"
    return native.built(_source(), target, ["-lm"], name="relay", without=", so no network can be emulated")


def _source() -> bytes:
    folder = files("leeward.local.network")
    parts = [f'#line 1 "{name}"\n'.encode() + folder.joinpath(name).read_bytes() for name in _SOURCES]
    return b"".join(parts)
