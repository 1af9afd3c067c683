"""One fault run: a cluster, the faulty topology, two services, a driver, and faults one after the other."""

from __future__ import annotations

import json
import logging
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import redis

from tests.cluster.faults.actors import Actors, Blow, NoVictimError
from tests.cluster.faults.driver import Driver, Request
from tests.cluster.faults.ledger import Ledger, Write, shown
from tests.cluster.faults.report import Outcome, Result, document
from tests.cluster.faults.schedule import Fault
from tests.cluster.faults.services import Services
from tests.cluster.faulty.src.faulty_numbers import SOURCES, expected, expected_ids
from tests.cluster.harness import Stage, await_, stage

FAULTY = Path(__file__).parents[1] / "faulty"
NAME = "faulty"
#: As in faulty_bolts.py, which only workers can import.
RESULTS, WRITES = "faulty:results", "faulty:writes"
TASKS = 15
SUPERVISORS = WORKERS = 4
RATE = 150.0
#: The stream must be without an overdue result for this long before the next fault, in seconds: a process that was
#: replaced asks for a reset about two seconds after its start.
CALM_S = 3.0
#: After this long without calm the results that are missing count as lost, in seconds.
PATIENCE_S = 90.0
#: A stream without any new result for this long is stuck, in seconds.
STUCK_S = 45.0
#: All results must have come this long after the sources stopped, in seconds.
END_S = 120.0

Report = Callable[[str], None]


@dataclass(slots=True)
class Run:
    """The parts of a run, once all of them are up."""

    stage: Stage
    services: Services
    driver: Driver
    actors: Actors
    ledger: Ledger
    stop_file: Path
    report: Report
    outcomes: list[Outcome] = field(default_factory=list)
    stuck: str = ""
    _last_id: str = "0-0"
    _client: redis.Redis | None = None

    def poll(self) -> Ledger:
        """Take in what the sink has written since; nothing while Redis is away."""
        if self._client is None:
            self._client = self.stage.cluster.open_redis(socket_timeout=2)
        try:
            while entries := self._client.xrange(WRITES, min=f"({self._last_id}", count=5000):
                for name, fields in entries:
                    self._last_id = name.decode()
                    at_ms = int(self._last_id.partition("-")[0])
                    result = fields[b"result"].decode()
                    self.ledger.add(Write(at_ms, fields[b"id"].decode(), result, int(fields[b"due"])))
        except (redis.ConnectionError, redis.TimeoutError):
            pass
        return self.ledger

    def calm(self) -> bool:
        """All results that are due have come, and a service leads."""
        self.poll()
        return (
            self.ledger.started and not self.ledger.overdue(time.time() * 1000) and self.services.leader() is not None
        )

    def suffer(self, fault: Fault) -> None:
        """One fault, until the topology is well again."""
        blow = self._aim(fault)
        if blow is None:
            return
        before = self.actors.living()
        self.report(f"fault {fault.number}: {fault.text} ({blow.victim})")
        with self.driver.hold():
            request = self._reconfigure(fault)
            self.poll()
            in_handover = request is not None and not self.driver.look(request)
            struck = time.time()
            self.ledger.open(int(struck * 1000))
            blow.strike()
        time.sleep(fault.seconds)
        blow.repair()
        settled = self._settle(struck, request)
        missing = [] if settled else self.ledger.give_up(time.time() * 1000)
        self._note(fault, blow.victim, struck, in_handover, before, missing)

    def end(self) -> int:
        """The sources stop at a number, and everything comes; the number."""
        limit = self.ledger.numbers_due(time.time() * 1000) + int(5 * self.ledger.rate)
        part = self.stop_file.with_suffix(".part")
        part.write_text(str(limit))
        part.replace(self.stop_file)
        time.sleep(5.0)
        until = time.monotonic() + (0.0 if self.stuck else END_S)
        while self.poll().missing(limit) and time.monotonic() < until:
            time.sleep(0.5)
        return limit

    def output(self) -> dict[str, str]:
        """The results as a user of the sink would read them."""
        with self.stage.cluster.open_redis() as client:
            return {name.decode(): result.decode() for name, result in client.hgetall(RESULTS).items()}

    def _aim(self, fault: Fault) -> Blow | None:
        """None, and the run is stuck, if no process of this kind appears in time."""
        until = time.monotonic() + STUCK_S
        while True:
            try:
                return self.actors.aim(fault)
            except NoVictimError as error:
                if time.monotonic() > until:
                    self.stuck = str(error)
                    return None
            time.sleep(1.0)

    def _reconfigure(self, fault: Fault) -> Request | None:
        if fault.after_ms is None:
            return None
        request = self.driver.ask(fault.component)
        if request is not None:
            time.sleep(max(0.0, request.asked + fault.after_ms / 1000 - time.time()))
        return request

    def _settle(self, struck: float, request: Request | None) -> bool:
        """Wait for calm, and for a reconfiguration asked for after the fault; False if that does not come."""
        calm_since: float | None = None
        whole = False  # looked at until it holds: to find the processes takes a tenth of a second of a processor
        until = time.time() + PATIENCE_S
        while (now := time.time()) < until:
            if request is not None:
                self.driver.look(request)
            if self.calm() and self.driver.answered_since(struck) is not None:
                whole = whole or self.actors.whole(TASKS)
            if whole and self.calm():
                calm_since = calm_since or now
                if now - calm_since >= CALM_S:
                    return True
            else:
                calm_since = None
            time.sleep(0.5)
        if not self.poll().overdue(time.time() * 1000):
            return True  # the stream is well; what else is not shows in `control_s`
        if time.time() * 1000 - self.ledger.last_new_ms > STUCK_S * 1000:
            self.stuck = f"no new result for {STUCK_S:g} s"
        return False

    def _note(
        self, fault: Fault, victim: str, struck: float, in_handover: bool, before: dict[int, str],
        missing: Sequence[str],
    ) -> None:  # fmt: skip
        window, now = self.ledger.window, time.time()
        answered = self.driver.answered_since(struck)
        events = [{**e, "t": round(e["t"] - struck, 3)} for e in self.services.events(struck - 0.5, now)]
        outcome = Outcome(
            fault=fault, victim=victim, at=struck, in_handover=in_handover,
            recovery_s=None if missing else window.latest_ms / 1000, silence_s=window.silence_ms / 1000,
            caught_up_s=window.caught_up_ms / 1000, control_s=answered and round(answered - struck, 3),
            first_new_s=max(0.0, window.latest_at_ms / 1000 - struck), repeated=window.repeated, lost=len(missing),
            starts=self._starts(before, struck), events=events,
        )  # fmt: skip
        self.outcomes.append(outcome)
        recovered = "never: " + shown(missing) if missing else f"{outcome.recovery_s:.1f} s"
        self.report(f"  recovered in {recovered}; {window.repeated} writes repeated")

    def _starts(self, before: dict[int, str], struck: float) -> list[tuple[float, str]]:
        """When the processes that are new since the fault started."""
        from leeward.local.processes import started_s

        starts = []
        for pid, what in self.actors.living().items():
            if pid not in before:
                try:
                    starts.append((round(started_s(pid) - struck, 2), what))
                except OSError:
                    continue
        return sorted(starts)


