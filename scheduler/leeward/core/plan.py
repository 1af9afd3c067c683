"""Placements and plans as values, and the placement's JSON form that the plugin reads (`tests/plans/`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from leeward.core.errors import PlanError
from leeward.core.table import Table, replicas

PLACEMENT_VERSION = 1

T = TypeVar("T")


@dataclass(frozen=True, slots=True, order=True)
class Slot:
    """A worker slot."""

    node: str  #: the supervisor's host name as Storm knows it
    port: int  #: one of the supervisor's slot ports


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where every task of a topology is wanted."""

    topology_id: str  #: Storm's id of the running topology; another id means the plan is stale
    epoch: int  #: number of the reconfiguration that wants it
    slots: Mapping[int, Slot]  #: task -> slot, every executor-bearing task of the topology

    def to_json(self) -> str:
        """The document that goes to `/leeward/placement/<topology name>`; equal placements give equal bytes."""
        by_slot: dict[Slot, list[int]] = {}
        for task, slot in self.slots.items():
            by_slot.setdefault(slot, []).append(task)
        slots = [{"node": slot.node, "port": slot.port, "tasks": sorted(by_slot[slot])} for slot in sorted(by_slot)]
        document = {
            "version": PLACEMENT_VERSION,
            "topology_id": self.topology_id,
            "epoch": self.epoch,
            "slots": slots,
        }
        return json.dumps(document, separators=(",", ":"))

    @staticmethod
    def from_json(text: str | bytes) -> Placement:
        """Parse and check; raises PlanError naming field and value."""
        try:
            document = json.loads(text)
        except ValueError as error:
            raise PlanError(f"placement is not JSON: {error}.", remedy="Write it with Placement.to_json.") from None
        return _placement(document)


def _placement(document: object) -> Placement:
    version = _get(document, "version", int)
    if version != PLACEMENT_VERSION:
        raise PlanError(
            f"placement field 'version' is {version}, this program reads {PLACEMENT_VERSION}.",
            remedy="Update Leeward on this machine." if version > PLACEMENT_VERSION else "Write it anew.",
        )
    slots: dict[int, Slot] = {}
    seen: set[Slot] = set()
    for entry in _get(document, "slots", list):
        slot = Slot(_get(entry, "node", str), _get(entry, "port", int))
        if slot in seen:
            raise PlanError(f"placement names slot {slot.node}:{slot.port} twice.", remedy="Merge its tasks.")
        seen.add(slot)
        if not _get(entry, "tasks", list):
            raise PlanError(f"placement field 'tasks' of slot {slot.node}:{slot.port} is empty.", remedy="Drop it.")
        for task in entry["tasks"]:
            if type(task) is not int or task < 0:
                raise PlanError(f"placement field 'tasks' holds {task!r}.", remedy="Task ids are integers.")
            if task in slots:
                raise PlanError(f"placement names task {task} twice.", remedy="Place each task once.")
            slots[task] = slot
    return Placement(topology_id=_get(document, "topology_id", str), epoch=_get(document, "epoch", int), slots=slots)


def _get(document: object, name: str, kind: type[T]) -> T:
    if not isinstance(document, dict) or name not in document:
        raise PlanError(f"placement field {name!r} is missing.", remedy=f"Give it as {kind.__name__}.")
    value = document[name]
    if type(value) is not kind:
        raise PlanError(
            f"placement field {name!r} is {value!r}, not of type {kind.__name__}.", remedy="Correct its type."
        )
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The effect that a policy expects of its plan. A field that a policy does not know is None."""

    objective: float | None = None  #: value of the policy's objective, of the plan
    objective_now: float | None = None  #: the same of the deployment in force; inf if that breaks a bound
    relieves: bool = False  #: it evens out load, which the objective does not price: no gain is asked for
    response_s: float | None = None  #: mean response time, s
    cost_per_h: float | None = None  #: $/h
    cost_now_per_h: float | None = None  #: the same of the deployment in force
    downtime_s: float | None = None  #: of carrying it out, s
    restart: bool = False  #: it was priced as a restart of workers
    solve_s: float | None = None  #: time that solving took, s


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A policy's wish, until the loop accepts it: the owners of key groups, and a slot for every task."""

    tables: Mapping[str, Table]  #: component -> owners of its key groups, every component
    placement: Mapping[int, Slot]  #: task -> slot, every task
    reason: str = ""  #: one sentence for people: why this plan
    estimate: Estimate = field(default_factory=Estimate)  #: of what it brings and costs
    load: Mapping[str, Mapping[int, float]] = field(
        default_factory=dict
    )  #: component -> key group -> tuples/s, where measured: these move last


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A policy's answer in place of a plan: this topology cannot run beside the others."""

    reason: str  #: one sentence for people


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The difference between two deployments of one component, counted in replicas by node."""

    component: str
    kind: str  #: "scale-out", "scale-in" or "move"
    before: Mapping[str, int]  #: node -> replicas
    after: Mapping[str, int]  #: node -> replicas


def deployment(tables: Mapping[str, Table], placement: Mapping[int, Slot]) -> dict[str, dict[str, int]]:
    """Component -> node -> number of replicas, nodes ascending."""
    result: dict[str, dict[str, int]] = {}
    for component in sorted(tables):
        counts: dict[str, int] = {}
        for task in replicas(tables[component]):
            node = placement[task].node
            counts[node] = counts.get(node, 0) + 1
        result[component] = dict(sorted(counts.items()))
    return result


def restarting(before: Mapping[int, Slot], after: Mapping[int, Slot]) -> tuple[int, ...]:
    """Tasks in slots whose executors change: Storm restarts exactly those workers, seconds after it placed them."""
    old, new = _by_slot(before), _by_slot(after)
    return tuple(task for task in sorted(after) if old.get(after[task]) != new[after[task]])


def _by_slot(slots: Mapping[int, Slot]) -> dict[Slot, set[int]]:
    workers: dict[Slot, set[int]] = {}
    for task, slot in slots.items():
        workers.setdefault(slot, set()).add(task)
    return workers


def diff(before: Mapping[str, Mapping[str, int]], after: Mapping[str, Mapping[str, int]]) -> tuple[Change, ...]:
    """The components whose replicas change in number or place, by name."""
    changes = []
    for component in sorted(after):
        old, new = before.get(component, {}), after[component]
        if old == new:
            continue
        grown = sum(new.values()) - sum(old.values())
        kind = "scale-out" if grown > 0 else "scale-in" if grown < 0 else "move"
        changes.append(Change(component=component, kind=kind, before=dict(old), after=dict(new)))
    return tuple(changes)
