"""Routes of an emulated network that has a public one: which TCP connections take dedicated links. The relay's client.

A route holds from the next packet on, for connections that are open, too: packets under way arrive where they are, and
TCP puts them in order. A relay that was started anew knows no routes.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path

from leeward.core.errors import ConfigError, NotReadyError
from leeward.core.network import Network
from leeward.local.network.plan import End, numbers_of, pipes_of, words

#: Bytes of the path of a Unix socket, at most.
_PATH_BYTES = 107
_WAIT_S = 5.0


class Routes:
    """Tells the relay by its control socket. Any process that may write to the run folder can have one."""

    def __init__(self, network: Network, ends: Sequence[End], socket_path: Path) -> None:
        """Raises ConfigError if the network has no public one, or the path is too long for a socket."""
        if network.public is None:
            raise ConfigError(
                "network: it has no public network, so its routes do not change.", remedy="Add [public] uplink_mbps."
            )
        check_path(socket_path)
        self._path, self._numbers, self._pipes = socket_path, numbers_of(ends), pipes_of(network, ends)

    def set(self, a: str, b: str, port: int, way: Sequence[str] = ()) -> None:
        """Make TCP packets from or to `port` between two nodes take a way, in both directions; replaces an earlier one.

        `way`: the nodes from `a` to `b` in the order in which dedicated links lead from one to the next; packets back,
        and with them acknowledgements, take it in the reverse order. Empty: over the public network. Raises ConfigError
        for a hop that no dedicated link joins, an unknown node, or a way between others; NotReadyError if the relay
        does not listen.
        """
        if way and (way[0], way[-1]) != (a, b):
            raise ConfigError(f"way: {list(way)} is not from {a!r} to {b!r}.", remedy="Begin and end with these.")
        there, back = self._addresses(a, b, port)
        ways = (self._pipes.over(way), self._pipes.over(way[::-1])) if way else self._usual(a, b)
        self._tell(f"route {there} {words(ways[0])}", f"route {back} {words(ways[1])}")

    def clear(self, a: str, b: str, port: int) -> None:
        """Make them take the usual way again, also if there is no route. Raises ConfigError, NotReadyError as `set`."""
        self._tell(*(f"unroute {address}" for address in self._addresses(a, b, port)))

    def _usual(self, a: str, b: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return self._pipes.ways[a, b], self._pipes.ways[b, a]

    def _addresses(self, a: str, b: str, port: int) -> tuple[str, str]:
        """Both directions, in the relay's numbers."""
        for node in (a, b):
            if node not in self._numbers:
                raise ConfigError(f"route: {node!r} is no node.", remedy=f"There are: {', '.join(self._numbers)}.")
        if a == b or not 0 < port < 65536:
            raise ConfigError(f"route: {a!r} to {b!r}, port {port}: is none.", remedy="Give two nodes and a TCP port.")
        return f"{self._numbers[a]} {self._numbers[b]} {port}", f"{self._numbers[b]} {self._numbers[a]} {port}"

    def _tell(self, *lines: str) -> None:
        """In one datagram: both directions change at once."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
            made.settimeout(_WAIT_S)
            try:
                made.sendto("\n".join(lines).encode(), str(self._path))
            except OSError as error:
                raise NotReadyError(
                    f"relay: it does not listen at {self._path} ({error.strerror or error}).",
                    remedy="See logs/relay.out in the run folder.",
                ) from None


def check_path(path: Path) -> None:
    """Raise ConfigError if a socket cannot have this path."""
    size = len(os.fsencode(path))
    if size > _PATH_BYTES:
        raise ConfigError(
            f"dir: the socket {path} has a path of {size} bytes, at most {_PATH_BYTES} are possible.",
            remedy="Give a shorter --dir.",
        )
