"""Makespans, rates, loads and violations of a placement, and the price of a change, straight from the formulas.

Nothing here knows how a placement was found.  Plain Python on purpose: planning has its own arrays, and an error in
those must show up here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from leeward.core.fields import check_number
from leeward.policies.edge_cloud.model import formulas
from leeward.policies.edge_cloud.model.instance import Instance, check_placements
from leeward.policies.edge_cloud.model.values import Cloud, Edge, Placement

#: A broken constraint: ("sink_not_in_cloud", dataflow, query), ("throughput", dataflow, query), ("energy", resource).
Violation = tuple[str | int, ...]
Table = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The quantities of one placement; tables are [dataflow][query]."""

    #: L_G (2) of each dataflow, s.
    makespans: tuple[float, ...]
    #: The objective (8): the sum of the makespans, s.
    total: float
    #: omega_in and omega_out, events/s.
    w_in: Table
    w_out: Table
    #: L_i (10), s.
    lengths: Table
    #: Sorted.
    violations: tuple[Violation, ...]
    #: (1 + pi(m)) times the sum of lambda, s, of each resource; 0 where no query runs.
    service_time: tuple[float, ...]
    #: The left side of C3, mAh, of each edge; None for a cloud machine.
    energy_mah: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The price of going from one placement to another."""

    #: (4).
    migrations: int
    #: (7), s, with the service times after all moves; infinite where a moved query cannot keep up.
    stabilization_shared: float
    #: (7), s, as printed: each moved query has its new resource to itself.
    stabilization_exclusive: float


def evaluate(instance: Instance, placements: Sequence[Placement]) -> Evaluation:
    """The quantities of one resource for each query; raises `FieldError` for a resource that does not exist."""
    check_placements(instance, placements)
    fabric = instance.fabric
    flows = [formulas.rates(dataflow) for dataflow in instance.dataflows]
    w_in, w_out = tuple(flow[0] for flow in flows), tuple(flow[1] for flow in flows)
    hosted = load_of(instance, placements, w_in)
    service = tuple(formulas.service_time_s(fabric, r, [kind for kind, _ in load]) for r, load in enumerate(hosted))
    energy = tuple(
        formulas.energy_mah(fabric, r, load) if isinstance(fabric.resources[r], Edge) else None
        for r, load in enumerate(hosted)
    )
    lengths = _lengths(instance, placements, hosted)
    makespans = tuple(formulas.makespan_s(length) for length in lengths)
    return Evaluation(
        makespans=makespans,
        total=math.fsum(makespans),
        w_in=w_in,
        w_out=w_out,
        lengths=lengths,
        violations=_violations(instance, placements, w_in, service, energy),
        service_time=service,
        energy_mah=energy,
    )


def load_of(instance: Instance, placements: Sequence[Placement], w_in: Table) -> list[list[tuple[int, float]]]:
    """Type and omega_in of the queries on each resource, sources left out: they count in no load."""
    load: list[list[tuple[int, float]]] = [[] for _ in instance.fabric.resources]
    for dataflow, placement, rates in zip(instance.dataflows, placements, w_in, strict=True):
        for v, query in enumerate(dataflow.queries):
            if query.kind != "source":
                load[placement[v]].append((query.type, rates[v]))
    return load


def _lengths(
    instance: Instance, placements: Sequence[Placement], hosted: Sequence[Sequence[tuple[int, float]]]
) -> Table:
    fabric = instance.fabric
    types = [[kind for kind, _ in load] for load in hosted]

    @cache
    def latency_s(r: int, kind: int) -> float:
        return formulas.effective_latency_s(fabric, r, kind, types[r])

    found = []
    for dataflow, placement in zip(instance.dataflows, placements, strict=True):
        lam = [
            0.0 if query.kind == "source" else latency_s(r, query.type)
            for query, r in zip(dataflow.queries, placement, strict=True)
        ]
        found.append(formulas.critical_lengths_s(fabric, dataflow, placement, lam))
    return tuple(found)


def _violations(
    instance: Instance,
    placements: Sequence[Placement],
    w_in: Table,
    service: Sequence[float],
    energy: Sequence[float | None],
) -> tuple[Violation, ...]:
    found: list[Violation] = []
    for position, (dataflow, placement) in enumerate(zip(instance.dataflows, placements, strict=True)):
        for v, (query, r) in enumerate(zip(dataflow.queries, placement, strict=True)):
            wrong = wrong_class(instance, r, query.kind, query.pin)
            if wrong is not None:
                found.append((wrong, position, v))
            if query.kind != "source" and not formulas.keeps_throughput(w_in[position][v], service[r]):
                found.append(("throughput", position, v))
    for r, charge in enumerate(energy):
        if charge is not None and not formulas.keeps_energy(instance.fabric, r, charge):
            found.append(("energy", r))
    return tuple(sorted(found, key=lambda one: (str(one[0]), one[1:])))


ClassViolation = Literal["source_not_on_its_edge", "source_not_on_edge", "sink_not_in_cloud"]


def wrong_class(instance: Instance, r: int, kind: str, pin: int | None) -> ClassViolation | None:
    """C1 for one query on r: sources are on the edge with their sensor, sinks in the cloud."""
    resource = instance.fabric.resources[r]
    if kind == "source" and pin is not None and r != pin:
        return "source_not_on_its_edge"
    if kind == "source" and not isinstance(resource, Edge):
        return "source_not_on_edge"
    if kind == "sink" and not isinstance(resource, Cloud):
        return "sink_not_in_cloud"
    return None


def change(
    instance: Instance, before: Sequence[Placement], after: Sequence[Placement], migration_s: float = 1.0
) -> Change:
    """Migrations (4) and total stabilization time (7) of a change, where moving a query takes `migration_s` (eta)."""
    check_placements(instance, before)
    check_placements(instance, after, "after.placement")
    check_number("eta", migration_s)
    fabric = instance.fabric
    w_in = tuple(formulas.rates(dataflow)[0] for dataflow in instance.dataflows)
    hosted = load_of(instance, after, w_in)
    migrations, shared, exclusive = 0, 0.0, 0.0
    for dataflow, old, new, rates in zip(instance.dataflows, before, after, w_in, strict=True):
        for v in formulas.moved(old, new):
            migrations += 1
            if dataflow.queries[v].kind == "source":
                continue  # it computes nothing, so it has nothing to catch up with
            kind, r = dataflow.queries[v].type, new[v]
            service = formulas.service_time_s(fabric, r, [other for other, _ in hosted[r]])
            shared = max(shared, formulas.stabilization_s(rates[v], service, migration_s))
            exclusive = max(exclusive, formulas.stabilization_s(rates[v], fabric.lam_s[kind][r], migration_s))
    return Change(migrations=migrations, stabilization_shared=shared, stabilization_exclusive=exclusive)
