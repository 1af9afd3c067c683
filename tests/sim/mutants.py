"""Deliberate bugs, a line each, that `leeward.sim.torture` must find; `test_mutants.py` applies them one at a time.

python -m tests.sim.mutants            look for all of them, and print the seed that finds each
python -m tests.sim.mutants keep ...   for these only
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "scheduler/leeward"
#: Every bug is to be found within so many seeds.
SEEDS = 10_000


@dataclass(frozen=True, slots=True)
class Mutant:
    """One line of the package that becomes another."""

    name: str
    file: str  #: below scheduler/leeward
    old: str  #: the whole line, but for its indentation
    new: str
    breaks: str  #: the rule
    found: int  #: the first seed that finds it, when it was last looked for

    def apply(self, folder: Path) -> None:
        """Copy the package into `folder`, with this bug."""
        shutil.copytree(PACKAGE, folder / "leeward", ignore=shutil.ignore_patterns("__pycache__"))
        path = folder / "leeward" / self.file
        lines = path.read_text().split("\n")
        place = self.place(lines)
        indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
        lines[place] = indent + self.new
        path.write_text("\n".join(lines))

    def place(self, lines: list[str]) -> int:
        """Where its line is; raises ValueError if it is not there exactly once."""
        places = [number for number, line in enumerate(lines) if line.strip() == self.old]
        if len(places) != 1:
            raise ValueError(f"{self.name}: {self.file} has the line {self.old!r} {len(places)} times, not once.")
        return places[0]


MUTANTS = (
    Mutant(
        "keep", "core/protocol.py",
        "keep = self.mode is Mode.PAUSED and self._state_cut == record.cut  # memory is what that cut has",
        "keep = self.mode is Mode.PAUSED",
        "State in memory is kept only if it is the state of the cut that is restored.", 15,
    ),
    Mutant(
        "replaced ignored", "core/protocol.py",
        "if self.mode is not Mode.STARTING and self.task in record.restarts:  # a process of before",
        "if False:",
        "A process that Storm is about to end does not restore in place of its successor.", 564,
    ),
    Mutant(
        "marker overtakes groups", "core/protocol.py",
        "cuts = {} if self._awaited else cuts_of(self._channels, self._not_waited_for, self._replicas)",
        "cuts = cuts_of(self._channels, self._not_waited_for, self._replicas)",
        "A marker is not aligned while a gained group is not in.", 6,
    ),
    Mutant(
        "tables at the record", "core/protocol.py",
        "self.record, self._first = record, first",
        "self.record, self._first, self.tables = record, first, record.tables",
        "A handover's tables come into force at its route marker, not when the record is read.", 0,
    ),
    Mutant(
        "older probe", "core/protocol.py",
        "if channel.fence is not None and marker.number >= channel.fence:",
        "if channel.fence is not None:",
        "Only the probe of the base that is restored opens a channel.", 3504,
    ),
    Mutant(
        "loss unnoticed", "core/protocol.py",
        "if sent != came and source not in self._absent and (self.mode, Fact.MISCOUNT) in TRANSITIONS:",
        "if False:",
        "A receiver that counted other tuples than the marker says asks for a reset.", 73,
    ),
    Mutant(
        "drop_stale left out", "core/alignment.py",
        "if channel.cut is not None and stale(channel.cut, epoch, handover):",
        "if False:",
        "A channel does not wait with the marker of something that was given up.", 12,
    ),
    Mutant(
        "channel without fence", "core/alignment.py",
        "self.fence = base",
        "self.fence = None",
        "What was sent before the probe of the restored base is dropped.", 11,
    ),
    Mutant(
        "ungrouped first", "core/awaiting.py",
        "out += self._ungrouped",
        "out[:0] = self._ungrouped",
        "A tuple without a key comes after the keyed ones that waited.", 189,
    ),
    Mutant(
        "ungrouped never wait", "core/awaiting.py",
        "queue = self._ungrouped if group is None else self._waiting.get(group)",
        "queue = None if group is None else self._waiting.get(group)",
        "A tuple without a key waits for every group.", 43,
    ),
    Mutant(
        "base of the fence", "core/migration/restoring.py",
        "SetFence(epoch=epoch, base=epoch),",
        "SetFence(epoch=epoch),",
        "Sinks of an older base may not write once RESTORE is in force.", 0,
    ),
    Mutant(
        "pause without fence", "core/migration/pausing.py",
        "SetFence(epoch=epoch),",
        "SetFence(epoch=0),",
        "Before PAUSE the stores refuse writers of older epochs.", 0,
    ),
    Mutant(
        "abort in the same epoch", "core/migration/pausing.py",
        "epoch=m.next_epoch,",
        "epoch=m.record.epoch,",
        "What was given up goes on under a newer epoch, so that its markers are stale.", 33,
    ),
    Mutant(
        "witness forgotten", "core/migration/steps.py",
        "return tuple(sorted(last | movers(m.record.tables, tables))) if last else ()",
        "return tuple(sorted(last)) if last else ()",
        "Donors and receivers are witnesses of a handover.", 424,
    ),
    Mutant(
        "committed too early", "core/migration/machine.py",
        "return not self.missing and not any(r.error for r in self.arrived.values())",
        "return len(self.missing) < 2 and not any(r.error for r in self.arrived.values())",
        "A cut is committed when every task has reported it.", 72,
    ),
    Mutant(
        "cut number used twice", "core/migration/machine.py",
        "return 1 + max(self.journal.last_cut, self.record.cut, self.record.checkpoint, *self.record.committed, 0)",
        "return 1 + max(self.record.committed, default=0)",
        "A cut's number is used once.", 1,
    ),
    Mutant(
        "journal believed too late", "core/migration/table.py",
        "unwritten = journal.open and journal.epoch > m.record.epoch  # the record did not follow the journal",
        "unwritten = False",
        "A coordinator that takes over sees whether the record followed the journal.", 241,
    ),
    Mutant(
        "batch goes on", "control/coordinator.py",
        "break",
        "pass",
        "What follows an instruction that failed is not carried out.", 26,
    ),
    Mutant(
        "record without journal", "control/coordinator.py",
        "self._control.write_record(record, told=told, journal=journal, barrier=barrier)",
        "self._control.write_record(record, told=told, barrier=barrier)",
        "The journal is written with the record that it announces.", 630,
    ),
    Mutant(
        "token of base 0", "runtime/task/task.py",
        "return FencingToken(self.protocol.base, self.protocol.handover)",
        "return FencingToken(0, self.protocol.handover)",
        "A sink writes under the base that it belongs to.", 0,
    ),
    Mutant(
        "trimmed too early", "runtime/state/durable.py",
        "oldest = min(cuts, default=0)",
        "oldest = max(cuts, default=0)",
        "Input may go only behind the oldest cut that is kept.", 23,
    ),
    Mutant(
        "groups before the marker", "runtime/handover/handovers.py",
        "if self.epoch != epoch:",
        "if not self._receiving:",
        "A receiver takes a group over at the route marker, not when its pieces are in.", 9387,
    ),
    Mutant(
        "given away and kept", "runtime/handover/handovers.py",
        "self._released = shell.state.release(lost).values()",
        "self._released = [dict(shell.state.group(group)) for group in lost]",
        "A donor owns a group no more once it has given it away.", 7,
    ),
    Mutant(
        "changed after the copy", "runtime/handover/ahead.py",
        "keys = set(self._state.marked(group))",
        "keys = set()",
        "What changed since it was copied ahead is sent after the route marker.", 8,
    ),
    Mutant(
        "not frozen", "runtime/state/keyed.py",
        "self._frozen.append(frozen)",
        "pass",
        "A cut shows the state of its marker, whatever is done to it while it is written.", 0,
    ),
    Mutant(
        "piece counted twice", "runtime/handover/pieces.py",
        "if number < sender.next:",
        "if number < 0:",
        "A piece that comes twice counts once.", 7,
    ),
)  # fmt: skip


def seed_that_finds(mutant: Mutant, seeds: int, *, jobs: int = 1, first: int = 0) -> int | None:
    """The first seed that breaks a rule, as far as `seeds` of them were run; None if none does."""
    with tempfile.TemporaryDirectory() as folder:
        mutant.apply(Path(folder))
        command = [sys.executable, "-m", "leeward.sim.torture", "--json", "--failures", "1"]
        command += ["--seeds", str(seeds), "--first", str(first), "--jobs", str(jobs)]
        run = subprocess.run(
            command, cwd=folder, env={**os.environ, "PYTHONPATH": folder}, capture_output=True, text=True, check=False
        )
        try:
            failures = json.loads(run.stdout)["failures"]
        except ValueError:
            raise RuntimeError(f"{mutant.name}: the torture command failed: {run.stderr}") from None
        return failures[0]["seed"] if failures else None


def main(names: Iterable[str]) -> None:
    """Look for the mutants of these names, or for all."""
    wanted = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutant, seed in zip(wanted, pool.map(lambda mutant: seed_that_finds(mutant, SEEDS), wanted), strict=True):
            print(f"{mutant.name}: {'not found' if seed is None else seed}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
