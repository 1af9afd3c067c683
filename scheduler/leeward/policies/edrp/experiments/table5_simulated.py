"""The runs of Table V in virtual time: rows and pictures from the figures of eight simulations. Pure.

Settings and rates are those of the runs on Storm (`table5.py`), queues are computed, and hours pass in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from leeward.core.experiment import Curve, Finding, Panel, Row
from leeward.policies.edrp.experiments.table5 import (
    MODES,
    MS,
    OBJECTIVES,
    UP_TO_C_MAX,
    Objective,
    bounded_rows,
    override_notes,
    row_of,
)

Figures = Mapping[str, float]  #: of one simulation, by name; times in s
Runs = Mapping[tuple[str, str], Figures]  #: by objective and mode


def conclude(runs: Runs, *, minutes: float, peak: float, delay_s: float, overrides: Sequence[str] = ()) -> Finding:
    """Rows of each run, and the replicas of each objective.

    `minutes`: length of a run; `peak`: tuples/s; `overrides`: settings in place of the paper's.
    """
    rows = [
        row
        for mode in MODES
        for objective in OBJECTIVES
        if (figures := runs.get((objective.name, mode))) is not None
        for row in _rows(objective, mode, figures)
    ]
    notes = (*_notes(minutes, peak, delay_s), *override_notes(overrides))
    return Finding(rows=tuple(rows), panels=tuple(_panels(runs, minutes)), notes=notes)


def _rows(objective: Objective, mode: str, figures: Figures) -> list[Row]:
    row = partial(row_of, objective, mode)
    return [
        row("mean R", "ms", MS * figures["response"], paper=objective.paper_response_ms),
        row("R for 95 % of the time", "ms", MS * figures["p95"]),
        *bounded_rows(
            objective, mode, cost=figures["cost"], downtime=100 * figures["downtime"] / figures["seconds"]
        ),
        row("longest pause", "s", figures["longest"]),
        row("reconfigurations", "", figures["reconfigurations"]),
        row("most replicas", "", figures["most replicas"]),
        row("tuples offered", "", figures["offered"], low=1),
        row("tuples lost", "", figures["lost"], low=0, high=0),
    ]  # fmt: skip


def _panels(runs: Runs, minutes: float) -> list[Panel]:
    panels = []
    for objective in OBJECTIVES:
        known = {mode: curve_of(runs[objective.name, mode]) for mode in MODES if (objective.name, mode) in runs}
        if known:
            points = len(next(iter(known.values())))
            panels.append(Panel(
                title=f"{objective.name}: replicas", unit="replicas", kind="lines", along="minute",
                curves=tuple(Curve(name=mode, values=values) for mode, values in known.items()),
                at=tuple(minutes * (at + 1) / points for at in range(points)),
            ))  # fmt: skip
    return panels


def curve_of(figures: Figures) -> tuple[float, ...]:
    """Its replicas over time: figures `replicas 0`, `replicas 1`, ..."""
    return tuple(figures[f"replicas {at}"] for at in range(sum(name.startswith("replicas ") for name in figures)))


def _notes(minutes: float, peak: float, delay_s: float) -> tuple[str, ...]:
    return (
        f"{minutes:g} minutes in virtual time, at most {peak:g} tuples/s, through the real service, its guard, its "
        "coordinator and the protocol of each task; the settings are those of `leeward experiment edrp-table5`. Queues "
        "are computed by Table II's service rates: results wait for no worker, pulse or serializer, as they do on "
        f"Storm. The network between nodes has a delay of {MS * delay_s:g} ms one way.",
        UP_TO_C_MAX,
    )
