"""A state cut into m fragments and encoded into n = m + k, of which any m rebuild it (paper, section IV-D).

The state is a row of stripes, and a stripe is m blocks of equal length. Each stripe is encoded by itself: fragment i
has the i-th block of every stripe, one behind the other. So a rebuild decodes a stripe as soon as m of its blocks are
there, and reads those stripes alone that it needs. Fragments below m hold the state itself, the others parity.

Every block has a checksum, and so has the whole. They are in the manifest, which is kept apart from the fragments, so
a holder that changes a block cannot change its checksum.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

import msgpack
import zfec

from leeward.core.errors import ConfigError, SnapshotError

#: Bytes of a checksum: SHA-256, cut off.
CHECKSUM = 16
#: Most fragments: an element of the code's field is a byte.
MOST = 256
#: Bytes of a block, at least and at most, and stripes of a state whose blocks are between the two.
SMALLEST, LARGEST, STRIPES = 32 * 1024, 1024 * 1024, 256
_VERSION = 1

Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How a state lies in fragments. `size`: of the state, bytes; `unit`: of a block, bytes. Raises ConfigError."""

    size: int
    m: int
    k: int
    unit: int

    def __post_init__(self) -> None:
        if self.m < 1 or self.k < 0 or self.n > MOST:
            raise ConfigError(
                f"m = {self.m} and k = {self.k}: there is no such code.",
                remedy=f"Give m >= 1, k >= 0, m + k <= {MOST}.",
            )
        if self.size < 0 or self.unit < 1:
            raise ConfigError(f"size = {self.size}, unit = {self.unit}: no bytes.", remedy="Give a unit of at least 1.")

    @property
    def n(self) -> int:
        """Fragments."""
        return self.m + self.k

    @property
    def stripes(self) -> int:
        """Stripes of the state."""
        return -(-self.size // (self.m * self.unit))

    def block(self, stripe: int) -> tuple[int, int]:
        """(begin, length) of this stripe's block in a fragment, bytes. Blocks of the last stripe may be shorter."""
        rest = self.size - stripe * self.m * self.unit
        return stripe * self.unit, min(self.unit, -(-rest // self.m))

    def stripes_of(self, begin: int, length: int) -> range:
        """The stripes that hold these bytes of the state."""
        width = self.m * self.unit
        return range(begin // width, -(-(begin + length) // width)) if length else range(0)


def layout_of(size: int, m: int, k: int) -> Layout:
    """A layout for a state of so many bytes. Raises ConfigError for a code that there is not."""
    unit = -(-size // (max(1, m) * STRIPES))
    return Layout(size=size, m=m, k=k, unit=min(LARGEST, max(SMALLEST, unit)))


def checksum(*parts: Buffer) -> bytes:
    """Of all bytes in this order."""
    found = sha256()
    for part in parts:
        found.update(part)
    return found.digest()[:CHECKSUM]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """All that a rebuild has to know, but for the fragments. `holders`: of each fragment; "" where nobody has it."""

    layout: Layout
    holders: tuple[str, ...]
    checksums: tuple[bytes, ...]  #: of each fragment, those of its blocks one behind the other
    whole: bytes  #: checksum of the state

    def checksum(self, stripe: int, index: int) -> bytes:
        """Of a block."""
        return self.checksums[index][stripe * CHECKSUM : (stripe + 1) * CHECKSUM]

    def to_bytes(self) -> bytes:
        """MessagePack."""
        at = self.layout
        parts = (_VERSION, at.size, at.m, at.k, at.unit, self.holders, self.checksums, self.whole)
        packed: bytes = msgpack.packb(parts)
        return packed

    @classmethod
    def from_bytes(cls, packed: bytes) -> Manifest:
        """Raises SnapshotError for bytes that are no manifest of this version."""
        try:
            version, size, m, k, unit, holders, checksums, whole = msgpack.unpackb(packed, use_list=False)
            if version != _VERSION:
                raise ValueError(f"it has version {version}")
            layout = Layout(size=size, m=m, k=k, unit=unit)
            if len(holders) != layout.n or [len(one) for one in checksums] != [layout.stripes * CHECKSUM] * layout.n:
                raise ValueError("its checksums do not fit its layout")
        except (ValueError, TypeError, ConfigError, msgpack.UnpackException) as error:
            raise SnapshotError(
                f"a manifest cannot be read: {error}.", remedy="The coordinator falls back to the cut before it."
            ) from None
        return cls(layout=layout, holders=holders, checksums=checksums, whole=whole)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """A state in fragments; each fragment is its blocks in order. Those below m are views of the state."""

    layout: Layout
    fragments: tuple[tuple[Buffer, ...], ...]
    checksums: tuple[bytes, ...]
    whole: bytes

    def manifest(self, holders: Sequence[str]) -> Manifest:
        """`holders`: of each fragment; "" where nobody has it."""
        return Manifest(layout=self.layout, holders=tuple(holders), checksums=self.checksums, whole=self.whole)


def encode(state: Buffer, layout: Layout) -> Encoded:
    """Every block and checksum; `state` has `layout.size` bytes and must not change as long as the result is used."""
    view, encoder = memoryview(state), _encoder(layout.m, layout.n)
    columns: list[list[Buffer]] = [[] for _ in range(layout.n)]
    sums: list[list[bytes]] = [[] for _ in range(layout.n)]
    for stripe in range(layout.stripes):
        blocks = _primary(view, layout, stripe)
        blocks += encoder.encode(blocks, list(range(layout.m, layout.n))) if layout.k else []
        for index, block in enumerate(blocks):
            columns[index].append(block)
            sums[index].append(checksum(block))
    return Encoded(
        layout=layout, fragments=tuple(map(tuple, columns)), checksums=tuple(map(b"".join, sums)), whole=checksum(view)
    )


def _primary(view: memoryview, layout: Layout, stripe: int) -> list[Buffer]:
    """The blocks of a stripe that are the state's own bytes; behind its end come zeros."""
    start, (_, length) = stripe * layout.m * layout.unit, layout.block(stripe)
    blocks: list[Buffer] = [view[start + i * length : start + (i + 1) * length] for i in range(layout.m)]
    return [block if len(block) == length else bytes(block).ljust(length, b"\0") for block in blocks]


class Rebuild:
    """Blocks in, the state out, stripe by stripe as they are complete. `wanted`: stripes; None: all."""

    def __init__(self, manifest: Manifest, wanted: Iterable[int] | None = None) -> None:
        self.manifest, self.layout = manifest, manifest.layout
        self._state = bytearray()  # as long as the state from the first stripe on: its pages are cleared meanwhile
        self._blocks: dict[int, dict[int, Buffer]] = {
            stripe: {} for stripe in sorted(range(self.layout.stripes) if wanted is None else set(wanted))
        }
        self._partial = len(self._blocks) < self.layout.stripes
        self._hash, self._hashed = sha256(), 0  # of the stripes before the first that is not complete

    @property
    def left(self) -> tuple[int, ...]:
        """Stripes that are not complete."""
        return tuple(self._blocks)

    def take(self, stripe: int, index: int, block: Buffer) -> bool:
        """Whether the block is the one that was encoded. One of a stripe that is complete changes nothing."""
        if len(block) != self.layout.block(stripe)[1] or checksum(block) != self.manifest.checksum(stripe, index):
            return False
        blocks = self._blocks.get(stripe)
        if blocks is not None:
            blocks[index] = block
            if len(blocks) == self.layout.m:
                del self._blocks[stripe]
                self._put(stripe, decode(blocks, self.layout.m, self.layout.n))
        return True

    def _put(self, stripe: int, blocks: Sequence[Buffer]) -> None:
        start, (_, length) = stripe * self.layout.m * self.layout.unit, self.layout.block(stripe)
        if not self._state:
            self._state = bytearray(self.layout.size)
        view = memoryview(self._state)
        for number, block in enumerate(blocks):
            room = view[start + number * length : start + (number + 1) * length]
            room[:] = memoryview(block)[: len(room)]
        width = self.layout.m * self.layout.unit
        while not self._partial and self._hashed < self.layout.stripes and self._hashed not in self._blocks:
            self._hash.update(view[self._hashed * width : (self._hashed + 1) * width])
            self._hashed += 1

    def state(self) -> memoryview:
        """The state; of its bytes those of wanted stripes alone are right. Raises SnapshotError if it is damaged."""
        assert not self._blocks, "stripes are missing"
        view = memoryview(self._state).toreadonly()
        if not self._partial and self._hash.digest()[:CHECKSUM] != self.manifest.whole:
            raise SnapshotError(
                "the rebuilt state is not the one that was encoded.",
                remedy="The coordinator falls back to the cut before it.",
            )
        return view


def decode(blocks: dict[int, Any], m: int, n: int) -> list[Buffer]:
    """The m primary blocks of a stripe, in order, from any m; `blocks`: by their number. Raises ValueError."""
    if len(blocks) != m:  # zfec would go round for ever where numbers repeat, so they come as the keys of a dictionary
        raise ValueError(f"{len(blocks)} blocks are given, {m} are needed")
    if max(blocks) < m:
        return [blocks[number] for number in range(m)]
    # lists of its own: zfec puts the primary blocks of a list into their places, and leaves the numbers as they were
    found: list[Buffer] = list(_decoder(m, n).decode(list(blocks.values()), list(blocks)))
    return found


@lru_cache(maxsize=64)
def _encoder(m: int, n: int) -> Any:
    return zfec.Encoder(m, n)


@lru_cache(maxsize=64)
def _decoder(m: int, n: int) -> Any:
    return zfec.Decoder(m, n)
