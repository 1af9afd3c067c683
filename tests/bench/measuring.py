"""The cost of measuring for a task on the data path, in processor time: with it, and with it taken out, in turn.

    python tests/bench/measuring.py [--quick] [--rounds 150] [--seconds 0.12] [--rates 0 1000 200] [--paths 3]

A real task's process (tests/bench/measured_task.py) gets frames as a worker sends them, with a real ZooKeeper, and a
real Redis to which it publishes its line of metrics each second. Two bolts with next to no work of their own, as
measuring costs the same where there is more: one counts 1,000 keys in its state, one sends on what comes. Tuples have a
key and 20 characters. They come as fast as the task takes them (rate 0), or one by one at so many a second.

In each round a task works through as many tuples in each mode: with all of measuring, with none, and with one part
alone, in another order each time. The parts are the publication each second; the sampling of sojourn times and of the
load of key groups; the counts of what is processed, is emitted and how long that takes (what comes is counted by the
protocol, measured or not). A mode's figure is the
processor time of the whole process for a tuple, all its threads. A processor's speed drifts by more than measuring
costs, so rounds are short and many, and what a mode adds to none is the median of what it adds in each round, with the
interval that holds it in 95 of 100 samples of the rounds (bootstrap).

A task's process is one part of the data path; its worker, a JVM, is the other. So the processor time of a whole path
is measured, too: source, bolt and sink of tests/bench/load on a real Storm, three workers and three Python processes,
with all of measuring, the cheapest of a few runs, at saturation and at 200 tuples/s. The share of the path counts what
measuring costs the dearer of the two bolts three times, once for each task.

The time of a publication is also taken by itself, in its own thread: the line (its figures, and JSON) and the call of
Redis. At 200 tuples/s rounds differ by more than measuring costs, so there the share of the path has the time of the
publications, and sampling and counts as they are at saturation. Prints a table and writes `out/bench/measuring.json`.
Speed is reported only.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import IO, Any

import numpy as np
import redis
from machine import facts, stolen_s
from measured_task import PARTS, TASKS
from rich.console import Console
from rich.table import Table
from systems import ROOT, begin_run, write_result
from throughput import LIGHT_RATE, Bench

from leeward.core.keys import key_group
from leeward.core.metrics import TaskMetrics
from leeward.local import ClusterSpec, LocalCluster

sys.path.append(str(ROOT))  # tests/helpers/servers.py, tests/helpers/pipe_twin.py

from tests.helpers.pipe_twin import frame
from tests.helpers.servers import RedisServer, ZooKeeperServer

KEYS, BYTES = 1000, 20
TUPLES_A_FRAME = 500  # a millisecond of a worker's
FRAMES_A_WRITE = 8
TASK, SOURCE = 5, 3
PATIENCE_S = 30.0
#: Mode -> parts of measuring that are done.
MODES: Mapping[str, tuple[str, ...]] = {"all": tuple(PARTS), "none": ()} | {f"{part} only": (part,) for part in PARTS}
GOAL = 0.02
PATH_TASKS = 3
#: Rate -> case of tests/bench/throughput.py.
PATHS = {0: "small", LIGHT_RATE: "light"}
SAMPLES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """So many tuples in one mode."""

    tuples: int
    cpu_s: float  #: of the process, all its threads
    seconds: float
    published: int
    line_us: float  #: processor time of making a line, each; 0 where none was published
    redis_us: float  #: of sending it, each

    @property
    def us(self) -> float:
        """Processor time for a tuple, us."""
        return self.cpu_s / self.tuples * 1e6


class Feed:
    """The worker's side of one task, as far as its input goes: frames that are made before they are needed."""

    def __init__(self, *, keyed: bool, rng: random.Random) -> None:
        self._channels: dict[int | None, int] = {}
        self.opening = b""  # definitions of the channels
        self._items: list[tuple[int, list[str]]] = []
        keys = [f"key-{number}" for number in range(KEYS)]
        for _ in range(FRAMES_A_WRITE * TUPLES_A_FRAME):
            key = rng.choice(keys)
            self._items.append((self._channel(key_group(key) if keyed else None), [key, "x" * BYTES]))
        frames = range(0, len(self._items), TUPLES_A_FRAME)
        self.full = b"".join(self._frame(self._items[at : at + TUPLES_A_FRAME]) for at in frames)
        self.single = [self._frame([item]) for item in self._items]
        self.opening += frame(-1, [self._tick, "__system", "__tick", -1, None])

    @property
    def _tick(self) -> int:
        return len(self._channels)

    def tick(self, mode: str) -> bytes:
        """Switches to this mode."""
        return frame(self._tick, [list(MODES[mode])])

    def _channel(self, group: int | None) -> int:
        number = self._channels.get(group)
        if number is None:
            number = self._channels[group] = len(self._channels)
            self.opening += frame(-1, [number, "pass", "default", SOURCE, group])
        return number

    @staticmethod
    def _frame(items: Sequence[tuple[int, list[str]]]) -> bytes:
        return frame(*(part for item in items for part in item))


