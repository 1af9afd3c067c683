"""The paper's two settings: the testbed of 4 domains with 8 nodes, and up to 60 domains with 300 nodes.

Readings are those of the spec of DSSP, section 3.  On the testbed execution times are uniform on (0, 2m) with a mean m
that differs in domain 4; a query with one node has a random one of each of its domains.  At scale the fan-out of each
query is normal in per mille of a tier's size, drawn again until it is within 1 and the tier, rounded, and centred: the
middle nodes have every query.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leeward.policies.dssp.model.distributions import Shape

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Mean times of the segments, s.
QUERY_EVALUATION, TASK_EVALUATION, COMMUNICATION, EXECUTION, AGGREGATION = 2.57e-3, 1.33e-3, 2.87e-3, 97.64e-3, 0.31e-3
#: Domain 4 of the testbed: its halves are this part faster and slower than the others.
SPREAD = 0.35
PERCENT = 99.0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryClass:
    """A class of queries. `domains` and `nodes`: (mean, sigma) of the fan-out, per mille; or a fixed number each."""

    name: str
    share: float
    objective_s: float
    rank: int  #: of strict priority
    domains: tuple[float, float] | int
    nodes: tuple[float, float] | int
    only: int | None = None  #: the domain of all its queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Domains with the mean execution times of their nodes, s, and the classes of queries."""

    name: str
    means: Floats
    shape: Shape
    classes: tuple[QueryClass, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """Queries and their tasks, drawn from a seed; `gaps` are arrivals at a rate of one a second."""

    setting: Setting
    seed: int
    kind: Ints  #: number of the class
    gaps: Floats
    domains: Ints  #: k_q
    nodes: Ints  #: k_t
    first_node: Ints
    query: Ints  #: of each task
    domain: Ints
    before: Floats  #: delays of a task until it is at the nodes, s
    after: Floats  #: and from there on

    def objectives(self) -> Floats:
        """Of each query, s."""
        return np.array([one.objective_s for one in self.setting.classes])[self.kind]


def testbed(shape: Shape = "uniform", spread: float = SPREAD) -> Setting:
    """Table I and II of the paper; `spread`: of domain 4."""
    means = np.full((4, 8), EXECUTION)
    means[3, :4] *= 1 - spread
    means[3, 4:] *= 1 + spread
    return Setting(
        name=f"testbed, {shape}", means=means, shape=shape,
        classes=(
            QueryClass(name="1.1", share=0.1, objective_s=0.5, rank=0, domains=1, nodes=1),
            QueryClass(name="1.2", share=0.4, objective_s=0.5, rank=0, domains=1, nodes=1, only=3),
            QueryClass(name="2", share=0.4, objective_s=0.8, rank=1, domains=4, nodes=1),
            QueryClass(name="3", share=0.1, objective_s=1.2, rank=2, domains=4, nodes=8),
        ),
    )  # fmt: skip


def scale(domains: int, nodes: int) -> Setting:
    """Section V-C of the paper."""
    fan_out = (
        ((100.0, 100.0), (100.0, 50.0)), ((300.0, 50.0), (300.0, 100.0)), ((500.0, 200.0), (500.0, 200.0)),
        ((700.0, 200.0), (700.0, 300.0)),
    )  # fmt: skip
    classes = tuple(
        QueryClass(name=str(n + 1), share=share, objective_s=x, rank=n, domains=d, nodes=t)
        for n, (share, x, (d, t)) in enumerate(zip((0.1, 0.4, 0.3, 0.2), (1.2, 1.8, 2.4, 3.0), fan_out, strict=True))
    )
    means = np.full((domains, nodes), EXECUTION)
    return Setting(name=f"{domains} x {nodes} nodes", means=means, shape="exponential", classes=classes)


def queries(setting: Setting, count: int, seed: int) -> Queries:
    """So many, with all that is random but the execution times."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(len(setting.classes), size=count, p=[one.share for one in setting.classes])
    tiers = setting.means.shape
    domains, first_domain = _fan_out([one.domains for one in setting.classes], kind, tiers[0], rng)
    nodes, first_node = _fan_out([one.nodes for one in setting.classes], kind, tiers[1], rng)
    for number, one in enumerate(setting.classes):
        if one.only is not None:
            first_domain[kind == number] = one.only
    gaps, evaluation = rng.exponential(1.0, count), rng.exponential(QUERY_EVALUATION, count)
    query = np.repeat(np.arange(count), domains)
    offset = np.arange(len(query)) - np.repeat(np.cumsum(domains) - domains, domains)
    before = evaluation[query] + rng.exponential(COMMUNICATION, len(query))
    before += rng.exponential(TASK_EVALUATION, len(query))
    after = rng.exponential(AGGREGATION, len(query)) + rng.exponential(AGGREGATION, count)[query]
    return Queries(
        setting=setting, seed=seed, kind=kind, gaps=gaps, domains=domains, nodes=nodes, first_node=first_node,
        query=query, domain=first_domain[query] + offset, before=before, after=after,
    )  # fmt: skip


def _fan_out(
    wanted: list[tuple[float, float] | int], kind: Ints, size: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """How many of a tier each query has, and the first of them: a random one alone, several in the middle."""
    count = np.empty(len(kind), np.int64)
    for number, one in enumerate(wanted):
        of = np.flatnonzero(kind == number)
        count[of] = one if isinstance(one, int) else _normal(*one, size, len(of), rng)
    first = (size - count) // 2
    alone = np.isin(kind, [number for number, one in enumerate(wanted) if one == 1])
    first[alone] = rng.integers(0, size, alone.sum())
    return count, first


def _normal(mean: float, sigma: float, size: int, count: int, rng: np.random.Generator) -> Ints:
    found = np.rint(rng.normal(mean, sigma, count) * size / 1000)
    while len(wrong := np.flatnonzero((found < 1) | (found > size))):
        found[wrong] = np.rint(rng.normal(mean, sigma, len(wrong)) * size / 1000)
    return found.astype(np.int64)
