"""The part that all live experiments share: a real Storm on an emulated network, `leeward serve`, and topologies.

The steps and the figures of each experiment are in a file of its own.
"""

from __future__ import annotations

import math
import os
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import typer

from leeward.adapters.nimbus import NimbusClient
from leeward.adapters.zookeeper import ZooClusterStore, connect
from leeward.cli._background import background, leeward_command
from leeward.cli._common import sigterm_interrupts
from leeward.cli._experiment import tell
from leeward.cli._output import Output
from leeward.control.snapshot import read_snapshot
from leeward.core import arrivals
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

ROOT = "/leeward"
#: Of Storm, where the znode of a topology is made when Nimbus accepts it.
STORMS = "/storm/storms"
#: Each topology takes a slot on every node that it uses, and one for its warm tasks.
SLOTS = 16
#: Waits for conditions end after so many seconds: a worker starts in seconds, twelve topologies share two processors.
LONG_S = 240.0
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
#: Of the service, s: it looks often, as its plans are timed, and has patience, as all nodes share one machine.
TIMES: Mapping[str, str] = {
    "look_s": "0.1", "period_s": "3", "cool_down_s": "1", "scale_down_s": "0", "no_return_s": "0",
    "checkpoint_s": "120", "pause_s": "120",
    "restore_s": "180", "handover_s": "240", "prepare_s": "240", "silent_s": "20",
}  # fmt: skip
#: The event of a topology that Storm has placed by its plan at once.
FIRST = "first_placement"


class LiveError(LeewardError):
    """A step of the run did not come about."""


class Steps(Protocol):
    """An experiment's own part."""

    def start(self) -> None:
        """Cluster and service; without them there are no figures."""

    def play(self) -> None:
        """All that is measured."""

    def result(self) -> Finding:
        """The figures so far."""


