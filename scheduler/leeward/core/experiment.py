"""An experiment: runs in the simulator, and our figures beside those of a paper. Values only.

A room says which runs it needs, and concludes from them; neither part simulates, waits or writes. The command line
plays the runs, with progress, and goes on where an earlier call was broken off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from leeward.core.workload import Arriving, Interval

ArrivalsName = Literal["random-walk", "poisson"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The arrivals and departures that several policies meet."""

    workload: str  #: name of a workload
    nodes: int
    intervals: int
    arrivals: ArrivalsName
    spread: float = 0.0  #: u of the random walk
    start: int | None = None  #: topologies in the first interval of Poisson arrivals; None: as many as the paper has
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One policy in one setting."""

    setting: Setting
    label: str  #: of the policy with its options, for people
    policy: str
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A run that is over."""

    intervals: Sequence[Interval]
    topologies: Mapping[str, Arriving]  #: all that came


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure of ours, beside those of others."""

    figure: str  #: of the paper
    setting: str
    metric: str
    unit: str
    paper: float | None = None  #: None: the paper prints none
    independent: float | None = None  #: found without our code
    ours: float
    low: float | None = None  #: bounds that are set for ours; None: none
    high: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether ours is within its bounds; None if it has none."""
        if self.low is None and self.high is None:
            return None
        return (self.low is None or self.ours >= self.low) and (self.high is None or self.ours <= self.high)

    def document(self) -> dict[str, object]:
        """As JSON has it."""
        return {
            "figure": self.figure, "setting": self.setting, "metric": self.metric, "unit": self.unit,
            "paper": self.paper, "independent": self.independent, "ours": self.ours, "low": self.low,
            "high": self.high, "met": self.met,
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """Values over time, or a distribution."""

    name: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One part of the picture."""

    title: str
    unit: str
    kind: Literal["lines", "dots", "boxes"]
    curves: tuple[Curve, ...]
    along: str = "interval"  #: the other axis; boxes have none
    at: tuple[float, ...] = ()  #: values there; empty: 0, 1, 2, ...
    logarithmic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The outcome of an experiment."""

    rows: tuple[Row, ...]
    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One run of a study and its options. The same part gives the same figures wherever it runs."""

    name: str  #: for people, and for the file of those that are done
    seed: int
    options: tuple[tuple[str, str | float], ...] = ()

    def option(self, name: str) -> str | float:
        """One of its options; raises KeyError."""
        return dict(self.options)[name]


class Study(Protocol):
    """An experiment whose runs are computed by the room alone. All methods are pure."""

    def parts(self, *, seed: int, quick: bool) -> Sequence[Part]:
        """`quick`: so few that all of them end within 30 s."""

    def measure(self, part: Part) -> Mapping[str, float]:
        """The figures of one run. Called in other processes, too."""

    def conclude(self, measured: Mapping[Part, Mapping[str, float]]) -> Finding:
        """From every part that was asked for."""


class Experiment(Protocol):
    """One figure, or a few that share their runs. Both methods are pure."""

    def runs(self, *, seed: int, quick: bool) -> Sequence[Run]:
        """`quick`: so few that all of them end within 30 s."""

    def conclude(self, played: Mapping[Run, Played]) -> Finding:
        """From every run that was asked for."""
