"""The whole service at the size of a large cluster: a cycle, processor, memory, answers and live events.

    python tests/bench/service_scale.py [--quick] [--policies edrp agiledart even] [--cycles 10] [--limit-s 240]

1,000 nodes with 4 slots each run 50 topologies of 40 components with 4 tasks each (`sim/world/shared.py`). The service
is the one that `leeward serve --http` starts: the fleet with a thread for each topology, monitor, guards, coordinators,
reports and API with page; its servers are stand-ins in memory. Each policy has a process of its own, as memory counts.

A cycle begins when the load of every topology has changed and all of them are due, and ends when the policy has
answered for the last one. Between two cycles all reconfigurations come to their end. Clients are another process. The
clock is put ahead to shortly before the first topology is due. For so long all measure, as they would have for the rest
of the period; then it is put ahead to where the last is due. The waits of the service are real. Bounds: the slowest
cycle under 5 s, the most memory that the process has ever had under 500 MB, the stand-in's included. A policy begins no
cycle after `--limit-s` seconds, and waits for none longer than `PATIENCE_S`.

Prints what it does, at the end tables, and writes `out/bench/service_scale.json` and `.md`. Exit code 1 if a topology
got no plan, a node holds more replicas than it may, two topologies share a slot, or a service has failed.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from machine import facts
from rich.console import Console
from rich.table import Table
from service_api import measured

from leeward.adapters.clock import SystemClock
from leeward.adapters.events import Fan
from leeward.adapters.http.server import Where, answering
from leeward.adapters.post import PeerPost
from leeward.cli._beside import EXPLAIN
from leeward.control.fleet import Fleet
from leeward.control.registry import Policies
from leeward.control.report.knowledge import Knowledge
from leeward.control.report.rings import COARSE, FINE
from leeward.control.reservations import Reservations
from leeward.control.service import Service
from leeward.core.collecting import seldom_collected
from leeward.core.settings import Chosen, settings_from
from leeward.core.table import replicas
from leeward.dashboard.service.page import routes
from leeward.local import places
from leeward.sim.world.grown import LOAD, grown, nodes_of, places_of
from leeward.sim.world.shared import SharedCluster

ROOT = Path(__file__).resolve().parents[2]
CLIENT = Path(__file__).with_name("service_client.py")
POLICIES = ("edrp", "agiledart", "even")
CYCLE_S, MEMORY_MB = 5.0, 500
PERIOD_S, STEADY_S, PATIENCE_S, LIMIT_S = 60.0, 10.0, 120.0, 240.0
#: The topologies have measured for so long when they are due: a clock that leaps over a minute would make each wait for
#: two lines, as rates are not measured over a gap.
MEASURED_S, SOON_S = 4.0, 0.5
#: `at_once=0`: all topologies may be reconfigured at the same time, so that cycles do not wait for each other.
OPTIONS = (
    f"period_s={PERIOD_S:g}",
    "cool_down_s=0",
    "scale_down_s=0",
    "no_return_s=0",
    "at_once=0",
    "edrp.r_max_s=5",
    "edrp.c_max=400",
)


class Size(NamedTuple):
    """Of the cluster, and of each topology."""

    nodes: int = 1000
    slots: int = 4
    topologies: int = 50
    components: int = 40
    tasks: int = 4  #: of a component
    workers: int = 20  #: slots that a topology has at first


FULL, QUICK = Size(), Size(nodes=50, topologies=5, workers=10)


class AheadClock(SystemClock):
    """The system's clock, which may be put ahead."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead


