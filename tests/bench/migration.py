"""Silence at the sink: Leeward's migration against Storm's `rebalance`, in one run on one local cluster.

    python tests/bench/migration.py [--quick]

A is tests/cluster/counting on Leeward, B the same operators on plain streamparse (tests/bench/stock), placed by Storm's
default scheduler. Each runs alone at 200 tuples/s on 4 supervisors of 2 slots while its count is scaled out and moved;
B by Storm's `rebalance` with the wait that Storm takes by default. Prints a table and writes
`out/bench/migration.json`. Exit code 1 if Leeward lost, doubled, forgot or reordered anything; speed is reported only.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from machine import facts
from rich.console import Console
from rich.table import Table
from sink_log import assess
from systems import KEYS, RATE, ROOT, WORKERS, Ours, Plain, System, begin_run, stage, write_result

from leeward.local import ClusterSpec, LocalCluster
from leeward.local.install import find_install

BAR = 1 / 3  # of Storm's silence
ADDED_UP = ("lost", "doubled", "keys_lost", "forgotten", "out_of_order")
NOTES = (
    "silence_s: the largest time between two arrivals at the sink, from the event until the stream was steady again",
    "best, median and all silences of a case; bars compare best with best",
    "lost: numbers that never arrived; doubled: arrivals of a number that had arrived before; keys_lost: keys of "
    f"{KEYS} whose count went back; forgotten: numbers that were in a count once and are in none any more",
    "the plain source takes its numbers from Redis, so its own restart costs no number; Leeward's keeps them as state",
    "Storm cannot move one executor: 'move' is a rebalance with another number of workers, after which its scheduler "
    "deals all executors anew; moved and count_nodes say what that did",
    "Leeward's scale-out puts the new replica on a node without a task of the count, and its move the only one: both "
    "really move executors (rebalance, the plugin's placement); 'tables only' uses a warm task where it is",
    "both run with the cluster's storm.yaml, which makes Storm react faster than as shipped (passes every second, "
    "1 s between SIGTERM and SIGKILL); message timeout and so the rebalance wait are Storm's own 30 s",
)


def main() -> None:
    options = _options()
    folder, console = begin_run(options.folder)
    repetitions = 1 if options.quick else options.repetitions
    began = time.time()
    spec = ClusterSpec(dir=folder / "cluster", base_port=options.base_port, supervisors=4, slots=2)
    with LocalCluster(spec) as cluster:
        load = os.getloadavg()[0]
        console.print(f"cluster of 4 supervisors x 2 slots is up; {repetitions} repetition(s), load {load:.1f}")
        ours = Ours(cluster, stage(ROOT / "tests/cluster/counting", folder / "ours", with_leeward=True), folder)
        with ours.running(), ours.serving():
            _repeat(ours, repetitions, console)
        plain = Plain(cluster, stage(ROOT / "tests/bench/stock", folder / "plain", with_leeward=False), folder)
        with plain.running():
            _repeat(plain, repetitions, console)
        cases = [*_cases(ours), *_cases(plain)]
        versions = _versions(cluster)
    result = _result(cases, versions, repetitions, time.time() - began)
    _print(result, console)
    write_result(options.out, result, console)
    sys.exit(0 if result["ours_exact"] else 1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one repetition (about five minutes)")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--base-port", type=int, default=23000, help="first port of the cluster")
    parser.add_argument("--folder", type=Path, default=ROOT / "out" / "bench" / "migration", help="run folder, emptied")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench" / "migration.json")
    return parser.parse_args()


def _repeat(system: System, repetitions: int, console: Console) -> None:
    for number in range(1, repetitions + 1):
        seen = len(system.events)
        system.repetition()
        names = ", ".join(event.case for event in system.events[seen:])
        console.print(f"{system.name}, repetition {number}: {names}")


def _cases(system: System) -> list[dict[str, Any]]:
    """Everything measured on one system, by case in the order of the first occurrence."""
    damages = assess(system.sink.rows(), [event.window for event in system.events])
    cases: dict[str, dict[str, Any]] = {}
    for event, damage in zip(system.events, damages, strict=True):
        run = {
            **asdict(damage), "exact": damage.exact, "how": event.how, "moved": dict(event.moved),
            "count_nodes": event.count_nodes, "quiet_gap_s": event.quiet_gap_s, "load": event.load, **event.details,
        }  # fmt: skip
        case = cases.setdefault(event.case, {"system": "leeward" if system.name == Ours.name else "storm",
                                             "case": event.case, "runs": []})  # fmt: skip
        case["runs"].append(run)
    for case in cases.values():
        runs = case.pop("runs")
        silences = [run["silence_s"] for run in runs]
        case |= {"best_s": min(silences), "median_s": round(median(silences), 3), "all_s": silences}
        case |= {name: sum(run[name] for run in runs) for name in ADDED_UP}
        case["runs"] = runs
    return list(cases.values())


def _result(cases: list[dict[str, Any]], versions: dict[str, str], repetitions: int, seconds: float) -> dict[str, Any]:
    by_name = {(case["system"], case["case"]): case for case in cases}
    ours = [run for case in cases if case["system"] == "leeward" for run in case["runs"]]
    ours_exact = all(run["exact"] and run["answer"].startswith("done") for run in ours)
    bars = {}
    for name in ("scale-out", "move"):
        leeward_s, storm_s = by_name["leeward", name]["best_s"], by_name["storm", name]["best_s"]
        ratio = leeward_s / storm_s
        bars[name] = {
            "leeward_s": leeward_s, "storm_s": storm_s, "ratio": round(ratio, 4), "at_most": round(BAR, 4),
            "met": ratio <= BAR,
        }  # fmt: skip
    return {
        "command": f"python tests/bench/migration.py ({repetitions} repetitions, {seconds:.0f} s)",
        "settings": {
            "tuples_per_s": RATE, "keys": KEYS, "supervisors": 4, "slots": 2, "workers": WORKERS,
            "storm_rebalance_wait": "unset: topology.message.timeout.secs, 30 s as Storm ships it",
        },
        "versions": versions,
        "machine": facts(),
        "bars": bars,
        "ours_exact": ours_exact,
        "cases": cases,
        "notes": list(NOTES),
    }  # fmt: skip


def _versions(cluster: LocalCluster) -> dict[str, str]:
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr.splitlines()[0]
    with cluster.open_redis() as client:
        server = str(client.info("server")["redis_version"])
    return {
        "storm": find_install().storm_version, "java": java, "redis": server, "python": platform.python_version(),
        "leeward": version("leeward"), "streamparse": version("streamparse"), "pystorm": version("pystorm"),
    }  # fmt: skip


def _print(result: dict[str, Any], console: Console) -> None:
    headings = ("system", "case", "best", "median", "all", "lost", "doubled", "keys reset", "forgotten", "moved")
    table = Table(*headings, box=None)
    for case in result["cases"]:
        moved = [sum(run["moved"].values()) for run in case["runs"]]
        table.add_row(
            case["system"], case["case"], f"{case['best_s']:.2f} s", f"{case['median_s']:.2f} s",
            " ".join(f"{value:.2f}" for value in case["all_s"]), str(case["lost"]), str(case["doubled"]),
            str(case["keys_lost"]), str(case["forgotten"]), " ".join(map(str, moved)),
        )  # fmt: skip
    console.print(table)
    for name, bar in result["bars"].items():
        console.print(
            f"{name}: {bar['leeward_s']:.2f} s against {bar['storm_s']:.2f} s, a share of {bar['ratio']:.3f}; "
            f"bar {bar['at_most']:.3f} {'met' if bar['met'] else 'NOT met'}"
        )
    damage = "nothing" if result["ours_exact"] else "SOMETHING: see the JSON"
    console.print(f"Leeward lost, doubled, forgot or reordered {damage}")


if __name__ == "__main__":
    main()
