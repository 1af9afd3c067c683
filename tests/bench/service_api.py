"""The service's reports and API at the size of a large cluster: memory, cost of an event, time of an answer.

    python tests/bench/service_api.py [--topologies 50] [--components 40] [--nodes 1000]

So many topologies, each of so many components with three replicas, tell of full rings (600 points and 1,440 minutes)
on a clock of the program's own, through the sink that `leeward serve --http` has.  Their policies, coordinators and
connections are not part of it.  Then each path is asked 20 times on loopback by one client.  Prints a table and writes
`out/bench/service_api.json`; speed is reported only.  Exit code 1 if an answer is wrong.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from itertools import pairwise
from pathlib import Path

import httpx
from machine import facts
from rich.console import Console
from rich.table import Table
from service_client import asked

from leeward.adapters.events import Fan
from leeward.adapters.http.server import Where, answering
from leeward.cli._beside import EXPLAIN
from leeward.control.report.knowledge import Knowledge
from leeward.control.report.rings import COARSE, FINE
from leeward.sim.memory import ListSink, ManualClock

ROOT = Path(__file__).resolve().parents[2]


def tell(knowledge: Knowledge, clock: ManualClock, topologies: int, components: int, nodes: int) -> float:
    """Fill the rings; microseconds that an event `measured` took."""
    names = [f"c{n:02}" for n in range(components)]
    seen = {
        "components": [{"id": n, "tasks": 8, "max_replicas": 8, "source": n == "c00"} for n in names],
        "streams": [[one, other] for one, other in pairwise(names)],
        "nodes": [{"id": f"n{n:04}", "slots": 4, "capacity": 16} for n in range(nodes)],
    }
    for topology in range(topologies):
        name = f"t{topology:02}"
        knowledge.emit("service_started", {"topology": name, "topology_id": f"{name}-1", "policy": "edrp"})
        knowledge.emit("leading", {"topology": name})
        knowledge.emit("cluster_seen", {"topology": name, **json.loads(json.dumps(seen))})
    events, spent = 0, 0.0
    for point in range(FINE + COARSE):
        clock.time += 60.0 if point < COARSE else 1.0
        for topology in range(topologies):
            fields = measured(f"t{topology:02}", names, topology + point, nodes)
            began = time.perf_counter()
            knowledge.emit("measured", fields)
            spent, events = spent + time.perf_counter() - began, events + 1
    return 1e6 * spent / events


def measured(topology: str, names: list[str], number: int, nodes: int) -> dict[str, object]:
    placed = {name: {f"n{(number + 7 * at + k) % nodes:04}": 1 for k in range(3)} for at, name in enumerate(names)}
    return {
        "topology": topology, "state": "idle", "phase": "run", "epoch": 1, "response_s": 0.2, "cost_per_h": 120.0,
        "rates": {name: 100.0 + at for at, name in enumerate(names)},
        "service_rates": dict.fromkeys(names, 80.0), "queued": {name: at for at, name in enumerate(names)},
        "backlog": 3, "state_bytes": 1000, "deployment": placed,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("topologies", 50), ("components", 40), ("nodes", 1000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    clock, sink = ManualClock(now=1e9), ListSink()
    knowledge = Knowledge(clock)
    event_us = tell(knowledge, clock, options.topologies, options.components, options.nodes)
    where = Where(host="127.0.0.1", port=0)
    with answering(where, "", knowledge, Fan(sink, knowledge), explain=EXPLAIN):
        url = sink.of("http_listens")[0]["url"]
        paths = ("api/topologies", "api/topologies/t00", "api/topologies/t00/nodes", "api/topologies/t00/plan",
                 "api/topologies/t00/series?figure=rate", "api/topologies/t00/series", "metrics")  # fmt: skip
        with httpx.Client(base_url=url, timeout=60) as session:
            rows = [asked(session, path) for path in paths]
    memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    result = {
        **vars(options), "memory_mb": round(memory_mb), "event_us": round(event_us, 1), "rows": rows,
        "machine": facts(),
    }  # fmt: skip
    out = ROOT / "out/bench/service_api.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")
    table = Table("path", "median, ms", "slowest, ms", "bytes", box=None)
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    console = Console(highlight=False)
    console.print(f"{options.topologies} topologies x {options.components} components, {options.nodes} nodes")
    console.print(f"memory of the process {memory_mb:.0f} MB; an event `measured` {event_us:.0f} us")
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
