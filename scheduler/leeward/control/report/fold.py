"""Folds the events of one topology into its report. Pure: `fold` gives the next one, `at` what it says at a moment.

`adapters/events.py` lists the events. One that is not in `_FOLDS` is remembered as the last action, and changes nothing
else, so a new event needs no change here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from leeward.control.lateness import LATE_S
from leeward.control.report import reading as read
from leeward.control.report.reading import Fields
from leeward.control.report.values import (
    Component,
    ComponentSeen,
    Mark,
    Missing,
    ModelSeen,
    Node,
    NodeSeen,
    Places,
    PlanSeen,
    Reconfiguration,
    Refused,
    Report,
)

#: Entries that a report keeps: of its timeline, of its refusals, and marks of a reconfiguration.
TIMELINE, REFUSALS, MARKS = 64, 32, 64
#: Events that tell of no deed.
QUIET = frozenset({"measured", "learnt", "learnt_resumed", "cluster_seen", "checkpoint_committed", "service_started"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The report, and the facts that it is made of."""

    report: Report
    components: tuple[ComponentSeen, ...] = ()
    nodes: tuple[NodeSeen, ...] = ()
    rates: Mapping[str, float] = field(default_factory=dict)
    service_rates: Mapping[str, float] = field(default_factory=dict)
    queued: Mapping[str, int] = field(default_factory=dict)
    models: Mapping[str, ModelSeen] = field(default_factory=dict)
    timeline: tuple[Reconfiguration, ...] = ()  #: those that are over, oldest first
    lacks: Mapping[str, Missing] = field(default_factory=dict)


def first(topology: str, now: float) -> Known:
    """Before any event."""
    return Known(report=Report(topology=topology, heard=now))


def fold(known: Known, action: str, fields: Fields, now: float) -> Known:
    """After one more event, which happened at `now`."""
    handle = _FOLDS.get(action)
    after = handle(known, fields, now) if handle else known
    if action in QUIET:
        return after
    return replace(after, report=replace(after.report, last_action=action, last_at=now))


def at(known: Known, now: float) -> Report:
    """The report at `now`, with the components and the share of downtime."""
    report = known.report
    lacks = dict(known.lacks)
    led = report.role in ("leader", "lost")
    late = report.measured_at is not None and led and now - report.measured_at > LATE_S
    if late and report.measured_at is not None and "measurements" not in lacks:
        why = f"none came for {now - report.measured_at:.0f} s"
        lacks["measurements"] = Missing(what="measurements", since=report.measured_at, why=why)
    return replace(
        report,
        components=_components(known),
        modelled_response_s=_modelled(report),
        downtime_share=min(1.0, report.downtime_s / max(1.0, now - report.heard)),
        missing=tuple(lacks[what] for what in sorted(lacks)),
    )


def _modelled(report: Report) -> float | None:
    """Of the whole path: the parts by the policy, and the rest. A report that is folded has the parts alone."""
    parts = report.modelled_response_s
    return parts if parts is None or report.rest is None else max(0.0, parts + report.rest.seconds)


def nodes_at(known: Known) -> tuple[Node, ...]:
    """Its nodes by id, those included that have replicas and are not known otherwise."""
    by_node: dict[str, dict[str, int]] = {node.id: {} for node in known.nodes}
    for component, counts in sorted(known.report.deployment.items()):
        for node, count in counts.items():
            by_node.setdefault(node, {})[component] = count
    seen = {node.id: node for node in known.nodes}
    return tuple(
        Node(
            id=name, slots=seen[name].slots if name in seen else 0, capacity=seen[name].capacity if name in seen else 0,
            draining=name in seen and seen[name].draining, replicas=by_node[name],
        )
        for name in sorted(by_node)
    )  # fmt: skip


def with_history(known: Known, entries: tuple[Reconfiguration, ...]) -> tuple[Reconfiguration, ...]:
    """Those that a store has kept, and those that were seen here, each once, oldest first."""
    seen = {(entry.epoch, entry.kind) for entry in known.timeline}  # an epoch is used once
    older = tuple(entry for entry in entries if (entry.epoch, entry.kind) not in seen)
    return tuple(sorted((*older, *known.timeline), key=lambda entry: (entry.ended or 0.0, entry.epoch)))


