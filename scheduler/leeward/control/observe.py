"""Looking without leading: a view for one plan, and a topology's status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from leeward.control.lateness import Lateness, told, told_steps
from leeward.control.learning.learner import Learner
from leeward.control.learning.record import LearntRecord, read_record
from leeward.control.learning.telling import recorded
from leeward.control.learning.transfers import TransferLearner
from leeward.control.lines import read_samples
from leeward.control.monitor import (
    Facts,
    Monitor,
    build_view,
    check_structure,
    delays_of,
    members,
    outside_of,
    sizes_of,
    streams_between,
)
from leeward.control.plausible import implausible
from leeward.control.ports import Ports, Structure
from leeward.control.room import not_placed
from leeward.control.snapshot import read_snapshot
from leeward.control.spares import spares_fields
from leeward.core.control import ControlRecord, Phase
from leeward.core.coordinates import Delays
from leeward.core.errors import ClusterRefusedError, NotReadyError
from leeward.core.instructions import Mode
from leeward.core.journal import StepName
from leeward.core.learnt import Learnt, Origin
from leeward.core.metrics import TaskMetrics
from leeward.core.migration import restoring
from leeward.core.model import ClusterView
from leeward.core.outside import warning
from leeward.core.placing import present_deployment
from leeward.core.plan import Slot, diff
from leeward.core.settings import Settings
from leeward.core.standing import Proposal, Standing
from leeward.core.table import first_tables
from leeward.core.topology_conf import REPLICAS


def observe(
    topology: str, ports: Ports, settings: Settings, *, sleep: Callable[[float], None], checked: bool = True
) -> ClusterView:
    """A view with rates over one window, and with what the running service has learnt; waits for the window.

    `checked`: measurements that cannot be, or that stand still, are refused, as a service makes no plan by them. Raises
    NotReadyError, ConfigError, ClusterRefusedError.
    """
    structure = ports.nimbus.structure(topology)
    check_structure(structure)
    mine = ports.open_topology(structure).control
    record, why = read_record(mine.read_learnt(), structure.id)
    monitor = Monitor(settings, record.service if record else None)
    before, began = read_samples(ports.snapshots.metrics(structure.id)), ports.clock.now()
    monitor.observe(before, began)
    sleep(settings.window_s)
    lines, now = ports.snapshots.metrics(structure.id), ports.clock.now()
    samples = read_samples(lines)
    rates = monitor.observe(samples, now)
    cluster = read_snapshot(ports.cluster.snapshot(lambda: None), structure.id)
    in_force = _record(ports, structure)
    if checked and (
        unfit := implausible(lines, samples, before, {})
        or _silent(before, samples, now - began, in_force, cluster.tasks)
    ):
        raise NotReadyError(
            f"{topology}: no plan is made by these measurements: {unfit}.",
            remedy="Ask again; if it stays so, look into the workers' logs.",
        )
    facts = Facts(
        structure=structure, cluster=cluster, delay_s=delays_of(samples, cluster.assigned.slots),
        record=in_force, rates=rates, service=monitor.service,
        sizes=sizes_of(samples), outside=outside_of(samples), draining=ports.cluster.draining(),
        wanted=mine.read_placement(), network=ports.network, learnt=Learnt(origin=Origin(why=why)),
    )  # fmt: skip
    return build_view(facts if record is None else _taught(facts, record, ports.clock.now()), settings)


def _silent(
    before: Mapping[int, TaskMetrics], samples: Mapping[int, TaskMetrics], seconds: float, record: ControlRecord,
    names: Mapping[int, str],
) -> str:  # fmt: skip
    """Whose clock has stepped between two looks, or which owner of groups has told nothing; empty if none.

    While the topology restarts Storm may have stopped them.
    """
    lateness = Lateness()
    lateness.observe(before, 0.0)
    stepped = lateness.stepped(samples, seconds)
    lateness.observe(samples, seconds)
    owners = {task for table in record.tables.values() for task in table} if record.phase is Phase.RUN else set()
    return told_steps(stepped, names) or told(lateness.late(owners, seconds), names)


def _taught(facts: Facts, record: LearntRecord, now: float) -> Facts:
    """The same facts with all that the running service has learnt, as it plans by them."""
    learner = Learner(streams_between(facts.structure), record, now)
    return replace(
        facts, rates=learner.completed(facts.rates), handover_cost=learner.handover_cost,
        learnt=learner.learnt(facts.service, max(0.0, now - record.at)),
    )  # fmt: skip


def why_not_ready(topology: str, ports: Ports) -> str:
    """Why no plan can be made yet; empty if one can. Raises ConfigError, ClusterRefusedError."""
    structure = ports.nimbus.structure(topology)
    check_structure(structure)
    try:
        cluster = read_snapshot(ports.cluster.snapshot(lambda: None), structure.id)
    except NotReadyError as error:
        return error.message
    return not_placed(cluster, frozenset(members(structure, cluster.tasks)))


def standing_of(topology: str, ports: Ports) -> Standing | None:
    """The decisions of people; None before the first. Raises NotReadyError, ConfigError, ClusterRefusedError."""
    return ports.open_topology(ports.nimbus.structure(topology)).control.read_standing()


def status_of(topology: str, ports: Ports) -> dict[str, object]:
    """The output of `leeward status`."""
    structure = ports.nimbus.structure(topology)
    check_structure(structure)
    cluster = read_snapshot(ports.cluster.snapshot(lambda: None), structure.id)
    record = _record(ports, structure)
    control = ports.open_topology(structure).control
    learnt, why = read_record(control.read_learnt(), structure.id)
    journal, standing = control.read_journal(), control.read_standing() or Standing()
    held = journal is not None and journal.step is StepName.HELD
    facts = Facts(structure=structure, cluster=cluster, record=record, rates=Monitor(Settings()).observe({}, 0.0))
    view = build_view(facts, Settings())
    tasks = frozenset(task for component in view.components for task in component.tasks)
    samples, warnings = _samples(ports, structure)
    delays = delays_of(samples, cluster.assigned.slots)
    return {
        "topology": topology,
        "topology_id": structure.id,
        "phase": str(record.phase),
        "epoch": record.epoch,
        "cuts": list(restoring.known_cuts(record, journal) if held and journal else record.committed),
        "held": held,
        "cuts_that_cannot_be_read": {str(c): why for c, why in journal.unreadable.items()} if held and journal else {},
        "remedy": restoring.REMEDY if held else "",
        "absent": {str(task): cluster.tasks.get(task, "") for task in record.absent},
        "placed_by_plan": cluster.assigned.managed,
        "why_not": not_placed(cluster, tasks) or cluster.assigned.reason,
        "warnings": [*warnings, *warnings_of(samples)],
        "deployment": present_deployment(view),
        "spares": spares_fields(view, structure, {task: one.resident_bytes for task, one in samples.items()}),
        "tasks": {component.id: len(component.tasks) for component in view.components},
        "running": len(running(tasks, samples)),
        "nodes": {node.id: list(node.ports) for node in view.nodes},
        "draining": sorted(ports.cluster.draining()),
        "delays_ms": delays_ms(delays),
        "datastore": datastore_of(samples, cluster.assigned.slots),
        "delay_error": None if (off := delays.error()) is None else round(off, 3),
        **recorded(learnt, why, ports.clock.now()),
        "frozen": (standing.why or "yes") if standing.frozen else "",
        "proposal": proposal_fields(standing.proposal) if standing.proposal else {},
        "shown": shown_by(samples),
    }


def shown_by(samples: Mapping[int, TaskMetrics]) -> dict[str, object] | None:
    """The newest result that a sink of the topology shows; None if none does."""
    views = [(sample.t, task, sample.view) for task, sample in samples.items() if sample.view is not None]
    return max(views, key=lambda one: one[:2])[2].document() if views else None


def datastore_of(samples: Mapping[int, TaskMetrics], slots: Mapping[int, Slot]) -> dict[str, dict[str, float | None]]:
    """Node -> its way to the DataStore, for people: of the transfers since its tasks' processes began."""
    transfers = TransferLearner()
    begun = {task: TaskMetrics(component=one.component, pid=-1, t=one.t) for task, one in samples.items()}
    transfers.add(begun, samples, slots)
    return {
        node: {
            "up_mb_per_s": None if link.up_rate is None else round(link.up_rate / 1e6, 2),
            "down_mb_per_s": None if link.down_rate is None else round(link.down_rate / 1e6, 2),
            "trip_ms": None if link.trip_s is None else round(1_000 * link.trip_s, 3),
        }
        for node, link in transfers.fit().items()
    }


