"""Latencies of queries at a rate and under a discipline, and the largest rate at which all classes keep theirs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from leeward.policies.dssp.disciplines import Ordered
from leeward.policies.dssp.model.budgets import task_percent, unloaded_s
from leeward.policies.dssp.model.distributions import Shape, distribution
from leeward.policies.dssp.model.weights import Lateness, learned
from leeward.policies.dssp.simulation.kernel_nodes import serve
from leeward.policies.dssp.simulation.kernel_queues import CONSTANT, EXPONENTIAL, UNIFORM
from leeward.policies.dssp.simulation.setup import PERCENT, Floats, Ints, Queries, queries

SHAPES = {"uniform": UNIFORM, "exponential": EXPONENTIAL, "constant": CONSTANT}
#: Stages of an Erlang distribution that is as variable.
STAGES = {"uniform": 3, "exponential": 1, "constant": 50}
#: Queries at the beginning that do not count: queues are still empty.
WARM = 0.05
#: The search for a rate ends at this part of it.
NEAR = 0.002
#: Weights are learned in so many rounds, each of other queries: so many times fewer than those that are measured.
ROUNDS, FEWER = 4, 5
#: Between the seeds of two rounds, beyond those of all studies.
APART = 1_000_003


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtasks:
    """The facts that a discipline orders by (`disciplines.Dated`): those of all tasks, as arrays."""

    arrived: Floats
    rank: Ints
    due: Floats
    unloaded: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Of the queries that count."""

    latency_s: Floats
    kind: Ints
    passed: float  #: part of the queries of which some subtask was served before one of an earlier deadline

    def worst(self, objectives: Floats) -> float:
        """Of the classes the largest percentile over its objective; 1 or less where all keep theirs."""
        return max(self.percentile(n) / float(x) for n, x in enumerate(objectives) if (self.kind == n).any())

    def percentile(self, kind: int) -> float:
        """The 99th of a class, s."""
        return float(np.percentile(self.latency_s[self.kind == kind], PERCENT))

    @staticmethod
    def spare(count: int) -> int:
        """So many of `count` queries may be late before the percentile is, whatever the others need."""
        return count - 1 - math.floor((count - 1) * PERCENT / 100 - 1e-6)

    def lateness(self, kind: int, objective_s: float) -> Lateness:
        """Of a class."""
        latencies = self.latency_s[self.kind == kind]
        return Lateness(late=int((latencies > objective_s).sum()), allowed=len(latencies) * (1 - PERCENT / 100))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sustained:
    """The largest rate, queries/s, at which every class keeps its objective, and what it is like then."""

    rate: float
    outcome: Outcome


