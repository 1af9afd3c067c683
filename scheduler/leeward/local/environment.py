"""Which environment of a streamparse project's config.json a topology is submitted to. Pure but for `read_config`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from leeward.core.errors import ConfigError

#: The environment of a cluster on this machine. A project that has none of this name gets `LOCAL_ENVIRONMENT`.
LOCAL = "local"
LOCAL_ENVIRONMENT = {"use_ssh_for_nimbus": False, "use_virtualenv": False}


class Environment(NamedTuple):
    """An environment, and the config.json in which `sparse submit` finds it."""

    name: str
    nimbus: str  #: host:port
    ssh: bool  #: Nimbus is reached through ssh
    config: Mapping[str, Any] | None  #: None: the project's own file as it is


def read_config(file: Path) -> dict[str, Any]:
    """A streamparse project's configuration. Raises ConfigError, which names the file."""
    try:
        document = json.loads(file.read_text())
    except FileNotFoundError:
        raise ConfigError(
            f"config: {file} does not exist.", remedy="Go to a streamparse project's folder, or give --config FILE."
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"config: {file} cannot be read: {error}.", remedy="Write JSON.") from None
    if not isinstance(document, dict) or not isinstance(document.get("envs", {}), dict):
        raise ConfigError(f"config: {file} has no object 'envs'.", remedy='Write {"envs": {}} at least.')
    return document


def choose(config: Mapping[str, Any], name: str | None, nimbus: str | None) -> Environment:
    """The environment of that name with its own Nimbus; without a name the local cluster's, with this Nimbus.

    Raises ConfigError for a name that the configuration does not have, and for one without a Nimbus.
    """
    known: Mapping[str, Any] = config.get("envs", {})
    if name is None:
        own = known.get(LOCAL)
        changed = None if own is not None else {**config, "envs": {LOCAL: LOCAL_ENVIRONMENT | {"nimbus": nimbus}}}
        return Environment(LOCAL, nimbus or "", False, changed)
    if name not in known:
        raise ConfigError(
            f"environment: {name!r} is not in config.json.",
            remedy=f"It has {', '.join(sorted(known)) or 'none'}; without -e the local cluster is used.",
        )
    found: Mapping[str, Any] = known[name]
    address = str(found.get("nimbus") or "")
    if not address:
        raise ConfigError(f"environment {name!r}: nimbus is empty.", remedy="Write the host of Nimbus in config.json.")
    return Environment(
        name, address if ":" in address else f"{address}:6627", found.get("use_ssh_for_nimbus", True), None
    )


def choose_topology(topology: str | None, folder: Path) -> str:
    """The name of a file there; None: the only one. Raises ConfigError."""
    known = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    if topology is None and len(known) == 1:
        return known[0]
    if topology is None:
        raise ConfigError(f"topology: {folder} has {len(known)}.", remedy=f"Name one: {', '.join(known) or 'none'}.")
    if topology not in known:
        raise ConfigError(f"topology: no {folder / topology}.py.", remedy=f"There are: {', '.join(known) or 'none'}.")
    return topology
