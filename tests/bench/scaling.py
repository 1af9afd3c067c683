"""Scaling is capacity: tuples per second at saturation with one, two and four replicas, on one local cluster.

    python tests/bench/scaling.py [--only rotated keyed computed] [--rounds 1]

rotated, keyed: a stateless worker whose tuples rotate, and one with state by key, of which every replica serves
200 tuples/s (emulated: it sleeps). computed: the stateless one, which computes for 5 ms instead, with one and two
replicas, as this is meant for two cores. The source always sends more than the replicas can take. Prints a table and
writes `out/bench/scaling.json`. Exit code 1 if there is no figure; speed is reported only.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from pathlib import Path
from typing import Any

from load.src.load_parts import compute
from rich.console import Console
from rich.table import Table
from systems import ROOT, begin_run, write_result
from throughput import Bench, await_rows, rows_of

from leeward.local import ClusterSpec, LocalCluster

#: Of one replica, at least, for each number of them.
BARS = {"rotated": {2: 1.9, 4: 3.7}, "keyed": {2: 1.9, 4: 3.7}, "computed": {2: 1.7}}
#: What the source sends, tuples/s: more than the replicas of a case can take.
RATE = {"rotated": 1000, "keyed": 1000, "computed": 450}
COMPUTE_S = 0.005  # of processor for each tuple, so that the operator is what takes the processors
WARM_UP_S, MEASURE_S = 30.0, 15.0  # Java compiles for half a minute


def main() -> None:
    options = _options()
    folder, console = begin_run(options.folder)
    rounds_for_1ms = _calibrate()
    rates: dict[str, dict[int, float]] = {case: {} for case in options.only}
    spec = ClusterSpec(dir=folder / "cluster", base_port=options.base_port, supervisors=4, slots=1)
    with LocalCluster(spec) as cluster:
        bench = Scaling(cluster, folder)
        for number in range(1, options.rounds + 1):
            for case in options.only:
                for replicas in (1, *BARS[case]):
                    rate = bench.saturate(case, replicas, rounds_for_1ms)
                    rates[case][replicas] = max(rate, rates[case].get(replicas, 0.0))
                    console.print(f"round {number}, {case}, {replicas} replicas: {rate:.0f} tuples/s")
    result = {
        "command": f"python tests/bench/scaling.py --rounds {options.rounds}",
        "machine": {"cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()},
        "emulated_tuples_per_s": 200,
        "computed_s": COMPUTE_S,
        "tuples_per_s": rates,
        "bars": _bars(rates),
    }
    _print(result["bars"], console)
    write_result(options.out, result, console)


class Scaling(Bench):
    """The workers of `load/topologies/scale_*`, one after the other."""

    def saturate(self, case: str, replicas: int, rounds: int) -> float:
        """Tuples/s at the sink."""
        out = self.file("out")
        emulated = case != "computed"
        options = [
            "load.bytes=20", f"load.rate={RATE[case]}", f"load.out={out}",
            f"topology.workers={4 if emulated else 2}",
            f"leeward.replicas={{work: {replicas}}}", f"leeward.service_times={'emulated' if emulated else 'none'}",
            f"load.rounds={0 if emulated else rounds}",
        ]  # fmt: skip
        topology = "scale_keyed" if case == "keyed" else "scale_rotated"
        with self.running(topology, ROOT / "tests/bench/load", options):
            await_rows(out, topology)
            time.sleep(WARM_UP_S + MEASURE_S)
            rows = rows_of(out)
        rows = [row for row in rows if row[0] > rows[-1][0] - MEASURE_S]
        return (rows[-1][1] - rows[0][1]) / (rows[-1][0] - rows[0][0])


def _calibrate() -> int:
    """Rounds of `compute` that take COMPUTE_S here; the best of several."""
    rounds = 10_000
    best = min(_timed(rounds) for _ in range(20))
    return round(rounds * COMPUTE_S / best)


def _timed(rounds: int) -> float:
    began = time.perf_counter()
    compute(rounds)
    return time.perf_counter() - began


def _bars(rates: dict[str, dict[int, float]]) -> list[dict[str, Any]]:
    return [
        {
            "case": case, "replicas": replicas, "tuples_per_s": round(rates[case][replicas], 1),
            "of_one": round(rates[case][replicas] / rates[case][1], 3), "at_least": bar,
            "met": rates[case][replicas] >= bar * rates[case][1],
        }
        for case in rates
        for replicas, bar in BARS[case].items()
    ]  # fmt: skip


def _print(bars: list[dict[str, Any]], console: Console) -> None:
    table = Table("case", "replicas", "tuples/s", "of one", "bar", "", box=None)
    for bar in bars:
        verdict = "met" if bar["met"] else "NOT met"
        shown = f"{bar['tuples_per_s']:.0f}", f"{bar['of_one']:.2f}", f">= {bar['at_least']:g}"
        table.add_row(bar["case"], str(bar["replicas"]), *shown, verdict)
    console.print(table)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", nargs="+", choices=list(BARS), default=list(BARS))
    parser.add_argument("--base-port", type=int, default=27600, help="first port of the cluster")
    parser.add_argument("--folder", type=Path, default=ROOT / "out/bench/scaling", help="run folder, emptied")
    parser.add_argument("--out", type=Path, default=ROOT / "out/bench/scaling.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