def run(faults: Sequence[Fault], seed: int, folder: Path, base_port: int, report: Report) -> Result:
    """These faults on a cluster of their own in `folder`, and what came of them. `seed`: of the reconfigurations."""
    logging.getLogger("kazoo").setLevel(logging.CRITICAL)  # ZooKeeper goes away on purpose
    load, stolen = os.getloadavg()[0], stolen_s()
    with _up(seed, folder, base_port, report) as running:
        for fault in faults:
            running.suffer(fault)
            if running.stuck:
                break
        running.driver.stop()
        limit = running.end()
        host = {"load_before": load, "load_after": os.getloadavg()[0], "stolen_s": round(stolen_s() - stolen, 1)}
        return _result(running, seed, limit, host)


def write(result: Result, folder: Path) -> Path:
    """The document of a run as `<seed>.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result.seed}.json"
    path.write_text(json.dumps(document(result), indent=1, default=str) + "\n")
    return path


def submit_options(stop_file: Path) -> list[str]:
    """The options of the topology's own; `Stage.submitted` adds Leeward's."""
    return [f"faulty.stop={stop_file}", f"faulty.rate={RATE:g}"]


def stolen_s() -> float:
    """Seconds of processor that the host has kept from this machine since its start."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _up(seed: int, folder: Path, base_port: int, report: Report) -> Iterator[Run]:
    with ExitStack() as stack:
        on = stack.enter_context(stage(folder, base_port, supervisors=SUPERVISORS))
        report(f"the cluster is up in {on.cluster.dir}")
        stop_file = folder / "stop"
        options = submit_options(stop_file)
        topology = stack.enter_context(
            on.submitted(NAME, NAME, on.project_jar(FAULTY), FAULTY, options, workers=WORKERS)
        )
        services = stack.enter_context(Services(NAME, on.cluster.dir, folder / "services"))
        await_(lambda: services.leader() is not None, "a service to lead")
        driver = stack.enter_context(Driver(topology, random.Random(f"driver {seed}")))
        actors = Actors(on.cluster, topology, services, driver)
        running = Run(on, services, driver, actors, Ledger(RATE), stop_file, report)
        await_(
            lambda: running.calm() and actors.whole(TASKS) and driver.answered_since(0.0),
            "results, all processes and a reconfiguration",
        )
        time.sleep(CALM_S)
        report("results flow")
        yield running


def _result(running: Run, seed: int, limit: int, host: dict[str, Any]) -> Result:
    ids = expected_ids(dict.fromkeys(SOURCES, limit))
    output, ledger = running.output(), running.ledger
    wrong = [f"{name} = {result!r}" for name, result in sorted(output.items()) if expected(name) != result]
    wrong += [f"{name} was not to come" for name in sorted(output.keys() - ids) if expected(name) is not None]
    ended = [f"{e.name}, exit code {e.code}" for e in running.services.ended if not e.asked]
    return Result(
        seed=seed, outcomes=running.outcomes, rate=ledger.rate, limit=limit, results=len(ids),
        missing=sorted(ids - output.keys()), wrong=wrong, wrong_writes=ledger.wrong, writes=ledger.writes,
        repeated=ledger.repeated, odd=ledger.odd, reconfigurations=running.driver.outcomes(), ended=ended,
        requests=[asdict(request) for request in running.driver.requests],
        stuck=running.stuck, host=host,
    )  # fmt: skip
