"""Solving in another process: a solve that runs too long is ended, memory is measured, nothing warm is left behind.

`python -m leeward.policies.edrp.experiments.isolated` reads one task a line from standard input and writes one
`Measured` a line; `measure` starts it, and ends it when a task overruns its limit.
"""

from __future__ import annotations

import json
import os
import queue
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from leeward.core.errors import LeewardError
from leeward.policies.edrp.experiments.instances import toy
from leeward.policies.edrp.problem.document import problem_from_json, problem_to_json
from leeward.policies.edrp.problem.problem import Problem

#: Seconds after the limit that a process gets to give up by itself, so that it can still say what it found.
GRACE_S = 15.0
#: Seconds that loading a method may take: the first time on a machine it is compiled.
LOADING_S = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One problem, one method."""

    key: str
    problem: Problem
    method: str
    limit_s: float
    gap: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The end of a task."""

    key: str
    #: optimal, feasible, infeasible, unknown; "limit" when it was ended; "refused" with the reason in `why`.
    status: str
    #: Of the solve alone: neither compiling, nor starting Python.  The limit where it was ended.
    seconds: float
    F: float | None = None
    bound: float | None = None
    gap: float | None = None
    variables: int | None = None
    #: Highest resident memory of the process up to the end of this task, MB.
    peak_mb: float | None = None
    why: str = ""


def measure(tasks: Sequence[Task], *, each_alone: bool = False) -> Iterator[Measured]:
    """The tasks in their order, each result as soon as it is known; with `each_alone` each in a process of its own.

    A task that overruns its limit ends the process; those after it get a new one.
    """
    waiting = list(tasks)
    while waiting:
        batch = waiting[:1] if each_alone else waiting
        done = 0
        for measured in _in_one_process(batch):
            yield measured
            done += 1
        waiting = waiting[done:]


def _in_one_process(tasks: Sequence[Task]) -> Iterator[Measured]:
    command = [sys.executable, "-m", "leeward.policies.edrp.experiments.isolated"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ)
    assert process.stdin is not None and process.stdout is not None
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    reader = threading.Thread(target=_pass_on, args=(process.stdout, lines), daemon=True)
    reader.start()
    try:
        if lines.get() != "ready\n":
            raise LeewardError("The process that solves did not start.", remedy="See its message above.")
        for task in tasks:
            process.stdin.write(json.dumps(_as_document(task)) + "\n")
            process.stdin.flush()
            loaded = _line_within(lines, LOADING_S)
            line = loaded and _line_within(lines, task.limit_s + GRACE_S)
            if not line:
                ended = "ended at the limit" if line is None else "the process died, of memory perhaps"
                yield Measured(key=task.key, status="limit", seconds=task.limit_s, why=ended)
                return
            yield Measured(**json.loads(line))
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stdin.close()
        process.stdout.close()


def _pass_on(lines: Iterator[str], to: queue.SimpleQueue[str]) -> None:
    for line in lines:
        to.put(line)
    to.put("")


def _line_within(lines: queue.SimpleQueue[str], seconds: float) -> str | None:
    try:
        return lines.get(timeout=seconds)
    except queue.Empty:
        return None


def _as_document(task: Task) -> dict[str, object]:
    return {
        "key": task.key,
        "problem": problem_to_json(task.problem),
        "method": task.method,
        "limit_s": task.limit_s,
        "gap": task.gap,
        "seed": task.seed,
    }


def run_task(task: Task) -> Measured:
    """Solves here and now."""
    from leeward.policies.edrp.methods import solve

    began = time.monotonic()
    try:
        outcome = solve(task.problem, method=task.method, time_limit_s=task.limit_s, seed=task.seed, gap=task.gap)
    except (LeewardError, MemoryError) as error:
        return Measured(key=task.key, status="refused", seconds=time.monotonic() - began, why=str(error))
    metrics = getattr(outcome, "metrics", None)
    why = getattr(outcome, "why", "")
    return Measured(
        key=task.key,
        status=type(outcome).__name__.lower(),
        seconds=outcome.effort.seconds,
        F=None if metrics is None else metrics.F,
        bound=getattr(outcome, "bound", None),
        gap=getattr(outcome, "gap", None),
        variables=outcome.effort.variables,
        peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        why=why if isinstance(why, str) else " ".join(why),
    )


def main() -> None:
    """Reads tasks, writes results; each method is tried on a toy first, so that loading it is not measured."""
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # a solver's output must not get between the results
    print("ready", file=results, flush=True)
    loaded = set()
    for line in sys.stdin:
        document = json.loads(line)
        task = Task(**document | {"problem": problem_from_json(document["problem"])})
        if task.method not in loaded:
            run_task(replace(task, problem=toy(), limit_s=LOADING_S))
            loaded.add(task.method)
        print("loaded", file=results, flush=True)
        print(json.dumps(asdict(run_task(task))), file=results, flush=True)


if __name__ == "__main__":
    main()
