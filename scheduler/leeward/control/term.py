"""One term of leadership over one topology: takes over, then works in rounds until the lock or the topology is gone."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from concurrent.futures import Executor
from dataclasses import replace

from leeward.control.coordinator import Coordinator, FaultHook
from leeward.control.costs import HandoverCosts
from leeward.control.early import cluster_before, tasks_of
from leeward.control.errors import LostLeadershipError
from leeward.control.guard import by_hand, changes_nothing
from leeward.control.liveness import Liveness
from leeward.control.loop import Loop
from leeward.control.monitor import (
    Facts,
    Monitor,
    Rates,
    build_view,
    delays_of,
    members,
    outside_of,
    read_samples,
    response_s,
    sinks,
    sources,
    streams_of,
)
from leeward.control.ports import (
    Ports,
    StreamFacts,
    Structure,
    TopologyPorts,
)
from leeward.control.presence import Presence
from leeward.control.reservations import Reservations, wanted_by_others
from leeward.control.room import no_room, not_placed
from leeward.control.snapshot import ClusterSnapshot, read_snapshot
from leeward.core.control import ControlRecord
from leeward.core.coordinates import Delays
from leeward.core.errors import ClusterRefusedError, LeewardError, NotReadyError, PlanError, ProtocolError
from leeward.core.metrics import TaskMetrics
from leeward.core.model import ClusterView
from leeward.core.orders import State
from leeward.core.outcome import DONE, Ending, Outcome, refused
from leeward.core.outside import warning
from leeward.core.placing import present_deployment
from leeward.core.plan import Plan, Slot
from leeward.core.policy import Policy
from leeward.core.settings import Settings
from leeward.core.table import Table, first_tables
from leeward.core.topology_conf import REPLICAS

#: Time between two looks at the metrics, seconds.
MEASURE_S = 1.0
#: Time between two looks at the tasks' signs of life, seconds.
LISTEN_S = 0.25
#: Time between two questions whether the plugin has published the topology, seconds.
PUBLISHED_S = 0.1
#: A request waits so long for tasks that are away, seconds.
AWAY_S = 60.0


class Term:
    """One term of leadership over one topology."""

    def __init__(
        self, *, structure: Structure, ports: Ports, mine: TopologyPorts, settings: Settings, policy: Policy | None,
        fault: FaultHook | None, executor: Executor | None, presence: Presence, reservations: Reservations,
    ) -> None:  # fmt: skip
        self._presence, self._reservations = presence, reservations
        self._structure, self._ports, self._mine, self._settings = structure, ports, mine, settings
        self._fault = fault
        self._loop = Loop(settings=settings, policy=policy, sink=ports.sink, topology=structure.name, executor=executor)
        self._monitor = Monitor(settings)
        self._costs = HandoverCosts()
        self._rates = Rates()
        self._streams = StreamFacts()
        self._outside: dict[str, tuple[str, ...]] = {}
        self._delays = Delays({})
        self._warned: dict[str, tuple[str, ...]] = {}
        self._liveness = Liveness(settings.silent_s)
        self._measure_at = self._listen_at = 0.0
        self._away_since: float | None = None
        self._asked = True
        self._busy = False
        self._planned_first = False
        self._waits_for = ""
        self._wake_request = self._request_came
        self.coordinator: Coordinator | None = None

    def work(self, stop: threading.Event, until: str | None = None) -> Outcome | None:
        """Rounds until `stop` (None), or until the request `until` is answered (the answer)."""
        coordinator = self._take_over(stop)
        if coordinator is None:
            return None
        while not stop.is_set():
            coordinator.wait(LISTEN_S)
            coordinator.work()
            self._presence.check(self._ports.clock.now())
            if not self._mine.lock.held():
                raise LostLeadershipError("the session with ZooKeeper was lost.", remedy="Another service goes on.")
            self._round(coordinator)
            coordinator.tidy()  # the requester of a reconfiguration has its answer
            answer = self._mine.requests.answer_to(until) if until else None
            if answer is not None:
                return answer
        return None

    def close(self) -> None:
        """Let go of the policy's thread and of what was reserved."""
        self._loop.close()
        self._reservations.release(self._structure.name)

    def view(self) -> ClusterView:
        """The view to plan by, at this moment; raises NotReadyError while the plugin has not published the topology."""
        coordinator = self.coordinator
        if coordinator is None or coordinator.snapshot is None:
            raise NotReadyError("the plugin has not published this topology.", remedy="Ask again in a second.")
        machine = coordinator.machine
        return self._planning_view(coordinator.snapshot, machine.record, machine.sizes)

    def _planning_view(
        self, cluster: ClusterSnapshot, record: ControlRecord, sizes: Mapping[str, int] | None = None
    ) -> ClusterView:
        facts = replace(
            self._facts(self._without_others(cluster), record, sizes or {}),
            draining=self._ports.cluster.draining(),
            wanted=self._mine.control.read_placement(),
        )
        return build_view(facts, self._settings)

    def _facts(self, cluster: ClusterSnapshot, record: ControlRecord, sizes: Mapping[str, int]) -> Facts:
        """Facts that are in memory; no server is asked."""
        return Facts(
            structure=self._structure,
            cluster=cluster,
            record=record,
            rates=self._rates,
            service=self._monitor.service,
            sizes=sizes,
            outside=self._outside,
            streams=self._streams,
            handover_cost=self._costs.fit(),
            delay_s=self._delays,
            network=self._ports.network,
        )

    def _without_others(self, cluster: ClusterSnapshot) -> ClusterSnapshot:
        """With the slots taken that other topologies use, want or are about to use."""
        name = self._structure.name
        wanted = wanted_by_others(self._ports.cluster.placements(), name, cluster.others)
        return replace(cluster, taken=cluster.taken | wanted | self._reservations.of_others(name))

    # --- one round

    def _take_over(self, stop: threading.Event) -> Coordinator | None:
        """Claim the topology: at once, if a plan can be made before Storm places it, else when its tasks are known."""
        first = self._plan_first()
        if first is not None:
            mine, plan = first
            self._planned_first = True
            return self._claim(mine, plan.tables, plan.placement)
        tasks = self._published_tasks(stop)
        if tasks is None:
            return None
        mine = members(self._structure, tasks)
        return self._claim(mine, first_tables(mine, self._structure.conf.get(REPLICAS.name)), {})

    def _plan_first(self) -> tuple[dict[int, str], Plan] | None:
        """Tasks, and the plan by which Storm is to place them; None if it needs rates, or if Storm was faster."""
        tasks, name = tasks_of(self._structure), self._structure.name
        cluster = self._cluster_before(tasks)
        if tasks is None or cluster is None or self._mine.control.read_record() is not None:
            return None
        mine = members(self._structure, tasks)
        record = ControlRecord(tables=first_tables(mine, self._structure.conf.get(REPLICAS.name)))
        plan = self._loop.first(self._planning_view(cluster, record), self._ports.clock.now())
        if plan is None or self._reservations.claim(name, set(plan.placement.values())) is not None:
            return None
        if self._cluster_before(tasks) is None:
            self._reservations.release(name)
            return None
        return mine, plan

    def _cluster_before(self, tasks: Mapping[int, str] | None) -> ClusterSnapshot | None:
        """The cluster without this topology; None if it was published already."""
        if tasks is None:
            return None
        return cluster_before(self._ports.cluster.snapshot(lambda: None), self._structure, tasks)

    def _published_tasks(self, stop: threading.Event) -> Mapping[int, str] | None:
        """Wait until the plugin knows the topology's tasks; None if stopped."""
        told = False
        while not stop.is_set():
            try:
                return read_snapshot(self._ports.cluster.snapshot(lambda: None), self._structure.id).tasks
            except NotReadyError as error:
                if not told:
                    self._emit("waiting", {"why": str(error)})
                    told = True
                self._presence.check(self._ports.clock.now())
                stop.wait(self._ports.clock.patience(PUBLISHED_S))
        return None

    def _claim(self, mine: Mapping[int, str], tables: Mapping[str, Table], slots: Mapping[int, Slot]) -> Coordinator:
        self.coordinator = Coordinator(
            topology=self._structure.name, topology_id=self._structure.id, tasks=mine,
            sinks=sinks(self._structure), sources=sources(self._structure),
            initial=tables, first=slots,
            control=self._mine.control, barriers=self._mine.barriers,
            cluster=self._ports.cluster, snapshots=self._ports.snapshots, nimbus=self._ports.nimbus,
            clock=self._ports.clock, sink=self._ports.sink, limits=self._settings.limits, fault=self._fault,
        )  # fmt: skip
        self.coordinator.start()
        self._loop.started(self._ports.clock.now())
        self._busy = not self.coordinator.idle
        if not self._busy:
            self._learn(self.coordinator)  # of the predecessor's
        return self.coordinator

    def _round(self, coordinator: Coordinator) -> None:
        """Everything but the coordinator's own work."""
        now = self._ports.clock.now()
        if now >= self._listen_at:
            self._listen_at = now + LISTEN_S
            self._listen(coordinator, now)
        if self._planned_first and coordinator.snapshot is not None:
            self._planned_first = False
            self._first_placement(coordinator.machine.tasks, coordinator.snapshot)
        busy = not coordinator.idle
        if self._busy and not busy:
            self._monitor.forget()
            self._loop.ended(now)
            self._reservations.release(self._structure.name)
            self._learn(coordinator)
            self._asked = True  # one that came meanwhile was not looked at
        self._busy = busy
        if now >= self._measure_at:
            self._measure_at = now + MEASURE_S
            self._measure(coordinator, now)
        ready = coordinator.idle and coordinator.machine.whole
        plan = self._loop.take(coordinator.machine.record.epoch, ready)
        if plan is not None:
            self._submit(coordinator, plan)
        elif coordinator.idle or coordinator.machine.state is State.HELD:
            self._serve_requests(coordinator, now)
            published = coordinator.snapshot is not None
            if published and ready and coordinator.idle and self._loop.wants_view(now):
                self._plan(coordinator, now)
        self._busy = self._busy or not coordinator.idle

    def _first_placement(self, tasks: Mapping[int, str], cluster: ClusterSnapshot) -> None:
        """Nimbus has made its first pass: other topologies see the slots now. Raises ProtocolError."""
        self._reservations.release(self._structure.name)
        found = members(self._structure, cluster.tasks)
        if found != tasks:
            raise ProtocolError(
                f"Storm numbers the tasks of {self._structure.name} {found}, not {tasks}.",
                remedy="Submit it again before leeward serve is started, and report this release of Storm.",
            )
        self._emit("first_placement", {"by_plan": cluster.assigned.managed, "why": cluster.assigned.reason})

    def _listen(self, coordinator: Coordinator, now: float) -> None:
        """Which tasks are away."""
        try:
            beats = self._ports.snapshots.beats(self._structure.id)
        except ClusterRefusedError:
            return
        tasks = coordinator.machine.tasks
        coordinator.silence(self._liveness.observe({t: b for t, b in beats.items() if t in tasks}, now))

    def _learn(self, coordinator: Coordinator) -> None:
        """Record the cost of the last reconfiguration, if it was a handover."""
        journal = coordinator.machine.journal
        if journal.kind == "handover" and journal.result == DONE:
            self._costs.add(journal.exported, journal.waited)

    def _submit(self, coordinator: Coordinator, plan: Plan, request: str = "") -> None:
        """Begin; it may also end at once, if Redis refuses, and the next round finds that out."""
        conflict = self._reservations.claim(self._structure.name, set(plan.placement.values()))
        if conflict is not None:
            other, slot = conflict
            why = f"slot {slot.node}:{slot.port} is about to be used by topology {other!r}"
            self._emit("plan_refused", {"why": why} | ({"request": request} if request else {}))
            if request:
                self._mine.requests.answer(request, refused(f"{why}. Ask again when its reconfiguration is over."))
            return
        self._busy = True
        coordinator.submit(plan, request)

    def _plan(self, coordinator: Coordinator, now: float) -> None:
        view = self.view()
        why = self._why_unplaced(view)
        if not why:
            self._loop.begin(view, now, coordinator.wake)
        elif why != self._waits_for:
            self._emit("waiting", {"why": why})
        self._waits_for = why

    def _why_unplaced(self, view: ClusterView) -> str:
        """Why tasks have no slot; empty if each has one."""
        tasks = frozenset(task for component in view.components for task in component.tasks)
        snapshot = self.coordinator.snapshot if self.coordinator else None
        return not_placed(snapshot, tasks) if snapshot else ""

    def _measure(self, coordinator: Coordinator, now: float) -> None:
        try:
            samples = read_samples(self._ports.snapshots.metrics(self._structure.id))
            self._streams = self._ports.snapshots.streams(*streams_of(samples.values()))
        except ClusterRefusedError as error:
            self._emit("measure_failed", {"why": str(error)})
            return
        self._rates = self._monitor.observe(samples, now)
        self._warn(samples)
        if coordinator.snapshot is not None:
            self._delays = delays_of(samples, coordinator.snapshot.assigned.slots)
        if coordinator.snapshot is not None and coordinator.machine.record.tables:
            self._tell(coordinator, coordinator.snapshot, now)

    def _warn(self, samples: Mapping[int, TaskMetrics]) -> None:
        """Of state outside of `self.state`: once for each component, and again when there is more of it."""
        self._outside = outside_of(samples)
        for name, attributes in self._outside.items():
            if self._warned.get(name) == attributes:
                continue
            self._warned[name] = attributes
            why, remedy = warning(name, attributes)
            fields = {"component": name, "attributes": list(attributes), "why": why, "remedy": remedy}
            self._emit("state_outside", fields)

    def _tell(self, coordinator: Coordinator, cluster: ClusterSnapshot, now: float) -> None:
        """One line for the live view."""
        view = build_view(self._facts(cluster, coordinator.machine.record, coordinator.machine.sizes), self._settings)
        record = coordinator.machine.record
        placed = present_deployment(view)
        cost = sum(sum(c.values()) for c in placed.values()) * self._settings.replica_cost if placed else None
        self._emit(
            "measured",
            {
                "state": str(coordinator.machine.state), "phase": str(record.phase), "epoch": record.epoch,
                "rates": {name: round(m.arrival_rate, 1) for name, m in view.measured.items()},
                "service_rates": {name: round(rate, 1) for name, rate in self._monitor.service.items()},
                "response_s": response_s(self._streams, now), "cost_per_h": cost, "deployment": placed or {},
                "backlog": self._streams.last - self._streams.done,
                "state_bytes": sum(coordinator.machine.sizes.values()),
            },
        )  # fmt: skip

    # --- requests of people

    def _request_came(self) -> None:
        self._asked = True
        if self.coordinator is not None:
            self.coordinator.wake()

    def _serve_requests(self, coordinator: Coordinator, now: float) -> None:
        """Begin with the request that waits, or say why not."""
        if not self._asked:
            return
        self._asked = False  # before looking: a request that comes from here on sets it again
        request = self._mine.requests.pending(self._wake_request)
        if request is None:
            return
        self._asked = True  # there may be another behind it
        name = str(request["id"])
        why = self._not_now(coordinator, request, now)
        if why is not None:
            if why:
                self._mine.requests.answer(name, refused(str(why)))
            return
        if "recover" in request:
            self._mine.requests.answer(name, self._recover(coordinator, request["recover"]))
            return
        try:
            plan, view = self._manual_plan(request.get("replicas"), force=bool(request.get("force")))
        except LeewardError as error:
            self._emit("plan_refused", {"why": str(error), "request": name})
            self._mine.requests.answer(name, refused(str(error)))
            return
        if changes_nothing(plan, view):
            self._mine.requests.answer(name, Outcome(Ending.DONE, "nothing to change"))
            return
        self._submit(coordinator, plan, name)

    def _not_now(self, coordinator: Coordinator, request: Mapping[str, object], now: float) -> str | None:
        """Why a request cannot be served: "" if it may wait a little longer; None if it can."""
        machine = coordinator.machine
        if "recover" in request:
            return None
        if machine.state is State.HELD:
            return "the topology is held, as no cut can be read; see leeward status and leeward recover."
        away = sorted({*machine.record.absent, *(machine.silent or ())})
        if not away:
            self._away_since = None
            return None
        self._away_since = now if self._away_since is None else self._away_since
        if now - self._away_since < AWAY_S:
            return ""
        names = ", ".join(f"{task} ({machine.tasks[task]})" for task in away)
        return f"tasks are away since {now - self._away_since:.0f} s: {names}. Ask again when they are back."

    def _recover(self, coordinator: Coordinator, cut: object) -> Outcome:
        """A person decides from where a topology that is held goes on; the answer."""
        machine = coordinator.machine
        if machine.state is not State.HELD:
            return refused(f"the topology is not held: it is {machine.state}.")
        if not isinstance(cut, int) or (cut and cut not in machine.record.committed):
            return refused(f"cut {cut!r} is none of {list(machine.record.committed)}.")
        coordinator.choose(cut)
        where = f"cut {cut}" if cut else "from empty state, sources from their beginning"
        return Outcome(Ending.DONE, f"restoring {where}")

    def _manual_plan(self, replicas: object, *, force: bool) -> tuple[Plan, ClusterView]:
        view = self.view()
        if not isinstance(replicas, Mapping):
            raise PlanError(f"the request's replicas are {replicas!r}.", remedy="Write component=node:count.")
        why = self._why_unplaced(view)
        if why:
            raise PlanError(f"{why}.", remedy="End a topology, add a supervisor, or wait; see leeward status.")
        self._check_room({node for counts in replicas.values() for node in counts})
        return by_hand(replicas, view, force=force), view

    def _check_room(self, nodes: Collection[str]) -> None:
        """Raises PlanError for a node whose slots other topologies use."""
        snapshot = self.coordinator.snapshot if self.coordinator else None
        for node in sorted(nodes):
            why = no_room(snapshot, node) if snapshot else ""
            if why:
                raise PlanError(f"node {node!r}: {why}.", remedy="Name another node, or end one of them.")

    def _emit(self, action: str, fields: Mapping[str, object]) -> None:
        self._ports.sink.emit(action, {"topology": self._structure.name, **fields})
