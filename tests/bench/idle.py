"""What a topology costs that has nothing to do, and how long its workers take to start; under five minutes.

    python tests/bench/idle.py [--rounds 2]

One local cluster, three workers, fourteen Python tasks of which eleven are warm (tests/bench/load/topologies/idle.py).
In each round: with our wait strategy; with Storm's own, as Storm ships it; with ours but without the class-data archive
(its start only). Idle: processor time of the workers and of the Python tasks for each second, and memory (PSS) of each
warm task, over 20 s. Start: from the launch of the first worker (of its log writer, which starts it) to the first tuple
at the sink, and the processor time of all processes until then. The best of the rounds counts. Prints a table and
writes `out/bench/idle.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from machine import cpu_s
from rich.console import Console
from rich.table import Table
from systems import ROOT, kill, stage

from leeward.local import ClusterSpec, LocalCluster, build_jar, processes, submit_topology
from leeward.local.install import find_install
from leeward.local.places import checkout

SETTLE_S, IDLE_S, START_S = 8.0, 20.0, 90.0
OPTIONS = ("topology.workers=3",)
#: As in Storm's defaults.yaml; storm_conf/storm.yaml has fewer turns in its first levels.
STORMS = (
    *(f"topology.{of}.wait.strategy=org.apache.storm.policy.WaitStrategyProgressive" for of in ("spout", "bolt")),
    "topology.bolt.wait.progressive.level1.count=1",
    "topology.bolt.wait.progressive.level2.count=1000",
)
#: As in storm_conf/storm.yaml, which this replaces.
LOG_WRITER = "-Xmx16m -XX:+UseSerialGC -XX:TieredStopAtLevel=1"
CASES = ("ours", "storm's waits", "no archive")


def main() -> None:
    options = _options()
    folder = options.folder.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 132)
    began, load = time.time(), os.getloadavg()[0]
    runs: dict[str, list[dict[str, Any]]] = {case: [] for case in CASES}
    spec = ClusterSpec(dir=folder / "cluster", base_port=options.base_port, supervisors=3, slots=1)
    _list_classes(spec, folder, console)
    with LocalCluster(spec) as cluster:
        for number in range(options.rounds):
            for case in CASES:
                runs[case].append(run := _run(cluster, folder, case, number))
                console.print(f"round {number + 1}, {case}: {run}")
    result = _result(runs, options.rounds, time.time() - began, load)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    _print(result, console)
    console.print(f"written: {options.out}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--base-port", type=int, default=31000, help="first port of the cluster")
    parser.add_argument("--folder", type=Path, default=ROOT / "out/bench/idle", help="run folder, emptied")
    parser.add_argument("--out", type=Path, default=ROOT / "out/bench/idle.json")
    return parser.parse_args()


def _list_classes(spec: ClusterSpec, folder: Path, console: Console) -> None:
    """Without an archive yet, run the topology once on a cluster of its own: the next one makes it."""
    cluster = LocalCluster(spec)
    with cluster:
        if "-XX:SharedArchiveFile" in (spec.dir / "conf" / "storm.yaml").read_text():
            return
        console.print("listing the classes of a worker, for an archive")
        with _running(cluster, folder, "listing", ()) as out:
            _await(out)


def _run(cluster: LocalCluster, folder: Path, case: str, number: int) -> dict[str, Any]:
    more: tuple[str, ...] = ()
    if case == "storm's waits":
        more = STORMS
    elif case == "no archive":  # but the JDK's own, without classes of Storm; the last of two such options holds
        plain = f"-XX:SharedArchiveFile={find_install().java.resolve().parents[1]}/lib/server/classes.jsa"
        more = (f"topology.worker.childopts={plain}", f"topology.worker.logwriter.childopts={LOG_WRITER} {plain}")
    with _running(cluster, folder, f"idle-{CASES.index(case)}-{number}", more) as out:
        first = _await(out)
        workers, tasks = list(cluster.worker_pids().values()), cluster.python_pids()
        writers = [pid for pid in map(processes.parent_of, workers) if pid]
        jvms = [*workers, *writers]
        run: dict[str, Any] = {
            "start_s": round(first - min(map(processes.started_s, writers)), 2),
            "start_jvm_cpu_s": round(sum(map(cpu_s, jvms)), 2),
            "start_python_cpu_s": round(sum(map(cpu_s, tasks)), 2),
        }
        if case == "no archive":
            return run
        time.sleep(SETTLE_S)
        before = sum(map(cpu_s, jvms)), sum(map(cpu_s, tasks)), time.monotonic()
        time.sleep(IDLE_S)
        seconds = time.monotonic() - before[2]
        run["idle_jvm_cpu"] = round((sum(map(cpu_s, jvms)) - before[0]) / seconds, 4)
        run["idle_python_cpu"] = round((sum(map(cpu_s, tasks)) - before[1]) / seconds, 4)
        warm = [processes.memory_bytes(pid) / 1e6 for pid, task in tasks.items() if task.target.endswith(".Work")]
        run |= {"warm_task_mb": round(median(warm), 1), "warm_tasks_mb": [round(size, 1) for size in sorted(warm)]}
        run["jvm_mb"] = round(median(processes.memory_bytes(pid) / 1e6 for pid in workers), 1)
        return run


@contextmanager
def _running(cluster: LocalCluster, folder: Path, name: str, more: tuple[str, ...]) -> Iterator[Path]:
    staged, jar, out = folder / "load", folder / "idle.jar", folder / f"{name}.out"
    if not jar.exists():
        stage(ROOT / "tests/bench/load", staged, with_leeward=True)
        build_jar(jar, src=staged / "src", worker_jar=checkout() / "build/jars/leeward-worker.jar")
    options = [f"load.out={out}", *OPTIONS, *more]
    submit_topology("idle", name=name, nimbus=cluster.nimbus, jar=jar, project=staged, options=options)
    try:
        yield out
    finally:
        kill(cluster, name)


def _await(out: Path) -> float:
    """When the first tuple arrived."""
    until = time.monotonic() + START_S
    while not (out.exists() and out.read_text().endswith("\n")):
        if time.monotonic() > until:
            raise SystemExit(f"waited {START_S:g} s for the first tuple in {out}")
        time.sleep(0.05)
    return float(out.read_text().split()[0])


def _result(runs: dict[str, list[dict[str, Any]]], rounds: int, seconds: float, load: float) -> dict[str, Any]:
    best = {
        case: {name: min(run[name] for run in of) for name, value in of[0].items() if not isinstance(value, list)}
        for case, of in runs.items()
    }
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr.splitlines()[0]
    return {
        "command": f"python tests/bench/idle.py --rounds {rounds} ({seconds:.0f} s)",
        "settings": {"workers": 3, "python_tasks": 14, "warm_tasks": 11, "idle_s": IDLE_S, "storm's waits": STORMS},
        "versions": {"storm": find_install().storm_version, "java": java, "python": platform.python_version()},
        "machine": {"cores": os.cpu_count(), "system": platform.platform(), "load": load},
        "best": best,
        "runs": runs,
    }


ROWS = {
    "idle_jvm_cpu": "idle: three workers and their log writers, s/s",
    "idle_python_cpu": "idle: fourteen Python tasks, s/s",
    "warm_task_mb": "memory of a warm task (PSS), MB",
    "jvm_mb": "memory of a worker (PSS), MB",
    "start_s": "launch to first tuple, s",
    "start_jvm_cpu_s": "processor until then: workers, s",
    "start_python_cpu_s": "processor until then: Python tasks, s",
}


def _print(result: dict[str, Any], console: Console) -> None:
    table = Table("", *CASES, box=None)
    for name, title in ROWS.items():
        table.add_row(title, *(f"{best[name]:g}" if name in best else "" for best in result["best"].values()))
    console.print(table)


if __name__ == "__main__":
    main()
