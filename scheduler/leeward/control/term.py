"""One term of leadership over one topology: takes over, then works in rounds until the lock or the topology is gone."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import replace

from leeward.control.consent import Consent, left_by
from leeward.control.coordinator import Coordinator, FaultHook
from leeward.control.early import cluster_before, tasks_of
from leeward.control.errors import LostLeadershipError
from leeward.control.learning.keeping import Keeper
from leeward.control.liveness import Liveness
from leeward.control.loop import Decision, Loop, refusal
from leeward.control.measuring import Measuring
from leeward.control.monitor import members, sinks, sources
from leeward.control.overhang import crowded_out, overhang
from leeward.control.ports import Ports, Structure, TopologyPorts
from leeward.control.presence import Presence
from leeward.control.report.history import Ended
from leeward.control.requests import Requests, Submitted
from leeward.control.reservations import Reservations, wanted_by_others
from leeward.control.room import not_placed
from leeward.control.snapshot import ClusterSnapshot, read_snapshot
from leeward.control.spares import price_of, spare
from leeward.core.control import ControlRecord
from leeward.core.errors import ClusterRefusedError, NotReadyError, ProtocolError
from leeward.core.journal import StepName
from leeward.core.model import ClusterView
from leeward.core.orders import State
from leeward.core.outcome import Ending, Outcome, refused
from leeward.core.plan import Plan, Slot, restarting
from leeward.core.policy import Policy
from leeward.core.settings import Settings
from leeward.core.table import Table, first_tables
from leeward.core.topology_conf import REPLICAS

#: Time between two looks at the metrics, seconds: the least, and the most when the processor is short.
MEASURE_S, MEASURE_MOST_S = 1.0, 5.0
#: The share of its time that a topology measures. Fifty topologies that plan at once leave each other little processor:
#: a look takes longer, and the next one waits, so that plans come first.
MEASURE_SHARE = 0.2
#: Time between two looks at the tasks' signs of life, seconds.
LISTEN_S = 0.25
#: Time between two questions whether the plugin has published the topology, seconds.
PUBLISHED_S = 0.1
#: Time from a spare that is brought to the next one, seconds.
SPARE_S = 30.0
#: A plan that has to wait for its turn is made again after so long, and a first one that the policy does not have yet,
#: seconds.
TURN_S = 1.0


def until_next_look(took: float) -> float:
    """Seconds from the beginning of a look that took so many to that of the next."""
    return max(MEASURE_S, min(MEASURE_MOST_S, took / MEASURE_SHARE))


class Term:
    """One term of leadership over one topology."""

    def __init__(
        self, *, structure: Structure, ports: Ports, mine: TopologyPorts, settings: Settings, policy: Policy | None,
        fault: FaultHook | None, executor: Executor | None, presence: Presence, reservations: Reservations,
        ended: Ended | None = None,
    ) -> None:  # fmt: skip
        self._ended = ended or Ended(ports.sink)
        self._presence, self._reservations = presence, reservations
        self._structure, self._ports, self._mine, self._settings = structure, ports, mine, settings
        self._fault = fault
        self._loop = Loop(settings=settings, policy=policy, sink=ports.sink, topology=structure.name, executor=executor)
        self._measuring = Measuring(structure, ports, settings, self._emit)
        self._keeper = Keeper(mine.control, self._emit)
        self._liveness = Liveness(settings.silent_s)
        self._at_once = bool(getattr(policy, "at_once", False))
        self._away = ""  # why Redis was not read
        self._measure_at = self._listen_at = 0.0
        self._consent = Consent(topology=structure.name, store=mine.control, settings=settings, emit=self._emit)
        self._requests = Requests(
            led=self, store=mine.requests, consent=self._consent, settings=settings, emit=self._emit
        )
        self._busy = False
        self._planned_first = self._brings = False
        self._spare_at = 0.0
        self._waits_for = self._no_turn = ""
        self._draining: frozenset[str] = frozenset()
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
        self._reservations.leave(self._structure.name)

    def view(self) -> ClusterView:
        """The view to plan by, at this moment; raises NotReadyError while the plugin has not published the topology."""
        coordinator = self.coordinator
        if coordinator is None or coordinator.snapshot is None:
            raise NotReadyError("the plugin has not published this topology.", remedy="Ask again in a second.")
        if coordinator.unreadable:
            raise NotReadyError(coordinator.unreadable)
        machine = coordinator.machine
        return self._planning_view(coordinator.snapshot, machine.record, machine.sizes)

    def _planning_view(
        self, cluster: ClusterSnapshot, record: ControlRecord, sizes: Mapping[str, int] | None = None
    ) -> ClusterView:
        self._draining = self._ports.cluster.draining()
        wanted = self._mine.control.read_placement()
        return self._measuring.planning_view(self._without_others(cluster), record, sizes or {}, self._draining, wanted)

    def _without_others(self, cluster: ClusterSnapshot) -> ClusterSnapshot:
        """With the slots taken that other topologies use, want or are about to use, and what they have beyond these."""
        name = self._structure.name
        wanted = wanted_by_others(self._ports.cluster.placements(), name, cluster.others)
        taken = cluster.taken | wanted | self._reservations.of_others(name)
        return replace(cluster, taken=taken, crowded=self._reservations.over_of_others(name))

    # --- one round

    def _take_over(self, stop: threading.Event) -> Coordinator | None:
        """Claim the topology: at once, if a plan can be made before Storm places it, else when its tasks are known."""
        while not stop.is_set():
            first = self._plan_first()
            if first is not None:
                mine, plan = first
                self._planned_first = True
                return self._claim(mine, plan.tables, plan.placement)
            if not self._waits_for_plan():
                break
            self._presence.check(self._ports.clock.now())
            stop.wait(self._ports.clock.patience(TURN_S))
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
        if plan is None or self._reserve(plan) is not None:
            return None
        if self._cluster_before(tasks) is None:
            self._reservations.release(name)
            return None
        return mine, plan

    def _waits_for_plan(self) -> bool:
        """Storm places the topology by the first plan, or else later, and the policy may still make one."""
        if not self._at_once or self._mine.control.read_record() is not None:
            return False
        with suppress(NotReadyError):
            return read_snapshot(self._ports.cluster.snapshot(lambda: None), self._structure.id).waiting
        return False

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
            clock=self._ports.clock, sink=self._ended, limits=self._settings.limits, fault=self._fault,
        )  # fmt: skip
        self.coordinator.start()
        self._consent.load()
        self._resume()
        journal = self.coordinator.machine.journal
        ended = None if journal.open else journal.times.get(StepName.CLOSED)
        self._loop.started(self._ports.clock.now(), ended, left_by(journal))
        self._busy = not self.coordinator.idle
        if self._busy:
            self._reservations.turns.resume(self._structure.name)
        else:
            self._learn(self.coordinator)  # of the predecessor's
        return self.coordinator

    def _resume(self) -> None:
        """Go on from what the predecessor has learnt."""
        now = self._ports.clock.now()
        record = self._keeper.begin(self._structure.id, now)
        if record is not None:
            self._measuring.resume(record, now)

    def _round(self, coordinator: Coordinator) -> None:
        """Everything but the coordinator's own work."""
        now = self._ports.clock.now()
        if now >= self._listen_at:
            self._listen_at = now + LISTEN_S
            self._listen(coordinator, now)
        if self._planned_first and coordinator.snapshot is not None and not coordinator.snapshot.waiting:
            self._planned_first = False
            self._first_placement(coordinator.machine.tasks, coordinator.snapshot)
        busy = not coordinator.idle
        if self._busy and not busy:
            self._over(coordinator, now)
        machine = coordinator.machine
        again = machine.state is State.RESTORING and machine.tries > 1
        if again or machine.state is State.HELD or (machine.journal.open and machine.journal.kind == "reset"):
            self._reservations.turns.end(self._structure.name)  # it may last for hours: no other one waits for that
        self._ended.keep(self._mine.history, now)
        self._busy = busy
        if now >= self._measure_at:
            self._measure(coordinator, now)
            took = self._ports.clock.now() - now
            self._measure_at = now + (until_next_look(took) if self._known(coordinator) else MEASURE_S)
        ready = coordinator.idle and not machine.away
        away = f"tasks are away: {machine.named(machine.away)}" if machine.away else ""
        hold = away or self._consent.objection() or self._measuring.stale or coordinator.unreadable
        decision = self._loop.take(machine.record.epoch, coordinator.idle, now, hold=hold)
        if decision is not None:
            self._decided(coordinator, decision, now)
        goes_on = decision is None or decision.plan is None
        if goes_on and (coordinator.idle or machine.state is State.HELD):
            self._requests.serve(coordinator, now)
            published = coordinator.snapshot is not None and not coordinator.unreadable
            wants = published and ready and coordinator.idle and self._loop.wants_view(now) and self._known(coordinator)
            if wants and not self._waits_for_turn(now):
                self._plan(coordinator, now)
        self._busy = self._busy or not coordinator.idle

    def _stand(self, coordinator: Coordinator) -> None:
        """Other topologies are to see what this one has on nodes beyond its slots."""
        machine = coordinator.machine
        over = overhang(machine.record.tables, machine.slots, self._settings.eps_max)
        self._reservations.stands(self._structure.name, over)

    def _waits_for_turn(self, now: float) -> bool:
        """A plan had to wait for its turn, and still has to: the policy is asked again when the turn comes."""
        return bool(self._no_turn and self._reservations.turns.waits(self._structure.name, now))

    def _over(self, coordinator: Coordinator, now: float) -> None:
        """A reconfiguration is over. After a spare, brought or not, no plan has to wait, and the rates still hold."""
        journal = coordinator.machine.journal
        was_reset = journal.result is not None and journal.result.ending is Ending.RESET
        if not self._brings or was_reset:
            self._measuring.forget()
            self._loop.ended(now, left_by(journal))
            self._learn(coordinator)
        self._brings = False
        self._measuring.moved()
        self._stand(coordinator)
        self._reservations.release(self._structure.name)
        self._requests.look_again()  # one that came meanwhile was not looked at

    def _decided(self, coordinator: Coordinator, decision: Decision, now: float) -> None:
        """Carry out the policy's plan, or propose it."""
        if decision.plan is None:
            if self._no_turn:  # by now there is nothing to carry out: others need not wait for it
                self._no_turn = ""
                self._reservations.turns.leave(self._structure.name)
            if decision.keeps:
                self._measuring.modelled(decision.modelled_s, now)
                self._consent.unwanted()
                self._bring_spare(coordinator, now)
        elif self._settings.approval and not self._lacks_nimbus(coordinator, decision.plan):
            self._consent.propose(decision.plan, decision.view, now)
        elif self.submit(coordinator, decision.plan, now) is Submitted.WAITS:
            self._loop.again(now + TURN_S)

    def _bring_spare(self, coordinator: Coordinator, now: float) -> None:
        """The policy wants no change: a warm task goes to a node that has none, if the settings want spares."""
        wanted = self._settings.spares and self._settings.mode == "live" and now >= self._spare_at
        quiet = coordinator.idle and not coordinator.machine.away and not self._consent.objection()
        quiet = quiet and not self._presence.away and not coordinator.unreadable
        if not (wanted and quiet) or self._why_unplaced(view := self.view()) or view.first:
            return
        plan = spare(view, lambda task: price_of(task, view, self._structure, self._measuring.resident))
        if plan is None or refusal(plan, view, self._settings):
            return
        self._spare_at = now + SPARE_S
        self.submit(coordinator, plan, now)
        self._brings = not coordinator.idle

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
        """Which tasks are away, and which are not there yet."""
        try:
            beats = self._ports.snapshots.beats(self._structure.id)
        except ClusterRefusedError as error:
            self._away = str(error)
            return
        self._away = ""
        tasks = coordinator.machine.tasks
        silent = self._liveness.observe({t: b for t, b in beats.items() if t in tasks}, now)
        coordinator.silence(silent, self._liveness.unheard(tasks))

    def _learn(self, coordinator: Coordinator) -> None:
        """Record the cost of the last reconfiguration, and the deployment before it."""
        journal = coordinator.machine.journal
        self._consent.ended(journal)
        self._measuring.learn(journal)
        self._keeper.soon()

    def submit(self, coordinator: Coordinator, plan: Plan, now: float, request: str = "") -> Submitted:
        """Begin; it may also end at once, if Redis refuses, and the next round finds that out.

        Refused is a plan for slots that another topology is about to use, and one that moves executors while Nimbus is
        away.
        """
        name, also = self._structure.name, {"request": request} if request else {}
        why = self._lacks_nimbus(coordinator, plan)
        if why:
            return self._refuse(why, request, "Ask again when it does.")
        why = self._reservations.turns.begin(name, now)
        if why:
            if why != self._no_turn:
                self._emit("plan_refused", {"why": why} | also)
            self._no_turn = why
            return Submitted.WAITS
        self._no_turn = ""
        why = self._in_the_way(coordinator, plan)
        if why:
            self._reservations.release(name)
            return self._refuse(why, request, "Ask again when its reconfiguration is over.")
        self._busy = True
        coordinator.submit(plan, request)
        return Submitted.BEGUN

    def _refuse(self, why: str, request: str, remedy: str) -> Submitted:
        self._emit("plan_refused", {"why": why} | ({"request": request} if request else {}))
        if request:
            self._mine.requests.answer(request, refused(f"{why}. {remedy}"))
        return Submitted.REFUSED

    def _reserve(self, plan: Plan) -> tuple[str, Slot] | None:
        """See `Reservations.claim`."""
        over = overhang(plan.tables, plan.placement, self._settings.eps_max)
        return self._reservations.claim(self._structure.name, set(plan.placement.values()), over)

    def _lacks_nimbus(self, coordinator: Coordinator, plan: Plan) -> str:
        """Why Storm would not place what the plan moves, or "": the stream would stop for what is undone then."""
        moves = self._presence.away and restarting(coordinator.machine.slots, plan.placement)
        return f"it moves executors, and {self._presence.away}" if moves else ""

    def _in_the_way(self, coordinator: Coordinator, plan: Plan) -> str:
        """Reserve what the plan uses; why another topology is in the way since its view was made, or ""."""
        conflict = self._reserve(plan)
        if conflict is None and coordinator.snapshot is not None:
            cluster = self._without_others(coordinator.snapshot)
            lost = min(cluster.taken.intersection(plan.placement.values()), default=None)
            if lost is None:
                return crowded_out(plan, cluster, self._settings.eps_max)
            conflict = cluster.owners.get(lost, "another"), lost
        if conflict is None:
            return ""
        other, slot = conflict
        return f"slot {slot.node}:{slot.port} is about to be used by topology {other!r}"

    def _plan(self, coordinator: Coordinator, now: float) -> None:
        view, self._measuring.stale = self.view(), ""
        self._consent.look(view)
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

    def _known(self, coordinator: Coordinator) -> bool:
        """There are figures to plan by: of each task that works, unless the policy needs no rates."""
        return self._measuring.known(coordinator, rates=not self._at_once)

    def _measure(self, coordinator: Coordinator, now: float) -> None:
        self._stand(coordinator)
        looked = self._measuring.look(coordinator, now, self._away or coordinator.unreadable)
        if looked and coordinator.snapshot is not None and coordinator.machine.record.tables:
            self._measuring.tell(coordinator, coordinator.snapshot, now, self._draining)
            if self._keeper.due(now):
                self._keeper.keep(self._measuring.record(now), now)

    def _emit(self, action: str, fields: Mapping[str, object]) -> None:
        self._ports.sink.emit(action, {"topology": self._structure.name, **fields})