def reconfiguration_of(fields: Fields, ended: float | None, begun: float | None = None) -> Reconfiguration:
    """From the fields of `reconfiguration_ended`; without `begun` it is computed from the durations of the phases."""
    phases = {name.removesuffix("_s"): value for name, value in read.numbers(fields.get("phases")).items()}
    if begun is None and ended is not None and phases:
        begun = ended - sum(phases.values())
    return Reconfiguration(
        begun=begun, ended=ended, kind=read.text(fields.get("kind")), epoch=read.whole(fields.get("epoch")) or 0,
        reason=read.text(fields.get("reason")), ending=read.text(fields.get("ending")),
        result=read.text(fields.get("result")), changes=read.changes(fields.get("changes")),
        pause_s=read.number(fields.get("pause_s")) or 0.0, phases=phases, steps=read.whole(fields.get("steps")) or 0,
        bytes_moved=read.whole(fields.get("bytes_exported")) or 0,
        clock_behind_s=read.number(fields.get("clock_behind_s")) or 0.0,
    )  # fmt: skip


# --- one event each


def _service_started(known: Known, fields: Fields, now: float) -> Known:
    fresh = first(known.report.topology, now) if _another(known, fields) else known
    report = replace(
        fresh.report, topology_id=read.text(fields.get("topology_id")), policy=read.text(fields.get("policy")),
        role="starting",
    )  # fmt: skip
    return _has(replace(fresh, report=report), "service")


def _another(known: Known, fields: Fields) -> bool:
    """A topology of this name was submitted anew."""
    return known.report.topology_id not in ("", read.text(fields.get("topology_id")))


def _role(role: str) -> Callable[[Known, Fields, float], Known]:
    def handle(known: Known, fields: Fields, now: float) -> Known:
        after = replace(known, report=replace(known.report, role=role))
        if role == "leader":  # it tells of a freeze and of a proposal anew
            after = replace(after, report=replace(after.report, **_DECIDED, plan=_unproposed(after.report.plan)))
            return _has(after, "leader", "server", "service", "ZooKeeper")
        if role == "standby":  # the leader tells of these by itself
            report = replace(after.report, current=None, plan=None, **_DECIDED, **_MEASURED)
            after = replace(after, report=report, rates={}, queued={}, models={})
            return _has(after, "leader", "server", "ZooKeeper", "measurements", "state", "tasks", "clocks")
        if role == "lost":
            return _lacks(after, "leader", read.text(fields.get("why")), now)
        if role == "failed":
            return _lacks(after, "service", read.text(fields.get("why")), now)
        return replace(after, report=replace(after.report, current=None), lacks={})

    return handle


_DECIDED: Mapping[str, Any] = {"proposal": None, "frozen": None}
_MEASURED: Mapping[str, Any] = {
    "measured_at": None, "rate": None, "response_s": None, "modelled_response_s": None, "backlog": None,
    "state_bytes": None, "cost_per_h": None, "deployment": {}, "rest": None,
}  # fmt: skip


def _unproposed(plan: PlanSeen | None) -> PlanSeen | None:
    return None if plan is not None and plan.verdict == "proposed" else plan


def _measured(known: Known, fields: Fields, now: float) -> Known:
    rates = read.numbers(fields.get("rates"))
    sources = {component.id for component in known.components if component.source}
    report = replace(
        known.report, state=read.text(fields.get("state")), phase=read.text(fields.get("phase")),
        epoch=read.whole(fields.get("epoch")) or known.report.epoch, measured_at=now,
        rate=sum(rates[name] for name in sources) if sources and sources <= rates.keys() else None,
        response_s=read.number(fields.get("response_s")), backlog=read.whole(fields.get("backlog")),
        state_bytes=read.whole(fields.get("state_bytes")), cost_per_h=read.number(fields.get("cost_per_h")),
        deployment=read.places(fields.get("deployment")) or known.report.deployment,
    )  # fmt: skip
    after = replace(
        known, report=report, rates=rates,
        service_rates={**known.service_rates, **read.numbers(fields.get("service_rates"))},
        queued=read.counts(fields.get("queued")),
    )  # fmt: skip
    return _has(after, "measurements")


def _cluster_seen(known: Known, fields: Fields, _: float) -> Known:
    seen, streams = read.components(fields.get("components")), read.streams(fields.get("streams"))
    return replace(
        known, components=seen, nodes=read.nodes(fields.get("nodes")), report=replace(known.report, streams=streams)
    )


def _learnt(known: Known, fields: Fields, _: float) -> Known:
    pauses = read.pauses(fields.get("restarts"))
    report = replace(
        known.report, selectivities=read.selectivities(fields.get("selectivities")),
        stores=read.stores(fields.get("stores")), restart_pause_s=median(pauses) if pauses else None,
        restarts_seen=len(pauses), handover=read.handover(fields.get("handover")), rest=read.rest(fields.get("rest")),
    )  # fmt: skip
    return replace(known, report=report, models=read.models(fields.get("models")))


def _drain(draining: bool) -> Callable[[Known, Fields, float], Known]:
    def handle(known: Known, fields: Fields, _: float) -> Known:
        named = read.text(fields.get("node"))
        nodes = tuple(replace(node, draining=draining) if node.id == named else node for node in known.nodes)
        return replace(known, nodes=nodes)

    return handle


