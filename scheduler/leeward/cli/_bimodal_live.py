"""The run of `leeward experiment bimodal-live`: agents beside the supervisors of a real Storm map streams, the network
carries each hop by the way that was reserved, and the delivered rate stands beside the agreed one.

The parts that compute are in `policies/bimodal`.
"""

from __future__ import annotations

import asyncio
import json
import random
import secrets
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from leeward.adapters.peers import PeerClient
from leeward.cli._live import TIMES, Live, LiveError, run_scenario
from leeward.cli._output import Output
from leeward.cli.agent import ways_of
from leeward.core import arrivals
from leeward.core.experiment import Finding
from leeward.local.layout import RELAY
from leeward.local.network.plan import pipes_of
from leeward.local.network.statistics import Statistics
from leeward.policies.bimodal.experiments.live import Carried, Hop, Lived, Way, Window, conclude, delivered, modelled
from leeward.policies.bimodal.experiments.live_setup import (
    Scenario,
    agents_of,
    name_of,
    network_of,
    scenario_of,
    servers_of,
    stream_of,
)
from leeward.policies.bimodal.facts import components_of, topology_of
from leeward.policies.bimodal.mapping.messages import KINDS, Asked
from leeward.policies.bimodal.model import walk
from leeward.policies.bimodal.model.agents_file import Agents, agents_to_json
from leeward.policies.bimodal.model.stream_file import HEADROOM, stream_to_json

TOPOLOGY, NAME = "chain", "bimodal-live"
#: Of the agents, inside their nodes.
PORT = 7400
#: How a plan's reason begins.
MAPPED, REFUSED = "mapped by the agents", "the agents have found no map"
#: Streams come at most so many times as there are to run.
TRIES = 4
#: Workers settle before rates are measured, and ways have to be the same for so many periods of re-allocation.
SETTLE_S, PERIODS = 5.0, 3
MB = 1e6


def run_live(
    file: Path | None, *, quick: bool, seed: int | None, folder: Path, base_port: int, output: Output, out: Path
) -> None:
    """The whole run; its figures are written and printed also where a step fails. Raises LeewardError."""

    def make(document: dict[str, Any], stack: ExitStack) -> tuple[Live, LiveRun]:
        run = LiveRun(scenario_of(document), out=out, folder=folder, base_port=base_port, stack=stack)
        return run.live, run

    run_scenario(NAME, file, make, quick=quick, seed=seed, output=output)