class Running:
    """A task's process, its input and what it tells."""

    def __init__(self, name: str, conf: Mapping[str, Any], folder: Path) -> None:
        (folder / "workers/w/pids").mkdir(parents=True)
        self._storm_id = f"bench-{name}"
        reads, writes = os.pipe()
        self._log = (folder / "log").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, str(ROOT / "tests/bench/measured_task.py"), name, str(writes)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, pass_fds=[writes], start_new_session=True,
        )  # fmt: skip
        os.close(writes)
        self._told: IO[str] = os.fdopen(reads)
        self._feed = Feed(keyed=name == "counting", rng=random.Random(1))
        handshake = {
            "conf": {**conf, "storm.id": self._storm_id}, "context": _context(name),
            "pidDir": str(folder / "workers/w/pids"), "leeward.pipe": {"version": 2, "ids": False},
        }  # fmt: skip
        self._write(json.dumps(handshake).encode() + b"\nend\n")
        os.read(self._process.stdout.fileno(), 1 << 16)  # its process id: frames may follow
        threading.Thread(target=self._discard, name="output", daemon=True).start()
        self._write(self._feed.opening)
        self.sent = 0  #: tuples
        self.counted = 0  #: tuples of slices in which they were counted
        self._switch("none")

    def slice(self, mode: str, tuples: int, rate: int) -> Slice:
        """Switch to the mode, and let the task take so many tuples (rounded up to whole writes), `rate` a second."""
        before, began = self._switch(mode), time.monotonic()
        if rate:
            self._paced(tuples, rate)
        else:
            batch = FRAMES_A_WRITE * TUPLES_A_FRAME
            writes = -(-tuples // batch)
            tuples = writes * batch
            for _ in range(writes):
                self._write(self._feed.full)
        after = self._switch("none")
        self.sent += tuples
        if "counts" in MODES[mode]:
            self.counted += tuples
        published = after["published"] - before["published"]
        line_us, all_us = (
            (after[name] - before[name]) / published * 1e6 if published else 0.0 for name in ("line_s", "all_s")
        )
        return Slice(
            tuples=tuples, cpu_s=after["until_s"] - before["from_s"], seconds=time.monotonic() - began,
            published=published, line_us=line_us, redis_us=all_us - line_us,
        )  # fmt: skip

    def line(self, client: redis.Redis) -> str:
        """The task's line of metrics, once all is in it that was sent while tuples were counted."""
        self._switch("all")
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            text = (client.hget(f"leeward:{self._storm_id}:metrics", str(TASK)) or b"").decode()
            line = TaskMetrics.from_line(text)
            if line is not None and line.processed == self.counted:
                return text
            time.sleep(0.05)
        raise SystemExit(f"{self.counted} tuples were sent while they were counted; published: {text}")

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        """End the process; at the end of its input it ends by itself."""
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._told.close()
        self._log.close()

    def _paced(self, tuples: int, rate: int) -> None:
        singles, began = self._feed.single, time.monotonic()
        for number in range(tuples):
            if (left := began + number / rate - time.monotonic()) > 0:
                time.sleep(left)
            self._write(singles[number % len(singles)])

    def _switch(self, mode: str) -> dict[str, Any]:
        """All that was written before is processed when this returns what the task tells."""
        self._write(self._feed.tick(mode))
        there, _, _ = select.select([self._told], [], [], PATIENCE_S)
        line = self._told.readline() if there else ""
        if not line:
            raise SystemExit(f"the task has ended, or hangs:\n{Path(self._log.name).read_text()[-2000:]}")
        told: dict[str, Any] = json.loads(line)
        return told

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._process.stdin.fileno(), view) :]

    def _discard(self) -> None:
        """Take all that the task emits at once, as a worker does."""
        while os.read(self._process.stdout.fileno(), 1 << 20):
            pass


def _context(name: str) -> dict[str, Any]:
    streams = {"default": ["key", "text"], "marker": ["kind", "epoch", "tables", "counts", "body"]}
    return {
        "taskid": TASK,
        "componentid": name,
        "task->component": {str(SOURCE): "pass", str(TASK): name, "7": "sink"},
        "source->stream->grouping": {"pass": {stream: {} for stream in streams}},
        "source->stream->fields": {"pass": streams, "__system": {"__tick": ["parts"]}},
        "stream->target->grouping": {"default": {"sink": {}}, "marker": {"sink": {}}},
    }