def delays_ms(delays: Delays) -> dict[str, dict[str, float]]:
    """Node -> other node -> one-way delay, ms, of those whose places are known; for people."""
    found: dict[str, dict[str, float]] = {}
    for a, b in delays:
        found.setdefault(a, {})[b] = round(1_000 * delays[a, b], 2)
    return found


def proposal_fields(proposal: Proposal) -> dict[str, object]:
    """Of a plan that waits for approval, for people and programs; no tables."""
    return {
        "plan": proposal.number, "epoch": proposal.epoch, "made_at": round(proposal.made_at, 3),
        "reason": proposal.reason, "deployment": {name: dict(counts) for name, counts in proposal.after.items()},
        "changes": [
            {"component": c.component, "kind": c.kind, "before": dict(c.before), "after": dict(c.after)}
            for c in diff(proposal.before, proposal.after)
        ],
        "gain": proposal.gain, "cost_per_h": proposal.cost_per_h, "downtime_s": proposal.downtime_s,
    }  # fmt: skip


def running(tasks: Collection[int], samples: Mapping[int, TaskMetrics]) -> frozenset[int]:
    """Those of these tasks that say that they process tuples, or would if they had a share."""
    return frozenset(task for task in tasks if task in samples and samples[task].mode == Mode.RUNNING)


