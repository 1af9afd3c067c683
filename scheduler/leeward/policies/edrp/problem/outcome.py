"""The outcomes of solving.  Running out of time or having no solution is an outcome, not an exception."""

from __future__ import annotations

from dataclasses import dataclass, field

from leeward.policies.edrp.problem.evaluate import Metrics
from leeward.policies.edrp.problem.values import Deployment


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How the outcome came about."""

    method: str
    #: Wall-clock seconds from the call to the answer.
    seconds: float
    #: Binary variables of the model (x and y; r and t_D are not counted), or None for a search without one.
    variables: int | None = None
    #: Where two methods ran side by side: the one whose deployment this is, the other, and the F of what that found.
    found_by: str | None = None
    other: str | None = None
    other_F: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimal:
    """A verified deployment and the proof that none is better by more than the gap that was asked for."""

    deployment: Deployment
    metrics: Metrics
    #: Proven lower bound on F.
    bound: float
    effort: Effort

    @property
    def gap(self) -> float:
        return relative_gap(self.metrics.F, self.bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feasible:
    """A verified deployment that may not be the best."""

    deployment: Deployment
    metrics: Metrics
    #: Proven lower bound on F, or None if there is none.
    bound: float | None
    effort: Effort
    #: Why it stopped, in words.
    why: str = "the time limit was reached"

    @property
    def gap(self) -> float | None:
        return None if self.bound is None else relative_gap(self.metrics.F, self.bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One number of the problem that would have to be greater."""

    #: A path with ids in it: `bounds.r`, `nodes.n3.res`, `operators.parser.k`.
    field: str
    name: str
    now: float
    #: Enough, where the other changes of its relaxation are made too.
    needed: float
    unit: str
    #: Whether less is proven not to be enough.
    least: bool = True

    def __str__(self) -> str:
        more = f"raise it by {self.needed - self.now:.6g} {self.unit}" + ("" if self.least else ", or by less")
        return f"{self.name} would have to be {self.needed:.6g} {self.unit}; it is {self.now:.6g}: {more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Relaxation:
    """Changes that together make an infeasible problem feasible."""

    changes: tuple[Change, ...]

    def __str__(self) -> str:
        return ", and ".join(map(str, self.changes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Infeasible:
    """Proven: no deployment meets the constraints."""

    #: Which bound or capacity cannot be met and what would help, one sentence for each way out.
    why: tuple[str, ...]
    effort: Effort
    #: The same as values; empty if there was no time to find out.
    relaxations: tuple[Relaxation, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Neither a deployment nor a proof that there is none."""

    why: str
    effort: Effort
    bound: float | None = field(default=None)


Outcome = Optimal | Feasible | Infeasible | Unknown


def relative_gap(value: float, bound: float) -> float:
    """(value - bound) / value, never negative; 0 if both are 0."""
    return max(0.0, value - bound) / value if value > 0 else 0.0


#: A difference of F that is worth a word.
NOTABLE = 1e-6
#: Name of a method in a reason.
NAMES = {"exact": "the exact search", "restricted": "rEDRP", "near": "a local search"}


def found_in_words(outcome: Outcome) -> str:
    """Which of two methods gave a deployment and how far off the other was; empty if only one was asked for."""
    effort = outcome.effort
    if not isinstance(outcome, Optimal | Feasible) or effort.found_by is None:
        return ""
    text = f"by {NAMES[effort.found_by]}"
    if isinstance(outcome, Optimal):
        text += " (proven optimal)"
    elif outcome.gap is not None:
        text += f" (at most {100 * outcome.gap:.2g} % above the optimum)"
    if effort.other is None:
        return text
    other = NAMES[effort.other]
    if effort.other_F is None:
        return f"{text}; {other} found none"
    worse = effort.other_F - outcome.metrics.F
    if worse <= NOTABLE:
        return f"{text}; {other} found none that is better"
    by = f"{100 * worse / outcome.metrics.F:.2g} %" if outcome.metrics.F > 0 else f"{worse:.2g}"
    return f"{text}; {other} {by} worse"