@contextmanager
def servers(folder: Path) -> Iterator[tuple[dict[str, Any], redis.Redis]]:
    """The configuration of a topology with a Redis and a ZooKeeper of its own, and a client of this Redis."""
    for name in ("redis", "zoo"):
        (folder / name).mkdir()
    with RedisServer(folder / "redis") as server, ZooKeeperServer(folder / "zoo") as zoo:
        conf = {
            "topology.name": "bench", "leeward.redis.url": server.url, "storm.zookeeper.servers": ["127.0.0.1"],
            "storm.zookeeper.port": zoo.port, "storm.local.hostname": "127.0.0.1", "pystorm.log.level": "error",
        }  # fmt: skip
        yield conf, server.client


def measured(running: Running, client: redis.Redis, options: argparse.Namespace) -> dict[str, Any]:
    """A task's figures at each rate, and the last line that it has published."""
    rng, found = random.Random(1), {}
    per_second = _calibrated(running, options.seconds)
    for rate in options.rates:
        tuples = int(rate * options.slow_seconds or per_second * options.seconds)
        rounds: list[dict[str, Slice]] = []
        for _ in range(options.slow_rounds if rate else options.rounds):
            modes = rng.sample(list(MODES), len(MODES))
            rounds.append({mode: running.slice(mode, tuples, rate) for mode in modes})
        found[str(rate)] = figures(rounds)
    line = running.line(client)
    return {"rates": found, "sent": running.sent, "counted": running.counted, "line": json.loads(line)}


def figures(rounds: Sequence[Mapping[str, Slice]]) -> dict[str, Any]:
    """Of one rate: modes' and parts' figures, in us and ns of processor time for a tuple, and the share of all with its
    interval."""
    us = {mode: median(each[mode].us for each in rounds) for mode in MODES}
    added = {mode: median(each[mode].us - each["none"].us for each in rounds) for mode in MODES if mode != "none"}
    shares = np.array([each["all"].us / each["none"].us - 1 for each in rounds])
    low, high = interval(shares)
    published = [one for each in rounds for one in each.values() if one.published]
    took = [one for each in rounds for one in each.values()]
    return {
        "us": us,
        "parts_ns": {mode: 1000 * more for mode, more in added.items()},
        "share": float(np.median(shares)),
        "share_low": low,
        "share_high": high,
        "line_us": median(one.line_us for one in published) if published else None,
        "redis_us": median(one.redis_us for one in published) if published else None,
        "tuples_per_s": max(one.tuples / one.seconds for one in took),
        "processor": median(one.cpu_s / one.seconds for one in took),
        "rounds": [{mode: asdict(one) for mode, one in each.items()} for each in rounds],
    }


def interval(values: np.ndarray) -> tuple[float, float]:
    """Of their median: from the 2.5th to the 97.5th percentile of the medians of samples."""
    samples = np.random.default_rng(1).choice(values, (SAMPLES, len(values)))
    low, high = np.percentile(np.median(samples, axis=1), (2.5, 97.5))
    return float(low), float(high)


def verdict(found: Mapping[str, Any]) -> str:
    """Whether the share is under the goal, as far as the interval tells."""
    if found["share_high"] < GOAL:
        return "yes"
    return "no" if found["share_low"] >= GOAL else "perhaps"


def paths(folder: Path, rates: Sequence[int], runs: int, base_port: int) -> dict[int, dict[str, float]]:
    """Rate -> processor time of a path of three tasks for a tuple, us: of all workers, and of all Python processes."""
    if not rates:
        return {}
    spec = ClusterSpec(dir=folder / "cluster", base_port=base_port, supervisors=PATH_TASKS, slots=1)
    with LocalCluster(spec) as cluster:
        bench = Bench(cluster, folder)
        found = {rate: [bench.load("ours", PATHS[rate])["cpu_us"] for _ in range(runs)] for rate in rates}
    return {rate: min(of, key=lambda us: sum(us.values())) for rate, of in found.items()}


def share_of_path(tasks: Mapping[str, Any], rate: int, us: Mapping[str, float]) -> float:
    """Of measuring: of the time of a path without it."""
    measuring_us = PATH_TASKS * max(measuring_us_of(task["rates"], rate) for task in tasks.values())
    return measuring_us / (sum(us.values()) - measuring_us)


