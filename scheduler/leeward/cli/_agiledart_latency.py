"""The run of `leeward experiment agiledart-latency`: applications on a real Storm over an emulated network of sites,
placed and scaled by AgileDART, and placed by Storm's default scheduler.

The parts that compute are in `policies/agiledart/experiments`: scenario, network, model, and the figures.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from leeward.cli._kept import Kept
from leeward.cli._live import TIMES, Live, LiveError, run_steps, scenario_document, scenario_file, scenario_words
from leeward.cli._output import Output
from leeward.core.experiment import Finding
from leeward.core.topology_conf import AWAY_SECS, PINS, REPLICAS, SERVICE_SPEED, SERVICE_TIMES, declared_rate
from leeward.policies.agiledart.experiments.latency import (
    FIFTH,
    FIXED,
    OURS,
    STORM,
    Compared,
    Measured,
    Result,
    compare,
    conclude,
    is_steady,
    measured_of,
    progress,
    read_results,
    repeated,
    replicas_from,
    runs_of,
    summary,
    within,
)
from leeward.policies.agiledart.experiments.latency_model import Graph, modelled_s, outside_s
from leeward.policies.agiledart.experiments.latency_setup import (
    Application,
    Scenario,
    ends_of,
    network_of,
    only,
    scenario_of,
)

NAME = "agiledart-latency"
#: Of the service, by system: for plain Storm it plans nothing, so Storm's default scheduler places.
POLICY = {"policy": "agiledart", "agiledart.place": "dataflow", "warm_apart": "true"}
NO_POLICY = {"policy": "none"}
#: A worker on each of ten nodes starts at the same time, on the processors of one machine.
PATIENCE = {"silent_s": "60"}
#: The same of workers with their tasks, s: one that is replaced while it starts is taken over in another site.
AWAY_S = 30
#: Systems in names of topologies.
WORDS = {OURS: "ours", STORM: "storm", FIXED: "fixed"}
#: Executors look for tuples so often, us: with the 10 ms of the other live runs each hop would add 5 ms.
PARK_US = 2000
#: A backlog is worked off within so long, s; then latency is measured whatever it is. On a slow machine a handover that
#: starts a worker takes 40 s, and the rule needs several.
STEADY_S = 240.0
#: Latency is steady by the means of two spans in a row, s each.
SPAN_S = 10.0
#: A window in which something was reconfigured is measured again, so many times in all.
TRIES = 3
#: The source's own end, which no run reaches, s.
LONG_S = 3600


def run_latency(
    file: Path | None, *, quick: bool, seed: int | None, topologies: Sequence[str], folder: Path, base_port: int,
    output: Output, out: Path,
) -> None:  # fmt: skip
    """All topologies, or those named; goes on where an earlier run was broken off. Raises LeewardError."""
    scenario = scenario_of(scenario_document(file or scenario_file(NAME, NAME, quick=quick), seed))
    chosen = only(scenario, list(topologies))
    with ExitStack() as stack:
        live = Live(
            name=NAME, network=network_of(scenario), out=out, folder=folder, base_port=base_port,
            slots=scenario.slots, stack=stack,
        )  # fmt: skip
        steps = LatencyRun(scenario, chosen, live)
        words = [f"leeward experiment {NAME}{scenario_words(file, quick=quick)} --seed {scenario.seed}"]
        command = " ".join([*words, *(f"--only {one.topology}" for one in chosen if topologies)])
        run_steps(live, steps, command=command, seed=scenario.seed, output=output)


class LatencyRun:
    """The steps, in order. `chosen`: of the scenario's applications."""

    def __init__(self, scenario: Scenario, chosen: Sequence[Application], live: Live) -> None:
        self.scenario, self.chosen, self.live = scenario, chosen, live
        self.kept = Kept(live.out / f"{NAME}.runs", scenario, measured_of)
        self.failed: list[str] = []

    def start(self) -> None:
        """The cluster, unless all is measured already."""
        if any(self._left(application, ours) for application in self.chosen for ours in (True, False)):
            self.live.start_cluster()

    def play(self) -> None:
        """Each application under AgileDART at all rates, then under plain Storm."""
        for application in self.chosen:
            for ours in (True, False):
                if left := self._left(application, ours):
                    name = f"{application.topology}-{'ours' if ours else 'storm'}"
                    with self.live.serving({**TIMES, **PATIENCE, **(POLICY if ours else NO_POLICY)}, name=name):
                        for system, rate in left:
                            self._try(application, system, rate)

    def _try(self, application: Application, system: str, rate: str) -> None:
        """One run; where it fails the others go on, as a whole experiment takes long."""
        name = _name(application, system, rate)
        try:
            self.kept.add(self.run(application, system, rate))
        except LiveError as error:
            self.failed.append(str(error))
            self.live.say(f"failed: {error}")
        if name in self.live.nimbus.topologies():
            self.live.kill(name)
            self.live.await_(lambda: bool(self.live.named(name, "tidied")), f"{name} to be gone")

    def _left(self, application: Application, ours: bool) -> list[tuple[str, str]]:
        """(system, rate) of those that are not measured."""
        return [
            (system, rate) for system, rate in runs_of(application)
            if (system == OURS) == ours and (application.topology, rate, system) not in self.kept.runs
        ]  # fmt: skip

    def run(self, application: Application, system: str, rate: str) -> Measured:
        """Submit, wait until latency is steady, and measure. Raises LiveError."""
        name = _name(application, system, rate)
        per_s = application.rates[rate]
        self.live.say(f"{application.title} at {per_s:g} tuples/s: {system}")
        topology_id = self.live.submit(
            application.topology, name=name, environment={}, options=self._options(application, system, rate, name)
        )
        if system == OURS:
            self.live.await_(lambda: bool(self.live.placed(name)), f"{name} to be placed")
        self.live.await_(lambda: bool(self.results(name)), f"results at the sink of {name}")
        since = self._window(name, may_grow=system != OURS)
        found = self._measured(application, system, rate, name, topology_id, since)
        self.live.say(f"mean {1e3 * found.whole_s:.1f} ms of {found.results} results, {dict(found.replicas)}")
        return found

    def _options(self, application: Application, system: str, rate: str, name: str) -> list[str]:
        ends = ends_of(self.scenario, application)
        values: dict[str, Any] = {
            **application.options,
            SERVICE_TIMES.name: "emulated",
            SERVICE_SPEED.name: self.scenario.speed,
            AWAY_SECS.name: AWAY_S,
            "latency.out": str(self.live.sink_file(name)),
            "latency.rate": application.rates[rate],
            "latency.seconds": LONG_S,
            "latency.seed": self.scenario.seed,
            "topology.bolt.wait.park.microsec": PARK_US,
            "topology.spout.wait.park.microsec": PARK_US,
        }
        if system == OURS:
            values |= {"topology.workers": 1}
            values[PINS.name] = {application.source: [ends.sensors], application.sink: [ends.users]}
        else:
            ours = self.kept.runs.get((application.topology, replicas_from(system, rate), OURS))
            if ours is None:
                raise LiveError(f"{name}: the replicas of {OURS} are not known.", remedy="Measure that first.")
            values |= {"topology.workers": len(self.live.network.workers), REPLICAS.name: dict(ours.replicas)}
        return [f"{key}={json.dumps(value)}" for key, value in values.items()]

    def results(self, name: str) -> list[Result]:
        """Those at its sink so far."""
        return read_results(self.live.lines(name))

    def _window(self, name: str, *, may_grow: bool) -> float:
        """When the time began in which latency was steady and nothing was reconfigured; it is over now."""
        for _ in range(TRIES):
            self._await_steady(name, may_grow=may_grow)
            since = time.time()
            time.sleep(self.scenario.window_s)
            if not self.live.moves(name, since=since):
                break
            self.live.say(f"{name} was reconfigured while it was measured")
        return since

    def _await_steady(self, name: str, *, may_grow: bool) -> None:
        """Until nothing has been reconfigured for a while, and no backlog is being worked off.

        Raises LiveError if a plan is still refused then: the policy would have it otherwise than it is.
        """
        until, settle_s = time.monotonic() + STEADY_S, self.scenario.settle_s
        began, refused = time.time(), ""
        while time.monotonic() < until:
            now = time.time()
            steady = is_steady(self.results(name), now, SPAN_S, may_grow=may_grow)
            refused = self.live.refused(name, since=now - settle_s)
            if now - began >= settle_s and steady and not refused and self.live.at_rest([name], settle_s):
                return
            time.sleep(0.5)
        if refused:
            raise LiveError(f"{name}: plans are refused: {refused}", remedy=f"See {self.live.out}.")
        self.live.say(f"{name} is not steady after {STEADY_S:g} s")

    def _measured(
        self, application: Application, system: str, rate: str, name: str, topology_id: str, since: float
    ) -> Measured:
        results = self.results(name)
        window = within(results, since, math.inf)
        if not window:
            raise LiveError(f"{name}: no result in {self.scenario.window_s:g} s.", remedy=f"See {self.live.folder}.")
        ends, network, hosts = ends_of(self.scenario, application), self.live.network, self.live.hosts(topology_id)
        graph = self._graph(application, name)
        same = Compared(0, 0) if system == OURS else compare(results, self.results(_name(application, OURS, rate)))
        return Measured(
            topology=application.topology, rate=rate, system=system, per_s=application.rates[rate], **summary(window),
            outside_s=outside_s(network, hosts, graph, ends),
            model_s=modelled_s(network, hosts, graph, ends),
            model_fifth_s=modelled_s(network, hosts, graph, ends, scale=FIFTH),
            results=len(window), progress=progress(window), repeated=repeated(results),
            compared=same.both, differ=same.differ, resets=len(self._resets(name)),
            replicas={component: len(nodes) for component, nodes in hosts.items()}, hosts=hosts,
        )  # fmt: skip

    def _resets(self, name: str) -> list[dict[str, Any]]:
        """A cut was restored: tuples or a task were lost, or a task had not started in time."""
        return [event for event in self.live.named(name, "reconfiguration_ended") if event["kind"] == "reset"]

    def _graph(self, application: Application, name: str) -> Graph:
        found = self.live.nimbus.structure(name)
        rates = {one.id: declared_rate(one.conf, found.conf) for one in found.components}
        return Graph(
            inputs={one.id: tuple(one.inputs) for one in found.components},
            service_s={id: 1 / rate for id, rate in rates.items() if rate is not None},
            source=application.source,
            sink=application.sink,
        )

    def result(self) -> Finding:
        """The figures so far."""
        finding = conclude(self.scenario, list(self.kept.runs.values()), failed=self.failed)
        if all(not self._left(one, ours) for one in self.scenario.applications for ours in (True, False)):
            self.kept.end()  # it is over: the next call measures again
        return finding


def _name(application: Application, system: str, rate: str) -> str:
    """Of the topology on the cluster."""
    return f"{application.topology}-{rate}-{WORDS[system]}"
