"""Servers that decide together by messages, without a centre.

A peer is a pure state machine: messages and time in, messages out.  Shells deliver them: over sockets
(`adapters/peers.py`), or within one process in experiments and tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple, Protocol


class Send(NamedTuple):
    """A message to a server by its number, the sender itself included; to a client, whose numbers are below 0."""

    to: int
    message: Any


class Letter(NamedTuple):
    """A message of a client to a server."""

    to: int
    message: Any
    answered: bool  #: the server sends an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """All that a client needs to write to peers."""

    kinds: Sequence[type]  #: the protocol's types of messages, in the order of their numbers
    addresses: Mapping[int, tuple[str, int]]  #: server -> host and port; empty: one that the service's command knows
    key: bytes  #: the secret that all share; empty: as above


class Peer(Protocol):
    """One server's part. Reads no clock and draws from `rng` alone; `now` in seconds, never going back."""

    me: int

    def receive(self, sender: int, message: Any, now: float, rng: Random) -> Sequence[Send]:
        """Take one message in; the messages that follow from it."""

    def tick(self, now: float, rng: Random) -> Sequence[Send]:
        """Time has passed."""
