"""Looking without leading: a view for one plan, and a topology's status."""

from __future__ import annotations

from collections.abc import Callable, Collection

from leeward.control.monitor import Facts, Monitor, build_view, check_structure, members, read_samples, sizes_of
from leeward.control.ports import Ports, Structure
from leeward.control.room import not_placed
from leeward.control.snapshot import read_snapshot
from leeward.core.control import ControlRecord
from leeward.core.errors import NotReadyError
from leeward.core.instructions import Mode
from leeward.core.journal import StepName
from leeward.core.migration.restoring import REMEDY, known_cuts
from leeward.core.model import ClusterView
from leeward.core.placing import present_deployment
from leeward.core.settings import Settings
from leeward.core.table import first_tables
from leeward.core.topology_conf import REPLICAS


def observe(topology: str, ports: Ports, settings: Settings, *, sleep: Callable[[float], None]) -> ClusterView:
    """A view with rates over one window; waits that long. Raises NotReadyError, ConfigError, ClusterRefusedError."""
    structure = ports.nimbus.structure(topology)
    check_structure(structure)
    monitor = Monitor(settings)
    monitor.observe(read_samples(ports.snapshots.metrics(structure.id)), ports.clock.now())
    sleep(settings.window_s)
    samples = read_samples(ports.snapshots.metrics(structure.id))
    rates = monitor.observe(samples, ports.clock.now())
    facts = Facts(
        structure=structure, cluster=read_snapshot(ports.cluster.snapshot(lambda: None), structure.id),
        record=_record(ports, structure), rates=rates, service=monitor.service,
        sizes=sizes_of(samples), draining=ports.cluster.draining(),
        wanted=ports.open_topology(structure).control.read_placement(),
    )  # fmt: skip
    return build_view(facts, settings)


def why_not_ready(topology: str, ports: Ports) -> str:
    """Why no plan can be made yet; empty if one can. Raises ConfigError, ClusterRefusedError."""
    structure = ports.nimbus.structure(topology)
    check_structure(structure)
    try:
        cluster = read_snapshot(ports.cluster.snapshot(lambda: None), structure.id)
    except NotReadyError as error:
        return error.message
    return not_placed(cluster, frozenset(members(structure, cluster.tasks)))


def status_of(topology: str, ports: Ports) -> dict[str, object]:
    """The output of `leeward status`."""
    structure = ports.nimbus.structure(topology)
    check_structure(structure)
    cluster = read_snapshot(ports.cluster.snapshot(lambda: None), structure.id)
    record = _record(ports, structure)
    journal = ports.open_topology(structure).control.read_journal()
    held = journal is not None and journal.step is StepName.HELD
    facts = Facts(structure=structure, cluster=cluster, record=record, rates=Monitor(Settings()).observe({}, 0.0))
    view = build_view(facts, Settings())
    tasks = frozenset(task for component in view.components for task in component.tasks)
    return {
        "topology": topology,
        "topology_id": structure.id,
        "phase": str(record.phase),
        "epoch": record.epoch,
        "cuts": list(known_cuts(record, journal) if held and journal else record.committed),
        "held": held,
        "cuts_that_cannot_be_read": {str(c): why for c, why in journal.unreadable.items()} if held and journal else {},
        "remedy": REMEDY if held else "",
        "absent": {str(task): cluster.tasks.get(task, "") for task in record.absent},
        "placed_by_plan": cluster.assigned.managed,
        "why_not": not_placed(cluster, tasks) or cluster.assigned.reason,
        "deployment": present_deployment(view),
        "tasks": {component.id: len(component.tasks) for component in view.components},
        "running": len(running(structure.id, tasks, ports)),
        "nodes": {node.id: list(node.ports) for node in view.nodes},
        "draining": sorted(ports.cluster.draining()),
    }


def running(topology_id: str, tasks: Collection[int], ports: Ports) -> frozenset[int]:
    """Those of these tasks that say that they process tuples, or would if they had a share."""
    samples = read_samples(ports.snapshots.metrics(topology_id))
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
    return len(running(structure.id, tasks, ports)), len(tasks)


def _record(ports: Ports, structure: Structure) -> ControlRecord:
    """The record in force; without one, the record that tasks assume."""
    record = ports.open_topology(structure).control.read_record()
    if record is not None:
        return record
    tasks = read_snapshot(ports.cluster.snapshot(lambda: None), structure.id).tasks
    return ControlRecord(tables=first_tables(members(structure, tasks), structure.conf.get(REPLICAS.name)))
