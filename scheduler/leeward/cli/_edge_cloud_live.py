"""The run of `leeward experiment edge-cloud-live`: dataflows come to a real Storm and leave it, a node is drained, and
the measured makespans stand beside the model's.

The parts that compute are in `policies/edge_cloud`: the workload, the model, and what the sinks' lines mean.
"""

from __future__ import annotations

import json
import math
import os
import random
import signal
import time
import tomllib
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from leeward.adapters.nimbus import NimbusClient
from leeward.adapters.zookeeper import ZooClusterStore, connect
from leeward.cli._experiment import tell
from leeward.cli._output import Output
from leeward.cli.demo import background
from leeward.control.snapshot import read_snapshot
from leeward.core.control import ControlRecord, Paths
from leeward.core.errors import LeewardError
from leeward.core.experiment import Finding
from leeward.core.network import Network
from leeward.core.network_document import network_text
from leeward.core.outcome import Ending
from leeward.core.table import replicas
from leeward.dashboard.watch import EventFile
from leeward.local import ClusterSpec, LocalCluster, build_jar, submit_topology
from leeward.local.install import shipped_jar
from leeward.local.places import checkout
from leeward.policies.edge_cloud.experiments import arrivals
from leeward.policies.edge_cloud.experiments.live import Drain, Lived, Scenario, conclude, scenario_of
from leeward.policies.edge_cloud.facts import components_of, fabric_of
from leeward.policies.edge_cloud.model.dataflow_file import dataflow_to_json
from leeward.policies.edge_cloud.model.evaluate import Evaluation, evaluate
from leeward.policies.edge_cloud.model.instance import Instance
from leeward.policies.edge_cloud.settings import EdgeCloudSettings
from leeward.policies.edge_cloud.workload.live import live_network, nodes_of, small_dataflow

ROOT = "/leeward"
#: Of Storm, where the znode of a topology is made when Nimbus accepts it.
STORMS = "/storm/storms"
#: Each topology takes a slot on every node that it uses, and one for its warm tasks.
SLOTS = 16
#: Waits for conditions end after so many seconds: a worker starts in seconds, twelve topologies share two processors.
LONG_S = 240.0
#: After all have arrived, and after the drain, workers settle before delays are measured, s.
SETTLE_S = 10.0
#: Of the service and the daemons that in a real cluster have machines of their own; workers have 0.
FAVOURED = -10
#: Of the topologies: at a few events a second nothing has to be looked at more often.  Each executor that waits looks
#: for work 100 times a second, and not 250 times: some 250 executors share the processors.
PARK = "org.apache.storm.policy.WaitStrategyPark"
QUIET = (
    "topology.backpressure.check.millis=1000",
    f"topology.bolt.wait.strategy={PARK}", "topology.bolt.wait.park.microsec=10000",
    f"topology.spout.wait.strategy={PARK}", "topology.spout.wait.park.microsec=10000",
)  # fmt: skip
#: Topologies that start at a time. Of two, Storm may place one into a slot that the plan of the other is about to use:
#: that plan is undone and made again.
TOGETHER = 1
#: Interference is not emulated: processes of one machine do not slow each other as queries of one device do.
MODE = "exclusive"
TOPOLOGY = "dataflow"
NAME = "edge-cloud-live"
#: The event of a topology that Storm has placed by its plan at once.
FIRST = "first_placement"


def run_live(
    file: Path | None, *, quick: bool, seed: int | None, folder: Path, base_port: int, output: Output, out: Path
) -> None:
    """The whole run; its figures are written and printed also where a step fails. Raises LeewardError."""
    file = file or _checkout() / "storm_conf" / "scenarios" / f"edge-cloud{'-quick' if quick else ''}.toml"
    scenario = read_scenario(file, seed)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends everything, as Ctrl-C does
    with ExitStack() as stack:
        run = LiveRun(scenario, out=out, folder=folder, base_port=base_port, stack=stack)
        run.start()
        try:
            run.play()
        finally:
            command = f"leeward experiment {NAME} --scenario {file.name} --seed {scenario.seed}"
            seconds = time.monotonic() - run.began
            tell(NAME, run.result(), command=command, seed=scenario.seed, seconds=seconds, output=output, out=out)


def read_scenario(file: Path, seed: int | None) -> Scenario:
    """The scenario in a file, with another seed if one is given. Raises LeewardError."""
    try:
        document = tomllib.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise LiveError(f"{file}: cannot be read: {error}.", remedy="Name a scenario file (TOML).") from None
    return scenario_of(document if seed is None else {**document, "seed": seed})


class LiveError(LeewardError):
    """A step of the run did not come about."""


