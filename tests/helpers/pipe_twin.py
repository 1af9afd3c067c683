"""The worker's side of binary frames, in Python: what leeward.multilang.BinaryDialect does, for tests without Java."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence

import msgpack

from leeward.core.keys import key_group

MAGIC = b"\xc1LW\x01"


def big(kind: int, data: bytes) -> int:
    assert kind == 1
    return int.from_bytes(data, signed=True)


def frame(*items: object) -> bytes:
    """To the component: one array of pairs."""
    body = b"\xdd" + struct.pack(">I", len(items)) + b"".join(map(msgpack.packb, items))
    return MAGIC + struct.pack(">I", len(body)) + body


class Twin:
    """One task's worker. `keyed`: (source, stream) -> positions of the key's fields."""

    def __init__(self, *, ids: bool, keyed: Mapping[tuple[str, str], Sequence[int]] | None = None) -> None:
        self.ids, self._keyed = ids, keyed or {}
        self.offer = {"version": 2, "ids": ids}
        self.taken = 0
        self._channels: dict[tuple, int] = {}
        self._streams: list[str] = []
        self._rest = b""

    def tuple(self, tup_id: str, source: str | None, stream: str, task: int, values: list) -> bytes:
        positions = self._keyed.get((source, stream))
        group = None if positions is None else key_group(tuple(values[position] for position in positions))
        channel = self._channels.get((source, stream, task, group))
        out = b""
        if channel is None:
            channel = self._channels[source, stream, task, group] = len(self._channels)
            out = frame(-1, [channel, source, stream, task, group])
        return out + frame(channel, [*values, tup_id] if self.ids else values)

    def messages(self, data: bytes) -> list[dict]:
        """What the component said, as the messages of Storm's JSON."""
        self._rest += data
        out: list[dict] = []
        while len(self._rest) >= 8:
            assert self._rest[:4] == MAGIC, self._rest[:40]
            end = 8 + int.from_bytes(self._rest[4:8])
            if len(self._rest) < end:
                break
            unpacker = msgpack.Unpacker(strict_map_key=False, ext_hook=big)
            unpacker.feed(self._rest[8:end])
            self._rest = self._rest[end:]
            out += [message for part in unpacker if (message := self._message(*part))]
        return out

    def _message(self, kind: int, *parts) -> dict | None:
        if kind == -1:
            self.taken += parts[0]
            return None
        if kind == -8:
            assert parts[0] == len(self._streams)
            self._streams.append(parts[1])
            return None
        if kind >= 0 or kind == -9:
            stream, values, *rest = (kind, *parts) if kind >= 0 else parts
            message = {"command": "emit", "tuple": values, "need_task_ids": False}
            if self._streams[stream] != "default":
                message["stream"] = self._streams[stream]
            if rest:
                message |= zip(("anchors", "id", "task", "need_task_ids"), rest, strict=True)
            return message
        names = {-2: ("ack", "id"), -3: ("fail", "id"), -4: ("sync",), -5: ("log", "msg", "level")}
        names |= {-6: ("error", "msg"), -7: ("metrics", "name", "params")}
        command, *fields = names[kind]
        return {"command": command} | dict(zip(fields, parts, strict=True))


def same(one, other):
    """Equal, of the same types, and NaN is NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, float):
        signs = math.copysign(1, one), math.copysign(1, other)
        return (math.isnan(one) and math.isnan(other)) or (one == other and signs[0] == signs[1])
    return one == other
