"""The values of the model: resources of two classes, the network between them, and dataflows of queries.

Units are SI: seconds, events/s, bytes, bit/s; currents are mA, charges mAh.  The paper numbers its constraints, but no
formula; here its displayed formulas count from (1) in the order of printing, and C1-C3 are its constraints.

Symbols (paper -> here): G -> `dataflow.Dataflow`, V, E -> queries, edges, sigma -> selectivity, delta -> event_bytes,
omega_in, omega_out -> w_in, w_out, R_E, R_C -> `Edge`, `Cloud`, lambda -> lam_s, l -> latency_s, beta -> bandwidth_bps,
mu -> placement, pi(m) -> pi_edge, pi_cloud, C -> battery_mah, kappa -> base_ma, epsilon -> eps_mah, tau -> recharge_s,
eta -> `migration_s`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from leeward.core.fields import FieldError

Kind = Literal["source", "query", "sink"]
KINDS: tuple[Kind, ...] = ("source", "query", "sink")
#: How the latency of a query follows from what runs beside it; see `formulas.effective_latency_s`.
Mode = Literal["shared", "overhead", "exclusive"]
MODES: tuple[Mode, ...] = ("shared", "overhead", "exclusive")
#: The resource of each query of one dataflow.
Placement = Sequence[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """An edge device: sensors are attached to it, and it runs on a battery."""

    #: Charge of the full battery C_r, mAh, > 0.
    battery_mah: float
    #: Current kappa_r that it draws without any query, mA.
    base_ma: float
    #: Time tau_r from one full charge to the next, s, > 0.
    recharge_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cloud:
    """A virtual machine of the cloud: no sensor, no battery."""


Resource = Edge | Cloud


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Latency and bandwidth between the sites of the resources; on one resource events take no time.

    A site for each resource is the general case.  Fewer sites keep ten thousand resources small: the diagonal then
    holds between two resources of one site.
    """

    #: The site of each resource.
    site: tuple[int, ...]
    #: l, s, from the row's site to the column's.
    latency_s: tuple[tuple[float, ...], ...]
    #: beta, bit/s, > 0, likewise.
    bandwidth_bps: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A vertex of a dataflow.  A source stands for a sensor's stream: it computes nothing."""

    #: Row of `Fabric.lam_s` and `Fabric.eps_mah`.
    type: int
    #: sigma, output events for each input event; not looked at for sources.
    selectivity: float
    #: delta, size of an output event, bytes.
    event_bytes: float
    kind: Kind = "query"
    #: Events/s of a source; None: the sources without a rate share the dataflow's evenly.
    rate: float | None = None
    #: The edge that has the source's sensor; None: any edge has it.
    pin: int | None = None


def check_one_of(field: str, value: str, known: Sequence[str]) -> None:
    """Raises `FieldError` unless the value is one of those known."""
    if value not in known:
        raise FieldError(field, value, "is unknown", remedy=f"choose one of {', '.join(known)}")
