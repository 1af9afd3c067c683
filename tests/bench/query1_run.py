"""Rows and results of query 1 for `throughput.py`: the real rows of 45 minutes, again and again with later times."""

from __future__ import annotations

import gzip
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from leeward.adapters.results import Results
from leeward.local import LocalCluster
from leeward.replay.rows import DROPOFF, PICKUP, epoch_s, judge, text_of

sys.path.append(str(Path(__file__).resolve().parents[2]))
from bolts.query1.grid import Grid
from bolts.query1.reference import read_rides, rows_per_pulse
from bolts.reference import Line

PULSE_S = 60
REPEATS = 150
SPAN_S = 46 * 60


class Stencil(NamedTuple):
    """A row of the file without its two dates."""

    dropoff_s: int
    pickup_s: int
    head: str
    tail: str

    def line(self, by: int) -> str:
        """The row, `by` seconds later."""
        return f"{self.head},{text_of(self.pickup_s + by)},{text_of(self.dropoff_s + by)},{self.tail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The input, made anew each time it is gone over, and what must come out."""

    stencils: list[Stencil]  #: by dropoff
    repeats: int
    numbers: list[int]  #: of the results, by the reference
    texts: list[str]

    def __len__(self) -> int:
        return self.repeats * len(self.stencils)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return repeated(self.stencils, self.repeats)


def prepare(data: Path, repeats: int = REPEATS) -> Rows:
    """So many times the file's rows, each time SPAN_S later, by dropoff."""
    with gzip.open(data, "rt") as file:
        lines = [line.rstrip("\r\n") for line in file]
    stencils = sorted(map(_stencil, (line for line in lines if type(judge(line)) is int)), key=lambda row: row[0])
    texts = (Line(str(data), number, line) for number, (_, line) in enumerate(repeated(stencils, repeats), 1))
    results = list(rows_per_pulse(read_rides(texts, grid=Grid(), rejects=Counter()), pulse_s=PULSE_S))
    numbers, rows = zip(*results, strict=True)
    return Rows(stencils=stencils, repeats=repeats, numbers=list(numbers), texts=list(rows))


def repeated(stencils: Sequence[Stencil], repeats: int) -> Iterator[tuple[int, str]]:
    """Dropoff (s) and line of all rows, by dropoff; the stencils must fit into SPAN_S."""
    if stencils[-1].dropoff_s - stencils[0].dropoff_s >= SPAN_S:
        raise SystemExit(f"the rows span more than {SPAN_S} s: they would overlap with their own repetition")
    for by in range(0, repeats * SPAN_S, SPAN_S):
        yield from ((row.dropoff_s + by, row.line(by)) for row in stencils)


def _stencil(line: str) -> Stencil:
    fields = line.split(",")
    head, tail = ",".join(fields[:PICKUP]), ",".join(fields[DROPOFF + 1 :])
    return Stencil(epoch_s(fields[DROPOFF]), epoch_s(fields[PICKUP]), head, tail)


def measured(results: Sequence[tuple[int, float]], dropoffs: Iterable[int], share: float) -> tuple[int, float]:
    """Of results (number, time) after this share of them: the rows that went into them, and the seconds they took."""
    (first, began), (last, ended) = results[int(share * len(results))], results[-1]
    return sum(first < t // PULSE_S <= last for t in dropoffs), ended - began


class Run:
    """One topology's way through the rows."""

    def __init__(self, rows: Rows, cluster: LocalCluster, name: str) -> None:
        self.rows, self._client = rows, cluster.open_redis()
        self.source, self.out = f"{name}:in", f"{name}:out"
        self._results = Results(cluster.redis_url, secrets=cluster.secrets(), source=self.source, results=self.out)

    def send(self) -> None:
        """All rows and the end, at once."""
        with self._client.pipeline(transaction=False) as pipe:
            for seq, (t, line) in enumerate(self.rows, 1):
                pipe.xadd(self.source, {"r": line, "t": t}, id=f"{seq}-0")
                if seq % 1000 == 0:
                    pipe.execute()
            pipe.xadd(self.source, {"end": b"1"}, id=f"{len(self.rows) + 1}-0")
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
        entries = [(int(key.split(b"-")[0]), float(fields[b"w"])) for key, fields in self._client.xrange(self.out)]
        return measured(entries, (t for t, _ in self.rows), share)

    def differences(self) -> int:
        """Results that are not the reference's."""
        got = {row.number: row.text for row in self._results.all()}
        wanted = dict(zip(self.rows.numbers, self.rows.texts, strict=True))
        self._client.delete(self.source, self.out)
        return sum(got.get(number) != wanted.get(number) for number in got.keys() | wanted.keys())
