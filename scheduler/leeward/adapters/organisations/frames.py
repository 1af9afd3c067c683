"""The frames of a link: many messages in one. Bytes in, values out.

A frame is msgpack: [version, [[kind, message], ...]].  `kind` is the position of the message's type in the protocol's
list.  The frame names no sender: the link's token does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from leeward.core.errors import LeewardError

VERSION = 1
#: Bytes of a frame; a larger one is refused with close code 1009.
LARGEST = 1 << 20
#: Bytes that a frame has beside its messages: three heads of msgpack, at most.
HEAD = 16


class Opened(NamedTuple):
    """The messages of a frame, and how many more were in it that could not be read."""

    messages: list[Any]
    malformed: int


class Codec:
    """Messages of one protocol. `kinds`: its types (dataclasses or msgspec Structs), in a fixed order."""

    def __init__(self, kinds: Sequence[type]) -> None:
        self._numbers = {kind: number for number, kind in enumerate(kinds)}
        self._encoder = msgspec.msgpack.Encoder()
        self._head: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(tuple[int, list[tuple[int, msgspec.Raw]]])
        self._bodies: list[msgspec.msgpack.Decoder[Any]] = [msgspec.msgpack.Decoder(kind) for kind in kinds]

    def pack(self, message: object) -> bytes:
        """One message, ready to be put into a frame. Raises LeewardError if its type is none of the protocol's."""
        kind = self._numbers.get(type(message))
        if kind is None:
            raise LeewardError(
                f"a message of type {type(message).__name__} cannot be sent: the protocol does not have it.",
                remedy="Name the type in the protocol's list of kinds.",
            )
        return self._encoder.encode((kind, message))

    def frame(self, packed: Iterable[bytes]) -> bytes:
        """The frame of packed messages."""
        return self._encoder.encode((VERSION, [msgspec.Raw(one) for one in packed]))

    def open(self, frame: bytes) -> Opened:
        """All messages that can be read. A frame that cannot be read at all counts as one message."""
        try:
            version, parts = self._head.decode(frame)
        except (msgspec.DecodeError, RecursionError):
            return Opened([], 1)
        if version != VERSION:
            return Opened([], max(1, len(parts)))
        messages = []
        for kind, body in parts:
            # A type's own checks may raise anything on values of a stranger, and none of it may end the link.
            try:
                messages.append(self._body(kind).decode(body))
            except Exception:
                continue
        return Opened(messages, len(parts) - len(messages))

    def _body(self, kind: int) -> msgspec.msgpack.Decoder[Any]:
        if kind < 0:
            raise IndexError(kind)  # it would count from the end
        return self._bodies[kind]
