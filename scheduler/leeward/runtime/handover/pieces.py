"""Key groups as a sequence of pieces of bounded size, and back. Pure; never pickle.

A sender's stream is MessagePack objects one after the other, in chunks: group, whether it is the group's last chunk, a
map of entries, a list of keys that are gone. Chunks are small, as packing one lets no other thread run; the newest
chunk with a key counts. The stream is cut into pieces wherever they are full: one large value is no special case.

Header of a piece, big endian: magic `LWP`, version (1 byte), epoch of the handover (8 bytes), sender's task (4 bytes),
number of the piece from this sender (4 bytes), payload length (4 bytes), crc32 of the payload (4 bytes).
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Generator, Iterator
from operator import itemgetter
from typing import Any
from zlib import crc32

import msgpack

from leeward.core.errors import SnapshotError
from leeward.runtime.state.keyed import Entries, Key
from leeward.runtime.state.snapshot import extension, portable, untravellable

VERSION = 2  #: with keys of several fields, as in `state/snapshot.py`
#: Payload of a piece, in bytes. Also bounds how long packing one piece keeps the task's own thread from running.
PIECE_BYTES = 128 * 1024
_MAGIC = b"LWP"
_HEADER = struct.Struct(">3sBQIIII")
LONGEST_PIECE = _HEADER.size + PIECE_BYTES
_REMEDY = "The coordinator restores the newest cut; look after the disk and memory of Redis."


#: Unsent part of a group: entries as (key, value), and keys that are gone.
Rest = tuple[Collection[tuple[Key, Any]], Collection[Key]]


def pack(
    packer: msgpack.Packer, group: int, items: Collection[tuple[Key, Any]], gone: Collection[Key],
    *, last: bool, owner: str,
) -> None:  # fmt: skip
    """Adds one chunk to the packer's buffer; raises SnapshotError for what cannot travel."""
    packer.pack(group)
    packer.pack(last)
    try:
        tuples = tuple in map(type, map(itemgetter(0), items))
        packer.pack_map_pairs([(portable(key), value) for key, value in items] if tuples else items)
    except (TypeError, ValueError, OverflowError):
        raise untravellable(dict(items), owner) from None
    packer.pack(list(map(portable, gone)))


def taken(packer: msgpack.Packer) -> bytes:
    """Empty the buffer, and return its bytes."""
    data: bytes = packer.bytes()
    packer.reset()
    return data


class Cutter:
    """Cuts one sender's stream to one receiver into pieces of at most `size` bytes of payload."""

    def __init__(self, *, epoch: int, sender: int, size: int = PIECE_BYTES) -> None:
        self._epoch, self._sender, self._size = epoch, sender, size
        self.pieces = 0  #: so far
        self._parts: list[memoryview] = []  # of the next piece
        self._room = size

    def add(self, data: bytes, *, end: bool = False) -> Iterator[bytes]:
        """The pieces that are full now; with `end` also the last one."""
        view = memoryview(data)
        while view:
            self._parts.append(view[: self._room])
            view = view[self._room :]
            self._room -= len(self._parts[-1])
            if not self._room:
                yield self._piece()
        if end and self._parts:
            yield self._piece()

    def _piece(self) -> bytes:
        checksum = 0
        for part in self._parts:
            checksum = crc32(part, checksum)
        length = self._size - self._room
        head = _HEADER.pack(_MAGIC, VERSION, self._epoch, self._sender, self.pieces, length, checksum)
        piece = b"".join((head, *self._parts))
        self.pieces, self._parts, self._room = self.pieces + 1, [], self._size
        return piece


class Assembly:
    """Puts groups together from the pieces of several senders; raises SnapshotError for what is damaged or missing."""

    def __init__(self, epoch: int) -> None:
        self._epoch = epoch
        self._senders: dict[int, _Sender] = {}

    def take(self, piece: bytes | memoryview) -> dict[int, Entries]:
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
        payload = memoryview(piece)[_HEADER.size :]
        if epoch != self._epoch or len(payload) != length or crc32(payload) != checksum:
            raise SnapshotError(
                f"{where} is damaged: handover {self._epoch} is wanted; {len(payload)} bytes (header says {length}), "
                f"crc32 {crc32(payload):08x} (header says {checksum:08x}).",
                remedy=_REMEDY,
            )
        sender = self._senders.get(task)
        if sender is None:  # not by `setdefault`: one holds a megabyte of room, and itself
            sender = self._senders[task] = _Sender()
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
        self._unpacker = msgpack.Unpacker(strict_map_key=False, max_buffer_size=0, ext_hook=extension)
        self._groups: dict[int, Entries] = {}
        self._done: dict[int, Entries] = {}
        self._read = self._chunks()
        next(self._read)

    def take(self, payload: memoryview) -> dict[int, Entries]:
        """The groups whose last chunk is in now."""
        self._unpacker.feed(payload)
        for item in self._unpacker:
            self._read.send(item)
        done, self._done = self._done, {}
        return done

    def _chunks(self) -> Generator[None, Any, None]:
        while True:
            group = yield
            last = yield
            entries = yield
            if (before := self._groups.setdefault(group, entries)) is not entries:
                before.update(entries)
                entries = before
            for key in (yield):
                entries.pop(key, None)
            if last:
                self._done[group] = self._groups.pop(group)
