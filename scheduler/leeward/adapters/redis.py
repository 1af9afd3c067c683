"""SnapshotStore on Redis. Keys are those of `leeward.runtime.state.store`.

Where tasks keep bytes in fragments at agents, their addresses are there too; deleted cuts are deleted at agents, too.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.resources import files

import redis

from leeward.adapters.fragment_drops import FragmentDrops
from leeward.control.ports import StreamFacts
from leeward.core.errors import ClusterRefusedError
from leeward.core.metrics import LEFT_FIELD, WRITTEN_FIELD
from leeward.core.secrets import NO_SECRETS, Secrets, without_password
from leeward.wire.redis import client

_FENCE = files("leeward.adapters").joinpath("lua/fence.lua").read_text()
_BATCH = 500
#: Newest results looked at for the response time.
_RESULTS = 50


class RedisSnapshots:
    """See the module. Raises ClusterRefusedError when Redis is away, read-only or full."""

    def __init__(self, url: str, *, secrets: Secrets = NO_SECRETS, timeout_s: float = 5.0) -> None:
        self._shown = without_password(url)
        self._redis = client(url, secrets=secrets, timeout_s=timeout_s)
        self._looks = client(url, secrets=secrets, timeout_s=timeout_s, tries=2)  # often, and a look may fail
        self._fence = self._redis.register_script(_FENCE)
        self._drops = FragmentDrops(secrets.agent_secret.encode())

    def raise_fence(self, topology_id: str, epoch: int, base: int = 0) -> None:
        with self._asking():
            self._fence(keys=[f"leeward:{topology_id}:fence", f"leeward:{topology_id}:base"], args=[epoch, base])

    def delete_cuts(self, topology_id: str, *, below: int) -> int:
        prefix = f"leeward:{topology_id}:cut:"
        deleted = 0
        with self._asking():
            doomed: list[bytes] = []
            for key in self._redis.scan_iter(match=_escaped(prefix) + "*", count=_BATCH):
                number = key[len(prefix) :].split(b":", 1)[0]
                if number.isdigit() and int(number) < below:
                    doomed.append(key)
            for start in range(0, len(doomed), _BATCH):
                deleted += self._redis.unlink(*doomed[start : start + _BATCH])
            self._drops.drop(self._agents(topology_id), topology_id, below)
        return deleted

    def _agents(self, topology_id: str) -> list[str]:
        """That may have fragments of this topology."""
        return [address.decode() for address in self._redis.smembers(f"leeward:{topology_id}:agents")]

    def keys_by_topology(self) -> Mapping[str, int]:
        """Topology id -> number of Leeward's keys of it."""
        counts: Counter[str] = Counter()
        with self._asking():
            for key in set(self._redis.scan_iter(match="leeward:*:*", count=_BATCH)):
                counts[key.split(b":", 2)[1].decode(errors="replace")] += 1
        return counts

    def delete_topology(self, topology_id: str) -> int:
        """Delete every key of Leeward's of this topology; how many."""
        deleted = 0
        with self._asking():
            self._drops.drop(self._agents(topology_id), topology_id, wait=True)
            doomed = list(self._redis.scan_iter(match=_escaped(f"leeward:{topology_id}:") + "*", count=_BATCH))
            for start in range(0, len(doomed), _BATCH):
                deleted += self._redis.unlink(*doomed[start : start + _BATCH])
        return deleted

    def metrics(self, topology_id: str) -> Mapping[int, str]:
        with self._asking():
            found = self._looks.hgetall(f"leeward:{topology_id}:metrics")
        return {int(task): line.decode() for task, line in found.items()}

    def beats(self, topology_id: str) -> Mapping[int, str]:
        with self._asking():
            found = self._looks.hgetall(f"leeward:{topology_id}:alive")
        return {int(task): beat.decode() for task, beat in found.items()}

    def streams(self, source: str, results: str) -> StreamFacts:
        left, written = LEFT_FIELD.encode(), WRITTEN_FIELD.encode()
        last = done = 0
        pairs: list[tuple[float, float]] = []
        now: float | None = None
        with self._asking():
            if source:
                newest = self._looks.xrevrange(source, count=1)
                last = int(newest[0][0].split(b"-")[0]) if newest else 0
                done = int(_figure(self._looks.hget(f"{source}:progress", "seq")) or 0)
            if results:
                seconds, micros = self._looks.time()
                now = seconds + micros / 1e6
                for _, fields in self._looks.xrevrange(results, count=_RESULTS):
                    went, came = _figure(fields.get(left)), _figure(fields.get(written))
                    if went is not None and came is not None:
                        pairs.append((went, came))
        return StreamFacts(last=max(last, done), done=done, results=tuple(pairs), now=now)

    def close(self) -> None:
        self._redis.close()
        self._looks.close()

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except (redis.RedisError, OSError) as error:
            raise ClusterRefusedError(
                f"Redis at {self._shown}: {type(error).__name__}: {error}.",
                remedy="Check that it runs, is writable, has memory left, and that leeward.redis.url is right.",
            ) from error


def _figure(text: bytes | None) -> float | None:
    """None for what is no number: the user's code writes these fields."""
    try:
        found = float(text or b"")
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def _escaped(text: str) -> str:
    """For MATCH: glob characters stand for themselves."""
    return re.sub(r"([*?\[\]\\^-])", r"\\\1", text)
