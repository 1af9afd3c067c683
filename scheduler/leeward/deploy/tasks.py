"""Tasks for `fab`, and the hook of `sparse submit`: a streamparse project's fabfile.py imports them.

from leeward.deploy.tasks import deploy, deploy_status, pre_submit, rollback
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fabric.api import abort, env, hosts, task

from leeward.core.errors import LeewardError
from leeward.core.secrets import NO_SECRETS, Secrets
from leeward.core.topology_conf import check_conf
from leeward.deploy.artifacts import flag, gather, load_inventory, path_or_none, secrets_of
from leeward.deploy.health import Health
from leeward.deploy.inventory import Host, Inventory
from leeward.deploy.over_fabric import OverFabric
from leeward.deploy.shell import Shell
from leeward.local.submit import check_name_free, check_no_password

INVENTORY = "deploy.toml"


@task  # type: ignore[untyped-decorator]
@hosts("localhost")  # type: ignore[untyped-decorator]
def deploy(
    inventory: str = INVENTORY, wheel: str = "", requirements: str = "", runtime_requirements: str = "",
    wheels: str = "", plugin: str = "", settings: str = "", secrets: str = "", dry_run: str = "", replace: str = "",
) -> None:  # fmt: skip
    """Put Leeward on a cluster's hosts: fab deploy:wheel=FILE[,inventory=deploy.toml,dry_run=1] [-R nimbus]"""
    with aborting():
        found, chosen = _chosen(inventory)
        artifacts = gather(
            found,
            wheel=path_or_none(wheel),
            requirements=path_or_none(requirements),
            runtime_requirements=path_or_none(runtime_requirements),
            wheels=path_or_none(wheels),
            plugin=path_or_none(plugin),
            settings=path_or_none(settings),
            secrets=path_or_none(secrets),
        )
        shell = _shell(found, secrets_of(artifacts, path_or_none(secrets)))
        shell.deploy(chosen, artifacts, dry_run=flag("dry_run", dry_run), replace=flag("replace", replace))


@task  # type: ignore[untyped-decorator]
@hosts("localhost")  # type: ignore[untyped-decorator]
def rollback(inventory: str = INVENTORY, dry_run: str = "") -> None:
    """Give the hosts again what they had before the last rollout: fab rollback[:dry_run=1] [-R nimbus]"""
    with aborting():
        found, chosen = _chosen(inventory)
        _shell(found).rollback(chosen, dry_run=flag("dry_run", dry_run))


@task  # type: ignore[untyped-decorator]
@hosts("localhost")  # type: ignore[untyped-decorator]
def deploy_status(inventory: str = INVENTORY) -> None:
    """The last rollout of each host, and what has changed since."""
    with aborting():
        found, chosen = _chosen(inventory)
        print("\n".join(_shell(found).status(chosen)))


def _chosen(inventory: str) -> tuple[Inventory, tuple[Host, ...]]:
    """The inventory, and its hosts with the roles of `fab -R` and the names of `fab -H`.

    The tasks run once, and reach the hosts themselves.
    """
    found = load_inventory(Path(inventory))
    return found, found.select(env.roles, env.hosts)


def _shell(inventory: Inventory, secrets: Secrets = NO_SECRETS) -> Shell:
    way = OverFabric(inventory)
    return Shell(inventory, way, Health(inventory, way, secrets), print)


def pre_submit(topology_name: str, env_name: str, env_config: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Called by `sparse submit`: refuse passwords, unknown keys and a taken name, before anything is uploaded."""
    from streamparse.util import get_nimbus_host_port, is_ssh_for_nimbus

    with aborting():
        check_no_password(options)
        check_conf(options)
        if not is_ssh_for_nimbus(env_config):
            host, port = get_nimbus_host_port(env_config)
            check_name_free(topology_name, f"{host}:{port}")


@contextmanager
def aborting() -> Iterator[None]:
    """Turn an expected error into Fabric's abort."""
    try:
        yield
    except LeewardError as error:
        abort(str(error))
