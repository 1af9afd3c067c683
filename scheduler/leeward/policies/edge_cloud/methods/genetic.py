"""GA-Incremental and GA-Global (paper, section 4.2): a genetic algorithm looks for placements.

A chromosome is the resource of each query.  Constraints are not built in: a chromosome that breaks some is penalised,
and the best of those that break none is kept.  Sources stay where their sensors are.

The paper prints no number of its algorithm, and neither how parents are chosen.  Here the better of two random
chromosomes becomes a parent, two parents exchange what is behind a random query, and each query of a child is drawn
anew with a small probability.  The paper draws a sink's resource from all; this makes most chromosomes of many
dataflows break C1, so here sinks are drawn from the cloud, unless `sinks_anywhere` is set.

GA-Global joins the dataflows in the paper by a dummy source and a dummy sink, and so minimises the largest makespan;
here it minimises the sum, which is the objective (8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.methods.outcome import Placed, Refused, hopeless
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.fabric import Fabric
from leeward.policies.edge_cloud.model.formulas import rates
from leeward.policies.edge_cloud.model.values import Query
from leeward.policies.edge_cloud.planning.arrays import Ints
from leeward.policies.edge_cloud.planning.board import Board
from leeward.policies.edge_cloud.planning.loads import Floats, Loads
from leeward.policies.edge_cloud.planning.population import Placing


@dataclass(frozen=True, slots=True, kw_only=True)
class Genetic:
    """The numbers of the algorithm.  Construction checks them (`FieldError`)."""

    #: Chromosomes in a generation, even.
    population: int = 50
    #: Most generations.
    generations: int = 200
    #: The algorithm ends after this share of them without gain (the paper's 50 %).
    patience: float = 0.5
    #: The best chromosomes, which the next generation has again; fewer than `population`, even.
    elite: int = 2
    #: Probability that two parents exchange a part.
    crossover: float = 0.9
    #: Queries of a child that are drawn anew, on average.
    mutation: float = 1.0
    #: The makespan counts as longer by this share of it for each query that breaks a constraint.
    penalty: float = 1.0
    #: Whether a sink may be drawn on an edge, as in the paper.
    sinks_anywhere: bool = False

    def __post_init__(self) -> None:
        for name, least, most in (
            ("population", 2, None), ("generations", 1, None), ("patience", 0, 1), ("elite", 0, self.population - 2),
            ("crossover", 0, 1), ("mutation", 0, None), ("penalty", 0, None),
        ):  # fmt: skip
            value = getattr(self, name)
            if value < least or (most is not None and value > most):
                bounds = f"{least} or more" if most is None else f"{least} to {most}"
                raise FieldError(name, value, "is out of bounds", remedy=f"give {bounds}")
        for name in ("population", "elite"):
            if getattr(self, name) % 2:
                raise FieldError(name, getattr(self, name), "children come in pairs", remedy="give an even number")


def gai(board: Board, dataflow: Dataflow, rng: np.random.Generator, numbers: Genetic) -> Placed | Refused:
    """GA-Incremental: puts an arriving dataflow on the board, on what the others leave; these do not move."""
    board.add(dataflow)
    found = _run(board.loads, (dataflow,), rng, numbers)
    if found.valid is not None:
        board.rearrange(dataflow.name, found.valid.tolist())
        # the sums of the algorithm may differ from those of the board in their last digit
        if not board.loads.broken()[found.valid].any():
            return Placed(placement=board.placement(dataflow.name))
    board.remove(dataflow.name)
    return _refusal(board.fabric, dataflow, found.broken)


def gag(board: Board, dataflow: Dataflow, rng: np.random.Generator, numbers: Genetic) -> Placed | Refused:
    """GA-Global: puts an arriving dataflow on the board, and places all others anew."""
    dataflows = (*(one.dataflow for one in board.active.values()), dataflow)
    board.add(dataflow)
    found = _run(Loads(board.fabric), dataflows, rng, numbers)
    if _apply(board, dataflows, found):
        return Placed(placement=board.placement(dataflow.name))
    board.remove(dataflow.name)
    before = sum(len(one.queries) for one in dataflows[:-1])
    return _refusal(board.fabric, dataflow, found.broken[found.broken >= before] - before)


def gag_again(board: Board, rng: np.random.Generator, numbers: Genetic) -> bool:
    """GA-Global after a departure: places all dataflows anew; False, and the board as it was, if it finds nothing."""
    dataflows = tuple(one.dataflow for one in board.active.values())
    if not dataflows:
        return False
    return _apply(board, dataflows, _run(Loads(board.fabric), dataflows, rng, numbers))


def _apply(board: Board, dataflows: Sequence[Dataflow], found: _Found) -> bool:
    """Puts a valid placement of all dataflows on the board; False, and the board as it was, if it is not valid."""
    if found.valid is None:
        return False
    loads, places = Loads(board.fabric), iter(found.valid.tolist())
    rows = [[next(places) for _ in dataflow.queries] for dataflow in dataflows]
    for dataflow, row in zip(dataflows, rows, strict=True):
        for v, (query, w_in, r) in enumerate(zip(dataflow.queries, rates(dataflow)[0], row, strict=True)):
            if query.kind != "source":
                loads.place((dataflow.name, v), query.type, w_in, r)
    # the sums of the algorithm may differ from those of the board in their last digit
    if (loads.broken() & (loads.count > 0)).any():
        return False
    for dataflow, row in zip(dataflows, rows, strict=True):
        board.rearrange(dataflow.name, row)
    return True


def _refusal(fabric: Fabric, dataflow: Dataflow, broken: Ints) -> Refused:
    """`broken`: the queries of this dataflow that broke a constraint; with none, it was others that did."""
    reason = hopeless(fabric, dataflow)
    v = int(broken[0]) if len(broken) else 0
    if reason is None and len(broken):
        kind = dataflow.queries[v].kind
        reason = f"queries[{v}] = {kind!r}: the genetic algorithm found no placement of all queries within the bounds."
    elif reason is None:
        reason = "The genetic algorithm found no placement of this dataflow and all others within the bounds."
    return Refused(query=v, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The end of a run."""

    #: The best chromosome that breaks no constraint; None: there was none.
    valid: Ints | None
    #: The queries that break a constraint in the best chromosome of all; where none does, of no meaning.
    broken: Ints


