"""The run of `leeward experiment edge-cloud-live`: dataflows come to a real Storm and leave it, a node is drained, and
the measured makespans stand beside the model's.

The parts that compute are in `policies/edge_cloud`: the workload, the model, and what the sinks' lines mean.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from leeward.cli._live import FIRST, TIMES, Live, LiveError, run_scenario
from leeward.cli._output import Output
from leeward.core import arrivals
from leeward.core.experiment import Finding
from leeward.policies.edge_cloud.experiments.live import Drain, Lived, Scenario, conclude, scenario_of
from leeward.policies.edge_cloud.facts import components_of, fabric_of
from leeward.policies.edge_cloud.model.dataflow_file import dataflow_to_json
from leeward.policies.edge_cloud.model.evaluate import Evaluation, evaluate
from leeward.policies.edge_cloud.model.instance import Instance
from leeward.policies.edge_cloud.settings import EdgeCloudSettings
from leeward.policies.edge_cloud.workload.live import live_network, nodes_of, small_dataflow

#: After all have arrived, and after the drain, workers settle before delays are measured, s.
SETTLE_S = 10.0
#: Topologies that start at a time. Of two, Storm may place one into a slot that the plan of the other is about to use:
#: that plan is undone and made again.
TOGETHER = 1
#: Interference is not emulated: processes of one machine do not slow each other as queries of one device do.
MODE = "exclusive"
TOPOLOGY = "dataflow"
NAME = "edge-cloud-live"


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
        self.scenario = scenario
        self.rng = random.Random(scenario.seed)
        network = live_network(scenario.nodes, scenario.speed, scenario.stretch, self.rng)
        self.live = Live(name=NAME, network=network, out=out, folder=folder, base_port=base_port, stack=stack)
        self.nodes = nodes_of(network)
        self.names = [node.id for node in self.nodes]
        self.fabric = fabric_of(self.nodes, network, EdgeCloudSettings(mode=MODE))
        self.rows: dict[str, Lived] = {}
        self.drained: Drain | None = None
        self.settle_s = min(SETTLE_S, scenario.window_s / 2)

    def start(self) -> None:
        """Cluster and service."""
        settings = {"mode": MODE, "method": self.scenario.method, "rebalance": self.scenario.rebalance}
        own = {f"edge-cloud.{key}": value for key, value in settings.items()}
        self.live.start({"policy": "edge-cloud", **own, "warm_apart": "true", **TIMES})

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
        self.live.await_(lambda: self.live.plan_of(name) is not None, f"a plan for {name}")
        self._note_plan(row)
        if row.refused:
            self.live.say(f"{name}: refused: {row.refused}")
            self.live.kill(name)
        return row

    def _await_events(self, row: Lived) -> None:
        """Wait until it is placed and events reach its sinks."""
        live, name = self.live, row.name
        live.await_(lambda: bool(live.placed(name)), f"{name} to be placed")
        row.placed_first = live.placed(name)[0]["action"] == FIRST
        live.await_(lambda: bool(live.lines(name)), f"events at the sinks of {name}")
        live.say(
            f"{name}: {len(row.dataflow.queries)} queries, plan {row.submitted_to_plan_s:.2f} s after submission, "
            f"events after {time.time() - live.submitted_at(row.id):.0f} s"
            + ("; placed once" if row.placed_first else "")
        )

    def _submit(self, row: Lived) -> None:
        file = self.live.out / f"{row.name}.json"
        file.write_text(json.dumps(dataflow_to_json(row.dataflow, self.names), indent=1))
        row.id = self.live.submit(
            TOPOLOGY,
            name=row.name,
            environment={"LEEWARD_DATAFLOW": str(file.resolve())},
            options=["topology.workers=1", f"dataflow.out={self.live.sink_file(row.name)}"],
        )

    def depart(self, row: Lived) -> None:
        """Kill one, and wait until the service has cleared up behind it."""
        self._judge(row)
        self.live.kill(row.name)
        row.killed = True
        self.live.await_(lambda: bool(self.live.named(row.name, "tidied")), f"{row.name} to be gone")
        self.live.say(f"{row.name}: killed")

    # --- measuring

    def measure(self) -> None:
        """Makespans in the steady state, beside the model's for the placement as it is."""
        names = [row.name for row in self.running()]
        self.live.await_(lambda: self.live.at_rest(names, self.settle_s), "the last rebalance to be over")
        since = time.time()
        self.live.say(f"measuring {len(self.running())} dataflows for {self.scenario.window_s:g} s")
        time.sleep(self.scenario.window_s)
        until = time.time()
        time.sleep(2.0)  # events that left their source at its end arrive
        for row in self.running():
            row.rebalanced = self.live.moves(row.name, until=until)
            row.place = self._place(row)
            row.measured_s = arrivals.makespan_s(self.live.arrived(row.name), int(since * 1e6), int(until * 1e6))
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
        before = {row.name: len(self.live.done(row.name)) for row in concerned}
        since = time.time()
        self.live.store.set_draining(node, True)
        self.live.say(f"draining {node}, which {len(concerned)} dataflows use")
        try:
            self.live.await_(
                lambda: all(len(self.live.done(name)) > had for name, had in before.items()), f"all to leave {node}"
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
            row.longest_s = arrivals.longest_s(self.live.arrived(row.name), int(since * 1e6), int(until * 1e6))
            row.place = self._place(row)
            row.moves = self.live.moves(row.name, since=since)
            self._judge(row)
        left = tuple(row.name for row in self.running() if node in row.place)
        self.drained = Drain(node=node, dataflows=len(concerned), seconds=took_s, left=left)
        self.live.say(f"{node} is empty after {took_s:.0f} s")

    def _judge(self, row: Lived) -> None:
        found = self.live.arrived(row.name)
        faults = arrivals.faults(found)
        row.events, row.lost, row.doubled, row.again = len(found), faults.lost, faults.doubled, faults.again

    # --- asking the cluster

    def _place(self, row: Lived) -> list[str]:
        """The node of each query's replica, in the dataflow's order."""
        return self.live.place(row.id, [one.id for one in components_of(row.dataflow, self.names)])

    def _note_plan(self, row: Lived) -> None:
        plan = self.live.plan_of(row.name)
        assert plan is not None
        row.submitted_to_plan_s = plan["t"] - self.live.submitted_at(row.id)
        row.seen_to_plan_s = plan["t"] - self.live.named(row.name, "service_started")[0]["t"]
        if "response_s" not in plan:
            row.refused = plan["reason"]

    def result(self) -> Finding:
        """The figures so far; those of each dataflow, with its places, are also in `dataflows.json`."""
        lived = list(self.rows.values())
        (self.live.out / "dataflows.json").write_text(json.dumps([_plain(row) for row in lived], indent=1) + "\n")
        return conclude(self.scenario, lived, self.drained)


def _plain(row: Lived) -> dict[str, Any]:
    kinds = [query.kind for query in row.dataflow.queries]
    return asdict(row) | {
        "dataflow": kinds,
        "moves": dict(row.moves),
        "rebalanced": dict(row.rebalanced),
        "ratio": row.ratio,
    }
