"""The two forms in which Storm's worker and a task talk: Storm's own JSON, and binary frames. Bytes only; no pipe here.

In every form input is a flat list of pairs (see `BinaryForm`), and output is bytes for one message each.
storm/worker/src/main/java/leeward/multilang has the other side.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any, Protocol

import msgpack

from leeward.core.errors import LeewardError

OFFER = "leeward.pipe"  #: key of the handshake by which either side offers frames
VERSION = 2

#: codes of input pairs; a code from 0 on is a channel's number, a text is a command for a spout
DEFINE_CHANNEL, TASK_IDS = -1, -2
#: kinds of output messages; a kind from 0 on is a stream's number
TAKEN, ACK, FAIL, SYNC, LOG, ERROR, METRICS, DEFINE_STREAM, EMIT = range(-1, -10, -1)

_END = b"\nend\n"
_MAGIC = b"\xc1LW\x01"
_HEADER = struct.Struct(">4sI")
_LONGEST = 1 << 30  # no longer frame is believed, nor waited for
_FOREIGN = "Something else writes to this task's standard input, or the topology's jar is of another version."
_BIG_INTEGER = 1
_MORE_KINDS: tuple[type, ...] = (float, list, bytes)  # whose subclasses travel as they do
_ENCODE = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class UnfitError(LeewardError):
    """A value that cannot travel to another process."""


class Form(Protocol):
    """The methods of a form that pipe and components call."""

    ids: bool  #: tuples have ids: anchors and acks mean something

    def take(self, piece: bytes) -> list[Any]:
        """The pairs (flat: code, value, code, value...) that this piece of input completes."""

    @property
    def unfinished(self) -> str:
        """The beginning of a message whose end has not come; empty if there is none."""

    def stream(self, name: str) -> tuple[int, bytes]:
        """A number for the stream, and the message that announces it."""

    def emission(self, stream: int, values: list[Any]) -> bytes:
        """A plain emit. Raises UnfitError."""

    def full_emission(
        self, stream: int, values: list[Any], anchors: list[Any], tup_id: Any, task: int, need_task_ids: bool
    ) -> bytes:
        """An emit with everything; task 0: by grouping. Raises UnfitError."""

    def message(self, message: dict[str, Any]) -> bytes:
        """A message as pystorm makes it, but not an emit."""

    def taken(self, tuples: int) -> bytes:
        """So many more tuples have been looked at."""

    def batch(self, messages: list[bytes]) -> bytes:
        """These messages as bytes."""


class JsonForm:
    """Storm's multilang JSON."""

    ids = True

    def __init__(self) -> None:
        self._rest = b""
        self._channels: dict[tuple[Any, ...], int] = {}
        self._streams: list[str] = []

    def take(self, piece: bytes) -> list[Any]:
        *texts, self._rest = (self._rest + piece).split(_END)
        pairs: list[Any] = []
        for text in texts:
            message = json.loads(text)
            if isinstance(message, list):
                pairs += (TASK_IDS, message)
            elif "command" in message:
                pairs += (message["command"], message.get("id"))
            elif "tuple" in message:
                source = message["comp"], message["stream"], message["task"]
                code = self._channels.get(source)
                if code is None:
                    code = self._channels[source] = len(self._channels)
                    pairs += (DEFINE_CHANNEL, [code, *source, None])
                pairs += (code, [*message["tuple"], message["id"]])
            else:
                pairs += (OFFER, message)  # the handshake
        return pairs

    @property
    def unfinished(self) -> str:
        return f"{len(self._rest)} bytes of a message: {self._rest[:24]!r}" if self._rest else ""

    def stream(self, name: str) -> tuple[int, bytes]:
        self._streams.append(name)
        return len(self._streams) - 1, b""

    def emission(self, stream: int, values: list[Any]) -> bytes:
        return self.full_emission(stream, values, [], None, 0, False)

    def full_emission(
        self, stream: int, values: list[Any], anchors: list[Any], tup_id: Any, task: int, need_task_ids: bool
    ) -> bytes:
        message = {"command": "emit", "anchors": anchors, "tuple": values, "need_task_ids": need_task_ids}
        if self._streams[stream] != "default":
            message["stream"] = self._streams[stream]
        if tup_id is not None:
            message["id"] = tup_id
        if task:
            message["task"] = task
        try:
            return self.message(message)
        except (TypeError, ValueError, RecursionError) as error:
            raise _unfit(values, error, _ENCODE) from None

    def message(self, message: dict[str, Any]) -> bytes:
        return _ENCODE(message).encode() + _END

    def taken(self, tuples: int) -> bytes:
        return b""

    def batch(self, messages: list[bytes]) -> bytes:
        return b"".join(messages)


