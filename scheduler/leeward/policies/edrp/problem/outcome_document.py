"""An outcome as JSON, for `leeward solve` and everything that tells of a deployment."""

from __future__ import annotations

from typing import Any

from leeward.policies.edrp.problem.outcome import Feasible, Infeasible, Outcome, Unknown
from leeward.policies.edrp.problem.problem import Problem


def outcome_document(problem: Problem, outcome: Outcome) -> dict[str, Any]:
    """The stable JSON form; keys without a value are null."""
    document: dict[str, Any] = {
        "name": problem.name,
        "status": type(outcome).__name__.lower(),
        "method": outcome.effort.method,
        **dict.fromkeys(("F", "R", "C", "T_D", "bound", "gap", "parts", "deployment")),
        "seconds": outcome.effort.seconds,
        "variables": outcome.effort.variables,
        "why": None,
    }
    if isinstance(outcome, Infeasible):
        return document | {"why": list(outcome.why)}
    document["bound"] = outcome.bound
    if isinstance(outcome, Unknown):
        return document | {"why": [outcome.why]}
    metrics = outcome.metrics
    document |= {"F": metrics.F, "R": metrics.R, "C": metrics.C, "T_D": metrics.T_D, "gap": outcome.gap}
    document["parts"] = {
        "response": metrics.parts.response,
        "cost": metrics.parts.cost,
        "downtime": metrics.parts.downtime,
    }
    document["deployment"] = {op.id: dict(outcome.deployment[op.id]) for op in problem.operators}
    if isinstance(outcome, Feasible):
        document["why"] = [outcome.why]
    return document
