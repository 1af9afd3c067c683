"""Memory of replay on a large input: `python tests/bench/replay_memory.py [--rows 10000000]`.

Generates a tenth of that many rows as CSV and prepares them, then the same for all of them, then replays all of
them (a reader keeps up and trims the stream), each step as the command a user would type. Prints and writes
`out/bench/replay_memory.json`: for each step its seconds and the highest resident memory of its processes
together (Python, the JVM, Python workers; pages that workers share count twice).
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import redis

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "import typer, leeward.cli.replay as r; a = typer.Typer(); a.callback()(lambda: None); r.register(a); a()"
ROWS_PER_HOUR = 20_000.0  # of the flat profile used here, about the year's mean
SAMPLE_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One measured command."""

    name: str
    seconds: float
    rss_mb_max: float  #: of all its processes together
    jvm_rss_mb_max: float  #: of the JVM alone


def main() -> None:
    options = _options()
    shutil.rmtree(options.folder, ignore_errors=True)
    heap = ("--memory-mb", str(options.memory_mb), "--quiet")
    few, slices = _prepared(options.folder / "tenth", options.rows // 10, heap)
    many, slices = _prepared(options.folder / "whole", options.rows, heap)
    rows = json.loads((slices / "manifest.json").read_text())["rows"]
    with _Server(options.port) as server:
        last = _measure(f"run {rows} rows", "run", slices, "--redis", server.url, "--speed", "0", "--quiet")
    shutil.rmtree(options.folder)
    result = {"rows": rows, "heap_mb": options.memory_mb, "steps": [asdict(s) for s in (*few, *many, last)]}
    out = ROOT / "out" / "bench" / "replay_memory.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))


def _prepared(folder: Path, rows: int, heap: tuple[str, ...]) -> tuple[list[Step], Path]:
    """Generates about `rows` rows as CSV and prepares them; gives the two steps and the folder of slices."""
    folder.mkdir(parents=True)
    hours = rows / ROWS_PER_HOUR
    rate = ("--profile", "flat", "--peak-rate", str(ROWS_PER_HOUR / 60), "--hours", str(hours))
    csv, slices = folder / "rows.csv", folder / "slices"
    steps = [
        _measure(f"generate {rows} rows", "generate", "--csv", csv, *rate, *heap),
        _measure(f"prepare {rows} rows", "prepare", csv, "--out", slices, *heap),
    ]
    csv.unlink()
    return steps, slices


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--memory-mb", type=int, default=640, help="heap of Spark's JVM")
    parser.add_argument("--port", type=int, default=19950, help="of the Redis started here")
    parser.add_argument("--folder", type=Path, default=ROOT / "out" / "bench" / "replay-memory")
    return parser.parse_args()


def _measure(name: str, *arguments: object) -> Step:
    command = ["nice", sys.executable, "-c", COMMAND, "replay", *map(str, arguments)]
    began = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    total = jvm = 0.0
    while process.poll() is None:
        resident = _resident_mb(process.pid)
        total = max(total, sum(mb for _, mb in resident))
        jvm = max([jvm, *(mb for program, mb in resident if program.startswith("java"))])
        time.sleep(SAMPLE_S)
    if process.returncode:
        raise SystemExit(f"{name} ended with {process.returncode}: {' '.join(command[4:])}")
    seconds = round(time.monotonic() - began, 1)
    return Step(name=name, seconds=seconds, rss_mb_max=round(total), jvm_rss_mb_max=round(jvm))


def _resident_mb(session: int) -> list[tuple[str, float]]:
    """(program, resident memory in MB) of the processes of a session, Spark's Python workers among them.

    A child of the JVM that is not Python is one that Hadoop is about to turn into a `chmod`: it has the JVM's own
    memory and no other.
    """
    columns = "pid=,ppid=,rss=,comm="
    listing = subprocess.run(["ps", "-s", str(session), "-o", columns], capture_output=True, text=True)
    found = [line.split(None, 3) for line in listing.stdout.splitlines()]
    java = {pid for pid, _, _, program in found if program.startswith("java")}
    return [
        (program, int(rss) / 1024)
        for _, parent, rss, program in found
        if parent not in java or program.startswith("python")
    ]


class _Server:
    """A Redis whose stream is read at once and trimmed, so that only replay's memory is in question."""

    def __init__(self, port: int) -> None:
        self.url = f"redis://127.0.0.1:{port}/0"
        self._client = redis.Redis(port=port)
        self._stop = threading.Event()
        self._reader = threading.Thread(target=self._read)
        options = ("--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
        self._process = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)

    def __enter__(self) -> _Server:
        time.sleep(1)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._reader.join()
        self._process.terminate()
        self._process.wait()

    def _read(self) -> None:
        while not self._stop.wait(0.1):
            if self._client.exists("taxi:in"):
                last = self._client.xinfo_stream("taxi:in")["last-generated-id"].decode()
                self._client.hset("taxi:in:progress", "seq", last.partition("-")[0])
                self._client.xtrim("taxi:in", minid=last, approximate=False)


if __name__ == "__main__":
    main()
