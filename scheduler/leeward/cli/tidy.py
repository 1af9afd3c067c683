"""`leeward tidy`: deletes what killed topologies have left in ZooKeeper, Redis and swap areas.

Exit codes: 0 done, also if there was nothing, 1 a server refused, 2 bad input.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leeward.cli._common import refusing
from leeward.cli._service import ClusterOption, NimbusOption, ZooKeeperOption, addresses_of

if TYPE_CHECKING:
    from leeward.adapters.nimbus import NimbusClient
    from leeward.adapters.wiring import Addresses
    from leeward.control.ports import LeftoverStore
    from leeward.control.tidying import Found

EXAMPLE = """Example: leeward tidy --dry-run --cluster out/cluster

Nimbus must answer, before and after the look, and Storm's own znode of the topology must be gone; a topology that was
submitted in the last minute is left. An application's own keys in Redis are not touched."""
RedisOption = Annotated[
    str | None, typer.Option("--redis", metavar="URL", help="Redis; default: as Nimbus or a running topology says.")
]


def register(app: typer.Typer) -> None:
    """Adds the command to the application."""
    app.command("tidy", epilog=EXAMPLE)(tidy)


def tidy(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be deleted; delete nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    swap: Annotated[
        list[Path] | None,
        typer.Option("--swap", metavar="DIR", help="A swap area of this node (leeward-swap); repeat for more."),
    ] = None,
    orphans: Annotated[
        bool, typer.Option("--orphans", help="Also keys that ZooKeeper knows nothing of: no other cluster uses Redis.")
    ] = False,
    nimbus: NimbusOption = None,
    zookeeper: ZooKeeperOption = None,
    redis: RedisOption = None,
    cluster: ClusterOption = None,
) -> None:
    """Delete what topologies that no longer run have left in ZooKeeper, in Redis and in swap areas."""
    with refusing():
        import time

        from leeward.control.tidying import survey

        addresses = addresses_of(nimbus, zookeeper, redis, cluster)
        with _stores(addresses, [*(swap or []), *_local_swaps(nimbus, cluster)]) as (asked, leftovers):
            found = survey(asked, leftovers, time.time(), orphans=orphans)
            for topology_id, it in found.items():
                if not (it.why or dry_run):
                    leftovers.delete(topology_id)
    shown = {topology_id: it for topology_id, it in found.items() if it.why != "runs"}
    if as_json:
        typer.echo(json.dumps(_document(shown, dry_run), indent=2))
    else:
        _print(shown, dry_run)


@contextmanager
def _stores(addresses: Addresses, swaps: Sequence[Path]) -> Iterator[tuple[NimbusClient, LeftoverStore]]:
    """Nimbus, and everything that topologies leave behind."""
    from leeward.adapters.leftovers import ServerLeftovers
    from leeward.adapters.nimbus import NimbusClient
    from leeward.adapters.redis import RedisSnapshots
    from leeward.adapters.wiring import known_secrets, root_of, storm_root_of, zookeeper_of
    from leeward.adapters.zookeeper import connect
    from leeward.core.topology_conf import REDIS_URL

    with ExitStack() as stack:
        nimbus = NimbusClient(addresses.nimbus)
        stack.callback(nimbus.close)
        conf = nimbus.conf()
        with_redis = conf if addresses.redis_url else _conf_with_redis(nimbus, conf)
        secrets = known_secrets(with_redis, addresses)
        url = addresses.redis_url or str(with_redis[REDIS_URL.name])
        snapshots = RedisSnapshots(url, secrets=secrets)
        stack.callback(snapshots.close)
        client = connect(addresses.zookeeper or zookeeper_of(conf), secrets=secrets)
        stack.callback(client.close)
        stack.callback(client.stop)
        yield nimbus, ServerLeftovers(client, root_of(conf), snapshots, storm_root=storm_root_of(conf), swaps=swaps)


def _conf_with_redis(nimbus: NimbusClient, conf: Mapping[str, Any]) -> Mapping[str, Any]:
    """The configuration that says where Redis and its password are: Nimbus', else that of a running topology. Without
    Redis nothing is deleted: the znodes say which keys are to be looked for.
    """
    from leeward.core.errors import ConfigError
    from leeward.core.topology_conf import REDIS_URL

    confs = (conf, *(nimbus.structure(name).conf for name in nimbus.topologies()))
    for one in confs:
        if isinstance(one.get(REDIS_URL.name), str):
            return one
    raise ConfigError(
        "leeward.redis.url is neither in Nimbus' configuration nor in that of a running topology.",
        remedy="Give --redis redis://host:port/0.",
    )


def _local_swaps(nimbus: Sequence[str] | None, cluster: Path | None) -> list[Path]:
    """Those of the local cluster's supervisors, unless another cluster was named."""
    from leeward.cli._common import DEFAULT_DIR

    folder = cluster or (None if nimbus else DEFAULT_DIR)
    return sorted(folder.glob("supervisor-*/leeward-swap")) if folder else []


def _document(found: Mapping[str, Found], dry_run: bool) -> dict[str, object]:
    def values(topology_id: str, it: Found) -> dict[str, object]:
        left = it.left
        return {
            "topology_id": topology_id, "znodes": left.znodes, "keys": left.keys, "placement": left.placement,
            "swaps": list(left.swaps),
        }  # fmt: skip

    gone = [values(name, it) for name, it in found.items() if not it.why]
    stays = [values(name, it) | {"why": it.why} for name, it in found.items() if it.why]
    return {"dry_run": dry_run, "deleted": gone, "left": stays}


def _print(found: Mapping[str, Found], dry_run: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    if not found:
        console.print("killed topologies have left nothing")
        return
    table = Table("topology", "znodes", "Redis keys", "placement", "swap areas", "", box=None)
    for topology_id, it in found.items():
        left = it.left
        fate = f"left: {it.why}" if it.why else "would be deleted" if dry_run else "deleted"
        table.add_row(topology_id, str(left.znodes), str(left.keys), left.placement, str(len(left.swaps)), fate)
    console.print(table)
