"""An instance: a fabric and the dataflows that are active on it; whether they fit each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.fabric import Fabric
from leeward.policies.edge_cloud.model.formulas import energy_mah, keeps_energy, keeps_throughput, rates, service_time_s
from leeward.policies.edge_cloud.model.values import Edge, Placement, Query


@dataclass(frozen=True, kw_only=True)
class Instance:
    """Construction checks it (`FieldError`), so types, sensors and names of an Instance in hand are known."""

    fabric: Fabric
    dataflows: tuple[Dataflow, ...]

    def __post_init__(self) -> None:
        names: set[str] = set()
        for position, dataflow in enumerate(self.dataflows):
            if dataflow.name in names:
                field = f"dataflows[{position}].name"
                raise FieldError(field, dataflow.name, "another dataflow has this name", remedy="make the names unique")
            names.add(dataflow.name)
            check_on_fabric(self.fabric, dataflow, f"dataflows[{position}].")


def check_on_fabric(fabric: Fabric, dataflow: Dataflow, prefix: str = "") -> None:
    """Raises `FieldError` for a type that the fabric does not have, and for a sensor's edge that does not exist."""
    for v, query in enumerate(dataflow.queries):
        field = f"{prefix}queries[{v}]"
        if not 0 <= query.type < len(fabric.lam_s):
            remedy = f"give a number from 0 to {len(fabric.lam_s) - 1}"
            raise FieldError(f"{field}.type", query.type, f"there are {len(fabric.lam_s)} types", remedy=remedy)
        if query.pin is None:
            continue
        remedy = "name the edge that has the sensor, or -1 if every edge has it"
        if not 0 <= query.pin < len(fabric.resources):
            raise FieldError(f"{field}.pin", query.pin, "there is no such resource", remedy=remedy)
        if not isinstance(fabric.resources[query.pin], Edge):
            raise FieldError(f"{field}.pin", query.pin, "this resource is no edge and has no sensor", remedy=remedy)


def check_places(fabric: Fabric, dataflow: Dataflow) -> None:
    """Raises `FieldError` for a query that fits on no resource of its class, even if it had that to itself."""
    w_in, _ = rates(dataflow)
    for v, query in enumerate(dataflow.queries):
        places = fabric.clouds if query.kind == "sink" else range(len(fabric.resources))
        if query.kind == "source":
            if not fabric.edges:
                raise FieldError(f"queries[{v}].kind", "source", "there is no edge", remedy="add one to the resources")
        elif not any(_fits_alone(fabric, query, w_in[v], r) for r in places):
            where = "cloud machine" if query.kind == "sink" else "resource"
            reason = f"no {where} processes {w_in[v]:g} events/s of type {query.type} within its bounds"
            remedy = f"lower the rate of dataflow {dataflow.name}, or add a faster {where}"
            raise FieldError(f"queries[{v}]", query.kind, reason, remedy=remedy)


def _fits_alone(fabric: Fabric, query: Query, w_in: float, r: int) -> bool:
    if not keeps_throughput(w_in, service_time_s(fabric, r, [query.type])):
        return False
    return not isinstance(fabric.resources[r], Edge) or keeps_energy(
        fabric, r, energy_mah(fabric, r, [(query.type, w_in)])
    )


def check_placements(instance: Instance, placements: Sequence[Placement], field: str = "placement") -> None:
    """Raises `FieldError` unless each query of each dataflow has a resource that exists."""
    if len(placements) != len(instance.dataflows):
        reason = f"there are {len(instance.dataflows)} dataflows"
        raise FieldError(field, f"{len(placements)} lists", reason, remedy="give a list for each dataflow")
    for position, (dataflow, placement) in enumerate(zip(instance.dataflows, placements, strict=True)):
        if len(placement) != len(dataflow.queries):
            reason = f"dataflow {dataflow.name} has {len(dataflow.queries)} queries"
            value = f"{len(placement)} numbers"
            raise FieldError(f"{field}[{position}]", value, reason, remedy="give the resource of each query")
        for v, r in enumerate(placement):
            if not 0 <= r < len(instance.fabric.resources):
                remedy = f"give a number from 0 to {len(instance.fabric.resources) - 1}"
                raise FieldError(f"{field}[{position}][{v}]", r, "there is no such resource", remedy=remedy)
