"""The fabric: resources, how fast they run each type of query, and the network between them, checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from leeward.core.fields import FieldError, check_number
from leeward.policies.edge_cloud.model.values import MODES, Cloud, Edge, Mode, Network, Resource, check_one_of


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """All computing resources.  Construction checks it (`FieldError`), so a Fabric in hand is well formed."""

    resources: tuple[Resource, ...]
    #: lambda, s, > 0: [type][resource], one event of a query that has the resource to itself.
    lam_s: tuple[tuple[float, ...], ...]
    #: epsilon, mAh: [type][resource], the charge that one event takes from an edge; not looked at for clouds.
    eps_mah: tuple[tuple[float, ...], ...]
    network: Network
    #: pi(m), by the number m of queries on an edge, on a cloud machine; the last value holds for all greater m.
    pi_edge: tuple[float, ...]
    pi_cloud: tuple[float, ...]
    #: How the latency of a query follows from the queries beside it; see `formulas.effective_latency_s`.
    mode: Mode = "shared"

    def __post_init__(self) -> None:
        _check_resources(self.resources)
        if not self.lam_s:
            raise FieldError("lam", [], "there is no type of query", remedy="give a row of times for each type")
        for name, rows in (("lam", self.lam_s), ("eps", self.eps_mah)):
            _check_matrix(name, rows, (len(self.lam_s), len(self.resources)), positive=name == "lam")
        _check_network(self.network, len(self.resources))
        for name, overheads in (("pi_edge", self.pi_edge), ("pi_cloud", self.pi_cloud)):
            _check_overheads(name, overheads)
        check_one_of("mode", self.mode, MODES)

    @cached_property
    def edges(self) -> tuple[int, ...]:
        """R_E."""
        return tuple(r for r, resource in enumerate(self.resources) if isinstance(resource, Edge))

    @cached_property
    def clouds(self) -> tuple[int, ...]:
        """R_C."""
        return tuple(r for r, resource in enumerate(self.resources) if isinstance(resource, Cloud))


def _check_resources(resources: Sequence[Resource]) -> None:
    if not resources:
        raise FieldError("resources", [], "is empty", remedy="give at least one edge and one cloud machine")
    for r, resource in enumerate(resources):
        if isinstance(resource, Edge):
            check_number(f"resources[{r}].battery_mAh", resource.battery_mah, positive=True)
            check_number(f"resources[{r}].base_mA", resource.base_ma)
            check_number(f"resources[{r}].recharge_s", resource.recharge_s, positive=True)


def _check_matrix(name: str, rows: Sequence[Sequence[float]], shape: tuple[int, int], *, positive: bool) -> None:
    if len(rows) != shape[0]:
        raise FieldError(name, f"{len(rows)} rows", f"there must be {shape[0]}", remedy=f"give {shape[0]} rows")
    for row, values in enumerate(rows):
        if len(values) != shape[1]:
            remedy = f"give {shape[1]} numbers"
            raise FieldError(f"{name}[{row}]", f"{len(values)} numbers", f"there must be {shape[1]}", remedy=remedy)
        # one pass in C for the common case; the loop only finds out which entry is to blame
        least = min(values)
        if not ((least > 0 if positive else least >= 0) and math.isfinite(math.fsum(values))):
            for column, value in enumerate(values):
                check_number(f"{name}[{row}][{column}]", value, positive=positive)


def _check_network(network: Network, resources: int) -> None:
    sites = len(network.latency_s)
    if len(network.site) != resources:
        reason = f"there are {resources} resources"
        raise FieldError("site", f"{len(network.site)} entries", reason, remedy="name the site of each resource")
    for r, site in enumerate(network.site):
        if not 0 <= site < sites:
            raise FieldError(
                f"site[{r}]", site, f"there are {sites} sites", remedy=f"give a number from 0 to {sites - 1}"
            )
    _check_matrix("latency", network.latency_s, (sites, sites), positive=False)
    _check_matrix("bandwidth", network.bandwidth_bps, (sites, sites), positive=True)


def _check_overheads(name: str, overheads: Sequence[float]) -> None:
    if not overheads:
        raise FieldError(name, [], "is empty", remedy="give pi(0), pi(1), ...; [0] means no interference")
    for m, overhead in enumerate(overheads):
        check_number(f"{name}[{m}]", overhead)
    if any(overheads[:2]):
        reason = "a query that has the resource to itself has no overhead"
        raise FieldError(f"{name}[:2]", list(overheads[:2]), reason, remedy="write 0 for m = 0 and m = 1")
