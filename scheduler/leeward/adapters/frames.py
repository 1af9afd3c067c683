"""The frames in which peers send messages to each other. Bytes in, values out.

    length (4 bytes, big endian, of all that follows) | HMAC-SHA256 of the body (32 bytes) | body

The body is msgpack: [version, sender, incarnation, number, kind, message].  `kind` is the position of the message's
type in the protocol's list.  `number` grows with each frame of one incarnation of a sender, and an incarnation is a
process's time of start, so that a frame that was recorded cannot be sent again while its receiver runs; a receiver that
has just started knows no older ones.  All servers share the key; a process that has it counts as one of them.
"""

from __future__ import annotations

import hmac
import struct
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from leeward.core.errors import LeewardError

VERSION = 1
LENGTH, MAC = struct.Struct(">I"), sha256().digest_size
#: Bytes of a frame without its length.
LARGEST = 1 << 20


class FrameError(LeewardError):
    """A frame that is dropped; `kind` is "malformed", "forged" or "repeated"."""

    def __init__(self, kind: str, why: str) -> None:
        super().__init__(f"a frame was dropped: {why}.", remedy="Only peers with the secret may send.")
        self.kind = kind


class Received(NamedTuple):
    """A message, and its sender."""

    sender: int
    message: Any


class Sealer:
    """Makes the frames of one process of a server. `kinds`: the protocol's types of messages, in a fixed order."""

    def __init__(self, kinds: Sequence[type], key: bytes, sender: int, incarnation: int) -> None:
        self._numbers = {kind: number for number, kind in enumerate(kinds)}
        self._key, self._sender, self._incarnation, self._number = key, sender, incarnation, 0
        self._encoder = msgspec.msgpack.Encoder()

    def seal(self, message: object) -> bytes:
        """The frame of a message."""
        self._number += 1
        kind = self._numbers[type(message)]
        body = self._encoder.encode((VERSION, self._sender, self._incarnation, self._number, kind, message))
        mac = hmac.digest(self._key, body, "sha256")
        return LENGTH.pack(len(mac) + len(body)) + mac + body


class Opener:
    """Opens frames, each number of a sender's incarnation once."""

    def __init__(self, kinds: Sequence[type], key: bytes) -> None:
        self._key = key
        self._head: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(tuple[int, int, int, int, int, msgspec.Raw])
        self._bodies: list[msgspec.msgpack.Decoder[Any]] = [msgspec.msgpack.Decoder(kind) for kind in kinds]
        self._newest: dict[int, tuple[int, int]] = {}

    def open(self, frame: bytes) -> Received:
        """The message of a frame without its length; raises FrameError."""
        mac, body = frame[:MAC], frame[MAC:]
        if not hmac.compare_digest(mac, hmac.digest(self._key, body, "sha256")):
            raise FrameError("forged", "its seal does not fit")
        try:
            version, sender, incarnation, number, kind, rest = self._head.decode(body)
            if version != VERSION or not 0 <= kind < len(self._bodies):
                raise FrameError("malformed", f"it has version {version} and kind {kind}")
            message = self._bodies[kind].decode(rest)
        except FrameError:
            raise
        except (msgspec.DecodeError, LeewardError, RecursionError) as error:
            raise FrameError("malformed", str(error)) from None
        if (incarnation, number) <= self._newest.get(sender, (-1, -1)):
            raise FrameError("repeated", f"number {number} of sender {sender} was here already")
        self._newest[sender] = incarnation, number
        return Received(sender, message)


def length_of(head: bytes) -> int:
    """Bytes of the frame that follow its length; raises FrameError if they are too few or too many."""
    (length,) = LENGTH.unpack(head)
    if not MAC < length <= LARGEST:
        raise FrameError("malformed", f"it has {length} bytes")
    return int(length)
