"""The files that each host shall have, from inventory, artifacts and facts. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from leeward.core.secrets import FILE_KEY
from leeward.core.topology_conf import REDIS_URL
from leeward.deploy import service, storm_yaml
from leeward.deploy.facts import UNIT, Facts
from leeward.deploy.inventory import Host, Inventory, Role

PLUGIN_CLASS = "leeward.plugin.PlanScheduler"
PLUGIN_JAR = "leeward-plugin.jar"
#: A virtual environment needs so many times the size of its wheels, which are packed.
UNPACKED = 5


def digest_of(content: bytes) -> str:
    """sha256 of a content."""
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file as it shall be."""

    path: str
    content: bytes = field(repr=False)
    mode: int = 0o644
    owner: str = ""  #: "": the user of ssh
    keeps: bool = False  #: mode and owner are those of the file that is there, if there is one
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", digest_of(self.content))


@dataclass(frozen=True, slots=True, kw_only=True)
class Venv:
    """A virtual environment as it shall be. It is never changed after it was made: another one has another digest."""

    digest: str
    wheels: tuple[str, ...]  #: files of this machine that are sent; each is installed without a registry
    requirements: bytes = field(repr=False)
    size: int  #: bytes that it takes on the host, estimated


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifacts:
    """All that a rollout puts on hosts, as it lies on this machine."""

    plugin_jar: bytes = field(repr=False)
    storm_conf: Mapping[str, object]  #: settings of storm_conf/storm.yaml
    secrets: bytes | None = field(default=None, repr=False)
    #: settings of the service, TOML
    service_conf: bytes = field(default=b"", repr=False)
    #: of the host with the role service, and of the supervisors' tasks; None: none is installed
    service_venv: Venv | None = None
    runtime_venv: Venv | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """All of Leeward's on one host."""

    host: Host
    files: tuple[File, ...]
    venv: Venv | None = None
    #: fingerprints of all managed paths: files, and the link to the virtual environment
    fingerprints: Mapping[str, str]


def managed_paths(host: Host) -> tuple[str, ...]:
    """Every path that a rollout may write on this host, whatever its roles; facts are asked about them."""
    home, folder = host.storm_home, host.folder
    return (
        f"{home}/extlib-daemon/{PLUGIN_JAR}", f"{home}/conf/storm.yaml", f"{folder}/secrets.json",
        f"{folder}/leeward.toml", f"{folder}/venv", f"{folder}/service.sh", unit_path(), f"{folder}/rollout.json",
    )  # fmt: skip


def unit_path() -> str:
    """Where systemd looks for the service's unit."""
    return f"/etc/systemd/system/{UNIT}"


def secrets_path(host: Host) -> str:
    """Where the secrets file of a host is."""
    return f"{host.folder}/secrets.json"


def wanted_of(host: Host, inventory: Inventory, artifacts: Artifacts, facts: Facts) -> Wanted:
    """Everything that this host shall have. Raises ConfigError if its storm.yaml contradicts."""
    files: list[File] = []
    roles, home = host.roles, host.storm_home
    if Role.NIMBUS in roles:
        files.append(File(path=f"{home}/extlib-daemon/{PLUGIN_JAR}", content=artifacts.plugin_jar))
    if roles & {Role.NIMBUS, Role.SUPERVISOR}:
        text = _storm_yaml(host, inventory, artifacts, facts)
        files.append(File(path=f"{home}/conf/storm.yaml", content=text.encode(), keeps=True))
    if artifacts.secrets is not None and roles - {Role.DATASTORE}:
        path = secrets_path(host)
        files.append(File(path=path, content=artifacts.secrets, mode=0o600, owner=inventory.user))
    venv = None
    if Role.SERVICE in roles:
        venv = artifacts.service_venv
        files += _service_files(host, inventory, artifacts, facts)
    elif Role.SUPERVISOR in roles:
        venv = artifacts.runtime_venv
    found = {file.path: file.digest for file in files}
    if venv is not None:
        found[f"{host.folder}/venv"] = f"-> venvs/{venv.digest}"
    return Wanted(host=host, files=tuple(files), venv=venv, fingerprints=found)


def _storm_yaml(host: Host, inventory: Inventory, artifacts: Artifacts, facts: Facts) -> str:
    demanded: dict[str, object] = {REDIS_URL.name: inventory.redis}
    if artifacts.secrets is not None:
        demanded[FILE_KEY] = secrets_path(host)
    if Role.NIMBUS in host.roles:
        demanded["storm.scheduler"] = PLUGIN_CLASS
    where = f"host {host.name}: {host.storm_home}/conf/storm.yaml"
    return storm_yaml.merged(
        facts.storm_yaml, artifacts.storm_conf, demanded={**demanded, **inventory.storm}, where=where
    )


def _service_files(host: Host, inventory: Inventory, artifacts: Artifacts, facts: Facts) -> list[File]:
    conf = File(path=f"{host.folder}/leeward.toml", content=artifacts.service_conf)
    has_secrets = artifacts.secrets is not None
    if facts.systemd:
        return [conf, File(path=unit_path(), content=service.unit(host, inventory, secrets=has_secrets).encode())]
    script = service.script(host, inventory, secrets=has_secrets)
    return [conf, File(path=f"{host.folder}/service.sh", content=script.encode(), mode=0o755)]


def venv_of(wheels: Mapping[str, bytes], requirements: bytes, python: str) -> Venv:
    """A virtual environment of these wheels (path on this machine -> content); its digest stands for all of it."""
    parts = [python, digest_of(requirements), *sorted(digest_of(content) for content in wheels.values())]
    size = UNPACKED * sum(len(content) for content in wheels.values()) + (20 << 20)
    digest = digest_of("\n".join(parts).encode())[:16]
    return Venv(digest=digest, wheels=tuple(sorted(wheels)), requirements=requirements, size=size)