class Answers:
    """EventSink that knows when each topology's policy has answered, and whether something has failed."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.answered: dict[str, float] = {}  # topology -> time.perf_counter() of the newest answer
        self.measured: set[str] = set()  # topologies whose service has begun its rounds
        self.told: Counter[str] = Counter()  # action -> events
        self.failures: list[str] = []

    def emit(self, action: str, fields: Mapping[str, object]) -> None:
        with self._changed:
            self.told[action] += 1
            if action in ("plan_made", "plan_refused"):
                self.answered[str(fields["topology"])] = time.perf_counter()
            if action == "measured":
                self.measured.add(str(fields["topology"]))
            if action in ("service_failed", "measure_failed"):
                self.failures.append(f"{action} {fields}")
            self._changed.notify_all()

    def await_all(self, names: Sequence[str], since: float) -> float:
        """When the last of these was answered after `since`; raises TimeoutError naming those that were not."""

        def late() -> list[str]:
            return [name for name in names if self.answered.get(name, 0.0) < since]

        with self._changed:
            if not self._changed.wait_for(lambda: self.failures or not late(), PATIENCE_S) or self.failures:
                raise TimeoutError(f"no plan of {late()} after {PATIENCE_S:g} s; failures: {self.failures[:3]}")
            return max(self.answered[name] for name in names)


class Running:
    """The service, its stand-ins and all that measures them."""

    def __init__(self, size: Size, chosen: Chosen) -> None:
        nodes = nodes_of(size.nodes, size.slots)
        self.size, self.clock, self.answers = size, AheadClock(), Answers()
        self.began_mb = memory_mb()
        worlds = [
            grown(f"t{number:02}", components=size.components, tasks=size.tasks, workers=size.workers, seed=0)
            for number in range(size.topologies)
        ]
        self.cluster = SharedCluster(worlds, nodes=nodes, places=places_of(nodes, 0), clock=self.clock)
        self.cluster_mb = memory_mb() - self.began_mb
        self.knowledge = Knowledge(self.clock)
        self.sink = Fan(self.answers, self.knowledge)
        self.chosen, self.policies = chosen, Policies(chosen, PeerPost)
        self.reservations = Reservations(chosen.service.at_once)
        self.services: dict[str, Service] = {}
        self.names = tuple(sorted(self.cluster.tenants))
        self.url = ""

    def fill(self) -> None:
        """Rings as they are after a day: a point a minute fills both of a figure."""
        names = [f"c{number:02}" for number in range(self.size.components)]
        for name in self.names:
            started = {"topology": name, "topology_id": self.cluster.tenants[name].id, "policy": ""}
            self.knowledge.emit("service_started", started)
        for point in range(max(COARSE, FINE)):
            self.clock.ahead += 60.0
            for at, name in enumerate(self.names):
                self.knowledge.emit("measured", measured(name, names, at + point, self.size.nodes))

    @contextmanager
    def serving(self) -> Iterator[Running]:
        """While the fleet leads all topologies and the API answers."""
        stop, where = threading.Event(), Where(host="127.0.0.1", port=0)
        both = _Listens(self, self.sink)
        page = partial(routes, places.web())
        with seldom_collected(), answering(where, "", self.knowledge, both, explain=EXPLAIN, pages=page) as desk:

            def serve(name: str, stop: threading.Event) -> None:
                ports = self.cluster.ports(name, self.sink)
                with desk.serving(name, ports):
                    self.services[name] = Service(
                        topology=name, ports=ports, settings=self.chosen.of(name).service,
                        policy=self.policies.of(name), reservations=self.reservations,
                    )  # fmt: skip
                    self.services[name].run(stop)

            fleet = Fleet(nimbus=self.cluster.nimbus, is_ours=lambda _: True, serve=serve, sink=self.sink)
            leading = threading.Thread(target=fleet.run, args=(stop,), name="fleet")
            leading.start()
            try:
                yield self
            finally:
                stop.set()
                leading.join()

    def quiet(self) -> bool:
        """Every topology is led, and no reconfiguration is in progress."""
        terms = [service.term for service in self.services.values()]
        coordinators = [term.coordinator for term in terms if term is not None]
        ready = [one for one in coordinators if one is not None and one.idle and not one.machine.away and one.snapshot]
        return len(ready) == len(self.names) == len(self.answers.measured)

    def await_quiet(self) -> None:
        until = time.monotonic() + PATIENCE_S
        while not self.quiet():
            if self.answers.failures or time.monotonic() > until:
                raise TimeoutError(f"not at rest after {PATIENCE_S:g} s; failures: {self.answers.failures[:3]}")
            time.sleep(0.1)

    def cycle(self, rng: random.Random) -> tuple[float, float]:
        """Another load, and all are due: seconds until the last has its plan, and the processor's of the service."""
        self.await_quiet()
        for name in self.names:
            self.cluster.tenants[name].load = LOAD * rng.uniform(0.6, 1.6)
        self.clock.ahead += max(0.0, self.due_s()[0] - MEASURED_S - SOON_S)
        time.sleep(MEASURED_S)
        since, before = time.perf_counter(), time.process_time() - self.cluster.spent_s
        self.clock.ahead += max(0.0, self.due_s()[1])
        taken = self.answers.await_all(self.names, since) - since
        return taken, time.process_time() - self.cluster.spent_s - before

    def due_s(self) -> tuple[float, float]:
        """Seconds until the first topology is due, and until the last is."""
        now = self.clock.now()
        left = [service.term._loop._next - now for service in self.services.values() if service.term is not None]
        return min(left), max(left)

    def steady(self, seconds: float) -> tuple[float, float]:
        """Processor seconds in a second while nothing is due: of the service, and of the stand-in."""
        self.await_quiet()
        before, spent, began = time.process_time(), self.cluster.spent_s, time.monotonic()
        time.sleep(seconds)
        passed = time.monotonic() - began
        stand_in = self.cluster.spent_s - spent
        return (time.process_time() - before - stand_in) / passed, stand_in / passed

    def faults(self) -> list[str]:
        """Nodes over their capacity, and slots of two topologies."""
        most = self.size.slots * self.chosen.service.eps_max
        used: Counter[str] = Counter()
        users: dict[object, set[str]] = {}
        for name, tenant in self.cluster.tenants.items():
            tables = tenant.world.record.tables if tenant.world.record else {}
            used.update(tenant.slots[task].node for table in tables.values() for task in replicas(table))
            for slot in tenant.slots.values():
                users.setdefault(slot, set()).add(name)
        over = [f"{node} holds {count} replicas of {most}" for node, count in sorted(used.items()) if count > most]
        return over + [f"{slot} is used by {sorted(names)}" for slot, names in users.items() if len(names) > 1]


