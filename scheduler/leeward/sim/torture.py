"""Runs many seeds of `leeward.sim.pair` on all processors, and shows those that fail: seed, story, how to replay it.

python -m leeward.sim.torture --seeds 10000
python -m leeward.sim.torture --replay 4711
"""

from __future__ import annotations

import gc
import json
import logging
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

from leeward.sim.ends import Broken
from leeward.sim.pair import Pair

#: Seeds that a process runs before it answers, at most.
BATCH = 50


@dataclass(frozen=True, slots=True)
class Failure:
    """A seed that broke a rule."""

    seed: int
    story: str


@dataclass(slots=True)
class Outcome:
    """Results of the seeds until now."""

    first: int
    wanted: int
    ran: int = 0
    seconds: float = 0.0
    failures: list[Failure] = field(default_factory=list)


def run_seed(seed: int) -> Failure | None:
    """One seed; None if every rule held."""
    try:
        Pair(seed).run()
    except Broken as broken:
        return Failure(seed, str(broken))
    except Exception as error:  # the pair could not even begin
        how = f"Replay it: python -m leeward.sim.torture --replay {seed}"
        return Failure(seed, f"seed {seed}: {type(error).__name__}: {error}\n{how}")
    return None


def run_batch(first: int, count: int, most: int) -> tuple[int, list[Failure]]:
    """Seeds `first` and on, `count` of them, or fewer once `most` have failed: how many ran, and the failures."""
    failures: list[Failure] = []
    for done in range(count):
        failure = run_seed(first + done)
        if failure is not None:
            failures.append(failure)
            if len(failures) >= most:
                return done + 1, failures
    gc.collect()
    return count, failures


def _begin_process() -> None:
    """Ctrl-C is the parent's; a topology's log is in the story; a run's garbage is collected after each batch."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)
    gc.collect()
    gc.freeze()
    gc.disable()


def batches(first: int, seeds: int, jobs: int) -> Iterator[tuple[int, int]]:
    """(First seed, how many); small ones where there are few seeds, so that every process has some."""
    size = max(1, min(BATCH, seeds // (jobs * 4)))
    for start in range(first, first + seeds, size):
        yield start, min(size, first + seeds - start)


def torture(first: int, seeds: int, jobs: int, most: int, progress: Progress) -> Iterator[Outcome]:
    """Run the seeds, and yield the outcome after each batch; ends early once `most` have failed."""
    outcome, began = Outcome(first, seeds), time.monotonic()
    todo, bar = batches(first, seeds, jobs), progress.add_task("seeds", total=seeds)
    with ProcessPoolExecutor(jobs, initializer=_begin_process) as pool:
        running: set[Future[Any]] = set()
        try:
            while True:
                while len(running) < 2 * jobs and (batch := next(todo, None)):
                    running.add(pool.submit(run_batch, *batch, most))
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    ran, failures = future.result()
                    outcome.ran += ran
                    outcome.failures = sorted([*outcome.failures, *failures], key=lambda failure: failure.seed)
                    progress.advance(bar, ran)
                outcome.seconds = time.monotonic() - began
                yield outcome
                if len(outcome.failures) >= most:
                    return
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def replay(seed: int, console: Console) -> int:
    """Run one seed again, here, and print its story."""
    logging.disable(logging.CRITICAL)
    failure = run_seed(seed)
    console.print(failure.story if failure else f"seed {seed}: every rule held.", markup=False, highlight=False)
    return 1 if failure else 0


def report(outcome: Outcome, *, as_json: bool, stopped: bool, console: Console) -> None:
    """To standard output."""
    if as_json:
        print(json.dumps({**asdict(outcome), "stopped": stopped}))
        return
    for failure in outcome.failures:
        console.print(failure.story, markup=False, highlight=False)
    each = 1000 * outcome.seconds / max(1, outcome.ran)
    end = " (stopped)" if stopped else ""
    console.print(
        f"{outcome.ran} of {outcome.wanted} seeds from {outcome.first} in {outcome.seconds:.0f} s ({each:.1f} ms each)"
        f"{end}: {len(outcome.failures)} failed",
        highlight=False,
    )


def main(
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to run.")] = 10_000,
    first: Annotated[int, typer.Option(min=0, help="The first of them.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = os.cpu_count() or 1,
    most: Annotated[int, typer.Option("--failures", min=1, help="Stop once so many seeds have failed.")] = 3,
    again: Annotated[int | None, typer.Option("--replay", min=0, help="Run one seed, and print its story.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of text.")] = False,
) -> None:
    """Coordinator and tasks of a small topology in memory, under faults, one run a seed. Exit code 1: one failed."""
    console, errors = Console(soft_wrap=True), Console(stderr=True)
    if again is not None:
        raise typer.Exit(replay(again, console))
    outcome, stopped = Outcome(first, seeds), False
    columns = (*Progress.get_default_columns()[:2], MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as progress:
        try:
            for present in torture(first, seeds, jobs, most, progress):
                outcome = present
        except KeyboardInterrupt:
            stopped = True
    report(outcome, as_json=as_json, stopped=stopped, console=console)
    raise typer.Exit(1 if outcome.failures else 130 if stopped else 0)


if __name__ == "__main__":
    typer.run(main)
