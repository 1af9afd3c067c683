"""The demo's terminal view: one value in, one rich renderable out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich import box
from rich.columns import Columns
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

_BARS = "▁▂▃▄▅▆▇█"
_HISTORY = 48  # points of a sparkline


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """One line of the operator table."""

    name: str
    replicas: int  #: tasks that own key groups
    tasks: int  #: warm ones included
    places: Mapping[str, int]  #: node -> replicas
    rate: float  #: tuples/s in (a source: out)
    busy: float | None  #: share of time that its replicas are busy, 0 to 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Screen:
    """Everything the view shows."""

    title: str
    clock: str  #: time of the data
    elapsed_s: float
    rates: Sequence[float]  #: tuples/s at the source, one each second, newest last
    responses_ms: Sequence[float]  #: age of a pulse at the sink, one each result, newest last
    backlog: int  #: tuples that wait before the source
    cost: float | None  #: $/h of the plan in force
    downtime_share: float  #: of the time since the replay began, 0 to 1
    operators: Sequence[Operator]
    migration: str  #: step of a running migration; empty: none
    history: Sequence[str]  #: newest last
    routes: Sequence[tuple[str, str]]  #: the ten top routes, (from, to)


def sparkline(values: Sequence[float], *, width: int = _HISTORY) -> str:
    """The newest `width` values as bars between 0 and their maximum."""
    recent = list(values)[-width:]
    top = max(recent, default=0.0) or 1.0
    return "".join(_BARS[min(len(_BARS) - 1, int(len(_BARS) * max(value, 0.0) / top))] for value in recent)


def render(screen: Screen) -> RenderableType:
    """The whole view, about 30 lines of 100 columns."""
    return Group(
        Panel(_head(screen), title=screen.title, box=box.ROUNDED),
        _operators(screen.operators),
        Panel(
            Text(
                screen.migration or "no migration in progress",
                style="bold yellow" if screen.migration else "dim",
            ),
            title="migration",
            box=box.ROUNDED,
        ),
        Columns(
            [
                Panel(
                    Text("\n".join(screen.history[-8:]) or "nothing yet"),
                    title="reconfigurations",
                    box=box.ROUNDED,
                    width=62,
                ),
                Panel(_routes(screen.routes), title="ten top routes", box=box.ROUNDED, width=36),
            ]
        ),
    )


def _head(screen: Screen) -> Table:
    grid = Table.grid(padding=(0, 2))
    rate = screen.rates[-1] if screen.rates else 0.0
    response = f"{screen.responses_ms[-1]:.0f} ms" if screen.responses_ms else "-"
    cost = "-" if screen.cost is None else f"{screen.cost:.0f} $/h"
    grid.add_row("data time", screen.clock, "running", f"{screen.elapsed_s:.0f} s", "cost", cost)
    grid.add_row(
        "rate",
        f"{rate:.0f} tuples/s",
        "backlog",
        f"{screen.backlog}",
        "downtime",
        f"{screen.downtime_share:.1%}",
    )
    grid.add_row("", Text(sparkline(screen.rates), style="cyan"))
    grid.add_row("response", Text(f"{response}", style="bold"))
    grid.add_row("", Text(sparkline(screen.responses_ms), style="magenta"))
    return grid


def _operators(operators: Sequence[Operator]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, expand=True)
    for heading, justify in (
        ("operator", "left"),
        ("replicas", "right"),
        ("tuples/s", "right"),
        ("busy", "right"),
        ("where", "left"),
    ):
        table.add_column(heading, justify="right" if justify == "right" else "left")
    for operator in operators:
        busy = "-" if operator.busy is None else f"{operator.busy:.0%}"
        places = ", ".join(f"{node}" + (f" x{count}" if count > 1 else "") for node, count in operator.places.items())
        style = "bold" if operator.replicas > 1 else ""
        table.add_row(
            operator.name,
            f"{operator.replicas} of {operator.tasks}",
            f"{operator.rate:.0f}",
            busy,
            places,
            style=style,
        )
    return table


def _routes(routes: Sequence[tuple[str, str]]) -> Text:
    if not routes:
        return Text("nothing yet", style="dim")
    return Text("\n".join(f"{rank:2}  {start:>8} -> {end}" for rank, (start, end) in enumerate(routes, start=1)))
