"""The dataflows that arrive: 39 of 4 to 50 queries from a seed, and the flows of RIoTBench by name.

The paper draws its 39 with a generator of random task graphs; they are not public.  These are ours: sizes spread
evenly on a logarithmic scale, 1 to 4 sources of 100 events/s together, 1 to 3 sinks, at most 5 outputs of a query,
types drawn evenly.  A dataflow whose queries or sinks get more events than one device processes is drawn again: the
paper, too, makes sure that a valid placement exists.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace

from leeward.policies.edge_cloud.benchmark import NUMBER, TYPES
from leeward.policies.edge_cloud.model.dataflow import Dataflow
from leeward.policies.edge_cloud.model.formulas import rates
from leeward.policies.edge_cloud.model.values import Query
from leeward.policies.edge_cloud.workload.setup import Flavour

SIZES = (4, 50)
DATAFLOWS = 39
RATE = 100.0
FAN_OUT = 5
#: Most events/s that reach a query, and a sink.  The few machines of the cloud run the sinks of all dataflows, and the
#: fastest query on a machine bounds how many others fit beside it (C2).
QUERY_MOST, SINK_MOST = 900.0, 200.0
#: Tries for one dataflow; the bounds refuse fewer than one draw in two.
TRIES = 1000


def catalogue(flavour: Flavour, rng: random.Random) -> tuple[Dataflow, ...]:
    """The 39, by size; sources have no sensor yet (`at_sensors`)."""
    low, high = (math.log(size) for size in SIZES)
    sizes = [round(math.exp(low + (high - low) * step / (DATAFLOWS - 1))) for step in range(DATAFLOWS)]
    return tuple(_drawn(f"d{number:02}", size, flavour, rng) for number, size in enumerate(sizes))


def _drawn(name: str, size: int, flavour: Flavour, rng: random.Random) -> Dataflow:
    for _ in range(TRIES):
        found = _random(name, size, flavour, rng)
        w_in, _ = rates(found)
        limits = (SINK_MOST if query.kind == "sink" else QUERY_MOST for query in found.queries)
        if all(rate <= limit for rate, limit in zip(w_in, limits, strict=True)):
            return found
    raise AssertionError(f"no dataflow of {size} queries within the bounds in {TRIES} tries")


def _random(name: str, size: int, flavour: Flavour, rng: random.Random) -> Dataflow:
    sources = rng.randint(1, 1 if size < 6 else 2 if size < 10 else 4)
    sinks = rng.randint(1, 1 if size < 6 else 2 if size < 10 else 3)
    edges = random_edges(size, sources, sinks, rng)
    queries = [_query(v, size, sources, sinks, flavour, rng) for v in range(size)]
    return Dataflow(name=name, queries=tuple(queries), edges=tuple(sorted(edges)))


def _query(v: int, size: int, sources: int, sinks: int, flavour: Flavour, rng: random.Random) -> Query:
    number = rng.randrange(len(TYPES))
    low, high = TYPES[number].selectivity
    selectivity = rng.uniform(low, high)
    least, most = flavour.event_bytes
    event_bytes = round(math.exp(rng.uniform(math.log(least), math.log(most))))
    if v < sources:
        return Query(type=number, selectivity=1.0, event_bytes=event_bytes, kind="source", rate=RATE / sources)
    kind = "sink" if v >= size - sinks else "query"
    return Query(type=number, selectivity=selectivity, event_bytes=event_bytes, kind=kind)  # type: ignore[arg-type]


def random_edges(size: int, sources: int, sinks: int, rng: random.Random) -> set[tuple[int, int]]:
    """Sources come first, sinks last; every query reads from one or two before it, mostly from near ones."""
    edges: set[tuple[int, int]] = set()
    outputs = [0] * size

    def join(u: int, v: int) -> None:
        if (u, v) not in edges:
            edges.add((u, v))
            outputs[u] += 1

    inner = size - sinks
    for v in range(sources, size):
        before = [u for u in range(min(v, inner)) if outputs[u] < FAN_OUT]
        for _ in range(rng.choice((1, 1, 1, 2))):
            # the square root of an even draw is near 1 more often than near 0
            join(before[int(len(before) * math.sqrt(rng.random()))], v)
    for u in range(inner):
        if not outputs[u]:
            # a query without a reader gets a later one, which then has an input more
            join(u, rng.randrange(max(u + 1, sources), size))
    return edges


def at_sensors(dataflow: Dataflow, name: str, edges: int, rng: random.Random) -> Dataflow:
    """The dataflow as it arrives under a name of its own: each source on a random one of the edges 0, 1, ..."""
    queries = tuple(
        replace(query, pin=rng.randrange(edges)) if query.kind == "source" else query for query in dataflow.queries
    )
    return replace(dataflow, name=name, queries=queries)


#: The dataflows of RIoTBench after their published shape: task, type of query, and the tasks that it reads from.  One
#: sink stands for two stores that get the same.
_RIOTBENCH: dict[str, tuple[tuple[str, str, tuple[int, ...]], ...]] = {
    "etl": (
        ("source", "", ()), ("senml-parse", "filter-most", (0,)), ("range-filter", "filter-most", (1,)),
        ("bloom-filter", "filter-half", (2,)), ("interpolate", "sliding-10", (3,)), ("join", "batch-10", (4,)),
        ("annotate", "filter-join", (5,)), ("csv-to-senml", "filter-most", (6,)), ("publish", "filter-most", (7,)),
    ),
    "stats": (
        ("source", "", ()), ("senml-parse", "filter-most", (0,)), ("bloom-filter", "filter-half", (1,)),
        ("average", "batch-10", (2,)), ("kalman", "sliding-10", (2,)), ("regression", "sliding-60", (4,)),
        ("distinct-count", "batch-60", (2,)), ("plot", "batch-group", (3, 5, 6)), ("publish", "filter-most", (7,)),
    ),
    "pred": (
        ("source", "", ()), ("senml-parse", "filter-most", (0,)), ("decision-tree", "pattern-3", (1,)),
        ("average", "batch-10", (1,)), ("regression", "sliding-60", (1,)), ("error", "filter-join", (3, 4)),
        ("publish", "filter-most", (2, 5)),
    ),
    "train": (
        ("source", "", ()), ("table-read", "sliding-600", (0,)), ("regression-train", "batch-group", (1,)),
        ("annotate", "filter-join", (1,)), ("tree-train", "batch-group", (3,)), ("write", "filter-most", (2, 4)),
    ),
}  # fmt: skip
RIOTBENCH = tuple(sorted(_RIOTBENCH))


def riotbench(name: str) -> Dataflow:
    """A flow of RIoTBench: its tasks as the nearest types of our benchmark, at 100 events/s of 1,000 bytes."""
    rows = _RIOTBENCH[name]
    queries = []
    for v, (_, kind, parents) in enumerate(rows):
        if not parents:
            queries.append(Query(type=0, selectivity=1.0, event_bytes=1000.0, kind="source", rate=RATE))
            continue
        number = NUMBER[kind]
        low, high = TYPES[number].selectivity
        role = "query" if any(v in row[2] for row in rows) else "sink"
        queries.append(Query(type=number, selectivity=(low + high) / 2, event_bytes=1000.0, kind=role))  # type: ignore[arg-type]
    edges = tuple((u, v) for v, row in enumerate(rows) for u in row[2])
    return Dataflow(name=name, queries=tuple(queries), edges=edges)
