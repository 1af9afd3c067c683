"""Ids of nodes and keys: 128 bits, read as 32 digits of 4 bits, on a ring.

A. Rowstron, P. Druschel, *Pastry: Scalable, Decentralized Object Location, and Routing for Large-Scale Peer-to-Peer
Systems*, section 2, with b = 4.  An id is an `int` in [0, 2^128); messages carry it as 16 bytes, as integers of msgpack
end at 64 bits.
"""

from __future__ import annotations

from hashlib import blake2b

from leeward.core.errors import LeewardError

BITS, DIGIT_BITS = 128, 4
DIGITS, BASE, BYTES = BITS // DIGIT_BITS, 1 << DIGIT_BITS, BITS // 8
#: Ids on the ring.
RING = 1 << BITS


def id_of(name: str) -> int:
    """The id of a name: the same in every process and version of Python."""
    return int.from_bytes(blake2b(name.encode(), digest_size=BYTES).digest(), "big")


def logical_ids(name: str, count: int) -> tuple[int, ...]:
    """The ids of a machine that joins as `count` logical nodes; the first one is that of its name.

    Raises LeewardError if `count` is below 1.
    """
    if count < 1:
        raise LeewardError(f"logical nodes of {name}: {count} is below 1.", remedy="Give a machine one or more.")
    return (id_of(name), *(id_of(f"{name}/{number}") for number in range(1, count)))


def digit(key: int, position: int) -> int:
    """The digit at a position; 0 is the most significant one."""
    return key >> (BITS - DIGIT_BITS * (position + 1)) & (BASE - 1)


def common_prefix(a: int, b: int) -> int:
    """Digits that both begin with, 0 to DIGITS."""
    return DIGITS - ((a ^ b).bit_length() + DIGIT_BITS - 1) // DIGIT_BITS


def ring_distance(a: int, b: int) -> int:
    """Ids between two on the shorter way round the ring."""
    clockwise = (b - a) % RING
    return min(clockwise, RING - clockwise)


def nearness(a: int, key: int) -> tuple[int, int]:
    """Sorts ids by their distance from a key; of two that are as near the smaller one is first."""
    return ring_distance(a, key), a


def to_bytes(key: int) -> bytes:
    """As messages carry it."""
    return key.to_bytes(BYTES, "big")


def from_bytes(key: bytes) -> int:
    """Out of a message; raises LeewardError unless it has 16 bytes."""
    if len(key) != BYTES:
        raise LeewardError(f"id: it has {len(key)} bytes.", remedy=f"An id has {BYTES} bytes.")
    return int.from_bytes(key, "big")


def hops_bound(nodes: int) -> int:
    """ceil(log_16 N): the most hops of a route in a converged overlay of N nodes (Pastry, section 2.2)."""
    hops = 0
    while BASE**hops < nodes:
        hops += 1
    return hops
