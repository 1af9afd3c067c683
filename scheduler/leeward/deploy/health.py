"""Whether daemons are healthy, asked through ssh's connection: nothing needs to be installed on the hosts for it."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

import redis

from leeward.core.secrets import NO_SECRETS, Secrets
from leeward.deploy.errors import HostError
from leeward.deploy.inventory import Host, Inventory, Role, plain
from leeward.deploy.steps import Check
from leeward.local.nimbus import Summary, fetch_summary

#: A daemon has to be healthy for so long: one that dies soon after its start is not.
STEADY_S = 8.0
_PAUSE_S = 0.5
_PATIENCE_S = 5.0
_EVICTS = "Redis may evict state when its memory is full; set maxmemory-policy to noeviction"


class Reaches(Protocol):
    """How a host is reached."""

    def run(self, host: Host, script: str, *, patience_s: float = 60.0) -> str:
        """Run a script with `sh`; its output. Raises HostError if it fails, or takes longer."""

    def forward(self, host: Host, port: int, to: str = "localhost") -> AbstractContextManager[tuple[str, int]]:
        """An address on this machine that leads to the port, as the host reaches it under the name `to`."""


class Health:
    """Asks daemons, and remembers what Nimbus knew before the rollout."""

    def __init__(
        self, inventory: Inventory, way: Reaches, secrets: Secrets = NO_SECRETS, *, steady_s: float = STEADY_S
    ) -> None:
        self._inventory, self._way, self._secrets, self._steady_s = inventory, way, secrets, steady_s
        self._known: dict[str, Summary] = {}

    def remember(self, host: Host) -> None:
        """Note the supervisors and topologies of a Nimbus: after its restart they have to be there again."""
        summary = self._summary(host)
        if summary is not None:
            self._known[host.name] = summary

    def wait(self, step: Check, host: Host) -> None:
        """Return when the daemon has been healthy for a while. Raises HostError with the reason when it is not."""
        asks: Mapping[Role, Callable[[], str]] = {
            Role.NIMBUS: lambda: self._nimbus(host),
            Role.SERVICE: lambda: self._service(host, step.status),
            Role.DATASTORE: lambda: self._datastore(host),
        }
        ask = asks[step.role]
        end = time.monotonic() + (0.0 if step.role is Role.DATASTORE else self._inventory.health_s)
        steady = 0.0 if step.role is Role.DATASTORE else self._steady_s
        since: float | None = None
        while True:
            reason, now = ask(), time.monotonic()
            since = None if reason else (now if since is None else since)
            if since is not None and now - since >= steady:
                return
            if reason and now > end:
                raise HostError(f"host {host.name}: {step.role} is not healthy: {reason}.")
            time.sleep(_PAUSE_S)

    def _summary(self, host: Host) -> Summary | None:
        with self._way.forward(host, self._inventory.nimbus_port) as (address, port):
            return fetch_summary(address, port)

    def _nimbus(self, host: Host) -> str:
        summary = self._summary(host)
        if summary is None:
            return f"it does not answer on port {self._inventory.nimbus_port}"
        if not summary.leader:
            return "no Nimbus leads"
        before = self._known.get(host.name)
        if before is None:
            return ""
        lost = sorted(before.supervisors - summary.supervisors)
        gone = sorted({name for name, *_ in before.topologies} - {name for name, *_ in summary.topologies})
        if lost:
            return f"it does not know the supervisors {', '.join(lost)}, which it knew before"
        return f"it does not know the topologies {', '.join(gone)}, which it knew before" if gone else ""

    def _service(self, host: Host, status: str) -> str:
        try:
            self._way.run(host, status)
        except HostError as error:
            return f"`{status}` says: {error.message.rpartition(': ')[2].strip() or 'no'}"
        return ""

    def _datastore(self, host: Host) -> str:
        wanted = self._inventory
        with self._way.forward(host, wanted.redis_port, wanted.redis_host) as address:
            reason = _redis(address, self._secrets)
        if reason:
            return reason
        for name in ("localhost", plain(host.address)):  # it may listen on one address alone
            with self._way.forward(host, wanted.zookeeper_port, name) as address:
                if _say(address, b"srvr").strip():
                    return ""
        return f"ZooKeeper does not answer on port {wanted.zookeeper_port}"


def _redis(address: tuple[str, int], secrets: Secrets) -> str:
    """Redis has to take the password, and must not evict state."""
    host, port = address
    client = redis.Redis(host=host, port=port, socket_timeout=_PATIENCE_S, retry=None, **secrets.redis_login())
    try:
        policy = client.config_get("maxmemory-policy").get("maxmemory-policy", "noeviction")
    except redis.AuthenticationError:
        return "Redis does not take the password of the secrets file"
    except redis.ResponseError:
        return ""  # it takes the password, and keeps its settings to itself
    except redis.RedisError:
        return "Redis does not answer"
    finally:
        client.close()
    return "" if policy == "noeviction" else _EVICTS


def _say(address: tuple[str, int], text: bytes) -> bytes:
    """A server's answer until it hangs up; empty if it does not."""
    try:
        with socket.create_connection(address, timeout=_PATIENCE_S) as connection:
            connection.sendall(text)
            parts = []
            while part := connection.recv(65536):
                parts.append(part)
            return b"".join(parts)
    except OSError:
        return b""
