"""Answers to samples: datagrams straight from a replica to the sender of its tuples.

A sample names the address to answer to, so nothing is looked up anywhere. A datagram is `LWR`, version (1 byte), the
sender's secret (16 bytes), the replica's task (4 bytes), the sample's number (8 bytes), and two times in seconds
(8 bytes each): for one tuple at the replica, and from there to the sink. Big endian. A datagram that is lost costs a
sample, and one that is forged or damaged is dropped.
"""

from __future__ import annotations

import hmac
import json
import logging
import secrets
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

log = logging.getLogger(__name__)

VERSION = 1
_MAGIC = b"LWR"
#: A name that was not found is asked for again so much later, s.
AGAIN_S = 10.0
_ANSWER = struct.Struct(">3sB16sIQdd")


@dataclass(frozen=True, slots=True)
class Answer:
    """A replica's answer to a sample."""

    task: int
    number: int  #: of the sample
    at: float  #: time.monotonic() when it came, s
    service_s: float
    ahead_s: float


class Returns:
    """The sender's end. Raises OSError if it cannot listen there."""

    def __init__(self, host: str) -> None:
        """`host`: the name by which the replicas' nodes reach this one."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            # as `handover/direct.py`: a name of this machine alone is reached from this machine alone
            self._socket.bind((host if host.startswith("127.") else "", 0))
        except OSError:
            self._socket.close()
            raise
        self._secret = secrets.token_bytes(16)
        #: for the body of a sample
        self.address = json.dumps([host, self._socket.getsockname()[1], self._secret.hex()], separators=(",", ":"))

    def next(self, wait_s: float) -> Answer | None:
        """The next answer; None after so long, or for a datagram that is none. Raises OSError once it is closed."""
        self._socket.settimeout(max(0.0, wait_s) or 1e-3)
        try:
            data = self._socket.recv(_ANSWER.size + 1)
        except TimeoutError:
            return None
        at = time.monotonic()
        if len(data) != _ANSWER.size:
            return None
        magic, version, secret, task, number, service_s, ahead_s = _ANSWER.unpack(data)
        if (magic, version) != (_MAGIC, VERSION) or not hmac.compare_digest(secret, self._secret):
            return None
        return Answer(task, number, at, service_s, ahead_s)

    def close(self) -> None:
        """Nobody can answer any more."""
        self._socket.close()


class Answers:
    """A replica's end. Answers never wait; one that cannot be sent is a lost one."""

    def __init__(self, task: int, *, service_s: Callable[[], float], ahead_s: Callable[[], float]) -> None:
        """`service_s`: the time for one tuple here; `ahead_s`: from here to the sink, 0 if that is not known."""
        self._task, self._service_s, self._ahead_s = task, service_s, ahead_s
        self._socket: socket.socket | None = None
        self._hosts: dict[str, str] = {}  # name -> address, as a name may be asked for on the network
        self._asked_again: dict[str, float] = {}  # name that was not found -> when it is asked for again
        self._failed = False

    def answer(self, number: int, address: str) -> None:
        """All that came before the sample of this number is processed."""
        host, port, secret = json.loads(address)
        numbers = self._task, number, self._service_s(), self._ahead_s()
        data = _ANSWER.pack(_MAGIC, VERSION, bytes.fromhex(secret), *numbers)
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                self._socket.setblocking(False)
            if host not in self._hosts and not self._find(host):
                return
            self._socket.sendto(data, (self._hosts[host], port))
        except OSError as failure:  # the sender takes silence for a slow replica
            if not self._failed:
                log.warning("task %d cannot answer the samples of %s:%s: %s", self._task, host, port, failure)
            self._failed = True

    def _find(self, host: str) -> bool:
        """Ask for its address; not again for a while after it was not found, as an answer may take seconds."""
        if time.monotonic() < self._asked_again.get(host, 0.0):
            return False
        try:
            self._hosts[host] = socket.gethostbyname(host)
        except OSError:
            self._asked_again[host] = time.monotonic() + AGAIN_S
            raise
        return True


class Recent:
    """Mean time for a tuple over the last quarter of a second or more in which there were any, s."""

    def __init__(self, tuples: Callable[[], int], busy_s: Callable[[], float], clock: Callable[[], float]) -> None:
        self._tuples, self._busy_s, self._clock = tuples, busy_s, clock
        self._begin = (clock(), 0, 0.0)
        self._mean = 0.0

    def mean_s(self) -> float:
        """0 until a tuple was processed."""
        now, (began, tuples, busy) = self._clock(), self._begin
        more = self._tuples() - tuples
        if more and (now - began >= 0.25 or not self._mean):
            self._mean = (self._busy_s() - busy) / more
            self._begin = now, tuples + more, self._busy_s()
        return self._mean