class LiveRun:
    """The steps, in order; `stack` ends what they start."""

    def __init__(self, scenario: Scenario, *, out: Path, folder: Path, base_port: int, stack: ExitStack) -> None:
        self.scenario, self.out, self.folder, self.base_port, self.stack = scenario, out, folder, base_port, stack
        self.rng = random.Random(scenario.seed)
        self.network: Network = live_network(scenario.nodes, scenario.speed, scenario.stretch, self.rng)
        self.nodes = nodes_of(self.network)
        self.names = [node.id for node in self.nodes]
        self.fabric = fabric_of(self.nodes, self.network, EdgeCloudSettings(mode=MODE))
        self.rows: dict[str, Lived] = {}
        self.began = time.monotonic()
        self.project = _checkout()
        self.drained: Drain | None = None
        self.settle_s = min(SETTLE_S, scenario.window_s / 2)

    def start(self) -> None:
        """Cluster and service."""
        from leeward.local.network.namespaces import hindrance

        self.out.mkdir(parents=True, exist_ok=True)
        file = self.out / "network.toml"
        file.write_text(network_text(self.network))
        if why := hindrance():
            raise LiveError(f"the network cannot be emulated: {why}.", remedy="See docs/operations.md.")
        self.say(f"{self.scenario.nodes} nodes on an emulated network, in {self.folder}")
        spec = ClusterSpec(dir=self.folder, base_port=self.base_port, slots=SLOTS, network=self.network)
        self.cluster = LocalCluster(spec).up()
        self.stack.callback(self.cluster.down)
        for name in ("nimbus", "zookeeper", "redis"):
            _favour(self.cluster.daemons[name].pid)
        self.jar = self.out / "topology.jar"
        build_jar(self.jar, src=self.project / "src", worker_jar=shipped_jar("worker"))
        self.nimbus = NimbusClient([self.cluster.nimbus])
        self.stack.callback(self.nimbus.close)
        self.zookeeper = connect(self.cluster.zookeeper, secrets=self.cluster.secrets())
        self.stack.callback(self.zookeeper.close)
        self.stack.callback(self.zookeeper.stop)
        self.store = ZooClusterStore(self.zookeeper, ROOT)
        events = self.out / "events.jsonl"
        events.unlink(missing_ok=True)
        self.events = EventFile(events)
        _favour(self.stack.enter_context(background(self._serve(file, events), self.out / "serve.log")))
        self._await(lambda: bool(self.events.read() and self.events.named("serving")), "the service to be ready")
        self.say("the service is ready")

    def _serve(self, network: Path, events: Path) -> list[str]:
        options = {
            "policy": "edge-cloud", "edge-cloud.mode": MODE,
            "edge-cloud.method": self.scenario.method, "edge-cloud.rebalance": self.scenario.rebalance,
            "network": str(network.resolve()), "warm_apart": "true", "look_s": "0.1", "period_s": "3",
            "cool_down_s": "1", "checkpoint_s": "120", "pause_s": "120", "restore_s": "180",
            "handover_s": "240", "prepare_s": "240", "silent_s": "20",
        }  # fmt: skip
        words = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        return ["serve", "--cluster", str(self.folder), "--events", str(events), *words]

    # --- arrivals and departures

    def play(self) -> None:
        """Two thirds arrive, some depart, others arrive until as many run as wanted; then a node is drained."""
        wanted = self.scenario.dataflows
        self.fill(max(1, wanted * 2 // 3))
        for row in self.running()[: max(1, wanted // 6)]:
            self.depart(row)
        self.fill(wanted)
        self.measure()
        self.drain()

    def fill(self, wanted: int) -> None:
        """One after another arrives until so many run; few start at a time, as that takes the processors."""
        while (missing := wanted - len(self.running())) > 0:
            rows = [self.arrive() for _ in range(min(missing, TOGETHER))]
            for row in rows:
                if not row.refused:
                    self._await_events(row)

    def running(self) -> list[Lived]:
        """The dataflows that are placed."""
        return [row for row in self.rows.values() if not row.killed and not row.refused]

    def arrive(self) -> Lived:
        """Submit one more, and wait for its plan."""
        number = len(self.rows) + 1
        if number > 3 * self.scenario.dataflows:
            raise LiveError("most dataflows are refused.", remedy="Lower --rate, or add nodes.")
        name = f"d{number:02}"
        sensors = [r for r, node in enumerate(self.nodes) if node.meta["class"] == "edge"]
        dataflow = small_dataflow(name, sensors, self.scenario.rate, self.rng, joins=self.scenario.joins)
        row = Lived(name=name, dataflow=dataflow)
        self.rows[name] = row
        self._submit(row)
        self._await(lambda: self._plan_of(row) is not None, f"a plan for {name}")
        self._note_plan(row)
        if row.refused:
            self.say(f"{name}: refused: {row.refused}")
            self.nimbus.kill(name)
        return row

    def _await_events(self, row: Lived) -> None:
        """Wait until it is placed and events reach its sinks."""
        name = row.name
        self._await(lambda: bool(self._placed(name)), f"{name} to be placed")
        row.placed_first = self._placed(name)[0]["action"] == FIRST
        self._await(lambda: bool(self._lines(row)), f"events at the sinks of {name}")
        self.say(
            f"{name}: {len(row.dataflow.queries)} queries, plan {row.submitted_to_plan_s:.2f} s after submission, "
            f"events after {time.time() - self._submitted(row):.0f} s" + ("; placed once" if row.placed_first else "")
        )

    def _submit(self, row: Lived) -> None:
        file = self.out / f"{row.name}.json"
        file.write_text(json.dumps(dataflow_to_json(row.dataflow, self.names), indent=1))
        sink = self._sink_file(row)
        sink.unlink(missing_ok=True)
        submit_topology(
            TOPOLOGY, name=row.name, nimbus=self.cluster.nimbus, jar=self.jar, project=self.project,
            options=["topology.workers=1", f"dataflow.out={sink}", *QUIET],
            environment={**os.environ, "LEEWARD_DATAFLOW": str(file.resolve())},
        )  # fmt: skip
        row.id = self.nimbus.topologies()[row.name]

    def depart(self, row: Lived) -> None:
        """Kill one, and wait until the service has cleared up behind it."""
        self._judge(row)
        self.nimbus.kill(row.name)
        row.killed = True
        self._await(lambda: bool(self._named(row.name, "tidied")), f"{row.name} to be gone")
        self.say(f"{row.name}: killed")

    # --- measuring

    def measure(self) -> None:
        """Makespans in the steady state, beside the model's for the placement as it is."""
        self._await(self._at_rest, "the last rebalance to be over")
        since = time.time()
        self.say(f"measuring {len(self.running())} dataflows for {self.scenario.window_s:g} s")
        time.sleep(self.scenario.window_s)
        until = time.time()
        time.sleep(2.0)  # events that left their source at its end arrive
        for row in self.running():
            row.rebalanced = self._moves_of(row, until=until)
            row.place = self._place(row)
            row.measured_s = arrivals.makespan_s(self._arrived(row), int(since * 1e6), int(until * 1e6))
        for row, model_s in zip(self.running(), self.model().makespans, strict=True):
            row.model_s = model_s

    def model(self) -> Evaluation:
        """The model's quantities of the running dataflows where they are."""
        rows = self.running()
        places = [tuple(self.names.index(node) for node in row.place) for row in rows]
        return evaluate(Instance(fabric=self.fabric, dataflows=tuple(row.dataflow for row in rows)), places)

    def drain(self) -> None:
        """Empty the cloud machine with most queries; its queries are handed over to others."""
        count = Counter(node for row in self.running() for node in row.place if node.startswith("vm"))
        node = max(sorted(count), key=count.__getitem__)
        concerned = [row for row in self.running() if node in row.place]
        before = {row.name: len(self._done(row.name)) for row in concerned}
        since = time.time()
        self.store.set_draining(node, True)
        self.say(f"draining {node}, which {len(concerned)} dataflows use")
        try:
            self._await(
                lambda: all(len(self._done(name)) > had for name, had in before.items()), f"all to leave {node}"
            )
        finally:
            took_s = time.time() - since
            time.sleep(self.settle_s)
            until = time.time()
            self._note_drain(node, concerned, before, since, until, took_s)

    def _note_drain(
        self, node: str, concerned: list[Lived], before: dict[str, int], since: float, until: float, took_s: float
    ) -> None:
        for row in self.running():
            row.longest_s = arrivals.longest_s(self._arrived(row), int(since * 1e6), int(until * 1e6))
            row.place = self._place(row)
            row.moves = self._moves_of(row, since=since)
            self._judge(row)
        left = tuple(row.name for row in self.running() if node in row.place)
        self.drained = Drain(node=node, dataflows=len(concerned), seconds=took_s, left=left)
        self.say(f"{node} is empty after {took_s:.0f} s")

    def _judge(self, row: Lived) -> None:
        found = self._arrived(row)
        faults = arrivals.faults(found)
        row.events, row.lost, row.doubled, row.again = len(found), faults.lost, faults.doubled, faults.again

    # --- asking the cluster

    def _place(self, row: Lived) -> list[str]:
        """The node of each query's replica, in the dataflow's order."""
        record = ControlRecord.from_json(self.zookeeper.get(Paths(ROOT, row.id).control)[0])
        slots = read_snapshot(self.store.snapshot(lambda: None), row.id).assigned.slots
        return [slots[replicas(record.tables[one.id])[0]].node for one in components_of(row.dataflow, self.names)]

    def _submitted(self, row: Lived) -> float:
        """When Nimbus accepted it, s since 1970."""
        stat = self.zookeeper.exists(f"{STORMS}/{row.id}")
        if stat is None:
            raise LiveError(f"{row.id} has ended.", remedy=f"Look into {self.folder}/logs.")
        return float(stat.ctime) / 1000

    def _plan_of(self, row: Lived) -> dict[str, Any] | None:
        return next(iter(self._named(row.name, "plan_made")), None)

    def _note_plan(self, row: Lived) -> None:
        plan = self._plan_of(row)
        assert plan is not None
        row.submitted_to_plan_s = plan["t"] - self._submitted(row)
        row.seen_to_plan_s = plan["t"] - self._named(row.name, "service_started")[0]["t"]
        if "response_s" not in plan:
            row.refused = plan["reason"]

    def _placed(self, name: str) -> list[dict[str, Any]]:
        """Events that brought it where its first plan wants it: Storm's first placement, or a reconfiguration."""
        first = [event for event in self._named(name, FIRST) if event["by_plan"]]
        return [*first, *self._ended(name)]

    def _moves_of(self, row: Lived, *, since: float = 0.0, until: float = math.inf) -> Counter[str]:
        """Kinds of the reconfigurations in this time that did not bring it to its first place."""
        arrived = self._placed(row.name)[:1]
        ended = [e for e in self._named(row.name, "reconfiguration_ended") if e not in arrived]
        return Counter(
            e["kind"] if e["ending"] == Ending.DONE else f"{e['kind']} given up"
            for e in ended
            if since <= e["t"] < until
        )

    def _at_rest(self) -> bool:
        """Of what runs nothing is being reconfigured, and has not been for some time."""
        for name in (row.name for row in self.running()):
            started, ended = (
                max((event["t"] for event in self._named(name, f"reconfiguration_{what}")), default=0.0)
                for what in ("started", "ended")
            )
            if started > ended or time.time() - ended < self.settle_s:
                return False
        return True

    def _ended(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self._named(name, "reconfiguration_ended") if event["kind"] != "reset"]

    def _done(self, name: str) -> list[dict[str, Any]]:
        return [event for event in self._ended(name) if event["ending"] == Ending.DONE]

    def _named(self, topology: str, action: str) -> list[dict[str, Any]]:
        self.events.read()
        return [event for event in self.events.named(action) if event.get("topology") == topology]

    def _sink_file(self, row: Lived) -> Path:
        return (self.out / f"{row.name}.out").resolve()

    def _lines(self, row: Lived) -> list[str]:
        file = self._sink_file(row)
        return file.read_text().splitlines() if file.exists() else []

    def _arrived(self, row: Lived) -> list[arrivals.Arrival]:
        return arrivals.read(self._lines(row))

    def _await(self, done: Callable[[], bool], what: str) -> None:
        until = time.monotonic() + LONG_S
        while not done():
            if time.monotonic() > until:
                raise LiveError(f"waited {LONG_S:g} s for {what}.", remedy=f"Look into {self.out} and {self.folder}.")
            time.sleep(0.1)

    def say(self, line: str) -> None:
        """A line with the seconds since the start."""
        typer.echo(f"{time.monotonic() - self.began:6.1f} s  {line}", err=True)

    def result(self) -> Finding:
        """The figures so far; those of each dataflow, with its places, are also in `dataflows.json`."""
        lived = list(self.rows.values())
        (self.out / "dataflows.json").write_text(json.dumps([_plain(row) for row in lived], indent=1) + "\n")
        return conclude(self.scenario, lived, self.drained)


def _favour(process: int) -> None:
    """Where workers have machines of their own, they take no processor from this daemon."""
    for thread in Path(f"/proc/{process}/task").iterdir():
        os.setpriority(os.PRIO_PROCESS, int(thread.name), FAVOURED)


def _plain(row: Lived) -> dict[str, Any]:
    kinds = [query.kind for query in row.dataflow.queries]
    return asdict(row) | {
        "dataflow": kinds,
        "moves": dict(row.moves),
        "rebalanced": dict(row.rebalanced),
        "ratio": row.ratio,
    }


def _checkout() -> Path:
    """Where the topology is: no wheel has it."""
    root = checkout()
    if root is None:
        raise LiveError("the topology of dataflows is in a checkout only.", remedy="Run it there.")
    return root
