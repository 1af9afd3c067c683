"""Plays the runs of an experiment: each policy of a setting on the same arrivals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from random import Random

from leeward.control.registry import make_joint_policy, make_workload
from leeward.core.experiment import Played, Run, Setting
from leeward.core.workload import Arriving, Workload
from leeward.sim.workload.arrivals import Arrive, Step, poisson, random_walk
from leeward.sim.workload.rows import RowsFile
from leeward.sim.workload.run import play


def steps_of(setting: Setting, sizes: Sequence[int]) -> tuple[Step, ...]:
    """The arrivals and departures; `sizes`: components of each entry of the catalogue."""
    rng = Random(f"{setting.seed}:arrivals")
    if setting.arrivals == "poisson":
        return poisson(sizes, setting.nodes, setting.intervals, rng, start=setting.start)
    return random_walk(sizes, setting.nodes, setting.intervals, rng, spread=setting.spread)


def play_all(
    runs: Sequence[Run], folder: Path, *, version: str, clock: Callable[[], float],
    advance: Callable[[float, str], None],
) -> dict[Run, Played]:  # fmt: skip
    """Every run, in the order of its setting's first one. Rows are kept in `folder`, and those that are there are used.

    `version`: of the program; rows of another one are refused with FieldError. `advance`: intervals that are done, and
    the run's label. Raises the errors of the policies too.
    """
    played: dict[Run, Played] = {}
    done = 0
    for setting in dict.fromkeys(run.setting for run in runs):
        workload = make_workload(setting.workload, nodes=setting.nodes, seed=setting.seed)
        steps = steps_of(setting, workload.sizes)
        topologies = _topologies(workload, steps, setting.seed)
        with RowsFile(folder / f"{_name(setting)}.jsonl", {**asdict(setting), "version": version}) as kept:
            for run in (run for run in runs if run.setting == setting):
                rows = list(kept.done(run.label))
                policy = make_joint_policy(run.policy, dict(run.options))
                for row in play(workload, policy, steps, seed=setting.seed, clock=clock, done=tuple(rows)):
                    kept.add(run.label, row)
                    rows.append(row)
                    advance(done + len(rows), f"{_name(setting)}: {run.label}")
                done += len(rows)
                played[run] = Played(intervals=tuple(rows), topologies=topologies)
    return played


def _topologies(workload: Workload, steps: Sequence[Step], seed: int) -> dict[str, Arriving]:
    events = [event for step in steps for event in step if isinstance(event, Arrive)]
    return {
        event.topology: workload.arriving(event.entry, event.topology, Random(f"{seed}:{event.topology}"))
        for event in events
    }


def _name(setting: Setting) -> str:
    kind = f"-{setting.spread:g}" if setting.arrivals == "random-walk" else f"-{setting.start}" if setting.start else ""
    return f"{setting.workload}-{setting.nodes}x{setting.intervals}-{setting.arrivals}{kind}-seed{setting.seed}"
