"""Carries faults out on a local cluster. Processes are found through the cluster's own records, never by name alone."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from leeward.core.table import replicas
from leeward.local import LocalCluster, processes
from leeward.local.processes import Process
from tests.cluster.faults.driver import Driver
from tests.cluster.faults.schedule import Action, Fault, Target
from tests.cluster.faults.services import Services
from tests.cluster.harness import Running

#: The classes of the components, as the processes' command lines name them.
CLASSES = {"left": "Left", "right": "Right", "passing": "Pass", "count": "Count", "join": "Join", "sink": "Sink"}


@dataclass(frozen=True, slots=True)
class Blow:
    """A fault with its victim found, so that it takes no time to strike."""

    victim: str  #: for people
    strike: Callable[[], None]
    repair: Callable[[], None]  #: called `seconds` after the strike


class NoVictimError(AssertionError):
    """There is no process of this kind now."""


@dataclass(frozen=True, slots=True)
class Actors:
    """Finds the processes of one run."""

    cluster: LocalCluster
    running: Running
    services: Services
    driver: Driver

    def aim(self, fault: Fault) -> Blow:
        """Find the victim. Raises NoVictimError."""
        match fault.target, fault.action:
            case ((Target.TASK | Target.WORKER), _):
                return self._signalled(fault, *self._process(fault))
            case Target.SERVICE, _:
                return self._service(fault)
            case _, Action.STOP:
                name = self._daemon(fault)
                return self._signalled(fault, name, self.cluster.daemons[name])
            case _:
                name = self._daemon(fault)
                end = self.cluster.kill_daemon if fault.action is Action.KILL else self.cluster.stop_daemon
                return Blow(name, lambda: end(name), lambda: self.cluster.start_daemon(name))

    def whole(self, tasks: int) -> bool:
        """All Python processes of the topology are there."""
        return len(self.cluster.python_pids()) >= tasks

    def living(self) -> dict[int, str]:
        """pid -> what it is, of workers and tasks."""
        workers = {pid: f"worker {node}:{port}" for (node, port), pid in self.cluster.worker_pids().items()}
        return workers | {
            pid: f"{child.target.rpartition('.')[2]} on {child.node}:{child.port}"
            for pid, child in self.cluster.python_pids().items()
        }

    def _signalled(self, fault: Fault, victim: str, process: Process) -> Blow:
        if fault.action is Action.KILL:
            return Blow(victim, lambda: processes.send(process, signal.SIGKILL), lambda: None)
        return Blow(
            victim,
            lambda: processes.send(process, signal.SIGSTOP),
            lambda: processes.send(process, signal.SIGCONT),
        )

    def _process(self, fault: Fault) -> tuple[str, Process]:
        if fault.target is Target.WORKER:
            found = {f"worker {node}:{port}": pid for (node, port), pid in self.cluster.worker_pids().items()}
        else:
            found = self._tasks(fault.component)
        victim = _picked(found, fault.pick, fault.text)
        process = processes.process_of(found[victim])
        if process is None:
            raise NoVictimError(f"{fault.text}: pid {found[victim]} of {victim} has just ended")
        return victim, process

    def _tasks(self, component: str) -> dict[str, int]:
        """The processes in slots where a task of this component owns key groups; a source has one process."""
        slots = self.running.snapshot().assigned.slots
        owners = replicas(self.driver.record().tables.get(component, ()))
        at = {(slots[task].node, slots[task].port) for task in owners if task in slots}
        children = {
            f"{component} pid {pid} on {child.node}:{child.port}": (pid, (child.node, child.port))
            for pid, child in sorted(self.cluster.python_pids().items())
            if child.target.endswith(f".{CLASSES[component]}")
        }
        chosen = {text: pid for text, (pid, slot) in children.items() if slot in at}
        return chosen or {text: pid for text, (pid, _) in children.items()}

    def _service(self, fault: Fault) -> Blow:
        pid = self.services.leader()
        process = processes.process_of(pid) if pid else None
        if pid is None or process is None:
            raise NoVictimError(f"{fault.text}: no service leads")
        if fault.action is Action.KILL:
            return Blow(f"leading service, pid {pid}", lambda: self.services.kill(pid), lambda: None)
        return self._signalled(fault, f"leading service, pid {pid}", process)

    def _daemon(self, fault: Fault) -> str:
        if fault.target is not Target.SUPERVISOR:
            return str(fault.target)
        return _picked([node.daemon for node in self.cluster.nodes], fault.pick, fault.text)


def _picked(candidates: Iterable[str], pick: float, text: str) -> str:
    names = sorted(candidates)
    if not names:
        raise NoVictimError(f"{text}: there is no such process now")
    return names[int(pick * len(names))]