class _Listens:
    """EventSink that keeps the address of the API."""

    def __init__(self, running: Running, sink: Fan) -> None:
        self._running, self._sink = running, sink

    def emit(self, action: str, fields: Mapping[str, object]) -> None:
        if action == "http_listens":
            self._running.url = str(fields["url"])
        self._sink.emit(action, fields)


def memory_mb(field: str = "VmRSS") -> float:
    """Resident memory of this process now; of `VmHWM`, the most that it has ever had."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"no {field}")


def run(
    policy: str, size: Size, *, cycles: int, fill: bool, steady_s: float = STEADY_S, limit_s: float = LIMIT_S
) -> dict[str, Any]:
    """The figures of one policy, in this process; where something did not come to its end, `faults` says so."""
    chosen = settings_from({}, [f"policy={policy}", *OPTIONS])
    running = Running(size, chosen)
    for name in running.names:
        running.cluster.tenants[name].load = LOAD
    for name in running.names:
        prepare = getattr(running.policies.of(name), "prepare", None)
        if prepare is not None:
            prepare()
    say(policy, f"{size.topologies} topologies on {size.nodes} nodes are made")
    if fill:
        running.fill()
        say(policy, "the rings of a day are full")
    row: dict[str, Any] = {"policy": policy, "asked_cycles": cycles, "cycles_s": [], "cpu_s": [], "answers": []}
    late: list[str] = []
    with running.serving():
        try:
            row |= measure(running, row, cycles=cycles, steady_s=steady_s, limit_s=limit_s)
        except TimeoutError as error:
            late.append(str(error))
        row |= {"memory_mb": round(memory_mb()), "memory_peak_mb": round(memory_mb("VmHWM"))}
    told = running.answers.told
    return row | {
        "memory_of_stand_in_mb": round(running.cluster_mb), "memory_at_begin_mb": round(running.began_mb),
        "plans": told["plan_made"], "refused": told["plan_refused"], "begun": told["reconfiguration_started"],
        "faults": [*late, *running.answers.failures, *running.faults()],
    }  # fmt: skip


def measure(running: Running, row: dict[str, Any], *, cycles: int, steady_s: float, limit_s: float) -> dict[str, Any]:
    """Cycles, a rest, clients. Each cycle's seconds go into `row` at once. Raises TimeoutError."""
    policy, rng, until = row["policy"], random.Random(0), time.monotonic() + limit_s
    first_s, _ = running.cycle(rng)  # compiles, and places all topologies by a plan for the first time
    say(policy, f"first cycle {first_s:.2f} s")
    while len(row["cycles_s"]) < cycles and (not row["cycles_s"] or time.monotonic() < until):
        taken_s, cpu_s = running.cycle(rng)
        row["cycles_s"].append(round(taken_s, 3))
        row["cpu_s"].append(round(cpu_s, 3))
        done = f"cycle {len(row['cycles_s'])} of {cycles}: {row['cycles_s'][-1]:.2f} s"
        say(policy, f"{done}, of a processor {row['cpu_s'][-1]:.2f} s")
    service_cpu, stand_in_cpu = running.steady(steady_s)
    asked = clients(running.url, running.names[0], running.clock.ahead, steady_s)
    listened_cpu, _ = running.steady(steady_s)
    return {
        "first_s": round(first_s, 3), "cpu_per_s": round(service_cpu, 3), "stand_in_cpu_per_s": round(stand_in_cpu, 3),
        "cpu_after_clients_per_s": round(listened_cpu, 3), "answers": asked["answers"], "events": asked["events"],
    }  # fmt: skip