def _run(loads: Loads, dataflows: Sequence[Dataflow], rng: np.random.Generator, numbers: Genetic) -> _Found:
    """Looks for a placement of these dataflows beside what the loads have."""
    genes = _Genes(loads.fabric, [query for dataflow in dataflows for query in dataflow.queries], numbers)
    if not genes.choices.all():
        return _Found(valid=None, broken=np.flatnonzero(genes.choices == 0))
    placing = Placing(loads, dataflows)
    valid, broken, least_s, least = None, np.array([], dtype=np.int64), np.inf, np.inf
    chromosomes, idle = genes.draw(rng, numbers.population), 0
    for _ in range(numbers.generations):
        total_s, breaks = placing.evaluate(chromosomes)
        wrong = breaks.sum(axis=1)
        costs = total_s * (1 + numbers.penalty * wrong)
        best = int(np.where(wrong == 0, total_s, np.inf).argmin())
        if wrong[best] == 0 and total_s[best] < least_s:
            valid, least_s = chromosomes[best].copy(), total_s[best]
        best, idle = int(costs.argmin()), idle + 1
        if costs[best] < least:
            least, broken, idle = costs[best], np.flatnonzero(breaks[best]), 0
        if idle >= max(1, numbers.patience * numbers.generations):
            break
        chromosomes = _children(chromosomes, costs, genes, rng, numbers)
    return _Found(valid=valid, broken=broken)


def _children(chromosomes: Ints, costs: Floats, genes: _Genes, rng: np.random.Generator, numbers: Genetic) -> Ints:
    """The next generation: selection, crossover and mutation."""
    size, queries = chromosomes.shape
    pairs = (size - numbers.elite) // 2
    one, other = rng.integers(size, size=(2, 2 * pairs))
    parents = chromosomes[np.where(costs[other] < costs[one], other, one)]
    mothers, fathers = parents[:pairs], parents[pairs:]
    cut = np.where(rng.random(pairs) < numbers.crossover, rng.integers(1, queries, size=pairs), queries)
    behind = np.arange(queries) >= cut[:, None]
    children = np.concatenate([np.where(behind, fathers, mothers), np.where(behind, mothers, fathers)])
    changed = rng.random(children.shape) < numbers.mutation / queries
    children = np.where(changed, genes.draw(rng, len(children)), children)
    elite = chromosomes[costs.argsort(kind="stable")[: numbers.elite]]
    return np.concatenate([elite, children])


class _Genes:
    """The resources that each query may be drawn from."""

    def __init__(self, fabric: Fabric, queries: Sequence[Query], numbers: Genetic) -> None:
        everywhere = range(len(fabric.resources))
        some = {"source": fabric.edges, "query": everywhere, "sink": fabric.clouds}
        if numbers.sinks_anywhere:
            some["sink"] = everywhere
        rows = [some[query.kind] if query.pin is None else (query.pin,) for query in queries]
        #: Their number.
        self.choices: Ints = np.array([len(row) for row in rows])
        self._start: Ints = np.cumsum([0, *self.choices[:-1]])
        self._resources: Ints = np.array([r for row in rows for r in row], dtype=np.int64)

    def draw(self, rng: np.random.Generator, count: int) -> Ints:
        """So many chromosomes."""
        drawn = rng.integers(self.choices, size=(count, len(self.choices)))
        return np.asarray(self._resources[self._start + drawn])
