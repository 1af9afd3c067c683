"""What a reconfiguration does to a stream of 1,000 tuples/s over 10,000 keys: rebalance, restart, handover; in one run.

    python tests/bench/handover.py [--quick] [--many 1000] [--state 1 10 100 1000] [--only state]

tests/cluster/counting runs on three workers, one a node, of four nodes. Its count is scaled out, scaled in and moved
(a) by Storm's `rebalance` with its default wait, on plain streamparse (tests/bench/stock);
(b) by the papers' restart, with executors moved and, separately, where only tables change;
(c) by handover to a warm task on another node; and, of its own ("brought"), to a node to which one is brought first.
Measured at the sink: the longest silence, the delay of tuples, what was lost or doubled. Then `--many` handovers in a
row, and `--state` MB moved at once (below 100 MB several times), beside the time that the same bytes alone need on
loopback, and that the least steps need at ZooKeeper: while the tuples go on, and on a quiet machine. Prints a table,
writes `out/bench/handover.json`; exit code 1 if Leeward lost, doubled or reordered anything.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from delays import delays_in, p999_of, quantiles, worst_of
from handover_systems import MOVES, QUIET_S, Big, Brought, Handover, Restart, Stock
from loopback import loopback_s
from machine import add_halt_poll_option, facts, halt_polling, stolen_s
from migration import _versions
from rich.console import Console
from rich.table import Table
from sink_log import Window, assess
from steps import LEAST, steps_s
from systems import ROOT, System, begin_run, stage, write_result

from leeward.local import ClusterSpec, LocalCluster

PARTS = ("handover", "brought", "restart", "state", "rebalance")
NODES, MANY, WARM_UP_S = 4, 1000, 15.0
CALM = 0.01  # of the processors' time may be the host's in a repetition that tells of us
REDIS_MB = 4096  # two checkpoints of the largest state
STATE_MB = (0, 1, 10, 100, 1000)  # 0: the counts alone, a tenth of one: what a move takes however little goes
DELAY_S, P999_S, TIMES = 0.100, 0.025, 50  # the bars of (c), and against (b)
STATE_DELAY_S, STATE_TIMES = 0.250, 3.0  # of a large state: the longest delay, and its time against the bytes' alone
NOTES = (
    "silence_s: the largest time between two arrivals at the sink, from the request until the stream was steady again",
    "delay: from the source's emit to the sink; in (a) and (b) the source itself stops or starts anew, so what they "
    "cost shows as silence",
    "p999_s: 99.9th percentile of the delays from 2 s before the request until the stream was steady again; of a case "
    "in all its repetitions together",
    "stolen_s: of the processors, by the machine's host, while it was measured; a stall of the host is a delay here",
    "answered_s: from the request until it was answered, of (c) what a handover takes however little it moves: writes "
    "and reads at ZooKeeper, one after the other; the median of the repetitions",
    "calm: of the repetitions in which the host took less than a hundredth of the processors' time",
    "(b) 'executors': the new place has no task of the count, so Storm restarts workers, as in the papers; "
    "'tables': a warm task is there, only tables change",
    "quiet: the same topology in the same run while nothing is done to it; checkpoints go on",
    "state: asked for right after a checkpoint, as a plan waits for the end of one that is being written; of several "
    "moves the best time and the worst delays; its bytes alone as often, and the best time, too",
    "loopback_s: one process writes as many bytes, in pieces of 128 KiB, and another reads them, while nothing else "
    "runs: through the cluster's Redis, which keeps them whoever ends, and through a plain TCP socket; the "
    "bar is the former's (packing and unpacking Python's values alone takes ten times what a socket does)",
    "0 MB: the same topology with its counts alone: what a move of the others takes beside their bytes",
    "steps_s: what no handover can do without, and nothing else: to be asked for, announced, reported and answered, "
    "each written to ZooKeeper and read by another process before the next; the best of several, as of the moves",
    "zookeeper_sync: no: the local cluster's ZooKeeper answers before its disk has what was written; where it waits "
    "for the disk (--zookeeper-sync), each of these steps, and each of a handover's, takes that much longer",
)


def main() -> None:
    options = _options()
    folder, console = begin_run(options.folder)
    repetitions = 1 if options.quick else options.repetitions
    began, stolen = time.time(), stolen_s()
    cases: list[dict[str, Any]] = []
    many: dict[str, Any] = {}
    quiet: dict[str, float] = {}
    where = {"dir": folder / "cluster", "base_port": options.base_port}
    spec = ClusterSpec(
        **where, supervisors=NODES, slots=2, redis_mb=REDIS_MB, zookeeper_sync=options.zookeeper_sync
    )  # fmt: skip
    with halt_polling(options.halt_poll_us), LocalCluster(spec) as cluster:
        project = stage(ROOT / "tests/cluster/counting", folder / "ours", with_leeward=True)
        for kind, *settings in ((Handover, "live"), (Brought, "live", "warm_apart=true"), (Restart, "restart")):
            if kind.title not in options.only:
                continue
            (folder / kind.title).mkdir()
            system = kind(cluster, project, folder / kind.title)
            with system.running(), system.serving(*settings):
                time.sleep(WARM_UP_S)
                if isinstance(system, Brought):
                    system.separate()
                _repeat(system, repetitions, console)
                if isinstance(system, Handover):
                    quiet = system.quiet()
                if isinstance(system, Handover) and options.many:
                    many = system.many(options.many)
                    console.print(f"{options.many} handovers in {many['seconds']} s: {many['answers']}")
            cases += _cases(system)
            if isinstance(system, Handover) and options.many:
                many |= _measured(system, many.pop("window"))
        sizes = options.state if "state" in options.only else []
        big = [_big(cluster, project, folder, size, console) for size in sizes]
        if Stock.title in options.only:
            (folder / Stock.title).mkdir()
            plain = Stock(
                cluster, stage(ROOT / "tests/bench/stock", folder / "plain", with_leeward=False), folder / Stock.title
            )
            with plain.running():
                time.sleep(WARM_UP_S)
                _repeat(plain, 1, console)
            cases += _cases(plain)
        versions, machine = _versions(cluster), {**facts(), "stolen_s": round(stolen_s() - stolen)}
        machine["zookeeper_sync"] = "yes" if spec.zookeeper_sync else "no"
    result = _result(cases, quiet, many, big, versions, machine, repetitions, time.time() - began)
    _print(result, console)
    write_result(options.out, result, console)
    sys.exit(0 if result["ours_exact"] else 1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one repetition")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--many", type=int, default=MANY, help="handovers in a row (0: none)")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts of it")
    parser.add_argument(
        "--state", type=int, nargs="*", default=STATE_MB, help="moves of so many MB of state; 0: of the counts alone"
    )
    parser.add_argument("--zookeeper-sync", action="store_true", help="ZooKeeper waits for its disk")
    add_halt_poll_option(parser)
    parser.add_argument("--base-port", type=int, default=23000, help="first port of the cluster")
    parser.add_argument("--folder", type=Path, default=ROOT / "out" / "bench" / "handover", help="run folder, emptied")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench" / "handover.json")
    return parser.parse_args()


def _big(cluster: LocalCluster, project: Path, folder: Path, megabytes: int, console: Console) -> dict[str, Any]:
    where = folder / f"state-{megabytes}"
    where.mkdir()
    system = Big(cluster, project, where, megabytes)
    with system.running(), system.serving("live", "checkpoint_every_s=20", "checkpoint_s=60"):
        time.sleep(WARM_UP_S + 20.0)  # one checkpoint, which tells how much state there is
        told = system.moves()
        # the tuples go on, as during the move
        where = cluster.redis_url, cluster.secrets()
        told["loopback_busy_s"] = loopback_s(*where, told["bytes"], times=max(2, told["moves"]))
        told["steps_busy_s"] = steps_s(cluster.zookeeper, steps=LEAST, times=MOVES)
    cluster.open_redis().flushall()  # its checkpoints leave no room for others
    told["loopback_s"] = loopback_s(*where, told["bytes"], times=max(2, told["moves"]))
    told["steps_s"] = steps_s(cluster.zookeeper, steps=LEAST, times=MOVES)
    shown = (
        "megabytes", "moves", "answers", "seconds", "median_seconds", "loopback_s", "loopback_busy_s", "steps_s",
        "steps_busy_s", "bytes", "longest_s", "p999_s",
    )  # fmt: skip
    console.print({name: told[name] for name in shown})
    return told


def _repeat(system: System, repetitions: int, console: Console) -> None:
    for number in range(1, repetitions + 1):
        seen = len(system.events)
        system.repetition()
        names = ", ".join(event.case for event in system.events[seen:])
        console.print(f"{system.title}, repetition {number}: {names}")


def _measured(system: System, window: Window) -> dict[str, Any]:
    """Damage and delays in a window."""
    rows = system.sink.rows()
    (damage,) = assess(rows, [window])
    delays = delays_in(rows, window.began_s - 2.0, window.ended_s + 2.0)
    return {**asdict(damage), "exact": damage.exact, **quantiles(delays)}


def _cases(system: System) -> list[dict[str, Any]]:
    """Everything measured on one system, by case in the order of the first occurrence."""
    rows = system.sink.rows()
    damages = assess(rows, [event.window for event in system.events])
    cases: dict[str, list[tuple[dict[str, Any], list[float]]]] = {}
    for event, damage in zip(system.events, damages, strict=True):
        delays = delays_in(rows, event.window.began_s - 2.0, event.window.ended_s)
        processors_s = os.cpu_count() * (event.window.ended_s - event.window.began_s)
        run = {
            **asdict(damage), "exact": damage.exact, **quantiles(delays), "how": event.how,
            "moved": dict(event.moved), "quiet_gap_s": event.quiet_gap_s, "load": event.load, **event.details,
            "calm": event.details["stolen_s"] < CALM * processors_s,
        }  # fmt: skip
        cases.setdefault(event.case, []).append((run, delays))
    return [{"how": system.title, "case": case, **_together(measured)} for case, measured in cases.items()]


def _together(measured: Sequence[tuple[dict[str, Any], list[float]]]) -> dict[str, Any]:
    """All repetitions of one case: (what was measured, delays)."""
    runs = [run for run, _ in measured]
    calm = [delays for run, delays in measured if run["calm"]]
    return {
        **worst_of(runs), "p999_s": p999_of(delays for _, delays in measured),
        "calm_p999_s": p999_of(calm), "calm": len(calm), "repetitions": len(runs),
        "answered_s": sorted(run["call_s"] for run in runs)[len(runs) // 2], "runs": runs,
    }  # fmt: skip


def _result(
    cases: list[dict[str, Any]], quiet: dict[str, float], many: dict[str, Any], big: list[dict[str, Any]],
    versions: dict[str, str], machine: dict[str, Any], repetitions: int, seconds: float,
) -> dict[str, Any]:  # fmt: skip
    ours = [run for case in cases if case["how"] != Stock.title for run in case["runs"]]
    live = [case for case in cases if case["how"] == Handover.title]
    papers = [case for case in cases if case["how"] == Restart.title and "executors" in case["case"]]
    brought = [case for case in cases if case["how"] == Brought.title]
    bars: dict[str, dict[str, Any]] = {}
    for which, found in (("", live), (", a task brought first", brought)):
        if not found:
            continue
        longest, p999 = max(case["longest_s"] for case in found), max(case["p999_s"] for case in found)
        bars[f"longest delay{which}, s"] = {"value": longest, "bar": DELAY_S, "met": longest <= DELAY_S}
        bars[f"p99.9 delay{which}, s"] = {"value": p999, "bar": P999_S, "met": p999 < P999_S}
        if all(case["calm"] for case in found):
            calm = max(case["calm_p999_s"] for case in found)
            bars[f"p99.9 delay{which} in calm repetitions, s"] = {"value": calm, "bar": P999_S, "met": calm < P999_S}
    if live and papers:
        times = min(case["best_silence_s"] for case in papers) / max(case["silence_s"] for case in live)
        bars["times shorter than (b)"] = {"value": round(times, 1), "bar": TIMES, "met": times >= TIMES}
    for told in big:
        size, longest = _size(told), told["longest_s"]
        bars[f"{size}, longest delay, s"] = {"value": longest, "bar": STATE_DELAY_S, "met": longest < STATE_DELAY_S}
        if not told["megabytes"]:
            continue  # it is there to compare with
        for name, of in ((" beside the same load", "loopback_busy_s"), (" on a quiet machine", "loopback_s")):
            times = told["seconds"] / told[of]["redis"]
            bars[f"{size}, times the bytes' own{name}"] = {
                "value": round(times, 1), "bar": STATE_TIMES, "met": times <= STATE_TIMES,
            }  # fmt: skip
    return {
        "command": f"python tests/bench/handover.py ({repetitions} repetitions, {seconds:.0f} s)",
        "settings": {"tuples_per_s": Restart.rate, "keys": Restart.keys, "nodes": NODES, "workers": Restart.workers},
        "versions": versions,
        "machine": machine,
        "bars": bars,
        "ours_exact": all(run["exact"] for run in [*ours, *big]) and many.get("exact", True),
        "quiet": quiet,
        "many": many,
        "state": big,
        "cases": cases,
        "notes": list(NOTES),
    }  # fmt: skip


def _size(told: dict[str, Any]) -> str:
    return f"{told['megabytes']} MB" if told["megabytes"] else f"the counts alone ({told['bytes'] / 1e6:.1f} MB)"


def _print(result: dict[str, Any], console: Console) -> None:
    measured, counted = ("silence_s", "longest_s", "p999_s"), ("lost", "doubled", "forgotten")
    headings = (
        "how", "case", "silence", "longest delay", "p99.9", *counted, "answered", "host took", "p99.9 when calm"
    )  # fmt: skip
    table = Table(*headings, box=None)
    for case in result["cases"]:
        values = [f"{case[name] * 1000:.0f} ms" for name in measured]
        counts = [str(case[name]) for name in counted]
        calm = f"{case['calm_p999_s'] * 1000:.0f} ms " if case["calm"] else ""
        calm += f"({case['calm']} of {case['repetitions']})"
        seconds = [f"{case[name]:.{digits}f} s" for name, digits in (("answered_s", 2), ("stolen_s", 1))]
        table.add_row(case["how"], case["case"], *values, *counts, *seconds, calm)
    console.print(table)
    console.print(f"calm: the host took less than {CALM:.0%} of the processors' time")
    if quiet := result["quiet"]:
        console.print(
            f"nothing done for {QUIET_S:g} s, same topology: longest delay {quiet['longest_s'] * 1000:.0f} ms, "
            f"p99.9 {quiet['p999_s'] * 1000:.0f} ms; the machine's host kept a processor from it for "
            f"{quiet['stolen_s']:.1f} s meanwhile, in the whole run for {result['machine']['stolen_s']:.0f} s; idle "
            f"processors poll for {result['machine']['halt_poll_us'] or 0} us before they halt"
        )
    if result["many"]:
        console.print({name: value for name, value in result["many"].items() if name != "window"})
    for told in result["state"]:
        console.print(
            f"{_size(told)} moved in {told['seconds']:.3f} s, best of {told['moves']} (median "
            f"{told['median_seconds']:.3f} s) "
            f"(the bytes alone: {told['loopback_s']['redis']:.3f} s through Redis, "
            f"{told['loopback_s']['socket']:.3f} s through a socket, "
            f"{told['loopback_busy_s']['redis']:.3f} s through Redis while the tuples go on; {LEAST} steps at "
            f"ZooKeeper alone: {told['steps_s']:.3f} s, {told['steps_busy_s']:.3f} s while the tuples go on): "
            f"longest delay {told['longest_s'] * 1000:.0f} ms, p99.9 {told['p999_s'] * 1000:.0f} ms; the host took "
            f"{told['stolen_s']:.1f} s"
        )
    for name, bar in result["bars"].items():
        console.print(f"{name}: {bar['value']:g}, bar {bar['bar']:g} {'met' if bar['met'] else 'NOT met'}")


if __name__ == "__main__":
    main()
