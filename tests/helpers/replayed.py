"""What a replay has written into Redis, and what it should have."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import redis

from leeward.replay.rows import judge

MANY = 10**9  # a limit that no test reaches


def rows_in(client: redis.Redis, stream: str = "taxi:in") -> list[bytes]:
    """The raw rows, after checking the contract of the whole stream: ids from 1, times, the end entry."""
    entries = client.xrange(stream)
    assert [entry for entry, _ in entries] == [b"%d-0" % seq for seq in range(1, len(entries) + 1)]
    *rows, (_, end) = entries
    assert end[b"end"] == b"1"
    assert b"r" not in end
    for _, fields in rows:
        assert int(fields[b"t"]) == judge(fields[b"r"].decode())
        assert abs(float(fields[b"w"]) - time.time()) < 600
    return [fields[b"r"] for _, fields in rows]


def lines_of(path: Path) -> list[bytes]:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()