class Live:
    """The cluster, the service and the topologies of a run; `stack` ends what they start.

    `name` is the experiment's, `out` its folder for results, `folder` the cluster's.  Methods take a topology's name as
    `name`, and Storm's id of it as `topology_id`.  `start_cluster` sets `cluster`, `jar`, `nimbus`, `zookeeper` and
    `store`; `events`, `began` (monotonic, s) and `project` are there before.
    """

    def __init__(
        self, *, name: str, network: Network, out: Path, folder: Path, base_port: int, stack: ExitStack,
        slots: int = SLOTS,
    ) -> None:  # fmt: skip
        """Starts nothing; raises LiveError outside a checkout."""
        self.name, self.network, self.out, self.folder = name, network, out, folder
        self.base_port, self.slots, self.stack = base_port, slots, stack
        self.began = time.monotonic()
        self.project = project_of(name)
        self.network_file = out / "network.toml"
        self.events = EventFile(out / "events.jsonl")

    # --- starting

    def start(self, options: Mapping[str, str]) -> None:
        """Cluster and service, one after the other; raises LeewardError."""
        self.start_cluster()
        self.start_service(options)

    def start_cluster(self) -> None:
        """Cluster, jar and clients; raises LeewardError, also where no network can be emulated."""
        from leeward.local.network.namespaces import hindrance

        self.out.mkdir(parents=True, exist_ok=True)
        self.network_file.write_text(network_text(self.network))
        if why := hindrance():
            raise LiveError(f"the network cannot be emulated: {why}.", remedy="See docs/operations.md.")
        self.say(f"{len(self.network.workers)} nodes on an emulated network, in {self.folder}")
        spec = ClusterSpec(dir=self.folder, base_port=self.base_port, slots=self.slots, network=self.network)
        self.cluster = LocalCluster(spec).up()
        self.stack.callback(self.cluster.down)
        for daemon in ("nimbus", "zookeeper", "redis"):
            favour(self.cluster.daemons[daemon].pid)
        self.jar = self.out / "topology.jar"
        build_jar(self.jar, src=self.project / "src", worker_jar=shipped_jar("worker"))
        self._connect()

    def _connect(self) -> None:
        self.nimbus = NimbusClient([self.cluster.nimbus])
        self.stack.callback(self.nimbus.close)
        self.zookeeper = connect(self.cluster.zookeeper, secrets=self.cluster.secrets())
        self.stack.callback(self.zookeeper.close)
        self.stack.callback(self.zookeeper.stop)
        self.store = ZooClusterStore(self.zookeeper, ROOT)

    def start_service(self, options: Mapping[str, str]) -> None:
        """`serving` until the run is over."""
        self.stack.enter_context(self.serving(options))

    @contextmanager
    def serving(self, options: Mapping[str, str], *, name: str = "") -> Iterator[None]:
        """`leeward serve` with these settings and the network's file, ready before the block and ended after it.

        `events` are those of this service. `name`: of one of several in a run, for its files. Raises LiveError.
        """
        end = f"-{name}" if name else ""
        events = self.out / f"events{end}.jsonl"
        events.unlink(missing_ok=True)
        self.events = EventFile(events)
        every = {**options, "network": str(self.network_file.resolve())}
        words = [word for key, value in every.items() for word in ("-o", f"{key}={value}")]
        places = ["--cluster", str(self.folder), "--events", str(events)]
        with background(leeward_command(["serve", *places, *words]), self.out / f"serve{end}.log") as process:
            favour(process)
            self.await_(lambda: bool(self.events.read() and self.events.named("serving")), "the service to be ready")
            self.say("the service is ready")
            yield

    def start_command(self, arguments: Sequence[str], *, log: str, node: str = "") -> int:
        """A `leeward` command beside the workers, favoured as the daemons are; its process id.

        It is ended with the run.  What it prints goes to a file of that name in `out`.  `node`: it runs in the
        network of this node.
        """
        command = leeward_command(arguments)
        if node and self.cluster.network is not None:
            command = self.cluster.network.inside(node, command)
        process = self.stack.enter_context(background(command, self.out / log))
        favour(process)
        return process

    # --- topologies

    def submit(self, topology: str, *, name: str, environment: Mapping[str, str], options: Sequence[str]) -> str:
        """Submit a topology of the checkout, without what its sinks wrote in an earlier run; Storm's id of it.

        `environment` is added to this process's; `options` are "key=value" and override `QUIET`.  Raises LeewardError.
        """
        self.sink_file(name).unlink(missing_ok=True)
        submit_topology(
            topology, name=name, nimbus=self.cluster.nimbus, jar=self.jar, project=self.project,
            options=[*QUIET, *options], environment={**os.environ, **environment},
        )  # fmt: skip
        return self.nimbus.topologies()[name]

    def kill(self, name: str) -> None:
        """Without waiting until it is gone: the event `tidied` says so."""
        self.nimbus.kill(name)

    def submitted_at(self, topology_id: str) -> float:
        """When Nimbus accepted it, s since 1970; raises LiveError if it has ended."""
        stat = self.zookeeper.exists(f"{STORMS}/{topology_id}")
        if stat is None:
            raise LiveError(f"{topology_id} has ended.", remedy=f"Look into {self.folder}/logs.")
        return float(stat.ctime) / 1000

    def place(self, topology_id: str, components: Sequence[str]) -> list[str]:
        """The node of each component's replica, in this order; of several replicas, that of the first."""
        hosts = self.hosts(topology_id)
        return [hosts[component][0] for component in components]

    def hosts(self, topology_id: str) -> dict[str, list[str]]:
        """Component -> the node of each of its replicas, by task."""
        record = ControlRecord.from_json(self.zookeeper.get(Paths(ROOT, topology_id).control)[0])
        slots = read_snapshot(self.store.snapshot(lambda: None), topology_id).assigned.slots
        return {name: [slots[task].node for task in replicas(table)] for name, table in record.tables.items()}

    # --- events of the service

    def named(self, name: str, action: str) -> list[dict[str, Any]]:
        """All events so far of this topology with this action."""
        self.events.read()
        return [event for event in self.events.named(action) if event.get("topology") == name]

    def plan_of(self, name: str) -> dict[str, Any] | None:
        """The event of its first plan; None before there is one."""
        return next(iter(self.named(name, "plan_made")), None)

    def placed(self, name: str) -> list[dict[str, Any]]:
        """Events that brought it where its first plan wants it: Storm's first placement, or a reconfiguration."""
        first = [event for event in self.named(name, FIRST) if event["by_plan"]]
        return [*first, *self.ended(name)]

    def ended(self, name: str) -> list[dict[str, Any]]:
        """Its reconfigurations that are over, however they ended; no resets."""
        return [event for event in self.named(name, "reconfiguration_ended") if event["kind"] != "reset"]

    def done(self, name: str) -> list[dict[str, Any]]:
        """Of those, the ones that were not given up."""
        return [event for event in self.ended(name) if event["ending"] == Ending.DONE]

    def moves(self, name: str, *, since: float = 0.0, until: float = math.inf) -> Counter[str]:
        """Kinds of the reconfigurations in this time (s since 1970) that did not bring it to its first place."""
        arrived = self.placed(name)[:1]
        ended = [event for event in self.named(name, "reconfiguration_ended") if event not in arrived]
        return Counter(
            event["kind"] if event["ending"] == Ending.DONE else f"{event['kind']} given up"
            for event in ended
            if since <= event["t"] < until
        )

    def refused(self, name: str, *, since: float) -> str:
        """Why its newest plan was refused, if one was since then (s since 1970); else ""."""
        found = [event for event in self.named(name, "plan_refused") if event["t"] >= since]
        return str(found[-1]["why"]) if found else ""

    def at_rest(self, names: Iterable[str], settle_s: float) -> bool:
        """Of these nothing is being reconfigured, and has not been for so long."""
        for name in names:
            started, ended = (
                max((event["t"] for event in self.named(name, f"reconfiguration_{stage}")), default=0.0)
                for stage in ("started", "ended")
            )
            if started > ended or time.time() - ended < settle_s:
                return False
        return True

    # --- events at the sinks

    def sink_file(self, name: str) -> Path:
        """Where the sinks of this topology are to write."""
        return (self.out / f"{name}.out").resolve()

    def lines(self, name: str) -> list[str]:
        """Those that its sinks have written so far."""
        file = self.sink_file(name)
        return file.read_text().splitlines() if file.exists() else []

    def arrived(self, name: str) -> list[arrivals.Arrival]:
        """The events at its sinks so far."""
        return arrivals.read(self.lines(name))

    # --- waiting and telling

    def await_(self, condition: Callable[[], bool], what: str) -> None:
        """Until it holds; raises LiveError after `LONG_S`."""
        until = time.monotonic() + LONG_S
        while not condition():
            if time.monotonic() > until:
                raise LiveError(f"waited {LONG_S:g} s for {what}.", remedy=f"Look into {self.out} and {self.folder}.")
            time.sleep(0.1)

    def say(self, line: str) -> None:
        """A line with the seconds since the start."""
        typer.echo(f"{time.monotonic() - self.began:6.1f} s  {line}", err=True)


