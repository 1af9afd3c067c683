"""Judges what the sink of the counting topology wrote, line by line, and follows its file as it grows.

A line is `key n count last task sent_ms written_ms`. With K keys the c-th number of key k is n = f + (c - 1) K, where
f is k, or K for key 0; `last` is the number before. So each line can be judged alone (*wrong* if it contradicts
that), and against the line of the same key before it: the count has to grow by one. If it jumps, numbers are
*lost*, or came out of order; if it goes back, they are *repeated*, and it has to go on from there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from leeward.core.keys import GROUPS

#: As many as a table has entries. `balanced()` walks through them, so that all numbers of one key take the same replica
#: of `passing`: two replicas keep no order among what each of them passes on, and here each key has to keep it.
KEYS = GROUPS


@dataclass(slots=True)
class Tally:
    """Counts of what is not as it must be; `odd` shows the first lines of each kind."""

    keys: int = KEYS
    lines: int = 0
    lost: int = 0  #: numbers left out
    repeated: int = 0  #: lines whose count does not grow
    wrong: int = 0  #: lines that no computation of the topology can give
    top: int = 0  #: greatest number
    longest_ms: int = 0  #: longest time without a line
    tasks: set[int] = field(default_factory=set)  #: that counted
    odd: list[str] = field(default_factory=list)
    _counts: dict[int, int] = field(default_factory=dict)
    _written_ms: int = 0

    def add(self, line: str) -> None:
        """Judge one more line."""
        key, n, count, last, task, _, written_ms = map(int, line.split())
        self.lines += 1
        if self._written_ms:
            self.longest_ms = max(self.longest_ms, written_ms - self._written_ms)
        self._written_ms = written_ms
        self.tasks.add(task)
        self.top = max(self.top, n)
        before = self._counts.get(key, 0)
        if key != n % self.keys or n != self.number(key, count) or last != (n - self.keys if count > 1 else 0):
            self.wrong += 1
            self._show("wrong", line)
        elif count > before + 1:
            self.lost += count - before - 1
            self._show(f"lost {count - before - 1}", line)
        elif count <= before:
            self.repeated += 1
            self._show(f"repeated, {before} was reached", line)
        self._counts[key] = count

    def number(self, key: int, count: int) -> int:
        """The number that is the `count`-th of this key."""
        return (key or self.keys) + (count - 1) * self.keys

    def has_all(self, upto: int) -> bool:
        """Each key's newest line reaches as far as the numbers 1..upto do."""
        return all(self.number(key, self._counts.get(key, 0)) > upto - self.keys for key in range(self.keys))

    def _show(self, what: str, line: str) -> None:
        if len(self.odd) < 12:
            self.odd.append(f"line {self.lines} {what}: {line}")


class Stream:
    """The sink's file."""

    def __init__(self, path: Path, keys: int = KEYS) -> None:
        self.path, self.tally = path, Tally(keys=keys)
        self._offset, self._rest = 0, ""

    def begin_here(self) -> None:
        """Take no notice of what has been written so far: the topology begins with number 1 again."""
        self._offset = self.path.stat().st_size

    def read(self) -> Tally:
        """Take in what was written since."""
        if self.path.exists():
            with self.path.open() as file:
                file.seek(self._offset)
                text = self._rest + file.read()
                self._offset = file.tell()
            *whole, self._rest = text.split("\n")
            for line in whole:
                self.tally.add(line)
        return self.tally

    def flow(self, more: int = 200, *, timeout_s: float = 60) -> Tally:
        """Wait until the source's numbers have grown by `more` and all up to there have come."""
        goal = self.read().top + more
        until = time.monotonic() + timeout_s
        while not self.read().has_all(goal):
            if time.monotonic() > until:
                raise AssertionError(f"not all of 1..{goal} came in {timeout_s:g} s: {self.tally}")
            time.sleep(0.05)
        return self.tally

    def exact(self, more: int = 200, *, timeout_s: float = 60) -> Tally:
        """The stream flows, and since its start every number came once and in order."""
        tally = self.flow(more, timeout_s=timeout_s)
        assert (tally.lost, tally.repeated, tally.wrong) == (0, 0, 0), tally
        return tally

    def settled(self, more: int = 200, *, timeout_s: float = 60) -> Tally:
        """The stream flows, nothing is lost, and each key's last occurrences are right; some may have come again."""
        tally = self.flow(more, timeout_s=timeout_s)
        assert (tally.lost, tally.wrong) == (0, 0), tally
        return tally

    def silence_since(self) -> int:
        """Longest silence since the last call, in milliseconds."""
        longest, self.tally.longest_ms = self.read().longest_ms, 0
        return longest