class Simulation:
    """The same queries at any rate and under any discipline."""

    def __init__(self, queries: Queries) -> None:
        self.queries = queries

    def outcome(self, rate: float, discipline: Ordered) -> Outcome:
        """Latencies at `rate` queries/s, with the weights that a provider has learned at that rate."""
        return self.weighted(rate, discipline, self._learned(rate, discipline))

    def kept(self, rate: float, discipline: Ordered) -> Outcome | None:
        """The same; None if a class does not keep its objective, which is often seen before the end."""
        outcome = self._served(rate, discipline, self._learned(rate, discipline), kept=True)
        objectives = np.array([one.objective_s for one in self.queries.setting.classes])
        return outcome if outcome is not None and outcome.worst(objectives) <= 1 else None

    def _learned(self, rate: float, discipline: Ordered) -> list[float]:
        weights = self.weights(rate, discipline)
        return [weights.get(one.name, 1.0) for one in self.queries.setting.classes]

    def weights(self, rate: float, discipline: Ordered) -> dict[str, float]:
        """Of the classes, learned from other queries; empty if the discipline does not go by them.

        A provider goes on learning while queries come.  Here nodes are simulated one after the other, so it is done
        before.
        """
        found: dict[str, float] = {}
        for number, one in enumerate(self._rounds if discipline.weighs else (), 1):
            classes = one.queries.setting.classes
            outcome = one.weighted(rate, discipline, [found.get(kind.name, 1.0) for kind in classes])
            late = {kind.name: outcome.lateness(n, kind.objective_s) for n, kind in enumerate(classes)}
            found = learned(found, late, number=number)
        return found

    @cached_property
    def _rounds(self) -> list[Simulation]:
        ones = self.queries
        count = max(1, len(ones.kind) // FEWER)
        return [Simulation(queries(ones.setting, count, ones.seed + APART * n)) for n in range(1, ROUNDS + 1)]

    def weighted(self, rate: float, discipline: Ordered, weights: Sequence[float]) -> Outcome:
        """Latencies at `rate` queries/s, with these weights of the classes."""
        outcome = self._served(rate, discipline, weights, kept=False)
        assert outcome is not None
        return outcome

    def _served(self, rate: float, discipline: Ordered, weights: Sequence[float], *, kept: bool) -> Outcome | None:
        """`kept`: only if every class may have kept its objective; None if one has not."""
        ones, setting = self.queries, self.queries.setting
        arrived = np.cumsum(ones.gaps) / rate
        comes = arrived[ones.query] + ones.before
        order = np.lexsort((comes, ones.domain))
        query = ones.query[order]
        starts = np.searchsorted(ones.domain[order], np.arange(len(setting.means) + 1))
        items = Subtasks(
            arrived=arrived[query], rank=np.array([one.rank for one in setting.classes])[ones.kind[query]],
            due=(arrived + ones.objectives())[query], unloaded=self.unloaded[order],
        )  # fmt: skip
        ends, passed = np.zeros(len(arrived)), np.zeros(len(arrived), np.int64)
        counts = slice(int(WARM * len(arrived)), None)
        longest = np.full(len(arrived), np.inf)
        if kept:
            longest[counts] = ones.objectives()[counts]
        whole = serve(
            ones.seed, SHAPES[setting.shape], setting.means, starts, query, comes[order], ones.after[order],
            ones.first_node, ones.nodes, np.asarray(discipline.key(items), float),
            np.asarray(weights, float)[ones.kind], STAGES[setting.shape] if discipline.weighs else 0,
            arrived, longest, ones.kind, self._spare(counts), ends, passed,
        )  # fmt: skip
        if not whole:
            return None
        return Outcome(
            latency_s=(ends - arrived)[counts], kind=ones.kind[counts], passed=float((passed[counts] > 0).mean())
        )

    def _spare(self, counts: slice) -> Ints:
        """By class."""
        found = np.bincount(self.queries.kind[counts], minlength=len(self.queries.setting.classes))
        return np.array([Outcome.spare(int(count)) for count in found])

    @cached_property
    def unloaded(self) -> Floats:
        """x_u of each task, s."""
        ones, shape = self.queries, self.queries.setting.shape
        percents = np.array([task_percent(PERCENT, int(k)) for k in range(1, len(ones.setting.means) + 1)])
        cases, which = np.unique(
            np.column_stack((self._places[1], ones.domains[ones.query])), axis=0, return_inverse=True
        )
        found = [unloaded_of(self._means(*self._places[0][place]), float(percents[k - 1]), shape) for place, k in cases]
        return np.array(found)[which.ravel()]

    @cached_property
    def _places(self) -> tuple[Ints, Ints]:
        """Distinct (domain, first node, count of nodes), and which of them each task has."""
        ones = self.queries
        rows = np.column_stack((ones.domain, ones.first_node[ones.query], ones.nodes[ones.query]))
        places, which = np.unique(rows, axis=0, return_inverse=True)
        return places, which.ravel()

    def _means(self, domain: int, first: int, count: int) -> Floats:
        return self.queries.setting.means[domain, first : first + count]

    def sustained(self, discipline: Ordered, low: float, high: float) -> Sustained:
        """The largest rate, queries/s, between two, at which every class keeps its objective, by bisection."""
        best: Outcome | None = None
        while high - low > NEAR * high:
            middle = (low + high) / 2
            outcome = self.kept(middle, discipline)
            low, high, best = (low, middle, best) if outcome is None else (middle, high, outcome)
        return Sustained(rate=low, outcome=best or self.outcome(low, discipline))


def unloaded_of(means: Floats, percent: float, shape: Shape) -> float:
    """x_u, s, of nodes with these mean execution times: by inversion where they are alike, else by the formula."""
    if len(set(means)) > 1:
        return unloaded_s(percent, [distribution(float(mean), shape) for mean in means])
    each, mean = math.pow(percent / 100, 1.0 / len(means)), float(means[0])
    return {"uniform": 2 * mean * each, "exponential": -mean * math.log1p(-each), "constant": mean}[shape]
