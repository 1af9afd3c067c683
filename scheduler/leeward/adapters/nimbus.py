"""Nimbus over Thrift, with the interface that streamparse ships: binary protocol, framed transport.

Reads work on any Nimbus; rebalance needs the leader, which is looked up and connected to anew after every failure.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from leeward.control.ports import ComponentFacts, Structure
from leeward.core.errors import ClusterRefusedError, ConfigError
from leeward.core.topology_conf import KIND

T = TypeVar("T")
_GROUPINGS = "leeward.grouping."
_MARKERS = "leeward.grouping.MarkerGrouping"


class NimbusClient:
    """Nimbus port, for several threads. Raises ClusterRefusedError after `tries` with growing pauses."""

    def __init__(
        self,
        seeds: Sequence[str],
        *,
        tries: int = 5,
        pause_s: float = 0.3,
        timeout_s: float = 10.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`seeds`: "host:port" of one or more Nimbuses; raises ConfigError for anything else."""
        self._seeds = [_address(seed) for seed in seeds]
        self._tries, self._pause_s, self._timeout_s, self._sleep = tries, pause_s, timeout_s, sleep
        self._client: Any = None
        self._one_at_a_time = threading.Lock()

    def conf(self) -> dict[str, Any]:
        """Nimbus' own configuration."""
        conf: dict[str, Any] = json.loads(self._call(lambda client: client.getNimbusConf()))
        return conf

    def topologies(self) -> Mapping[str, str]:
        info = self._call(lambda client: client.getClusterInfo())
        return {topology.name: topology.id for topology in info.topologies or ()}

    def structure(self, name: str) -> Structure:
        running = self.topologies()
        if name not in running:
            raise ConfigError(
                f"topology {name!r} does not run; running: {sorted(running)}.",
                remedy="Submit it first (sparse submit), or name one that runs.",
            )
        topology = self._call(lambda client: client.getUserTopology(running[name]))
        conf = json.loads(self._call(lambda client: client.getTopologyConf(running[name])))
        parts = {**(topology.spouts or {}), **(topology.bolts or {})}
        components = tuple(_component(part, parts[part].common) for part in sorted(parts))
        return Structure(id=running[name], name=name, components=components, conf=conf)

    def rebalance(self, name: str, *, workers: int, executors: Mapping[str, int]) -> None:
        from streamparse.thrift import storm_thrift

        options = storm_thrift.RebalanceOptions(wait_secs=0, num_workers=workers, num_executors=dict(executors))
        self._call(lambda client: client.rebalance(name, options))

    def kill(self, name: str) -> None:
        """Let Nimbus end a topology at once. Raises ClusterRefusedError also if it does not run."""
        from streamparse.thrift import storm_thrift

        options = storm_thrift.KillOptions(wait_secs=0)
        self._call(lambda client: client.killTopologyWithOpts(name, options))

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with suppress(OSError, AttributeError):  # thriftpy2 has no socket any more where the other side closed it
                client.close()

    def _call(self, ask: Callable[[Any], T]) -> T:
        """Ask the leader; find it again after a failure that another try may cure."""
        with self._one_at_a_time:
            return self._ask(ask)

    def _ask(self, ask: Callable[[Any], T]) -> T:
        from streamparse.thrift import storm_thrift
        from thriftpy2.thrift import TException

        last: Exception | None = None
        for attempt in range(self._tries):
            if attempt:
                self._sleep(self._pause_s * 2 ** (attempt - 1))
            try:
                if self._client is None:
                    self._client = self._find_leader()
                return ask(self._client)
            except (
                storm_thrift.NotAliveException,
                storm_thrift.InvalidTopologyException,
                storm_thrift.AuthorizationException,
            ) as error:
                raise ClusterRefusedError(
                    f"Nimbus refused: {error}.", remedy="Check that the topology still runs."
                ) from error
            except (OSError, TException, ClusterRefusedError) as error:
                last = error
                self.close()
        raise ClusterRefusedError(
            f"Nimbus ({', '.join(f'{h}:{p}' for h, p in self._seeds)}) has not served in {self._tries} tries; "
            f"last: {_told(last)}.",
            remedy="Check that a Nimbus runs and leads (storm's nimbus.seeds), and the address given.",
        ) from last

    def _find_leader(self) -> Any:
        """A client of the leading Nimbus; any seed can name it."""
        from thriftpy2.thrift import TException

        silent: list[str] = []
        for host, port in self._seeds:
            client = None
            try:
                client = self._connect(host, port)
                nimbuses = client.getClusterInfo().nimbuses or ()
                leaders = [(nimbus.host, nimbus.port) for nimbus in nimbuses if nimbus.isLeader]
                if not leaders:
                    raise ClusterRefusedError(f"Nimbus {host}:{port} knows no leader")
                if len(nimbuses) == 1 or leaders[0] == (host, port):
                    return client  # the only one: it may advertise a name that does not resolve here
                client.close()
                return self._connect(*leaders[0])
            except (OSError, TException, ClusterRefusedError) as error:
                silent.append(f"{host}:{port}: {_told(error)}")
                if client is not None:
                    client.close()
        raise ClusterRefusedError("no leading Nimbus; " + "; ".join(silent))

    def _connect(self, host: str, port: int) -> Any:
        from streamparse.thrift import Nimbus
        from thriftpy2.protocol import TBinaryProtocolFactory
        from thriftpy2.rpc import make_client
        from thriftpy2.transport import TFramedTransportFactory

        return make_client(
            Nimbus,
            host=host,
            port=port,
            proto_factory=TBinaryProtocolFactory(),
            trans_factory=TFramedTransportFactory(),
            timeout=int(self._timeout_s * 1000),
        )


def _told(error: Exception | None) -> str:
    """An error's text without a remedy; Thrift's own have their kind and message."""
    if isinstance(error, ClusterRefusedError):
        return error.message
    return f"{type(error).__name__}: {getattr(error, 'message', None) or error}"


def _address(seed: str) -> tuple[str, int]:
    host, _, port = seed.rpartition(":")
    if not host or not port.isdigit():
        raise ConfigError(f"Nimbus address {seed!r} is not host:port.", remedy="Write it as 127.0.0.1:6627.")
    return host, int(port)


def _component(name: str, common: Any) -> ComponentFacts:
    conf = json.loads(common.json_conf) if common.json_conf else {}
    inputs = sorted(
        {
            stream.componentId
            for stream, grouping in (common.inputs or {}).items()
            if grouping.custom_object is not None
            and grouping.custom_object.full_class_name.startswith(_GROUPINGS)
            and grouping.custom_object.full_class_name != _MARKERS
        }
    )
    return ComponentFacts(id=name, kind=str(conf.get(KIND.name, "")), inputs=tuple(inputs), conf=conf)