def _plan_made(known: Known, fields: Fields, now: float) -> Known:
    changed, wanted = read.changes(fields.get("changes")), read.places(fields.get("deployment"))
    plan = PlanSeen(
        at=now, epoch=read.whole(fields.get("epoch")) or 0, reason=read.text(fields.get("reason")),
        verdict="no change" if wanted and not changed else "made", changes=changed, deployment=wanted,
        rates=read.numbers(fields.get("rates")), objective=read.signed(fields.get("objective")),
        objective_now=read.signed(fields.get("objective_now")), response_s=read.number(fields.get("response_s")),
        cost_per_h=read.number(fields.get("cost_per_h")), downtime_s=read.number(fields.get("downtime_s")),
        solve_s=read.number(fields.get("solve_s")),
    )  # fmt: skip
    report = replace(known.report, plan=plan)
    if plan.verdict == "no change" and plan.response_s is not None:  # it prices the deployment in force
        report = replace(report, modelled_response_s=plan.response_s)
    return _has(replace(known, report=report), "server")


def _plan_refused(known: Known, fields: Fields, now: float) -> Known:
    entry = Refused(at=now, why=read.text(fields.get("why")), request=read.text(fields.get("request")))
    plan = known.report.plan
    if plan is not None and not entry.request and plan.verdict in ("made", "no change"):
        plan = replace(plan, verdict="refused", why=entry.why)
    refusals = (*known.report.refusals, entry)[-REFUSALS:]
    return replace(known, report=replace(known.report, plan=plan, refusals=refusals, refused=known.report.refused + 1))


def _plan_proposed(known: Known, fields: Fields, _: float) -> Known:
    number, plan = read.whole(fields.get("plan")), known.report.plan
    if plan is not None and plan.verdict in ("made", "proposed"):
        plan = replace(plan, verdict="proposed", why=f"plan {number} waits for approval")
    return replace(known, report=replace(known.report, plan=plan, proposal=number))


def _proposal_expired(known: Known, fields: Fields, _: float) -> Known:
    plan = known.report.plan
    if plan is not None and plan.verdict == "proposed":
        plan = replace(plan, verdict="refused", why=f"it has expired: {read.text(fields.get('why'))}")
    return replace(known, report=replace(known.report, plan=plan, proposal=None))


def _frozen(known: Known, fields: Fields, _: float) -> Known:
    return replace(known, report=replace(known.report, frozen=read.text(fields.get("why"))))


def _thawed(known: Known, _fields: Fields, _: float) -> Known:
    return replace(known, report=replace(known.report, frozen=None))


def _started(known: Known, fields: Fields, now: float) -> Known:
    epoch, plan = read.whole(fields.get("epoch")) or 0, known.report.plan
    current = Reconfiguration(
        begun=now, epoch=epoch, reason=read.text(fields.get("reason")), changes=read.changes(fields.get("changes"))
    )
    if plan is not None and plan.verdict in ("made", "proposed"):
        plan = replace(plan, verdict="begun", why="")
    return _has(replace(known, report=replace(known.report, current=current, plan=plan, proposal=None)), "server")


def _reset(known: Known, fields: Fields, now: float) -> Known:
    current = Reconfiguration(begun=now, kind="reset", reason=read.text(fields.get("why")))
    return replace(known, report=replace(known.report, current=current))


def _mark(name: Callable[[Fields], str]) -> Callable[[Known, Fields, float], Known]:
    def handle(known: Known, fields: Fields, now: float) -> Known:
        current = known.report.current
        if current is None:
            return known
        marks = (*current.marks, Mark(at=now, name=name(fields)))[-MARKS:]
        return replace(known, report=replace(known.report, current=replace(current, marks=marks)))

    return handle


def _ended(known: Known, fields: Fields, now: float) -> Known:
    report = known.report
    entry = reconfiguration_of(fields, now, report.current.begun if report.current else None)
    before, plan, modelled = report.before, report.plan, report.modelled_response_s
    if entry.ending == "done" and entry.changes:
        before = _before(report.deployment, entry)
    if plan is not None and plan.verdict == "begun":
        if entry.ending == "done" and plan.response_s is not None:
            modelled = plan.response_s
        plan = replace(plan, verdict=entry.ending or "begun")
    after = replace(
        report, current=None, last=entry, before=before, plan=plan, modelled_response_s=modelled,
        downtime_s=report.downtime_s + entry.pause_s, reconfigurations=report.reconfigurations + 1,
        endings=_counted(report.endings, entry),
    )  # fmt: skip
    return _has(replace(known, report=after, timeline=(*known.timeline, entry)[-TIMELINE:]), "state", "server")


