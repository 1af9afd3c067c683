"""An agent's hands on a local cluster: routes in the emulated network, and what its stream hops carry."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import typer

from leeward.adapters import tcp
from leeward.adapters.zookeeper import ZooClusterStore, connect
from leeward.control.snapshot import ports_of
from leeward.core.errors import LeewardError
from leeward.local import LocalCluster
from leeward.policies.bimodal.carrying import Bytes, Carrier, Meter, Port, carriers
from leeward.policies.bimodal.mapping.agent import Agent
from leeward.policies.bimodal.model.agents_file import Agents

ROOT = "/leeward"
#: Between two looks at slots, routes and counters, s.
LOOK_S = 1.0


class WaysOfCluster:
    """Of one agent beside the supervisor of its node; `run` beside the agent, in its event loop."""

    def __init__(self, agent: Agent, agents: Agents, folder: Path) -> None:
        """Raises LeewardError if no cluster with a public network runs in the folder."""
        self._agent, self._nodes = agent, agents.nodes
        self._hosts = {host: agents.nodes[server] for server, (host, _) in agents.addresses.items()}
        cluster = LocalCluster.attach(folder)
        if cluster.network is None:
            raise LeewardError(f"--cluster {folder}: its network is not emulated.", remedy="Start it with --network.")
        self._here = agents.nodes[agent.me]
        self._routes = cluster.network.routes()
        self._zookeeper = connect(cluster.zookeeper, secrets=cluster.secrets())
        self._store = ZooClusterStore(self._zookeeper, ROOT)
        self._told: dict[Port, Carrier] = {}
        self._meter = Meter()

    async def run(self) -> None:
        """Until cancelled. A look that fails is told, and the next one tries again."""
        try:
            while True:
                try:
                    await self._look()
                except LeewardError as error:
                    typer.echo(f"server {self._agent.me}: {error}", err=True)
                await asyncio.sleep(LOOK_S)
        finally:
            with suppress(Exception):
                self._zookeeper.stop()
                self._zookeeper.close()

    async def _look(self) -> None:
        ports = ports_of(await asyncio.to_thread(self._store.snapshot, lambda: None))
        wanted = carriers(self._agent.flows.routes(), ports, self._nodes)
        self._tell(wanted)
        seen = self._by_port(await asyncio.to_thread(tcp.connections))
        for carried in self._meter.look(wanted, seen, time.monotonic()):
            self._agent.observe(carried.task, carried.hop, carried.mbit, carried.seconds, limited=carried.limited)

    def _tell(self, wanted: Mapping[Port, Carrier]) -> None:
        """Change the routes that are others now."""
        for port in sorted(self._told.keys() - wanted.keys()):
            self._routes.clear(self._here, port.node, port.port)
            del self._told[port]
        for port, carrier in sorted(wanted.items()):
            before = self._told.get(port)
            if before is None or before.way != carrier.way:
                self._routes.set(self._here, port.node, port.port, carrier.way)
                way = " - ".join(carrier.way) or "the public network"
                typer.echo(f"route: {carrier.task} hop {carrier.hop} to {port.node}:{port.port} over {way}")
            self._told[port] = carrier

    def _by_port(self, seen: Mapping[tcp.Connection, tcp.Counted]) -> dict[Port, Bytes]:
        sums: dict[Port, list[int]] = defaultdict(lambda: [0, 0])
        for connection, counted in seen.items():
            node = self._hosts.get(connection.peer)
            if node is not None and node != self._here:
                sums[Port(node, connection.peer_port)][0] += counted.acked
                sums[Port(node, connection.peer_port)][1] += counted.unsent
        return {port: Bytes(acked, unsent) for port, (acked, unsent) in sums.items()}
