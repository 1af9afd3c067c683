"""Gathers what a rollout puts on hosts from this machine: jar, settings, wheels, secrets."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from leeward.core.errors import ConfigError
from leeward.core.secrets import NO_SECRETS, Secrets
from leeward.deploy.inventory import Inventory, read_inventory
from leeward.deploy.wanted import Artifacts, Venv, digest_of, venv_of
from leeward.local import places

#: Names of the lists that `make wheels` writes beside the wheels: of the service's requirements, and of the tasks'.
SERVICE_LIST, TASKS_LIST = "service.txt", "tasks.txt"


def load_inventory(path: Path) -> Inventory:
    """The inventory in this file. Raises ConfigError."""
    try:
        document = tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(
            f"inventory: {path} cannot be read: {error.strerror}.", remedy="See docs/deploy.md, or give inventory=FILE."
        ) from None
    except ValueError as error:
        raise ConfigError(f"inventory: {path} is no TOML: {error}.", remedy="Mend it.") from None
    return read_inventory(document)


def gather(
    inventory: Inventory,
    *,
    wheel: Path | None = None,
    requirements: Path | None = None,
    runtime_requirements: Path | None = None,
    wheels: Path | None = None,
    plugin: Path | None = None,
    settings: Path | None = None,
    secrets: Path | None = None,
) -> Artifacts:
    """Everything, read whole. Raises ConfigError that names the argument."""
    jar = _read("plugin", plugin or places.jars() / "leeward-plugin.jar")
    conf = yaml.safe_load(_read("storm_conf", places.storm_conf() / "storm.yaml"))
    service = runtime = None
    if wheel is not None:
        folder = wheels or wheel.parent
        service = _venv(inventory, wheel, ("requirements", requirements or folder / SERVICE_LIST), folder)
        tasks = runtime_requirements or folder / TASKS_LIST
        if runtime_requirements or tasks.is_file():
            runtime = _venv(inventory, wheel, ("runtime_requirements", tasks), folder)
    return Artifacts(
        plugin_jar=jar,
        storm_conf=conf,
        secrets=_read("secrets", secrets) if secrets else None,
        service_conf=_settings(settings) if settings else b"",
        service_venv=service,
        runtime_venv=runtime,
    )


def secrets_of(artifacts: Artifacts, path: Path | None) -> Secrets:
    """The passwords by which daemons are asked. Raises ConfigError."""
    if artifacts.secrets is None:
        return NO_SECRETS
    return Secrets.from_json(artifacts.secrets.decode(errors="replace"), where=f"secrets file '{path}'")


def _settings(path: Path) -> bytes:
    """The service's settings, which are TOML on a host, whatever this file is called. Raises ConfigError."""
    content = _read("settings", path)
    try:
        tomllib.loads(content.decode())
    except ValueError as error:
        raise ConfigError(
            f"settings: {path} is not TOML: {error}.", remedy="Write the service's settings as TOML (docs/settings.md)."
        ) from None
    return content


def _venv(inventory: Inventory, wheel: Path, requirements: tuple[str, Path], folder: Path) -> Venv:
    """The wheels that the requirements name, and Leeward's own. Hashes hold for all of them, or for none.

    `requirements` is the argument that names the list, and the list. Raises ConfigError.
    """
    own, text = _read("wheel", wheel), _read(*requirements).decode()
    argument, listed = requirements
    pins, found = _pins(text), {str(path): _name_and_version(path.name) for path in folder.glob("*.whl")}
    for pin, condition in pins.items():
        # a host's Python decides whether a condition holds; pip on the host says then what is missing
        if not condition and pin not in found.values():
            raise ConfigError(
                f"{argument}: {listed} pins {'=='.join(pin)}, of which {folder} has no wheel.",
                remedy="Run `make wheels` (docs/deploy.md), or give wheels=FOLDER.",
            )
    name, version = wheel.name.split("-")[:2]
    line = f"{name}=={version}" + (f" --hash=sha256:{digest_of(own)}" if "--hash" in text else "")
    chosen = {path: Path(path).read_bytes() for path, pin in found.items() if pin in pins} | {str(wheel): own}
    return venv_of(chosen, f"{text.rstrip()}\n{line}\n".encode(), inventory.python)


def _pins(requirements: str) -> dict[tuple[str, str], bool]:
    """Name and version of each requirement -> whether it has a condition (`; python_full_version < "3.11.3"`)."""
    pins = re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)[ \t]*(;?)", requirements, re.MULTILINE)
    return {(_canonical(name), version): bool(condition) for name, version, condition in pins}


def _name_and_version(wheel: str) -> tuple[str, str]:
    name, version = wheel.split("-")[:2]
    return _canonical(name), version


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _read(argument: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{argument}: {path} cannot be read: {error.strerror}.", remedy=f"Give {argument}=FILE (docs/deploy.md)."
        ) from None


def flag(name: str, value: object) -> bool:
    """An argument of `fab` that is on or off. Raises ConfigError."""
    known: Mapping[str, bool] = {
        "": False,
        "0": False,
        "no": False,
        "false": False,
        "1": True,
        "yes": True,
        "true": True,
    }
    text = str(value).lower()
    if text not in known:
        raise ConfigError(f"{name}: {value!r} is neither yes nor no.", remedy=f"Write {name}=1, or leave it out.")
    return known[text]


def path_or_none(value: Any) -> Path | None:
    """An argument of `fab` that names a file; empty: none."""
    return Path(str(value)) if value else None