def _counted(endings: Mapping[str, Mapping[str, int]], entry: Reconfiguration) -> Mapping[str, Mapping[str, int]]:
    kind = endings.get(entry.kind, {})
    return {**endings, entry.kind: {**kind, entry.ending: kind.get(entry.ending, 0) + 1}}


def _before(deployment: Places, entry: Reconfiguration) -> Places:
    """The deployment before: whether the newest measurement was made before or after the change, it is the same."""
    return {**deployment, **{change.component: change.before for change in entry.changes}}


def _held(known: Known, fields: Fields, now: float) -> Known:
    why = f"{read.text(fields.get('why'))} {read.text(fields.get('remedy'))}".strip()
    return _lacks(known, "state", why, now)


def _missing(what: str) -> Callable[[Known, Fields, float], Known]:
    return lambda known, fields, now: _lacks(known, what, read.text(fields.get("why")), now)


def _present(what: str) -> Callable[[Known, Fields, float], Known]:
    return lambda known, _fields, _now: _has(known, what)


def _server_away(known: Known, fields: Fields, now: float) -> Known:
    return _lacks(known, read.text(fields.get("server")) or "server", read.text(fields.get("why")), now)


def _measure_failed(known: Known, fields: Fields, now: float) -> Known:
    """A server that hangs lets the service wait: they are missing since the last that came."""
    since = known.report.measured_at
    return _lacks(known, "measurements", read.text(fields.get("why")), now if since is None else since)


def _clocks_off(known: Known, fields: Fields, now: float) -> Known:
    if not fields.get("nodes"):
        return _has(known, "clocks")
    return _lacks(known, "clocks", f"{read.text(fields.get('why'))} {read.text(fields.get('remedy'))}".strip(), now)


def _tasks(why: str) -> Callable[[Known, Fields, float], Known]:
    return lambda known, fields, now: _lacks(known, "tasks", f"{why}: {fields.get('tasks')}", now)


def _lacks(known: Known, what: str, why: str, now: float) -> Known:
    since = known.lacks[what].since if what in known.lacks else now
    return replace(known, lacks={**known.lacks, what: Missing(what=what, since=since, why=why)})


def _has(known: Known, *what: str) -> Known:
    if known.lacks.keys().isdisjoint(what):
        return known
    return replace(known, lacks={name: each for name, each in known.lacks.items() if name not in what})


def _components(known: Known) -> tuple[Component, ...]:
    seen = known.components or tuple(
        ComponentSeen(id=name, tasks=0, max_replicas=0) for name in sorted(known.report.deployment)
    )
    found = []
    for one in seen:
        placed = known.report.deployment.get(one.id, {})
        replicas, rate, service = sum(placed.values()), known.rates.get(one.id), known.service_rates.get(one.id)
        busy = rate / (replicas * service) if rate is not None and replicas and service else None
        found.append(
            Component(
                id=one.id, source=one.source, stateful=one.stateful, tasks=one.tasks, max_replicas=one.max_replicas,
                replicas=replicas, places=placed, rate=rate, service_rate=service, busy=busy,
                queued=known.queued.get(one.id), model=known.models.get(one.id),
            )
        )  # fmt: skip
    return tuple(found)


_FOLDS: Mapping[str, Callable[[Known, Fields, float], Known]] = {
    "service_started": _service_started,
    "leading": _role("leader"),
    "standby": _role("standby"),
    "leadership_lost": _role("lost"),
    "service_failed": _role("failed"),
    "topology_gone": _role("gone"),
    "measured": _measured,
    "measure_failed": _measure_failed,
    "clocks_off": _clocks_off,
    "learnt": _learnt,
    "cluster_seen": _cluster_seen,
    "node_drains": _drain(True),
    "node_undrained": _drain(False),
    "plan_made": _plan_made,
    "plan_refused": _plan_refused,
    "plan_proposed": _plan_proposed,
    "proposal_expired": _proposal_expired,
    "frozen": _frozen,
    "thawed": _thawed,
    "waiting": _missing("server"),
    "server_away": _server_away,
    "server_back": lambda known, fields, _: _has(known, read.text(fields.get("server"))),
    "first_placement": _present("server"),
    "first_record": _present("server"),
    "taken_over": _present("server"),
    "reconfiguration_started": _started,
    "reset": _reset,
    "phase": _mark(lambda fields: read.text(fields.get("phase"))),
    "handover_step": _mark(lambda fields: f"step {fields.get('steps')}"),
    "reconfiguration_ended": _ended,
    "held": _held,
    "cut_chosen": _present("state"),
    "tasks_awaited": _tasks("no beat since the submission"),
    "tasks_heard": _present("tasks"),
    "tasks_left_out": _tasks("left out"),
    "tasks_returned": _present("tasks"),
}