def run_scenario(
    name: str, file: Path | None, make: Callable[[dict[str, Any], ExitStack], tuple[Live, Steps]], *, quick: bool,
    seed: int | None, output: Output,
) -> None:  # fmt: skip
    """The experiment `name` by a scenario file; None: the checkout's, a small one if `quick`. Raises LeewardError.

    `make`: from the file's document, with `seed` if one is given; the stack ends what it starts.
    """
    document = scenario_document(file or scenario_file(name.removesuffix("-live"), name, quick=quick), seed)
    with ExitStack() as stack:
        live, steps = make(document, stack)
        command = f"leeward experiment {name}{scenario_words(file, quick=quick)} --seed {document['seed']}"
        run_steps(live, steps, command=command, seed=document["seed"], output=output)


def run_steps(live: Live, steps: Steps, *, command: str, seed: int, output: Output) -> None:
    """A whole run; its figures are written and printed also where a step fails. Raises LeewardError, OSError.

    `command` is the one that repeats it.
    """
    sigterm_interrupts()
    steps.start()
    try:
        steps.play()
    finally:
        seconds = time.monotonic() - live.began
        tell(live.name, steps.result(), command=command, seed=seed, seconds=seconds, output=output, out=live.out)


def scenario_file(scenario: str, experiment: str, *, quick: bool) -> Path:
    """The checkout's. Raises LiveError outside one."""
    return project_of(experiment) / "storm_conf" / "scenarios" / f"{scenario}{'-quick' if quick else ''}.toml"


def scenario_words(file: Path | None, *, quick: bool) -> str:
    """The options of a command that name the scenario, as they were given."""
    return f" --scenario {file}" if file else " --quick" if quick else ""


def scenario_document(file: Path, seed: int | None) -> dict[str, Any]:
    """The document in a scenario file (TOML), with another seed if one is given. Raises LiveError."""
    try:
        document = tomllib.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise LiveError(f"{file}: cannot be read: {error}.", remedy="Name a scenario file (TOML).") from None
    return document if seed is None else {**document, "seed": seed}


def project_of(name: str) -> Path:
    """The checkout, where an experiment's topology is: no wheel has it. Raises LiveError outside one."""
    root = checkout()
    if root is None:
        raise LiveError(f"the topology of {name} is in a checkout only.", remedy="Run it there.")
    return root


def favour(process: int) -> None:
    """Where workers have machines of their own, they take no processor from this daemon."""
    for thread in Path(f"/proc/{process}/task").iterdir():
        os.setpriority(os.PRIO_PROCESS, int(thread.name), FAVOURED)