def tasks_running(topology: str, ports: Ports) -> tuple[int, int]:
    """(tasks that run, all tasks of its components); (0, 0) while Storm has not placed it. Raises ConfigError."""
    structure = ports.nimbus.structure(topology)
    check_structure(structure)
    try:
        known = read_snapshot(ports.cluster.snapshot(lambda: None), structure.id).tasks
    except NotReadyError:
        return 0, 0
    tasks = members(structure, known)
    return len(running(tasks, read_samples(ports.snapshots.metrics(structure.id)))), len(tasks)


def _samples(ports: Ports, structure: Structure) -> tuple[dict[int, TaskMetrics], list[str]]:
    """Measurements, and why there are none: the rest of a status does not need Redis."""
    try:
        return read_samples(ports.snapshots.metrics(structure.id)), []
    except ClusterRefusedError as error:
        return {}, [f"no measurements: {error}"]


def warnings_of(samples: Mapping[int, TaskMetrics]) -> list[str]:
    """Sentences for people: components that would lose state or have none, and emits of warm tasks."""
    dropped: Counter[str] = Counter()
    for sample in samples.values():
        dropped[sample.component] += sample.dropped
    return [
        *(" ".join(warning(name, attributes)) for name, attributes in sorted(outside_of(samples).items())),
        *(
            f"{count} tuples that warm tasks of {name} emitted were dropped."
            for name, count in sorted(dropped.items())
            if count
        ),
    ]


def _record(ports: Ports, structure: Structure) -> ControlRecord:
    """The record in force; without one, the record that tasks assume."""
    record = ports.open_topology(structure).control.read_record()
    if record is not None:
        return record
    tasks = read_snapshot(ports.cluster.snapshot(lambda: None), structure.id).tasks
    return ControlRecord(tables=first_tables(members(structure, tasks), structure.conf.get(REPLICAS.name)))
