"""A router's cost on the data path: three replicas by rotation and by a router, in turns on one local cluster.

    python tests/bench/routers.py [--rounds 2] [--rate 5000]

Source, a stateless worker with three replicas, sink, on three workers, so many tuples of 20 characters in a second, or
with 0 as many as they take: no replica is slow, so a router has nothing to win here. Prints a table and writes
`out/bench/routers.json`. Speed is reported only.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import mean
from typing import Any

from machine import facts
from rich.table import Table
from systems import ROOT, begin_run, write_result
from throughput import OPTIONS, Bench, await_rows, difference, rows_of

from leeward.local import ClusterSpec, LocalCluster

CASES = {"rotated": "scale_rotated", "routed": "scale_routed"}
REPLICAS, BYTES = 3, 20
WARM_UP_S, MEASURE_S = 20.0, 15.0


def main() -> None:
    options = _options()
    folder, console = begin_run(options.folder)
    runs: dict[str, list[dict[str, float]]] = {case: [] for case in CASES}
    spec = ClusterSpec(dir=folder / "cluster", base_port=options.base_port, supervisors=3, slots=1)
    with LocalCluster(spec) as cluster:
        bench = Routers(cluster, folder)
        for number in range(options.rounds):
            for case in CASES if number % 2 == 0 else reversed(CASES):
                runs[case].append(bench.measure(case, options.rate))
                console.print(f"round {number + 1}, {case}: {runs[case][-1]}")
    figures = {
        case: {name: mean(run.get(name, 0.0) for run in of) for name in max(of, key=len)} for case, of in runs.items()
    }
    table = Table("", *figures["rotated"], box=None)
    for case, of in figures.items():
        table.add_row(case, *(f"{of.get(name, 0.0):.1f}" for name in figures["rotated"]))
    console.print(table)
    result: dict[str, Any] = {
        "command": f"python tests/bench/routers.py --rounds {options.rounds} --rate {options.rate}",
        "machine": facts(), "replicas": REPLICAS, "bytes": BYTES, "options": list(OPTIONS), "mean": figures,
        "runs": runs,
    }  # fmt: skip
    write_result(options.out, result, console)


def _means(runs: list[dict[str, float]]) -> dict[str, float]:
    """Over the runs in which tuples came."""
    whole = [run for run in runs if len(run) > 1] or runs
    return {name: mean(run[name] for run in whole) for name in whole[0]}


class Routers(Bench):
    """`load/topologies/scale_rotated` and `scale_routed`, one after the other."""

    def measure(self, case: str, rate: int) -> dict[str, float]:
        """Tuples/s at the sink, their delays, ms, and processor time for each, us, in workers and Python tasks."""
        out = self.file("out")
        options = [
            f"load.bytes={BYTES}", f"load.rate={rate}", f"load.out={out}", f"leeward.replicas={{work: {REPLICAS}}}",
            "leeward.service_times=none", *(["load.delays=true"] if rate else []),
        ]  # fmt: skip
        with self.running(CASES[case], ROOT / "tests/bench/load", options):
            await_rows(out, case)
            time.sleep(WARM_UP_S)
            skip, cpu = len(rows_of(out)), self._cpu()
            time.sleep(MEASURE_S)
            rows, spent = rows_of(out)[skip - 1 :], difference(self._cpu(), cpu)
        if len(rows) < 2:
            return {"tuples/s": 0.0}  # none came: the sink waited for a pulse all the time
        tuples, delays = rows[-1][1] - rows[0][1], sorted(delay for row in rows[1:] for delay in row[3])
        found = {"tuples/s": tuples / (rows[-1][0] - rows[0][0])}
        found |= {f"{kind}, us": seconds / tuples * 1e6 for kind, seconds in spent.items()}
        if delays:
            found |= {"p50, ms": delays[len(delays) // 2], "p99, ms": delays[len(delays) * 99 // 100]}
        return {name: round(value, 2) for name, value in found.items()}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--rate", type=int, default=5000, help="tuples/s; 0: as many as they take")
    parser.add_argument("--base-port", type=int, default=27800, help="first port of the cluster")
    parser.add_argument("--folder", type=Path, default=ROOT / "out/bench/routers", help="run folder, emptied")
    parser.add_argument("--out", type=Path, default=ROOT / "out/bench/routers.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
