"""A simulated cluster behind the service's ports, and its time.

Time passes only while the service waits. Where nothing is in progress a wait lasts until the next time at which the
service would see something new: before a plan, by the window over which rates are measured, and at the plan. A real
wait may last too long, too; so the service's own rounds are left as they are. While a reconfiguration is in progress
waits last until the tasks' reports are due, or as long as they are asked for.
"""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from leeward.control.coordinator import Coordinator
from leeward.control.ports import ComponentFacts, EventSink, Ports, StreamFacts, Structure, TopologyPorts
from leeward.control.term import MEASURE_S
from leeward.core.migration import Machine
from leeward.core.orders import State
from leeward.core.settings import Settings
from leeward.sim.memory import (
    ManualClock,
    MemoryClusterStore,
    MemoryHistory,
    MemoryLeftovers,
    MemoryLock,
    MemoryNimbus,
    MemoryRequests,
    MemorySnapshots,
)
from leeward.sim.world.counts import Counts
from leeward.sim.world.description import WorldFile
from leeward.sim.world.flows import Flows, Layout, Passed
from leeward.sim.world.rates import RateTrace
from leeward.sim.world.tasks import SilentTasks, TimedBarriers, WatchedControl

#: A rate holds for so long at most, s.
STEP_S = 30.0
#: The same while tuples wait.
FINE_S = 1.0
#: When a simulation begins, s since 1970: a round number, so that sums of seconds stay exact.
EPOCH_S = 1024.0


@dataclass(frozen=True, slots=True)
class Sample:
    """One step of the timeline."""

    at_s: float  #: its middle, since the beginning
    seconds: float
    offered: float  #: tuples/s
    response_s: float
    replicas: int
    waiting: float  #: tuples, all queues together
    most_used: float  #: utilisation of the component that has most to do


class VirtualClock(ManualClock):
    """Clock whose waits pass at once; the cluster says how long they last."""

    def __init__(self) -> None:
        super().__init__(EPOCH_S)
        self.wait: Callable[[float], None] = lambda seconds: None

    def patience(self, seconds: float) -> float:
        """Lets time pass; nobody really waits."""
        self.wait(seconds)
        return 0.0


