"""Rates of an emulated network, for experiments: a relay between nodes and agents that delays what agents send."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

#: Bytes that are relayed at once, and time for which an idle link may catch up, s.
CHUNK, CREDIT_S = 32 * 1024, 0.02


class Link:
    """An uplink or a download, of rate bytes/s, which all connections share: bytes pass one after the other."""

    def __init__(self, rate: float) -> None:
        self._rate, self._free, self._lock = rate, 0.0, threading.Lock()

    def reserve(self, size: int) -> float:
        """When these bytes have passed (monotonic time, s)."""
        with self._lock:
            self._free = max(self._free, time.monotonic() - CREDIT_S) + size / self._rate
            return self._free


@dataclass(frozen=True, slots=True, kw_only=True)
class Relayed:
    """One port of the relay: a node reaches an agent there. Links are named by numbers."""

    port: int
    agent: int  #: its port
    uplink: int
    download: int


def relay(ports: Sequence[Relayed], rates: Sequence[float]) -> None:
    """Serve all ports until this process ends. `rates`: of each link, bytes/s."""
    links = [Link(rate) for rate in rates]
    for one in ports:
        server = socket.create_server(("127.0.0.1", one.port))
        shaped = (links[one.uplink], links[one.download])
        threading.Thread(target=_accept, args=(server, one.agent, shaped), daemon=True).start()
    threading.Event().wait()


def _accept(server: socket.socket, agent: int, shaped: tuple[Link, ...]) -> None:
    while True:
        near, _ = server.accept()
        try:
            far = socket.create_connection(("127.0.0.1", agent))
        except OSError:  # as of a node that is down
            near.close()
            continue
        for pump in (partial(_pump, near, far, ()), partial(_pump, far, near, shaped)):
            threading.Thread(target=pump, daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket, links: tuple[Link, ...]) -> None:
    """Bytes of one direction, until either side has closed."""
    room = memoryview(bytearray(CHUNK))
    with suppress(OSError):
        while got := source.recv_into(room):
            if links:
                until = max(link.reserve(got) for link in links)
                time.sleep(max(0.0, until - time.monotonic()))
            sink.sendall(room[:got])
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        end.close()
