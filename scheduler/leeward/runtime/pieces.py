"""Key groups as a sequence of pieces of bounded size, and back. Pure; never pickle.

A sender's stream is MessagePack objects one after the other: group, number of entries, then key, value, key, value, ...
of each group. It is cut into pieces wherever they are full, so that one large value is no special case.

Header of a piece, big endian: magic `LWP`, version (1 byte), epoch of the handover (8 bytes), sender's task (4 bytes),
number of the piece from this sender (4 bytes), payload length (4 bytes), crc32 of the payload (4 bytes).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from zlib import crc32

import msgpack

from leeward.core.errors import SnapshotError
from leeward.runtime.snapshot import untravellable

VERSION = 1
#: Payload of a piece, in bytes. Also bounds how long packing one piece keeps the task's own thread from running.
PIECE_BYTES = 128 * 1024
_MAGIC = b"LWP"
_HEADER = struct.Struct(">3sBQIIII")
_REMEDY = "The coordinator restores the newest cut; look after the disk and memory of Redis."


def cut(
    groups: Mapping[int, dict], *, epoch: int, sender: int, owner: str, size: int = PIECE_BYTES
) -> Iterator[bytes]:
    """The groups as pieces of at most `size` bytes of payload; raises SnapshotError for what cannot travel."""
    packer = msgpack.Packer(strict_types=True, autoreset=False)
    number = 0
    for group, entries in groups.items():
        packer.pack(group)
        packer.pack(len(entries))
        for key, value in entries.items():
            try:
                packer.pack(key)
                packer.pack(value)
            except (TypeError, ValueError, OverflowError):
                raise untravellable({key: value}, owner) from None
            if len(packer.getbuffer()) >= size:
                for payload in _full(packer, size):
                    yield _piece(epoch, sender, number, payload)
                    number += 1
    if rest := packer.bytes():
        yield _piece(epoch, sender, number, rest)


def _full(packer: msgpack.Packer, size: int) -> Iterator[bytes]:
    """Takes whole pieces out of the buffer; what is left of the last one too."""
    data = packer.bytes()
    packer.reset()
    for start in range(0, len(data), size):
        yield data[start : start + size]


def _piece(epoch: int, sender: int, number: int, payload: bytes) -> bytes:
    return _HEADER.pack(_MAGIC, VERSION, epoch, sender, number, len(payload), crc32(payload)) + payload


class Assembly:
    """Puts groups together from the pieces of several senders; raises SnapshotError for what is damaged or missing."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self._senders: dict[int, _Sender] = {}

    def take(self, piece: bytes) -> dict[int, dict]:
        """The groups that this piece completes. A piece that is there twice counts once."""
        if len(piece) < _HEADER.size or piece[:3] != _MAGIC:
            raise SnapshotError(f"a piece of a handover is none ({len(piece)} bytes).", remedy=_REMEDY)
        _, version, epoch, task, number, length, checksum = _HEADER.unpack_from(piece)
        if version > VERSION:
            raise SnapshotError(
                f"a piece of a handover has version {version}, this program reads up to {VERSION}.",
                remedy="Update Leeward in the topology's environment.",
            )
        where = f"piece {number} of task {task} in handover {epoch}"
        payload = piece[_HEADER.size :]
        if epoch != self._epoch or len(payload) != length or crc32(payload) != checksum:
            raise SnapshotError(
                f"{where} is damaged: handover {self._epoch} is wanted; {len(payload)} bytes (header says {length}), "
                f"crc32 {crc32(payload):08x} (header says {checksum:08x}).",
                remedy=_REMEDY,
            )
        sender = self._senders.setdefault(task, _Sender())
        if number < sender.next:
            return {}
        if number > sender.next:
            raise SnapshotError(f"{where} came, piece {sender.next} did not.", remedy=_REMEDY)
        sender.next += 1
        return sender.take(payload)


class _Sender:
    """One sender's stream, read object by object."""

    def __init__(self) -> None:
        self.next = 0  #: number of the piece to come
        self._unpacker = msgpack.Unpacker(strict_map_key=False, max_buffer_size=0)
        self._group: int | None = None
        self._left: int | None = None  # entries still to come
        self._entries: dict = {}
        self._key: object = None

    def take(self, payload: bytes) -> dict[int, dict]:
        self._unpacker.feed(payload)
        done: dict[int, dict] = {}
        for item in self._unpacker:
            if self._group is None:
                self._group = item
                continue
            if self._left is None:
                self._left = item
            elif self._key is None:
                self._key = item
                continue
            else:
                self._entries[self._key] = item
                self._key = None
                self._left -= 1
            if not self._left:
                done[self._group] = self._entries
                self._group, self._left, self._entries = None, None, {}
        return done
