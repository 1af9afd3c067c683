"""The loads of all resources as arrays: placing or removing one query changes the entries of one resource.

Every entry is the sum of what runs there now in the order in which it came, so nothing of a removed query is left
behind: sums that are only added to and subtracted from would drift.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from leeward.policies.edge_cloud.model.fabric import Fabric
from leeward.policies.edge_cloud.model.formulas import BITS_PER_BYTE, SECONDS_PER_HOUR
from leeward.policies.edge_cloud.model.values import Edge

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
#: A query of all dataflows: the dataflow's name, and its position there.
Key = tuple[str, int]


class Loads:
    """The non-source queries on each resource; arrays are [resource] unless their name says more."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        edges = [r if isinstance(r, Edge) else None for r in fabric.resources]
        self.is_edge: Mask = np.array([edge is not None for edge in edges])
        #: lambda, s, and epsilon, mAh: [type, resource].
        self.lam_s: Floats = np.array(fabric.lam_s)
        self._lam = fabric.lam_s
        #: The mean of lambda over all resources, s, for each type.
        self.mean_s: list[float] = self.lam_s.mean(axis=1).tolist()
        self.eps_mah: Floats = np.where(self.is_edge, np.array(fabric.eps_mah), 0.0)
        #: C, kappa and tau of C3; a cloud machine's battery is infinite.
        self.battery_mah: Floats = np.array([np.inf if edge is None else edge.battery_mah for edge in edges])
        self.base_mah_s: Floats = np.array([0.0 if edge is None else edge.base_ma / SECONDS_PER_HOUR for edge in edges])
        self.recharge_s: Floats = np.array([0.0 if edge is None else edge.recharge_s for edge in edges])
        self.overheads = Overheads(fabric, self.is_edge)
        self.site = np.array(fabric.network.site)
        self.latency_s: Floats = np.array(fabric.network.latency_s)
        self.s_per_byte: Floats = BITS_PER_BYTE / np.array(fabric.network.bandwidth_bps)
        # plain values of the same: one entry is read in a fraction of the time
        self._home = fabric.network.site
        self._latency_rows = fabric.network.latency_s
        self._per_byte_rows: list[list[float]] = self.s_per_byte.tolist()

        size = len(fabric.resources)
        #: Queries on each resource, in the order in which they came, with type and omega_in.
        self.hosted: list[dict[Key, tuple[int, float]]] = [{} for _ in range(size)]
        #: m, the number of queries.
        self.count: NDArray[np.int64] = np.zeros(size, dtype=np.int64)
        #: The sum of lambda, s.
        self.lam_sum_s: Floats = np.zeros(size)
        #: (1 + pi(m)) times that, s.
        self.service_s: Floats = np.zeros(size)
        #: The greatest omega_in, events/s: C2 holds for all queries if it holds for that one.
        self.fastest: Floats = np.zeros(size)
        #: The sum of omega_in epsilon, mAh/s.
        self.drain_mah_s: Floats = np.zeros(size)
        #: The latency Lambda of a query on a resource is its weight there times this factor, which all queries share.
        self.factor: list[float] = [self._factor(r, 0, 0.0) for r in range(size)]
        #: The same as an array.
        self.factors: Floats = np.array(self.factor)

    def place(self, key: Key, kind: int, w_in: float, r: int) -> None:
        """A query comes to r."""
        assert key not in self.hosted[r], f"{key} runs on {r} already"
        self.hosted[r][key] = (kind, w_in)
        lam = float(self.lam_sum_s[r]) + self._lam[kind][r]
        drain = float(self.drain_mah_s[r]) + w_in * float(self.eps_mah[kind, r])
        self._set(r, lam, drain, max(float(self.fastest[r]), w_in))

    def remove(self, key: Key, r: int) -> None:
        """A query leaves r."""
        lam, fastest = self.without(key, r)
        del self.hosted[r][key]
        drain = 0.0
        for kind, w_in in self.hosted[r].values():
            drain += w_in * float(self.eps_mah[kind, r])
        self._set(r, lam, drain, fastest)

    def _set(self, r: int, lam_sum_s: float, drain_mah_s: float, fastest: float) -> None:
        m = len(self.hosted[r])
        self.count[r] = m
        self.lam_sum_s[r], self.drain_mah_s[r], self.fastest[r] = lam_sum_s, drain_mah_s, fastest
        self.service_s[r] = (1 + self.overheads.of(r, m)) * lam_sum_s
        self.factor[r] = self.factors[r] = self._factor(r, m, lam_sum_s)

    def without(self, key: Key, r: int) -> tuple[float, float]:
        """The sum of lambda, s, and the greatest omega_in, events/s, on r but for one query."""
        lam = fastest = 0.0
        for other, (kind, w_in) in self.hosted[r].items():
            if other != key:
                lam += self._lam[kind][r]
                fastest = max(fastest, w_in)
        return lam, fastest

    def energy_mah(self) -> Floats:
        """The left side of C3, mAh; 0 for a cloud machine."""
        return np.asarray(self.recharge_s * (self.base_mah_s + self.drain_mah_s))

    def broken(self) -> Mask:
        """The resources where a query breaks C2, or that break C3."""
        return np.asarray((self.fastest * self.service_s >= 1) | (self.energy_mah() > self.battery_mah))

    def service_with(self, kind: int) -> Floats:
        """The service time of each resource, s, if a query of this type came to it."""
        return np.asarray((1 + self.overheads.with_one_more(self.count)) * (self.lam_sum_s + self.lam_s[kind]))

    def latency_with(self, kind: int, service_s: Floats) -> Floats:
        """Lambda of that query on each resource, s; `service_s` is that of `service_with`."""
        if self.fabric.mode == "shared":
            return service_s
        if self.fabric.mode == "overhead":
            return np.asarray(self.lam_s[kind] * (1 + self.overheads.with_one_more(self.count)))
        return np.asarray(self.lam_s[kind])

    def latency_on(self, kind: int, r: int) -> float:
        """Lambda of a query of this type that runs on r, s."""
        return self.weight(kind, r) * self.factor[r]

    def weight(self, kind: int, r: int) -> float:
        """A query's part of its own latency on r: that is `weight` times the `factor` of r."""
        return 1.0 if self.fabric.mode == "shared" else self._lam[kind][r]

    def _factor(self, r: int, m: int, lam_sum_s: float) -> float:
        """The factor of r if m queries ran there with this sum of lambda, s."""
        if self.fabric.mode == "exclusive":
            return 1.0
        together = 1 + self.overheads.of(r, m)
        return together if self.fabric.mode == "overhead" else together * lam_sum_s

    def factor_beside(self, kind: int, r: int) -> float:
        """The factor of r if one more query of this type came."""
        return self._factor(r, len(self.hosted[r]) + 1, float(self.lam_sum_s[r]) + self._lam[kind][r])

    def factor_without(self, key: Key, r: int) -> float:
        """The factor of r if one query left."""
        return self._factor(r, len(self.hosted[r]) - 1, self.without(key, r)[0])

    def factors_beside(self, service_s: Floats) -> Floats:
        """The factor of each resource if one more query came; `service_s` is that of `service_with`."""
        if self.fabric.mode == "shared":
            return service_s
        if self.fabric.mode == "overhead":
            return np.asarray(1 + self.overheads.with_one_more(self.count))
        return np.ones(len(self.factor))

    def holds_without(self, key: Key, r: int) -> bool:
        """Whether C2 holds on r after one query left: it may not, if the overhead of fewer queries is greater."""
        lam, fastest = self.without(key, r)
        return fastest * ((1 + self.overheads.of(r, len(self.hosted[r]) - 1)) * lam) < 1

    def allowed(self, kind: int, w_in: float, service_s: Floats) -> Mask:
        """The resources that break neither C2 nor C3, for the query or for the others, if it came to them."""
        keeps_up = np.maximum(self.fastest, w_in) * service_s < 1
        energy = self.recharge_s * (self.base_mah_s + (self.drain_mah_s + w_in * self.eps_mah[kind]))
        return np.asarray(keeps_up & (energy <= self.battery_mah))

    def allows(self, kind: int, w_in: float, r: int) -> bool:
        """The same for one resource."""
        m = len(self.hosted[r]) + 1
        service_s = (1 + self.overheads.of(r, m)) * (float(self.lam_sum_s[r]) + self._lam[kind][r])
        if not max(float(self.fastest[r]), w_in) * service_s < 1:
            return False
        drain = float(self.drain_mah_s[r]) + w_in * float(self.eps_mah[kind, r])
        return float(self.recharge_s[r]) * (float(self.base_mah_s[r]) + drain) <= float(self.battery_mah[r])

    def transfer_from(self, r: int, event_bytes: float) -> Floats:
        """l + 8 delta / beta from r to each resource, s; 0 to itself."""
        here = self._home[r]
        found: Floats = (self.latency_s[here] + event_bytes * self.s_per_byte[here])[self.site]
        found[r] = 0.0
        return found

    def transfer_to(self, r: int, event_bytes: float) -> Floats:
        """The same from each resource to r."""
        here = self._home[r]
        found: Floats = (self.latency_s[:, here] + event_bytes * self.s_per_byte[:, here])[self.site]
        found[r] = 0.0
        return found

    def transfer_s(self, r: int, s: int, event_bytes: float) -> float:
        """The same from r to s."""
        if r == s:
            return 0.0
        here, there = self._home[r], self._home[s]
        return self._latency_rows[here][there] + event_bytes * self._per_byte_rows[here][there]


class Overheads:
    """pi(m) of both classes in one table, [class, m]; the last value of each holds on."""

    def __init__(self, fabric: Fabric, is_edge: Mask) -> None:
        longest = max(len(fabric.pi_edge), len(fabric.pi_cloud))
        rows = [(*row, *[row[-1]] * (longest - len(row))) for row in (fabric.pi_cloud, fabric.pi_edge)]
        self._rows: list[tuple[float, ...]] = [rows[edge] for edge in is_edge.tolist()]
        self.table: Floats = np.array(rows)
        self._row = is_edge.astype(np.int64)
        self._most = longest - 1

    def of(self, r: int, m: int) -> float:
        return self._rows[r][min(m, self._most)]

    def at(self, r: NDArray[np.int64], m: NDArray[np.int64]) -> Floats:
        """The same for arrays of resources and of numbers of queries."""
        return np.asarray(self.table[self._row[r], np.minimum(m, self._most)])

    def with_one_more(self, count: NDArray[np.int64]) -> Floats:
        return np.asarray(self.table[self._row, np.minimum(count + 1, self._most)])