def measuring_us_of(rates: Mapping[str, Any], rate: int) -> float:
    """Of one task for a tuple. `rates`: its figures at each rate."""
    if not rate:
        return float(rates["0"]["parts_ns"]["all"]) / 1000
    always_ns = sum(rates["0"]["parts_ns"][f"{part} only"] for part in PARTS if part != "publication")
    slow = rates[str(rate)]
    return float((slow["line_us"] + slow["redis_us"]) / rate + always_ns / 1000)


def main() -> None:
    options = _options()
    folder, console = begin_run(options.folder)
    began, load, stolen = time.monotonic(), os.getloadavg()[0], stolen_s()
    tasks: dict[str, Any] = {}
    with servers(folder) as (conf, client):
        for name in TASKS:
            with Running(name, conf, folder / name) as running:
                tasks[name] = measured(running, client, options)
            console.print(f"{name}: {time.monotonic() - began:.0f} s")
    whole = [rate for rate in options.rates if rate in PATHS] if options.paths and 0 in options.rates else []
    path = {
        str(rate): {"cpu_us": us, "share": share_of_path(tasks, rate, us)}
        for rate, us in paths(folder, whole, options.paths, options.base_port).items()
    }
    result = {
        "command": " ".join(["python tests/bench/measuring.py", *sys.argv[1:]]),
        "settings": {"keys": KEYS, "bytes": BYTES, "tuples_a_frame": TUPLES_A_FRAME, **_plain(options)},
        "machine": {**facts(), "load": load, "stolen_s": round(stolen_s() - stolen, 2)},
        "tasks": tasks,
        "path": path,
    }
    print_tables(tasks, console)
    for rate, found in path.items():
        parts = ", ".join(f"{kind} {us:g} us" for kind, us in found["cpu_us"].items())
        pace = f"{rate} tuples/s" if int(rate) else "saturation"
        console.print(f"A path of three tasks at {pace}, a tuple: {parts}; measuring is {found['share']:.2%} of it.")
    write_result(options.out, result, console)


def print_tables(tasks: Mapping[str, Any], console: Console) -> None:
    """The time of a tuple, the part of each kind of measuring in it, and the time of one publication."""
    columns = ("none, us", *(f"{mode}, ns" for mode in MODES if mode != "none"), "share", "interval", "under 2 %")
    table = Table("task", "tuples/s", *columns, box=None)
    each = Table("task", "tuples/s", "a publication: line, us", "Redis, us", "bytes", box=None)
    for name, task in tasks.items():
        for rate, found in task["rates"].items():
            pace = f"{found['tuples_per_s']:,.0f}" + ("" if int(rate) else " (most)")
            table.add_row(
                name, pace, f"{found['us']['none']:.3f}", *(f"{ns:+.1f}" for ns in found["parts_ns"].values()),
                f"{found['share']:.2%}", f"{found['share_low']:.2%} to {found['share_high']:.2%}", verdict(found),
            )  # fmt: skip
            if found["line_us"] is not None:
                each.add_row(
                    name,
                    pace,
                    f"{found['line_us']:.0f}",
                    f"{found['redis_us']:.0f}",
                    str(len(json.dumps(task["line"]))),
                )
    console.print(table)
    console.print(each)


def _calibrated(running: Running, seconds: float) -> float:
    """Tuples/s at saturation; the task has processed some before."""
    for number in (20_000, int(50_000 * min(1.0, seconds)) or 1):
        taken = running.slice("all", number, 0)
    return taken.tuples / taken.seconds


def _plain(options: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name, value in vars(options).items() if not isinstance(value, Path)}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", type=int, nargs="+", default=[0, 200], help="tuples/s; 0: as many as a task takes")
    parser.add_argument("--rounds", type=int, default=150, help="of each mode, at saturation")
    parser.add_argument("--seconds", type=float, default=0.12, help="of a mode in a round, at saturation")
    parser.add_argument("--slow-rounds", type=int, default=14, help="of each mode, at another rate")
    parser.add_argument("--slow-seconds", type=float, default=1.5, help="of a mode in a round, at another rate")
    parser.add_argument("--paths", type=int, default=3, help="runs of a whole path on Storm at each rate; 0: none")
    parser.add_argument("--base-port", type=int, default=27000, help="first port of the cluster")
    parser.add_argument("--quick", action="store_true", help="a few seconds in all, which say little")
    parser.add_argument("--folder", type=Path, default=ROOT / "out/bench/measuring", help="run folder, emptied")
    parser.add_argument("--out", type=Path, default=ROOT / "out/bench/measuring.json")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds, options.slow_rounds, options.slow_seconds = 1, 0.6, 1, 0.6
        options.paths = 0
    return options


if __name__ == "__main__":
    main()
