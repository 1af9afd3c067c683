"""Rows and results of query 1 for `throughput.py`: the real rows of 45 minutes, again and again with later times."""

from __future__ import annotations

import contextlib
import gzip
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import redis

from leeward.adapters.results import Results
from leeward.replay.rows import judge

sys.path.append(str(Path(__file__).resolve().parents[2]))
from bolts.query1.reference import reference_rows

PULSE_S = 60
REPEATS = 12
SPAN = timedelta(minutes=46)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The input, and what must come out."""

    rows: list[tuple[int, str]]  #: dropoff (s), line
    numbers: list[int]  #: of the results, by the reference
    texts: list[str]


def prepare(data: Path, folder: Path) -> Rows:
    """REPEATS times the file's rows, each time SPAN later, by dropoff."""
    with gzip.open(data, "rt") as file:
        lines = [line.rstrip("\r\n") for line in file]
    shifted = [line if not n else _later(line, n * SPAN) for n in range(REPEATS) for line in lines]
    rows = sorted(((t, line) for line in shifted if type(t := judge(line)) is int), key=lambda row: row[0])
    sorted_file = folder / "rows.csv"
    sorted_file.write_text("".join(f"{line}\n" for _, line in rows))
    results = list(reference_rows([sorted_file], per="pulse"))
    return Rows(rows=rows, numbers=[result.number for result in results], texts=[result.row for result in results])


def _later(line: str, by: timedelta) -> str:
    fields = line.split(",")
    with contextlib.suppress(ValueError):  # a row that is to be rejected stays one
        fields[2:4] = [str(datetime.fromisoformat(field) + by) for field in fields[2:4]]
    return ",".join(fields)


class Run:
    """One topology's way through the rows."""

    def __init__(self, rows: Rows, url: str, name: str) -> None:
        self.rows, self._client = rows, redis.Redis.from_url(url)
        self.source, self.out = f"{name}:in", f"{name}:out"
        self._results = Results(url, source=self.source, results=self.out)

    def send(self) -> None:
        """All rows and the end, at once."""
        with self._client.pipeline(transaction=False) as pipe:
            for seq, (t, line) in enumerate(self.rows.rows, 1):
                pipe.xadd(self.source, {"r": line, "t": t}, id=f"{seq}-0")
                if seq % 1000 == 0:
                    pipe.execute()
            pipe.xadd(self.source, {"end": b"1"}, id=f"{len(self.rows.rows) + 1}-0")
            pipe.execute()

    def await_share(self, share: float, look: Callable[[], object], timeout_s: float) -> object:
        """Until this share of the results is out; then what `look` saw."""
        until, wanted = time.monotonic() + timeout_s, int(share * len(self.rows.numbers))
        while self._client.xlen(self.out) < wanted:
            if time.monotonic() > until:
                raise SystemExit(f"{self.out}: {self._client.xlen(self.out)} of {wanted} results in {timeout_s:g} s")
            time.sleep(0.05)
        return look()

    def rate(self, share: float) -> tuple[int, float]:
        """Rows after this share of the results, and the seconds that they took, by the times in the results."""
        entries = [
            (int(key.split(b"-")[0]), float(fields[b"w"])) for key, fields in self._client.xrange(self.out)
        ]
        (first, began), (last, ended) = entries[int(share * len(entries))], entries[-1]
        rows = sum(first < t // PULSE_S <= last for t, _ in self.rows.rows)
        return rows, ended - began

    def differences(self) -> int:
        """Results that are not the reference's."""
        got = {row.number: row.text for row in self._results.all()}
        wanted = dict(zip(self.rows.numbers, self.rows.texts, strict=True))
        self._client.delete(self.source, self.out)
        return sum(got.get(number) != wanted.get(number) for number in got.keys() | wanted.keys())
