"""The measurements of one topology: read each second, checked, and turned into what plans and pages go by."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from leeward.control.clocks import clocks_off, response_s
from leeward.control.coordinator import Coordinator
from leeward.control.lateness import LATE_S, Lateness, told, told_steps
from leeward.control.learning.learner import Learner
from leeward.control.learning.record import LearntRecord
from leeward.control.learning.telling import learnt_fields
from leeward.control.lines import read_samples
from leeward.control.monitor import (
    Facts,
    Monitor,
    Rates,
    build_view,
    delays_of,
    outside_of,
    streams_between,
    streams_of,
)
from leeward.control.nodes_seen import NodesSeen
from leeward.control.plausible import Totals, implausible, totals_of
from leeward.control.ports import Ports, StreamFacts, Structure
from leeward.control.report.telling import News
from leeward.control.snapshot import ClusterSnapshot
from leeward.control.warned import Warned
from leeward.core.control import ControlRecord
from leeward.core.coordinates import Delays
from leeward.core.errors import ClusterRefusedError
from leeward.core.journal import Journal
from leeward.core.metrics import TaskMetrics
from leeward.core.migration.failover import owners_of
from leeward.core.model import ClusterView
from leeward.core.placing import present_deployment
from leeward.core.plan import Placement
from leeward.core.settings import Settings


class Measuring:
    """See the module. `emit` takes an action and its fields."""

    def __init__(
        self, structure: Structure, ports: Ports, settings: Settings, emit: Callable[[str, Mapping[str, object]], None]
    ) -> None:
        self._structure, self._ports, self._settings, self._emit = structure, ports, settings, emit
        self._monitor = Monitor(settings)
        self._learner = Learner(streams_between(structure))
        self._lateness, self._warned = Lateness(), Warned(emit)
        self._rates, self._streams, self._delays = Rates(), StreamFacts(), Delays({})
        self._outside: dict[str, tuple[str, ...]] = {}
        self._samples: Mapping[int, TaskMetrics] = {}
        self._earlier: Mapping[int, Totals] = {}  # of the look before
        self._news, self._nodes = News(), NodesSeen()
        self._at = 0.0
        self._modelled: tuple[float, float] | None = None  # response time by the policy, s, of what is in force; when
        self._lacks = ""  # why there are no measurements
        self.stale = ""  #: why a plan that is being made goes by figures that are wrong by now

    def resume(self, record: LearntRecord, now: float) -> None:
        """Go on from what another leader has learnt; before the first look."""
        self._monitor = Monitor(self._settings, record.service)
        self._learner = Learner(streams_between(self._structure), record, now)

    def record(self, now: float) -> LearntRecord:
        """All that a successor needs to go on."""
        return self._learner.record(self._structure.id, self._monitor.service, now)

    def look(self, coordinator: Coordinator, now: float, away: str) -> bool:
        """Read what the tasks have published; False if there is nothing to go by. `away`: why it is known before."""
        try:
            if away:  # a moment ago: another look would wait as long
                raise ClusterRefusedError(away)
            lines = self._ports.snapshots.metrics(self._structure.id)
            samples = read_samples(lines)
            self._streams = self._ports.snapshots.streams(*streams_of(samples.values()))
        except ClusterRefusedError as error:
            return self._unmeasured(str(error))
        why = implausible(lines, samples, self._samples, self._earlier)
        self._earlier, self._samples = totals_of(self._samples), samples
        why = why or told_steps(self._lateness.stepped(samples, now), coordinator.machine.tasks)
        self._lateness.observe(samples, now)
        if not why and coordinator.idle:  # else Storm may have stopped them
            why = told(self._lateness.late(owners_of(coordinator.machine), now), coordinator.machine.tasks)
        if why:
            return self._unmeasured(why)
        if now - self._at > self._settings.window_s + LATE_S:
            self.stale = f"nothing was measured for {now - self._at:.0f} s while it was made"
        self._at, self._lacks = now, ""
        self._rates = self._monitor.observe(samples, now)
        self._outside = outside_of(samples)
        self._warned.outside(self._outside)
        if coordinator.snapshot is not None:
            slots = coordinator.snapshot.assigned.slots
            self._delays = delays_of(samples, slots)
            self._warned.clocks(clocks_off(samples, slots))
            if coordinator.idle and self._learner.observe(samples, slots, self._monitor.service, now):
                self._compare(coordinator, now)
                self._emit("learnt", learnt_fields(self._learner))
        return True

    def modelled(self, seconds: float | None, now: float) -> None:
        """The policy keeps what is in force, and this is its response time; None if the policy has none."""
        self._modelled = None if seconds is None else (seconds, now)

    def _compare(self, coordinator: Coordinator, now: float) -> None:
        """Model and measurement of the whole path, where the model is of about now."""
        measured = response_s(self._streams, now, self._samples, owners_of(coordinator.machine))
        if (
            measured is not None
            and self._modelled is not None
            and now - self._modelled[1] <= 2 * self._settings.period_s
        ):
            self._learner.compare(measured, self._modelled[0], now)

    def _unmeasured(self, why: str) -> bool:
        self._lacks, self.stale = why, f"no measurements: {why}"
        self.forget()  # nothing that comes is compared with what was before, or cannot be
        self._emit("measure_failed", {"why": why})
        return False

    def forget(self) -> None:
        """Measurements from before and after are not compared."""
        self._monitor.forget()
        self._learner.forget()
        self._modelled = None

    def moved(self) -> None:
        """A reconfiguration is over: tasks that were silent meanwhile are not late."""
        self._lateness.forget()

    def learn(self, journal: Journal) -> None:
        """The cost of a reconfiguration that is over."""
        self._learner.ended(journal)

    @property
    def resident(self) -> Mapping[int, int]:
        """Task -> bytes of its process, as last measured; 0: not known."""
        return {task: sample.resident_bytes for task, sample in self._samples.items()}

    def known(self, coordinator: Coordinator, *, rates: bool) -> bool:
        """There are figures to plan by; with `rates`, of each task that works."""
        return not self._lacks and not (rates and self._monitor.unknown(owners_of(coordinator.machine)))

    def view(
        self, cluster: ClusterSnapshot, record: ControlRecord, sizes: Mapping[str, int], draining: Collection[str]
    ) -> ClusterView:
        """By facts that are in memory, for pages; no server is asked."""
        return self._view(self._facts(cluster, record, sizes, draining))

    def planning_view(
        self, cluster: ClusterSnapshot, record: ControlRecord, sizes: Mapping[str, int], draining: Collection[str],
        wanted: Placement | None,
    ) -> ClusterView:  # fmt: skip
        """The same to plan by, with all that was learnt; `wanted`: the placement that Storm was asked for."""
        facts = self._facts(cluster, record, sizes, draining)
        learnt, rates = self._learner.learnt(self._monitor.service), self._learner.completed(self._rates)
        return self._view(replace(facts, rates=rates, learnt=learnt, wanted=wanted))

    def _view(self, facts: Facts) -> ClusterView:
        return build_view(facts, self._settings, self._nodes)

    def _facts(
        self, cluster: ClusterSnapshot, record: ControlRecord, sizes: Mapping[str, int], draining: Collection[str]
    ) -> Facts:
        return Facts(
            structure=self._structure, cluster=cluster, record=record, rates=self._rates,
            service=self._monitor.service, sizes=sizes, outside=self._outside, streams=self._streams,
            handover_cost=self._learner.handover_cost, delay_s=self._delays, network=self._ports.network,
            draining=frozenset(draining),
        )  # fmt: skip

    def tell(self, coordinator: Coordinator, cluster: ClusterSnapshot, now: float, draining: Collection[str]) -> None:
        """One line for the live view, and the cluster if it has changed."""
        machine, record = coordinator.machine, coordinator.machine.record
        view = self.view(self._news.steady(cluster, now), record, machine.sizes, draining)
        if (news := self._news.of(view)) is not None:
            self._emit("cluster_seen", news)
        placed = present_deployment(view)
        cost = sum(sum(c.values()) for c in placed.values()) * self._settings.replica_cost if placed else None
        self._emit(
            "measured",
            {
                "state": str(machine.state), "phase": str(record.phase), "epoch": record.epoch,
                "rates": {n: round(m.arrival_rate, 1) for n, m in view.measured.items()} if self._rates.span_s else {},
                "service_rates": {name: round(rate, 1) for name, rate in self._monitor.service.items()},
                "response_s": response_s(self._streams, now, self._samples, owners_of(machine)),
                "cost_per_h": cost, "deployment": placed or {},
                "queued": {name: m.queued for name, m in view.measured.items()},
                "backlog": self._streams.last - self._streams.done,
                "state_bytes": sum(machine.sizes.values()),
            },
        )  # fmt: skip
