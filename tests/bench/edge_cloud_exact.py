"""How long a proof of one dataflow's best placement takes, and how far TopSet, TopSet/P and ours are from it.

    python tests/bench/edge_cloud_exact.py [--nodes 100] [--proofs 5] [--seed 1] [--limit 30] [--flavour ref|th]

Dataflows of 4 to 8 queries of generated catalogues arrive, one at a time, on an empty board and on one where TopSet/P
has placed two queries for each resource.  A cost is the dataflow's makespan and what the others take longer; a gap is
the share by which a method's cost is above that of the optimum.  Seconds are of the wall; the first proof, which loads
the solver, is not counted.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from leeward.policies.edge_cloud.exact.outcome import Infeasible, Optimal
from leeward.policies.edge_cloud.exact.solve import best_placement
from leeward.policies.edge_cloud.facts import fabric_of
from leeward.policies.edge_cloud.methods.polished import polished
from leeward.policies.edge_cloud.methods.topset import Placed, Refused, topset
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.planning.board import Board
from leeward.policies.edge_cloud.settings import EdgeCloudSettings
from leeward.policies.edge_cloud.workload.catalogue import at_sensors, catalogue
from leeward.policies.edge_cloud.workload.setup import REF, TH, Flavour, cluster

FLAVOURS = {flavour.name: flavour for flavour in (REF, TH)}
METHODS: dict[str, Callable[[Board, Dataflow], Placed | Refused]] = {
    "TopSet": lambda board, dataflow: topset(board, dataflow, penalty=False),
    "TopSet/P": lambda board, dataflow: topset(board, dataflow, penalty=True),
    "polished": lambda board, dataflow: polished(board, dataflow, random.Random(0)),
}
SIZES = range(4, 9)
#: Queries for each resource on the loaded board, and refusals after which it is called full.
LOAD, REFUSALS = 2.0, 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """One dataflow: its size, the seconds of its proof, whether that came to an end, and the gap of each method."""

    size: int
    seconds: float
    proven: bool
    gaps: dict[str, float | None]


def small_dataflows(flavour: Flavour, edges: int, size: int, rng: random.Random) -> Iterator[Dataflow]:
    """Dataflows of this size, of one catalogue after the other, with sensors on random edges."""
    while True:
        for dataflow in catalogue(flavour, rng):
            if len(dataflow.queries) == size:
                yield at_sensors(dataflow, "arriving", edges, rng)


def loaded(board: Board, flavour: Flavour, rng: random.Random) -> int:
    """Fills the board with TopSet/P; the queries on it."""
    entries, edges, refused, count = catalogue(flavour, rng), len(board.fabric.edges), 0, 0
    while count < LOAD * len(board.fabric.resources) and refused < REFUSALS:
        entry = rng.choices(entries, [1 / len(one.queries) for one in entries])[0]
        dataflow = at_sensors(entry, f"d{len(board.active)}", edges, rng)
        if isinstance(topset(board, dataflow, penalty=True), Placed):
            count += len(dataflow.queries)
        else:
            refused += 1
    return count


def prove(board: Board, dataflow: Dataflow, limit_s: float) -> Proof | None:
    """None if the dataflow fits nowhere."""
    started = time.perf_counter()
    best = best_placement(board, dataflow, time_limit_s=limit_s)
    seconds = time.perf_counter() - started
    if isinstance(best, Infeasible) or best.total is None:
        return None
    before, gaps = board.total(), dict.fromkeys(METHODS)
    for name, method in METHODS.items():
        if isinstance(method(board, dataflow), Placed):
            gaps[name] = (board.total() - before) / (best.total - before) - 1
            board.remove(dataflow.name)
    return Proof(size=len(dataflow.queries), seconds=seconds, proven=isinstance(best, Optimal), gaps=gaps)


def table(title: str, proofs: list[Proof]) -> Table:
    """A row for each size, and one for all."""
    found = Table(title=f"{title}; gaps in %, mean / most")
    for head in ("queries", "proofs", "proven", "s median", "s most", *METHODS):
        found.add_column(head, justify="right")
    for name, some in [
        *((str(size), [one for one in proofs if one.size == size]) for size in SIZES),
        ("all", proofs),
    ]:
        if some:
            seconds = [one.seconds for one in some]
            found.add_row(
                name,
                str(len(some)),
                str(sum(one.proven for one in some)),
                f"{statistics.median(seconds):.2f}",
                f"{max(seconds):.2f}",
                *(_gap([one.gaps[method] for one in some]) for method in METHODS),
            )
    return found


def _gap(gaps: list[float | None]) -> str:
    known = [gap for gap in gaps if gap is not None]
    return f"{100 * statistics.mean(known):.1f} / {100 * max(known):.0f}" if known else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--proofs", type=int, default=5, help="of each size")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds of each call of the solver")
    parser.add_argument("--flavour", choices=FLAVOURS, default="ref")
    options = parser.parse_args()
    rng, flavour = random.Random(options.seed), FLAVOURS[options.flavour]
    fabric = fabric_of(*cluster(options.nodes, flavour, rng), EdgeCloudSettings())
    full = Board(fabric)
    count = loaded(full, flavour, rng)
    boards = {"empty board": Board(fabric), f"{count} queries of {len(full.active)} dataflows": full}
    edges = len(fabric.edges)
    prove(boards["empty board"], next(small_dataflows(flavour, edges, 6, random.Random(0))), options.limit)
    for name, board in boards.items():
        proofs = []
        for size in SIZES:
            dataflows = small_dataflows(flavour, edges, size, rng)
            found = (prove(board, next(dataflows), options.limit) for _ in range(options.proofs))
            proofs += [one for one in found if one is not None]
        Console(width=110).print(table(f"{flavour.name}, {options.nodes} resources, {name}", proofs))


if __name__ == "__main__":
    main()