class BinaryForm:
    """Frames of msgpack.

    A frame is `c1 'L' 'W' 01`, the length of the rest in four bytes, and the rest. Input: one array of pairs,
    `channel, [values..., id?]` for a tuple, `DEFINE_CHANNEL, [channel, component, stream, task, key group]`,
    `TASK_IDS, [tasks]`, or `command, id` for a spout. Of a keyed stream each key group has a channel; of another
    stream the group is null. Output: arrays one after the other, `[stream, values]` for a plain emit, `[kind, ...]`
    for the rest.
    """

    def __init__(self, *, ids: bool) -> None:
        self.ids = ids
        # calls no Python code, so that threads cannot meet in it
        self._pack: Callable[[Any], bytes] = msgpack.Packer(strict_types=True).pack
        self._pieces: list[bytes] = []  # an unfinished frame
        self._missing = 0  # of it, if its length is known
        self._streams = 0

    def take(self, piece: bytes) -> list[Any]:
        if self._pieces:
            self._pieces.append(piece)
            self._missing -= len(piece)
            if self._missing > 0:
                return []
            piece = b"".join(self._pieces)
            self._pieces.clear()
        pairs: list[Any] = []
        view, start, end = memoryview(piece), 0, len(piece)
        while start < end:
            if end - start < _HEADER.size:
                self._keep(piece[start:], _HEADER.size)
                break
            magic, length = _HEADER.unpack_from(piece, start)
            if magic != _MAGIC or length > _LONGEST:
                began = piece[start : start + 24]
                raise LeewardError(f"pipe: {began!r} came where a frame must begin.", remedy=_FOREIGN)
            stop = start + _HEADER.size + length
            if stop > end:
                self._keep(piece[start:], stop - start)
                break
            pairs += self._unpack(view[start + _HEADER.size : stop])
            start = stop
        return pairs

    @property
    def unfinished(self) -> str:
        came = b"".join(self._pieces)
        return f"{len(came)} of {len(came) + self._missing} bytes of a frame: {came[:24]!r}" if came else ""

    def _keep(self, piece: bytes, wanted: int) -> None:
        self._pieces = [piece]
        self._missing = wanted - len(piece)

    @staticmethod
    def _unpack(view: memoryview) -> list[Any]:
        try:
            pairs = msgpack.unpackb(view, strict_map_key=False, ext_hook=_extension)
        except (ValueError, TypeError, msgpack.UnpackException) as error:
            raise _damaged(view, repr(error)) from error
        if not isinstance(pairs, list) or len(pairs) % 2:
            raise _damaged(view, "it has no pairs")
        return pairs

    def stream(self, name: str) -> tuple[int, bytes]:
        number = self._streams
        self._streams += 1
        return number, self._pack([DEFINE_STREAM, number, name])

    def emission(self, stream: int, values: list[Any]) -> bytes:
        try:
            return self._pack([stream, values])
        except (TypeError, ValueError, OverflowError):
            return _pack_anything([stream, values], values)

    def full_emission(
        self, stream: int, values: list[Any], anchors: list[Any], tup_id: Any, task: int, need_task_ids: bool
    ) -> bytes:
        return _pack_anything([EMIT, stream, values, list(anchors), tup_id, task, need_task_ids], values)

    def message(self, message: dict[str, Any]) -> bytes:
        command = message["command"]
        if command == "sync":
            return self._pack([SYNC])
        if command in ("ack", "fail"):
            return self._pack([ACK if command == "ack" else FAIL, message["id"]])
        if command == "log":
            return self._pack([LOG, _printable(message["msg"]), message["level"]])
        if command == "error":
            return self._pack([ERROR, _printable(message["msg"])])
        if command == "metrics":
            return self._pack([METRICS, message["name"], message["params"]])
        raise LeewardError(f"pipe: Storm knows no command {command!r}.")

    def taken(self, tuples: int) -> bytes:
        return self._pack([TAKEN, tuples])

    def batch(self, messages: list[bytes]) -> bytes:
        body = b"".join(messages)
        return _HEADER.pack(_MAGIC, len(body)) + body


def _damaged(view: memoryview, why: str) -> LeewardError:
    begin = bytes(view[:24])
    return LeewardError(f"pipe: a frame of {len(view)} bytes is damaged: {begin!r}: {why}.", remedy=_FOREIGN)


def _pack_anything(message: list[Any], values: list[Any]) -> bytes:
    """With what msgpack has no type for: large integers, tuples (they become lists), subclasses of its types."""
    try:
        packed: bytes = msgpack.Packer(strict_types=True, default=_plain).pack(message)
        return packed
    except (TypeError, ValueError, OverflowError) as error:
        raise _unfit(values, error, msgpack.Packer(strict_types=True, default=_plain).pack) from None


def _plain(value: Any) -> Any:
    if isinstance(value, int):
        if type(value) is not int:
            return int(value)
        return msgpack.ExtType(_BIG_INTEGER, value.to_bytes(value.bit_length() // 8 + 1, signed=True))
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, dict):
        return dict(value)
    if isinstance(value, str):
        return str.__str__(value)
    for kind in _MORE_KINDS:
        if isinstance(value, kind):
            return kind(value)
    raise TypeError("no other process would know this type")


def _extension(kind: int, data: bytes) -> int:
    if kind != _BIG_INTEGER:
        raise ValueError(f"extension type {kind}")
    return int.from_bytes(data, signed=True)


def _printable(text: str) -> str:
    """Lone surrogates, as in file names of unknown encoding, have no UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def _unfit(values: list[Any], error: Exception, encode: Any) -> UnfitError:
    for position, value in enumerate(values):
        try:
            encode(value)
        except Exception as reason:
            return UnfitError(
                f"field {position}: {value!r:.120} of type {type(value).__name__} cannot travel: {reason}.",
                remedy="Emit None, bool, int, float, str, bytes, list and dict only.",
            )
    return UnfitError(f"{values!r:.120} cannot travel: {error}.", remedy="Emit smaller, flatter values.")
