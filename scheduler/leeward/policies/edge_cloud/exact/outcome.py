"""The outcomes of an exact method.  Totals are those of the objective (8): the makespans of all dataflows, s."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Optimal:
    """No placement of the arriving dataflow beside the others has a lower total."""

    placement: tuple[int, ...]
    #: (8) with this placement, s, as the board says it.
    total: float
    #: Proven lower bound on (8), s; it differs from the total by no more than the solver's tolerance.
    bound: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Infeasible:
    """Proven: every placement breaks a constraint, for the dataflow or for those that run already."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unproven:
    """The time limit was reached.  The best that was found so far, if anything was."""

    placement: tuple[int, ...] | None
    #: (8) with this placement, s.
    total: float | None
    #: Proven lower bound on (8), s.
    bound: float


Outcome = Optimal | Infeasible | Unproven
