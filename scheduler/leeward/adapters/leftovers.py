"""LeftoverStore on ZooKeeper, Redis and this node's swap areas."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kazoo.client import KazooClient
from kazoo.exceptions import BadVersionError, NoNodeError, NotEmptyError

from leeward.adapters.control_store import asking
from leeward.adapters.redis import RedisSnapshots
from leeward.core.control import Paths
from leeward.core.errors import PlanError
from leeward.core.leftovers import Leftover
from leeward.core.plan import Placement


class ServerLeftovers:
    """See the module. Redis goes first: a topology's znode shows that there may be keys of it."""

    def __init__(
        self, client: KazooClient, root: str, snapshots: RedisSnapshots, *, storm_root: str = "/storm",
        swaps: Sequence[Path] = (),
    ) -> None:  # fmt: skip
        """`storm_root`: below it Storm keeps its own znodes (storm.zookeeper.root). `swaps`: this node's swap areas."""
        self._client, self._root, self._snapshots = client, root, snapshots
        self._storms, self._swaps = f"{storm_root}/storms", swaps

    def found(self) -> Mapping[str, Leftover]:
        keys = self._snapshots.keys_by_topology()
        swapped = {path.name for area in self._swaps if area.is_dir() for path in area.iterdir()}
        with asking("look for what topologies have left"):
            placed = {placement.topology_id: name for name, placement, _ in self._placements()}
            ids = {*_children(self._client, f"{self._root}/topologies"), *placed, *keys, *swapped}
            return {
                topology_id: Leftover(
                    znodes=sum(1 for _ in _tree(self._client, Paths(self._root, topology_id).base)),
                    placement=placed.get(topology_id, ""),
                    keys=keys.get(topology_id, 0),
                    swaps=tuple(map(str, self._swaps_of(topology_id))),
                    listed=self._client.retry(self._client.exists, f"{self._storms}/{topology_id}") is not None,
                )
                for topology_id in ids
            }

    def delete(self, topology_id: str) -> Leftover:
        keys = self._snapshots.delete_topology(topology_id)
        with asking(f"delete what {topology_id} has left"):
            mine = [(name, version) for name, found, version in self._placements() if found.topology_id == topology_id]
            placements = [name for name, version in mine if self._drop(name, version)]
            tree = _tree(self._client, Paths(self._root, topology_id).base)
            znodes = sum(_delete(self._client, path) for path in tree)
        swaps = self._swaps_of(topology_id)
        for path in swaps:
            shutil.rmtree(path, ignore_errors=True)
        return Leftover(znodes=znodes, placement="".join(placements), keys=keys, swaps=tuple(map(str, swaps)))

    def _swaps_of(self, topology_id: str) -> list[Path]:
        return [area / topology_id for area in self._swaps if (area / topology_id).is_dir()]

    def _placements(self) -> Iterator[tuple[str, Placement, int]]:
        """Name, placement and version of those that can be read."""
        parent = Paths.placement(self._root, "").rstrip("/")
        for name in _children(self._client, parent):
            try:
                text, stat = self._client.retry(self._client.get, f"{parent}/{name}")
                yield name, Placement.from_json(text), stat.version
            except (NoNodeError, PlanError):
                continue

    def _drop(self, name: str, version: int) -> bool:
        """Unless a topology of the same name has written its own meanwhile."""
        return _delete(self._client, Paths.placement(self._root, name), version)


def _children(client: KazooClient, path: str) -> list[str]:
    try:
        return sorted(client.retry(client.get_children, path))
    except NoNodeError:
        return []


def _tree(client: KazooClient, path: str) -> Iterator[str]:
    """The znode and all below it, the lowest first; nothing if it is not there."""
    for name in _children(client, path):
        yield from _tree(client, f"{path}/{name}")
    if client.retry(client.exists, path):
        yield path


def _delete(client: KazooClient, path: str, version: int = -1) -> bool:
    """False if it is not there, has another version, or has a child written just now."""
    try:
        client.retry(client.delete, path, version=version)
        return True
    except (NoNodeError, NotEmptyError, BadVersionError):
        return False
