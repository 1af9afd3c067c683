"""The messages between sites that forward packets.  Values only.

A message that makes no sense raises ProtocolError where it is made, so a shell drops the frame that it came in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from leeward.core.errors import ProtocolError


class Name(NamedTuple):
    """Of a packet, in all of the network."""

    source: int
    birth: int  #: of the source's process: numbers begin anew with each
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Packet:
    """An attempt to send a packet over a link."""

    name: Name
    path: tuple[int, ...]  #: nodes that it was at, the source first, its sender last; each once
    left_s: float  #: of its lifetime
    stamp_s: float  #: by the sender's clock; the acknowledgement repeats it
    body: bytes

    def __post_init__(self) -> None:
        if not self.path or len(set(self.path)) < len(self.path):
            raise ProtocolError(f"Packet {self.name} has the path {self.path}.", remedy="Name each node once.")
        _check(self.name, self.left_s, self.stamp_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Return:
    """An attempt to send the end of a packet back along its path."""

    name: Name
    why: str  #: why it could not be forwarded; empty: the sink has it
    path: tuple[int, ...]  #: nodes from the source on that are still to be passed, the last one next; (): at the source
    stamp_s: float  #: as of a Packet

    def __post_init__(self) -> None:
        _check(self.name, self.stamp_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """Of one attempt.

    `ahead_s`: J of the receiver, the time that a packet needs from there to the sink, as it expects; None: it does not
    take the packet, as it knows no way onward.
    """

    name: Name
    end: str | None  #: of a Return: its reason; None: of a Packet
    stamp_s: float
    ahead_s: float | None

    def __post_init__(self) -> None:
        _check(self.name, self.stamp_s, self.ahead_s or 0.0)


def _check(name: Name, *seconds: float) -> None:
    if not all(math.isfinite(one) and one >= 0 for one in seconds):
        raise ProtocolError(f"A message about packet {name} has times {seconds}.", remedy="Give 0 s or more.")


#: All types, in the order of their numbers in frames.
KINDS: tuple[type, ...] = (Packet, Return, Ack)
