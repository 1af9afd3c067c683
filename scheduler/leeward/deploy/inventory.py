"""Which hosts there are, and what each shall run: the document of `deploy.toml`. Pure: a document in, values out.

storm_home = "/opt/storm"
redis = "redis://data.example:6379/0"

[[host]]
name = "nimbus"
address = "storm@nimbus.example"
roles = ["nimbus", "service"]

[storm]                                  # settings of storm.yaml beside Leeward's own
"storm.local.hostname" = "nimbus.example"
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from leeward.core.errors import ConfigError
from leeward.core.options import refuse_unknown
from leeward.core.secrets import refuse_password

#: Signs that mean something to a shell, in values that go into scripts as they are.
_UNSAFE = " '\"\\\n\t$`;&|<>()*?[]{}#~!%"


class Role(StrEnum):
    """The part of a cluster that a host is."""

    NIMBUS = "nimbus"
    SUPERVISOR = "supervisor"
    DATASTORE = "datastore"  #: has ZooKeeper and Redis, which are asked, never changed
    SERVICE = "service"  #: runs `leeward serve`


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One machine that ssh reaches."""

    name: str
    address: str  #: as ssh takes it: [user@]host[:port]
    roles: frozenset[Role]
    storm_home: str
    folder: str  #: Leeward's own folder there


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """All hosts, and what holds for each of them. Raises ConfigError naming field, value and remedy."""

    hosts: tuple[Host, ...]
    redis: str  #: URL without a password
    nimbus: tuple[str, ...] = ()  #: host:port as the service reaches it; default: the hosts with that role
    zookeeper_port: int = 2181
    nimbus_port: int = 6627
    user: str = ""  #: runs Storm's daemons and the service; "": the user of ssh
    python: str = "python3"  #: makes the virtual environments
    restart_nimbus: str = "systemctl restart storm-nimbus"
    serve: tuple[str, ...] = ()  #: more options of `leeward serve`, word by word
    log_dir: str = ""  #: of the service without systemd; "": its folder
    sudo: bool = False
    health_s: float = 120.0  #: a daemon that is not healthy by then makes the rollout fail
    storm: Mapping[str, object] = field(default_factory=dict)  #: settings of storm.yaml

    def __post_init__(self) -> None:
        names = [host.name for host in self.hosts]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigError(f"host: {twice[0]!r} is there twice.", remedy="Give each host a name of its own.")
        if not names:
            raise ConfigError("host: there is none.", remedy="Write a [[host]] with name, address and roles.")
        plain_words = [("user", self.user), ("log_dir", self.log_dir)]
        plain_words += [(name, word) for name in ("nimbus", "serve") for word in getattr(self, name)]
        plain_words += [(f"host {host.name!r}: address", host.address) for host in self.hosts]
        for field_, text in plain_words:
            if any(sign in text for sign in _UNSAFE):
                raise ConfigError(
                    f"{field_}: {text!r} has a blank, or a sign that a shell takes for its own.",
                    remedy="Name it without.",
                )
        if self.sudo and not self.user:
            raise ConfigError(
                "user: is missing beside sudo: the service would run as root, and Storm could not read the secrets.",
                remedy='Write user = "storm", the user of Storm\'s daemons.',
            )
        refuse_password("redis", self.redis)
        if urlsplit(self.redis).scheme != "redis":
            raise ConfigError(f"redis: {self.redis!r} is no URL of Redis.", remedy="Write redis://host:port/0.")

    @property
    def nimbus_addresses(self) -> tuple[str, ...]:
        """host:port of each Nimbus, as the service reaches it."""
        return self.nimbus or tuple(
            f"{plain(host.address)}:{self.nimbus_port}" for host in self.hosts if Role.NIMBUS in host.roles
        )

    @property
    def redis_host(self) -> str:
        """The name under which all reach Redis."""
        return urlsplit(self.redis).hostname or "localhost"

    @property
    def redis_port(self) -> int:
        """Where Redis listens on the host with the role datastore."""
        return urlsplit(self.redis).port or 6379

    def select(self, roles: Iterable[str], names: Iterable[str] = ()) -> tuple[Host, ...]:
        """The hosts with any of these roles or names; without both all. Raises ConfigError for an unknown one."""
        wanted = {role_of(role, "-R") for role in roles}
        named, known = set(names), {host.name for host in self.hosts}
        if unknown := sorted(named - known):
            raise ConfigError(
                f"-H: {unknown[0]!r} is not in the inventory.", remedy=f"Use of {', '.join(sorted(known))}."
            )
        everywhere = not wanted and not named
        return tuple(host for host in self.hosts if everywhere or host.roles & wanted or host.name in named)


def plain(address: str) -> str:
    """The host name of an address of ssh, without user and port."""
    return address.rpartition("@")[2].partition(":")[0]


def role_of(text: str, where: str) -> Role:
    """A role by its name. Raises ConfigError."""
    try:
        return Role(text)
    except ValueError:
        raise ConfigError(f"{where}: role {text!r} is not known.", remedy=f"Use of {', '.join(Role)}.") from None


_HOST_KEYS = ("name", "address", "roles", "storm_home", "folder")
_TYPES: dict[str, type | tuple[type, ...]] = {
    "redis": str, "nimbus": list, "serve": list, "zookeeper_port": int, "nimbus_port": int, "user": str, "python": str,
    "restart_nimbus": str, "log_dir": str, "sudo": bool, "health_s": (int, float), "storm": dict,
}  # fmt: skip


def read_inventory(document: Mapping[str, Any]) -> Inventory:
    """The inventory of a document. Raises ConfigError."""
    known = [entry.name for entry in fields(Inventory) if entry.name != "hosts"]
    refuse_unknown("field of the inventory", document, [*known, "host", "storm_home", "folder"])
    given = {name: value for name, value in document.items() if name in known}
    if "redis" not in given:
        raise ConfigError("redis: is missing in the inventory.", remedy='Write redis = "redis://host:6379/0".')
    for name, value in given.items():
        if not isinstance(value, _TYPES[name]) or (isinstance(value, bool) and _TYPES[name] is not bool):
            raise ConfigError(f"{name}: {value!r} has a wrong type.", remedy="See docs/deploy.md.")
    for name in ("nimbus", "serve"):
        if name in given:
            given[name] = tuple(map(str, given[name]))
    entries = document.get("host", [])
    if not isinstance(entries, list):
        raise ConfigError(f"host: {entries!r} is no list.", remedy="Write [[host]], with two brackets.")
    return Inventory(hosts=tuple(_host(entry, document) for entry in entries), **given)


def _host(entry: Mapping[str, Any], document: Mapping[str, Any]) -> Host:
    name = str(entry.get("name") or entry.get("address") or "?")
    where = f"host {name!r}"
    refuse_unknown(f"field of {where}", entry, _HOST_KEYS)
    roles = entry.get("roles")
    if not isinstance(roles, list) or not roles:
        raise ConfigError(f"{where}: roles is {roles!r}.", remedy=f"Write a list of {', '.join(Role)}.")
    folders = {}
    for key, default in (("storm_home", "/opt/storm"), ("folder", "/opt/leeward")):
        path = str(entry.get(key) or document.get(key) or default)
        if not PurePosixPath(path).is_absolute() or any(sign in path for sign in _UNSAFE):
            raise ConfigError(f"{where}: {key} is {path!r}.", remedy="Give an absolute path without blanks and quotes.")
        folders[key] = path.rstrip("/")
    found = frozenset(role_of(str(role), where) for role in roles)
    return Host(name=name, address=str(entry.get("address") or name), roles=found, **folders)
