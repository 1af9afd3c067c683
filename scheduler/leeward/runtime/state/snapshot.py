"""Snapshot bytes of one key group: a header with version and checksum, then MessagePack. Never pickle.

Header, big endian: magic `LWS`, version (1 byte), cut (8 bytes), payload length (8 bytes), crc32 of the payload
(4 bytes).

Version 2 has keys of several fields, each as an extension type whose content is the array of the fields. Version 1,
which has none, is read as well; programs that know it alone refuse version 2.
"""

from __future__ import annotations

import struct
from typing import Any
from zlib import crc32

import msgpack

from leeward.core.errors import SnapshotError
from leeward.runtime.state.keyed import Entries

VERSION = 2
_MAGIC = b"LWS"
#: Entries that are packed in one go, in which no other thread runs.
_AT_ONCE = 256
_HEADER = struct.Struct(">3sBQQI")
_FIELDS = 2  # the extension type; the pipe has 1 for large integers


def portable(key: object) -> object:
    """A key as MessagePack knows it. Only keys may be tuples: packing a value must not call Python, see `_packed`."""
    return msgpack.ExtType(_FIELDS, msgpack.packb(list(key), strict_types=True)) if type(key) is tuple else key


def extension(kind: int, data: bytes) -> Any:
    """The key that was made `portable`; for msgpack's `ext_hook`."""
    return tuple(msgpack.unpackb(data)) if kind == _FIELDS else msgpack.ExtType(kind, data)


def encode(entries: Entries, *, cut: int, owner: str) -> bytes:
    """Bytes of the entries of one group; raises SnapshotError naming owner, key and type of what cannot travel."""
    try:
        at_once = len(entries) <= _AT_ONCE and tuple not in map(type, entries)
        payload: bytes = msgpack.packb(entries, strict_types=True) if at_once else _packed(entries)
    except (TypeError, ValueError, OverflowError):
        raise untravellable(entries, owner) from None
    return _HEADER.pack(_MAGIC, VERSION, cut, len(payload), crc32(payload)) + payload


def _packed(entries: Entries) -> bytes:
    """One entry after the other, so that other threads get their turn.

    A value is looked up in the very call that packs it: a list that its owner is about to change is replaced in
    `entries` by a copy first (`KeyedState`), but one that was at hand here for longer would be packed changed.
    """
    packer = msgpack.Packer(strict_types=True, autoreset=False)
    packer.pack_map_header(len(entries))
    for key in entries:
        packer.pack(portable(key))
        packer.pack(entries[key])
    payload: bytes = packer.bytes()
    return payload


def decode(blob: bytes | bytearray | memoryview, *, cut: int, where: str) -> Entries:
    """The entries; raises SnapshotError naming `where` if the bytes are damaged, newer or of another cut."""
    if len(blob) < _HEADER.size or blob[:3] != _MAGIC:
        raise SnapshotError(f"{where} is not a snapshot ({len(blob)} bytes).", remedy=_OLDER)
    _, version, its_cut, length, checksum = _HEADER.unpack_from(blob)
    if version > VERSION:
        raise SnapshotError(
            f"{where} has version {version}, this program reads up to {VERSION}.",
            remedy="Update Leeward in the topology's environment.",
        )
    payload = blob[_HEADER.size :]
    if its_cut != cut or len(payload) != length or crc32(payload) != checksum:
        raise SnapshotError(
            f"{where} is damaged: cut {its_cut} (wanted {cut}), {len(payload)} bytes (header says {length}), "
            f"crc32 {crc32(payload):08x} (header says {checksum:08x}).",
            remedy=_OLDER,
        )
    entries: Entries = msgpack.unpackb(payload, strict_map_key=False, ext_hook=extension)
    return entries


_OLDER = "The coordinator falls back to the cut before it; look after the disk and memory of Redis."


def untravellable(entries: Entries, owner: str) -> SnapshotError:
    """The error that names what of the entries cannot be packed."""
    for key, value in entries.items():
        try:
            msgpack.packb(value, strict_types=True)
        except (TypeError, ValueError, OverflowError) as error:
            return SnapshotError(
                f"state of {owner}, key {key!r}: {error} (value of type {type(value).__name__}).",
                remedy="Keep None, bool, int (64 bit), float, str, bytes, list, dict only; no tuples, sets, objects.",
            )
    return SnapshotError(
        f"state of {owner} has a key that cannot travel.", remedy="Use str, int (64 bit) or tuples of these as keys."
    )
