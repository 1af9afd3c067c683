"""A Python process is lost, its worker is not: the process is started again in the same JVM, and no tuple is lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest

from leeward.core.control import Phase
from leeward.core.table import replicas
from tests.cluster.harness import Pilot, Running, await_

pytestmark = pytest.mark.timeout(400)


def replica(counting: Running, component: str) -> int:
    """The component's first one; a warm task may have taken over for the first task in the test before."""
    return replicas(counting.record().tables[component.lower()])[0]


def worker_and_process(counting: Running, component: str, task: int) -> tuple[int, int]:
    """The JVM and the Python process of a task of the component; the process is 0 while there is none."""
    slot = counting.snapshot().assigned.slots[task]
    worker = counting.cluster.worker_pids()[slot.node, slot.port]
    processes = [
        pid
        for pid, child in sorted(counting.cluster.python_pids().items())
        if (child.node, child.port) == (slot.node, slot.port) and child.target.endswith(f".{component}")
    ]
    assert len(processes) < 2, "of which one is the task?"
    return worker, sum(processes)


def replaced(counting: Running, pilot: Pilot, component: str, harm: Callable[[int], None]) -> None:
    """Harm the process between two checkpoints; the topology is reset and goes on in the same workers."""
    pilot.checkpoint()
    counting.stream.flow()
    workers, mark = counting.cluster.worker_pids(), len(pilot.events.all)
    task = replica(counting, component)
    worker, process = worker_and_process(counting, component, task)
    counting.stream.silence_since()
    harm(process)
    pilot.await_event("reset", since=mark)
    await_(
        lambda: [e for e in pilot.events.named("reconfiguration_ended", since=mark) if e["kind"] == "reset"],
        "the reset to end",
    )
    counting.stream.settled(400)
    await_(lambda: pilot.idle and counting.record().phase is Phase.RUN, "the topology to run")
    silence = counting.stream.silence_since()
    print(f"\n{component}: {silence} ms of silence at the sink")
    assert counting.cluster.worker_pids() == workers
    # where a warm task took over, the stream does not wait for the lost one
    await_(lambda: worker_and_process(counting, component, task)[1] not in (0, process), "a new process")
    assert worker_and_process(counting, component, task)[0] == worker


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)


def stop(process: int) -> None:
    """For ever; it is killed while it is stopped."""
    os.kill(process, signal.SIGSTOP)


@pytest.mark.parametrize(
    ("component", "harm"),
    [("Count", kill), ("Numbers", kill), ("Sink", kill), ("Count", stop), ("Numbers", stop)],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_the_worker_survives_its_python_process(counting: Running, component: str, harm: Callable[[int], None]) -> None:
    with counting.pilot() as pilot:
        replaced(counting, pilot, component, harm)


def test_a_short_stop_is_waited_for(counting: Running) -> None:
    """A process that goes on within two seconds is no loss."""
    with counting.pilot() as pilot:
        pilot.checkpoint()
        mark = len(pilot.events.all)
        task = replica(counting, "Count")
        worker, process = worker_and_process(counting, "Count", task)
        os.kill(process, signal.SIGSTOP)
        time.sleep(1)
        os.kill(process, signal.SIGCONT)
        counting.stream.settled(400)
        assert worker_and_process(counting, "Count", task) == (worker, process)
        assert not pilot.events.named("reset", since=mark)