def say(policy: str, what: str) -> None:
    """Progress, for the people that wait."""
    print(f"{policy}: {what}; {memory_mb():.0f} MB", file=sys.stderr, flush=True)


def clients(url: str, name: str, ahead: float, seconds: float) -> dict[str, Any]:
    """The answers that a client of another process got, and how late it heard of events."""
    command = [sys.executable, str(CLIENT), url, name, str(ahead), str(seconds)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


# --- the tables

HEAD = ("policy", "cycle, mean, s", "worst", "of", "bound", "processor, s", "memory, most, MB", "bound", "verdict")


def verdicts(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Under `HEAD`; a policy without a whole cycle, or with faults, does not meet anything."""
    found = []
    for row in rows:
        taken, most = row["cycles_s"], row["memory_peak_mb"]
        met = bool(taken) and max(taken) < CYCLE_S and most < MEMORY_MB and not row["faults"]
        times = (f"{statistics.mean(taken):.2f}", f"{max(taken):.2f}") if taken else ("none", "none")
        spent = f"{statistics.mean(row['cpu_s']):.2f}" if row["cpu_s"] else "none"
        of = f"{len(taken)} of {row['asked_cycles']}"
        memory = str(most), str(MEMORY_MB)
        found.append((row["policy"], *times, of, f"{CYCLE_S:g}", spent, *memory, "met" if met else "not met"))
    return found


def markdown(size: Size, rows: Sequence[Mapping[str, Any]]) -> str:
    """The verdicts as a page."""
    lines = [HEAD, ("---",) * len(HEAD), *verdicts(rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"# The service at the size of a large cluster\n\n{in_words(size)}.\n\n{table}\n"


def in_words(size: Size) -> str:
    return f"{size.nodes} nodes, {size.topologies} topologies x {size.components} components x {size.tasks} tasks"


def shown(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    whole = [row for row in rows if row["answers"]]
    rest = Table("policy", "at rest, processor/s", "of the stand-in", "memory, MB", "of the stand-in, MB", "plans",
                 "begun", "event, median, ms", "worst, ms", box=None)  # fmt: skip
    for row in whole:
        rest.add_row(
            row["policy"], f"{row['cpu_per_s']:.2f}", f"{row['stand_in_cpu_per_s']:.2f}", str(row["memory_mb"]),
            str(row["memory_of_stand_in_mb"]), str(row["plans"]), str(row["begun"]), str(row["events"]["median_ms"]),
            str(row["events"]["worst_ms"]),
        )  # fmt: skip
    paths = Table("policy", "path", "median, ms", "slowest, ms", "bytes", box=None)
    for row in whole:
        for answer in row["answers"]:
            paths.add_row(row["policy"], *(str(value) for value in answer.values()))
    last = Table(*HEAD, box=None)
    for verdict in verdicts(rows):
        last.add_row(*verdict)
    console.print(rest, paths, last)
    for row in rows:
        for fault in row["faults"][:10]:
            console.print(f"  {row['policy']}: {fault}")


def options_of(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="50 nodes and 5 topologies, 3 cycles: for tests")
    parser.add_argument("--policies", nargs="+", default=POLICIES, metavar="NAME")
    parser.add_argument("--cycles", type=int)
    parser.add_argument("--limit-s", type=float, default=LIMIT_S, help="no cycle begins after so long, for each policy")
    parser.add_argument("--one", metavar="NAME", help=argparse.SUPPRESS)  # this policy in this process, as JSON
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = options_of(arguments)
    size, cycles = (QUICK, 3) if options.quick else (FULL, 10)
    cycles = options.cycles or cycles
    if options.one:
        row = run(options.one, size, cycles=cycles, fill=not options.quick, limit_s=options.limit_s)
        print(json.dumps(row))
        return 0
    out = ROOT / "out/bench" / ("service_scale_quick.json" if options.quick else "service_scale.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for policy in options.policies:
        command = [sys.executable, __file__, "--one", policy, f"--cycles={cycles}", *["--quick"] * options.quick]
        command.append(f"--limit-s={options.limit_s}")
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        rows.append(json.loads(done.stdout))
        result = {"size": size._asdict(), "options": OPTIONS, "rows": rows, "machine": facts()}
        out.write_text(json.dumps(result, indent=1) + "\n")
        out.with_suffix(".md").write_text(markdown(size, rows))
    console = Console(highlight=False, width=160)
    console.print(in_words(size))
    shown(rows, console)
    return 1 if any(row["faults"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