class LiveRun:
    """The steps, in order; `stack` ends what they start."""

    def __init__(self, scenario: Scenario, *, out: Path, folder: Path, base_port: int, stack: ExitStack) -> None:
        self.scenario, self.rng = scenario, random.Random(scenario.seed)
        self.servers = servers_of(scenario, self.rng)
        self.network = network_of(scenario, self.servers)
        self.live = Live(name=NAME, network=self.network, out=out, folder=folder, base_port=base_port, stack=stack)
        self.rows: dict[str, Lived] = {}
        self.key = secrets.token_hex(32).encode()
        self.carried: Carried | None = None

    def start(self) -> None:
        """Cluster, agents beside its supervisors, and the service."""
        self.live.start_cluster()
        file, secret = self.live.out / "agents.json", self.live.out / "secret"
        self.agents = self._agents()
        file.write_text(json.dumps(agents_to_json(self.agents), indent=1))
        secret.touch(0o600)
        secret.write_bytes(self.key)
        for server, node in sorted(self.agents.nodes.items()):
            words = ["agent", "run", str(file.resolve()), "--secret", str(secret.resolve()), "--server", str(server)]
            words += ["--cluster", str(self.live.folder.resolve()), "--lease", str(self.scenario.lease_s)]
            words += ["--reallocate", str(self.scenario.reallocate_s), "--seed", str(self.scenario.seed)]
            self.live.start_command(words, log=f"agent-{node}.log", node=node)
        self.ways()  # all are there
        time.sleep(SETTLE_S)  # gossip has gone round
        self.live.say(f"{len(self.agents.nodes)} agents run, one in the network of each node")
        own = {"bimodal.agents": str(file.resolve()), "bimodal.secret": str(secret.resolve())}
        self.live.start_service({"policy": "bimodal", **own, **TIMES})

    def _agents(self) -> Agents:
        emulation = self.live.cluster.network
        assert emulation is not None
        addresses = {v: (emulation.end(name_of(v)).address, PORT) for v in self.servers.servers}
        return agents_of(self.servers, addresses)

    # --- streams come and go

    def play(self) -> None:
        """Streams arrive until as many run as wanted; then some end, and others take their links."""
        while len(self.running()) < self.scenario.streams:
            self.arrive()
        self.measure("full")
        before = self.ways()
        for row in [row for row in self.running() if row.full and not row.full.public]:
            self.depart(row)
        self._await_same_ways()
        self.measure("freed")
        for row in self.running():
            now = row.freed.ways if row.freed else {}
            row.moved = sum(before.get(row.id, {}).get(hop) != way for hop, way in now.items())
        self._note_carried()

    def running(self) -> list[Lived]:
        """The streams that are mapped."""
        return [row for row in self.rows.values() if not row.killed and not row.refused]

    def arrive(self) -> None:
        """Submit one more, wait for its plan, and for its events if it has one."""
        if len(self.rows) >= TRIES * self.scenario.streams:
            raise LiveError("most streams are refused.", remedy="Lower `mbps` in the scenario, or add links.")
        name = f"s{len(self.rows) + 1:02}"
        row = self.rows[name] = Lived(stream=stream_of(name, self.scenario, self.rng))
        (file := self.live.out / f"{name}.json").write_text(json.dumps(stream_to_json(row.stream)))
        row.id = self.live.submit(
            TOPOLOGY, name=name, environment={"LEEWARD_STREAM": str(file.resolve())},
            options=["topology.workers=1", f"dataflow.out={self.live.sink_file(name)}"],
        )  # fmt: skip
        self.live.await_(lambda: self._decision(name) is not None, f"a decision about {name}")
        plan = self._decision(name)
        assert plan is not None
        row.submitted_to_plan_s = plan["t"] - self.live.submitted_at(row.id)
        if not plan["reason"].startswith(MAPPED):
            row.refused = plan["reason"]
            self.live.say(f"{name}: refused: {row.refused}")
            self.live.kill(name)
            return
        self.live.await_(lambda: bool(self.live.placed(name)), f"{name} to be placed")
        self.live.await_(lambda: bool(self.live.lines(name)), f"events at the sink of {name}")
        row.as_mapped = self.live.place(row.id, self._components(row)) == self._mapped(row)
        self.live.say(f"{name}: {plan['reason']}, {row.submitted_to_plan_s:.2f} s after submission")

    def _decision(self, name: str) -> dict[str, Any] | None:
        """The first plan, or the first refusal, of the agents."""
        plans = self.live.named(name, "plan_made")
        return next((plan for plan in plans if plan["reason"].startswith((MAPPED, REFUSED))), None)

    def depart(self, row: Lived) -> None:
        """Kill one; the agents hear it from the service."""
        self._judge(row)
        self.live.kill(row.stream.name)
        row.killed = True
        self.live.await_(lambda: bool(self.live.named(row.stream.name, "tidied")), f"{row.stream.name} to be gone")
        self.live.say(f"{row.stream.name}: killed")

    # --- measuring

    def measure(self, phase: str) -> None:
        """Delivered rates over a window, and what the rates of the ways allow; `phase` is a field of `Lived`."""
        time.sleep(SETTLE_S)
        since_us, since_ns = time.time_ns() // 1000, time.monotonic_ns()
        self.live.say(f"measuring {len(self.running())} streams for {self.scenario.window_s:g} s")
        time.sleep(self.scenario.window_s)
        until_us, until_ns, ways = time.time_ns() // 1000, time.monotonic_ns(), self.ways()
        statistics, sharing = self._statistics(), self._sharing(ways)
        for row in self.running():
            own = ways.get(row.id, {})

            def rates(hop: Hop) -> list[float]:
                return self._rates(hop, statistics, since_ns, until_ns)

            share = delivered(self.live.arrived(row.stream.name), row.stream, since_us, until_us)
            window = Window(share=share, model=modelled(row.stream, own, rates, sharing), ways=own)
            setattr(row, phase, window)
            self._judge(row)

    def _rates(self, hop: Hop, statistics: Statistics, since_ns: int, until_ns: int) -> list[float]:
        """Mbit/s of a public path in each interval, at most the uplink."""
        assert self.live.cluster.network is not None and self.network.public is not None
        pipes, every_ns = pipes_of(self.network, self.live.cluster.network.ends), self.network.public.every_ms * 1e6
        number = pipes.ways[hop][-1]
        first, last = (int((at - statistics.began_ns) / every_ns) for at in (since_ns, until_ns))
        uplink = self.network.uplink_mbps(hop[0])
        path = pipes.pipes[number]
        return [min(uplink, path.rate_mbps(self.network.seed, number, n)) for n in range(first, last + 1)]

    def _sharing(self, ways: dict[str, dict[Hop, Way]]) -> dict[str, float]:
        """Need of all public hops of a sender over its uplink."""
        need: dict[str, float] = defaultdict(float)
        for own in ways.values():
            for (sender, _), way in own.items():
                need[sender] += 0.0 if way else HEADROOM * self.scenario.mbps
        return {sender: total / self.network.uplink_mbps(sender) for sender, total in need.items()}

    def _judge(self, row: Lived) -> None:
        found = self.live.arrived(row.stream.name)
        faults = arrivals.faults(found)
        row.events, row.lost, row.doubled = len(found), faults.lost, faults.doubled

    def _await_same_ways(self) -> None:
        """Until re-allocation has come to rest, or goes on for ever as two hops want one link."""
        began = same_since = time.monotonic()
        ways, long_s = self.ways(), PERIODS * self.scenario.reallocate_s
        while (now := time.monotonic()) - same_since < long_s and now - began < 4 * long_s:
            time.sleep(1.0)
            if (newest := self.ways()) != ways:
                ways, same_since = newest, now
        self.live.say(f"re-allocated after {same_since - began:.0f} s")

    def _note_carried(self) -> None:
        assert self.live.cluster.network is not None
        pipes, statistics = pipes_of(self.network, self.live.cluster.network.ends), self._statistics()
        paths = {way[-1] for hop, way in pipes.ways.items() if len(way) > 1}
        dedicated = set(pipes.dedicated.values())
        carried = {number: one.bytes / MB for number, one in statistics.pipes.items()}
        self.carried = Carried(
            dedicated=sum(carried.get(number, 0.0) for number in dedicated),
            public=sum(carried.get(number, 0.0) for number in paths),
        )

    def _statistics(self) -> Statistics:
        assert self.live.cluster.network is not None
        return self.live.cluster.network.statistics(self.live.cluster.daemons[RELAY])

    # --- asking the agents

    def ways(self) -> dict[str, dict[Hop, Way]]:
        """Topology id -> hop between nodes -> its way."""
        found: dict[str, dict[Hop, Way]] = defaultdict(dict)
        for hop in asyncio.run(ways_of(self.agents, self.key))["hops"]:
            ends = name_of(hop["sender"]), name_of(hop["receiver"])
            found[topology_of(hop["task"])][ends] = tuple(map(name_of, hop["way"]))
        return dict(found)

    def _mapped(self, row: Lived) -> list[str]:
        """The node of each component, as the delivery server tells it."""
        delivery = next(v for v, node in self.agents.nodes.items() if node == row.stream.delivery)

        async def ask() -> Any:
            client = PeerClient(KINDS, self.agents.addresses, self.key, number=-len(self.rows) - 1)
            try:
                return await client.ask(delivery, Asked(task=row.id))
            finally:
                client.close()

        told = asyncio.run(ask())
        return [row.stream.source, *map(name_of, walk.servers_of(told.walk)), row.stream.delivery]

    def _components(self, row: Lived) -> list[str]:
        return [component.id for component in components_of(row.stream)]

    def result(self) -> Finding:
        """The figures so far; those of each stream, with its ways, are also in `streams.json`."""
        lived = list(self.rows.values())
        (self.live.out / "streams.json").write_text(json.dumps([_plain(row) for row in lived], indent=1) + "\n")
        return conclude(self.scenario, lived, self.carried)


def _plain(row: Lived) -> dict[str, Any]:
    found = asdict(row)
    for phase in ("full", "freed"):
        if found[phase] is not None:
            found[phase]["ways"] = {" to ".join(hop): list(way) for hop, way in found[phase]["ways"].items()}
    return found