class SimulatedCluster:
    """See the module."""

    def __init__(
        self, world: WorldFile, trace: RateTrace, settings: Settings, *, hours: float, sink: EventSink
    ) -> None:
        self.world, self.clock, self.stop = world, VirtualClock(), threading.Event()
        self.samples: list[Sample] = []
        self.coordinator: Callable[[], Coordinator | None] = lambda: None  #: the service's, while it leads
        self.progress: Callable[[float], None] = lambda seconds: None  #: called as time passes: s since the beginning
        self._trace, self._settings, self._sink = trace, settings, sink
        self._end = EPOCH_S + hours * 3600.0
        self._rng = random.Random(f"{settings.seed}:arrivals")
        self._rig = SilentTasks(world, self.clock)
        self._barriers = TimedBarriers(world, self._rig)
        self.flows = Flows(world)
        self._mu = {component.id: component.rate for component in world.components}
        self._counts = Counts(world, self._rig.shape.tasks)
        self._held: list[Sample] = []  # steps in which nothing flowed: their tuples leave when it flows again
        self._response_s = 0.0
        self._busy_at, self._measured_at = -math.inf, 0.0  # when something was last in progress, and measured
        self._laid_out: tuple[object, object] = (None, None)
        self._rig.world.structures[world.name] = structure_of(world, self._rig.topology_id)
        self.clock.wait = self._wait

    @property
    def losses(self) -> tuple[str, ...]:
        """Why tasks have asked for a reset."""
        return tuple(self._rig.losses)

    def ports(self) -> Ports:
        """The ports that the service gets."""
        twin = self._rig.world
        return Ports(
            nimbus=MemoryNimbus(twin, place=self._rig.rebalanced), snapshots=_Measurements(self, twin),
            cluster=MemoryClusterStore(twin), clock=self.clock, sink=self._sink, leftovers=MemoryLeftovers(twin),
            open_topology=lambda _: TopologyPorts(
                control=WatchedControl(self._rig, self._barriers.recorded), barriers=self._barriers,
                requests=MemoryRequests(twin), lock=MemoryLock(twin), history=MemoryHistory(twin),
            ),
        )  # fmt: skip

    # --- time

    def _wait(self, seconds: float) -> None:
        now, machine = self.clock.time, self._machine()
        quiet = machine is not None and machine.state is State.IDLE and machine.pending is None
        if quiet and self._rig.restless:
            self._rig.act()  # they learn how it ended
        until = self._next_look(now) if quiet else self._next_step(machine, now, seconds)
        until = min(until if seconds > 0 else now, self._end)
        self._pass(until - now)
        self.clock.time = until
        if not quiet:
            if machine is None or machine.state is not State.CHECKPOINTING:
                self._busy_at = until
            self._rig.world.changed()
        if until >= self._end:
            self.stop.set()

    def _machine(self) -> Machine | None:
        coordinator = self.coordinator()
        return coordinator.machine if coordinator is not None else None

    def _next_step(self, machine: Machine | None, now: float, seconds: float) -> float:
        """While something is in progress: tasks do what they can; until their reports are due, or for `seconds`."""
        if machine is None or machine.state is State.CHECKPOINTING:
            return now + seconds
        self._rig.act(machine.barrier, machine.missing)
        due = self._barriers.due(machine.barrier)
        return now + seconds if due is None else due

    def _next_look(self, now: float) -> float:
        """The next time of a plan, or one window before it; or of the first measurement after a reconfiguration."""
        period, window = self._settings.period_s, self._settings.window_s
        if self._measured_at <= self._busy_at:
            return now + MEASURE_S
        plan = EPOCH_S + (math.floor((now - EPOCH_S) / period) + 1) * period
        return plan - window if now < plan - window else plan

    def _pass(self, seconds: float) -> None:
        if seconds <= 0:
            return
        steps = max(1, math.ceil(seconds / (STEP_S if self.flows.waiting < 1 else FINE_S)))
        begin = self.clock.time - EPOCH_S
        for at in range(steps):
            self._step(begin + (at + 0.5) * seconds / steps, seconds / steps)
        self.progress(begin + seconds)

    def _step(self, middle: float, seconds: float) -> None:
        mean = self._trace.at(middle) * seconds
        sources = self.world.sources
        offered = {name: max(0.0, self._rng.gauss(mean, math.sqrt(mean))) / len(sources) for name in sources}
        layout = self._layout()
        passed = self.flows.step(seconds, offered, layout, runs=self._barriers.runs)
        used = max(passed.processed[name] * layout.share[name] / self._mu[name] for name in passed.processed)
        sample = Sample(
            at_s=middle, seconds=seconds, offered=sum(offered.values()) / seconds, response_s=passed.response_s,
            replicas=sum(map(len, layout.by_task.values())), waiting=self.flows.waiting,
            most_used=used / seconds,
        )  # fmt: skip
        if self._barriers.runs:
            self._release(middle, passed)
            self.samples.append(sample)
            self._response_s = passed.response_s
            self._counts.add(passed, layout, seconds)
        else:
            self._held.append(sample)

    def _release(self, now: float, passed: Passed) -> None:
        """Tuples that arrived during a stop have waited until now; they go on like all others."""
        for held in self._held:
            response_s = now - held.at_s + passed.response_s
            self.samples.append(Sample(
                held.at_s, held.seconds, held.offered, response_s, held.replicas, held.waiting, held.most_used
            ))  # fmt: skip
        self._held.clear()

    def _layout(self) -> Layout:
        tables, slots = self._barriers.tables, self._rig.storm.slots
        if self._laid_out[0] is not tables or self._laid_out[1] is not slots:
            self._laid_out = (tables, slots)
            self._layout_now = Layout.of(self.world, tables, {task: slot.node for task, slot in slots.items()})
        return self._layout_now

    # --- measurements

    def lines(self) -> dict[int, str]:
        """Task -> what it publishes."""
        self._measured_at = self.clock.time
        counts, now = self._counts, self.clock.time
        return {
            task: counts.metrics(task, name, now, self._rig.receiver(task)).to_line()
            for task, name in self._rig.shape.tasks.items()
        }

    def beats(self) -> dict[int, str]:
        """Task -> a sign of life."""
        return {task: str(self.clock.time) for task in self._rig.shape.tasks if self._rig.receiver(task) is not None}

    def stream_facts(self) -> StreamFacts:
        """The ends of the application's streams."""
        now = self.clock.time
        return StreamFacts(
            last=round(self.flows.offered), done=round(self.flows.taken), results=((now - self._response_s, now),)
        )


class _Measurements(MemorySnapshots):
    """SnapshotStore whose measurements are those of the moment in which they are asked for."""

    def __init__(self, cluster: SimulatedCluster, twin: object) -> None:
        super().__init__(twin)  # type: ignore[arg-type]
        self._cluster = cluster

    def metrics(self, topology_id: str) -> Mapping[int, str]:
        return self._cluster.lines()

    def beats(self, topology_id: str) -> Mapping[int, str]:
        return self._cluster.beats()

    def streams(self, source: str, results: str) -> StreamFacts:
        return self._cluster.stream_facts()


def structure_of(world: WorldFile, topology_id: str) -> Structure:
    """The topology as Nimbus would give it."""
    return Structure(
        id=topology_id,
        name=world.name,
        components=tuple(
            ComponentFacts(
                id=component.id,
                kind=component.kind,
                inputs=tuple(sorted(s.source for s in world.streams if s.target == component.id)),
                conf={
                    "leeward.max_replicas": component.max_replicas or component.tasks,
                    **({"leeward.pinned": list(component.pinned)} if component.pinned else {}),
                },
            )
            for component in sorted(world.components, key=lambda component: component.id)
        ),
    )
