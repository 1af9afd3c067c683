"""Snapshots of tasks in Redis, or at agents, and in the node's swap area.

Redis keys, prefix `leeward:<topology id>:`
  cut:<n>:<component>         hash: key group -> snapshot bytes (`runtime/state/snapshot.py`); empty groups are left out
  cut:<n>:<component>:tasks   hash: task -> MessagePack {owned: [groups], full: [with bytes], swap: [groups], node}, and
                              at: where the bytes are, if they are in fragments at agents (`runtime/state/scattered.py`)
  agents                      set: addresses of agents that may have fragments of this topology
  metrics                     hash: task -> JSON, written each second
  alive                       hash: task -> its last sign of life (`leeward.runtime.task.beat`)
  fence, base                 newest epoch that may write snapshots, newest base that sinks may write under

Bytes count, in Redis or at agents, once the record of their task is there; its script refuses a fenced epoch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgpack

from leeward.core.clocks import Ahead
from leeward.core.errors import FencedError, SnapshotError
from leeward.core.secrets import NO_SECRETS, Secrets
from leeward.runtime.state import snapshot
from leeward.runtime.state.keyed import Entries
from leeward.runtime.state.transfers import Transfers
from leeward.wire.redis import client

if TYPE_CHECKING:
    from leeward.core.fragments import Buffer
    from leeward.runtime.state.scattered import Kept, Scattered  # most tasks do not need it

_EXPORT = files("leeward.runtime").joinpath("lua/export.lua").read_text()
#: Bytes of state in one call of Redis, about: others want its one thread too.
_BATCH_BYTES = 1024 * 1024

#: Where bytes are at agents, and the groups that are wanted of them.
_Scattered = tuple[Mapping[str, Any], list[int]]


class TaskStore:
    """One task's access to snapshots. Raises redis.RedisError when Redis is away, read-only or full."""

    def __init__(
        self,
        url: str,
        topology_id: str,
        component: str,
        task: int,
        *,
        node: str,
        swap: Path,
        secrets: Secrets = NO_SECRETS,
        scattered: Scattered | None = None,
    ) -> None:
        """`scattered`: the agents that get the bytes; None: Redis gets them."""
        self._redis = client(url, secrets=secrets)
        self._topology, self._prefix = topology_id, f"leeward:{topology_id}:"
        self._component, self._task, self._node = component, task, node
        self._swap = swap / topology_id
        self._script = self._redis.register_script(_EXPORT)
        self._scattered, self._told = scattered, set[str]()
        self._ahead = Ahead()
        self.transfers = Transfers()  #: of this process

    def export(
        self,
        cut: int,
        epoch: int,
        blobs: Mapping[int, bytes],
        owned: Iterable[int],
        swap: Mapping[int, bytes],
    ) -> float:
        """Write this task's groups: `blobs` to Redis or the agents, `swap` to the node.

        Returns the longest time until the next checkpoint that the settings of the agents' scheme allow, s; 0: any.
        Raises FencedError for an outdated epoch, ConfigError or ClusterRefusedError if agents are missing.
        """
        period_s = 0.0
        if swap:
            self._write_swap(cut, swap)
        about: dict[str, Any] = {
            "owned": list(owned), "full": [*blobs, *swap], "swap": list(swap), "node": self._node,
        }  # fmt: skip
        if self._scattered is not None and blobs:
            self._write(cut, epoch, [])  # a fenced writer need not send its bytes
            about["at"], period_s = self._scatter(self._scattered, cut, epoch, blobs)
            blobs = {}
        batch: list[int | bytes] = []
        size = 0
        for group, blob in blobs.items():
            batch += [group, blob]
            size += len(blob)
            if size >= _BATCH_BYTES:
                self._write(cut, epoch, batch)
                batch, size = [], 0
        self._write(cut, epoch, batch, msgpack.packb(about))
        return period_s

    def _write(self, cut: int, epoch: int, batch: list[int | bytes], about: bytes = b"") -> None:
        """Groups, and with `about` the record that makes them count; raises FencedError."""
        keys = [self._prefix + "fence", self._cut_key(cut), self._cut_key(cut) + ":tasks"]
        start = time.perf_counter()
        answer = self._script(keys=keys, args=[epoch, self._task, about, *batch])
        if batch:
            self.transfers.went_up(sum(map(len, batch[1::2])), time.perf_counter() - start)  # type: ignore[arg-type]
        if answer != 1:
            raise FencedError(
                f"task {self._task} of epoch {epoch} may not write: epoch {-answer} is in force.",
                remedy="Nothing is to be done: a newer process owns this state.",
            )

    def _scatter(self, scattered: Scattered, cut: int, epoch: int, blobs: Mapping[int, bytes]) -> Kept:
        """Bytes to the agents. Redis knows of the agents before they know of the topology, so nothing is left there."""

        def tell(agents: Iterable[str]) -> None:
            new = set(agents) - self._told
            if new:
                self._redis.sadd(self._prefix + "agents", *sorted(new))
                self._told |= new

        return scattered.put(self._topology, cut, f"{self._component}.{self._task}.{epoch}", blobs, tell)

    def load(self, cut: int, groups: Iterable[int]) -> tuple[dict[int, Entries], int]:
        """Entries of these groups as of the cut, and their size in bytes; raises SnapshotError if one cannot be had."""
        wanted = list(groups)
        if cut == 0 or not wanted:
            return {group: {} for group in wanted}, 0
        full, swapped, scattered = self._directory(cut, wanted)
        blobs: dict[int, Any] = {}  # of bytes; None where Redis has none
        if full:
            start = time.perf_counter()
            found = self._redis.hmget(self._cut_key(cut), full)
            self.transfers.came_down(sum(len(blob or b"") for blob in found), time.perf_counter() - start)
            blobs |= dict(zip(full, found, strict=True))
        for at, groups in scattered:
            blobs |= self._gather(cut, at, groups)
            full += groups
        if swapped:
            blobs |= {group: blob for group, blob in self._read_swap(cut).items() if group in swapped}
        entries: dict[int, Entries] = {}
        for group in wanted:
            where = f"cut {cut}, {self._component}, group {group}"
            if group not in full and group not in swapped:
                entries[group] = {}
                continue
            if blobs.get(group) is None:
                raise SnapshotError(f"{where} is missing.", remedy="The coordinator falls back to the cut before it.")
            entries[group] = snapshot.decode(blobs[group], cut=cut, where=where)
        return entries, sum(map(len, blobs.values()))

    def _gather(self, cut: int, at: Mapping[str, Any], groups: list[int]) -> Mapping[int, Buffer]:
        if self._scattered is None:
            raise SnapshotError(
                f"cut {cut}, {self._component}, group {groups[0]} is in fragments at agents.",
                remedy="Set leeward.state.store as it was when the cut was written.",
            )
        return self._scattered.get(self._topology, cut, at, groups)

    def _directory(self, cut: int, wanted: list[int]) -> tuple[list[int], set[int], list[_Scattered]]:
        """Which of the wanted groups have bytes in Redis, which in this node's swap area, and which at agents."""
        full: list[int] = []
        scattered: list[_Scattered] = []
        swapped: set[int] = set()
        missing = set(wanted)
        for task, packed in self._redis.hgetall(self._cut_key(cut) + ":tasks").items():
            about = msgpack.unpackb(packed, strict_map_key=False)
            here = missing & set(about["owned"])
            missing -= here
            in_swap = here & set(about["swap"])
            if in_swap and int(task) != self._task:
                raise SnapshotError(
                    f"cut {cut}, {self._component}, group {min(in_swap)} is in the swap area of task {int(task)} "
                    f"on {about['node']}.",
                    remedy="The coordinator falls back to the cut before it.",
                )
            swapped |= in_swap
            there = sorted(here & set(about["full"]) - in_swap)
            if "at" in about and there:
                scattered.append((about["at"], there))
            else:
                full += there
        if missing:
            raise SnapshotError(
                f"cut {cut}, {self._component}: nobody exported group {min(missing)} ({len(missing)} in all).",
                remedy="The coordinator falls back to the cut before it.",
            )
        return full, swapped, scattered

    def publish_metrics(self, text: str) -> None:
        """Overwrite this task's line in the metrics hash; the same round trip reads the clock of Redis, if wanted."""
        where, task, start = self._prefix + "metrics", str(self._task), time.perf_counter()
        if not self._ahead.wanted(now=time.time(), steady=time.monotonic()):
            self._redis.hset(where, task, text)
            self.transfers.trip_s = time.perf_counter() - start
            return
        both = self._redis.pipeline(transaction=False)
        both.hset(where, task, text)
        both.time()
        asked, steady, start = time.time(), time.monotonic(), time.perf_counter()
        seconds, micros = both.execute()[1]
        self.transfers.trip_s = time.perf_counter() - start
        self._ahead.add(asked=asked, answered=time.time(), theirs=seconds + micros / 1e6, steady=steady)

    @property
    def ahead_s(self) -> float | None:
        """How far the clock of this node is ahead of Redis', s; None before the first metrics."""
        return self._ahead.seconds

    def _cut_key(self, cut: int) -> str:
        return f"{self._prefix}cut:{cut}:{self._component}"

    def _swap_file(self, cut: int) -> Path:
        return self._swap / f"cut-{cut}-{self._component}-{self._task}.swap"

    def _write_swap(self, cut: int, groups: Mapping[int, bytes]) -> None:
        """Durable before it is reported. The file before it stays: its cut may be the one to fall back to."""
        self._swap.mkdir(parents=True, exist_ok=True)
        mine = self._swap.glob(f"cut-*-{self._component}-{self._task}.swap")
        for old in sorted(mine, key=lambda path: int(path.name.split("-")[1]))[:-1]:
            old.unlink(missing_ok=True)
        target = self._swap_file(cut)
        draft = target.with_suffix(".draft")
        with draft.open("wb") as file:
            file.write(msgpack.packb(dict(groups)))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)

    def _read_swap(self, cut: int) -> dict[int, bytes]:
        """By group; raises SnapshotError whatever keeps the file from being read, as an older cut may be whole."""
        file, where = self._swap_file(cut), f"cut {cut}, {self._component}"
        try:
            groups = msgpack.unpackb(file.read_bytes(), strict_map_key=False)
            if not isinstance(groups, dict) or not all(isinstance(blob, bytes) for blob in groups.values()):
                raise ValueError("it is no map of groups to bytes")
        except FileNotFoundError:
            raise SnapshotError(
                f"{where}: the swap area of task {self._task} is not on this node.",
                remedy="The coordinator falls back to the cut before it.",
            ) from None
        except (OSError, ValueError, TypeError, msgpack.UnpackException) as error:
            raise SnapshotError(
                f"{where}: swap file {file} cannot be read: {error}.",
                remedy="The coordinator falls back to the cut before it; look after the disk of this node.",
            ) from error
        return groups
