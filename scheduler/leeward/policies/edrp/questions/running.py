"""Explains the best deployment of a topology that runs: by its view, with the settings of this policy."""

from __future__ import annotations

import io
from typing import Any

from leeward.core.errors import NotReadyError
from leeward.core.learnt_told import learnt_by
from leeward.core.model import ClusterView
from leeward.core.options import read
from leeward.core.settings import Chosen
from leeward.policies.edrp.policy import build_problem
from leeward.policies.edrp.problem.outcome import Infeasible, Unknown
from leeward.policies.edrp.problem.outcome_document import outcome_document
from leeward.policies.edrp.problem.problem import Problem
from leeward.policies.edrp.questions.document import explanation_to_json
from leeward.policies.edrp.questions.explain import Explanation, explain
from leeward.policies.edrp.settings import EdrpSettings
from leeward.policies.edrp.views.explain_text import print_explanation


def problem_of(view: ClusterView, chosen: Chosen) -> tuple[Problem, tuple[str, ...]]:
    """The problem that the policy of the papers would solve for this view, and remarks on what was assumed.

    `chosen`: the settings of this topology. Raises NotReadyError if no tuple was received, ConfigError. Pure.
    """
    settings = read(EdrpSettings, chosen.policies.get("edrp", {}), where="edrp.")
    if not any(view.stream_rate.values()):
        raise NotReadyError(
            f"{view.topology}: no tuple was received for {chosen.service.window_s:g} s, so nothing can be priced.",
            remedy="Wait until data flow, or give a longer window: -o window_s=60.",
        )
    return build_problem(view, settings)


def explanation_document(problem: Problem, result: Explanation | Infeasible | Unknown) -> dict[str, Any]:
    """The stable JSON form: that of `solve`, and the explanation where there is a deployment. Pure."""
    if not isinstance(result, Explanation):
        return outcome_document(problem, result)
    return outcome_document(problem, result.outcome) | explanation_to_json(result)


def explain_view(
    view: ClusterView, chosen: Chosen, *, method: str, time_limit_s: float, seed: int, width: int | None = None
) -> dict[str, Any] | str:
    """The document of `leeward explain TOPOLOGY`; with `width`, characters of a line, its text.

    Raises NotReadyError, ConfigError, FieldError.
    """
    problem, remarks = problem_of(view, chosen)
    result = explain(problem, method=method, time_limit_s=time_limit_s, seed=seed)
    document = explanation_document(problem, result) | learnt_by(view)
    if width is None:
        return document
    text = io.StringIO()
    text.writelines(f"{remark}\n" for remark in remarks)
    print_explanation(document, text, width=width)
    return text.getvalue()
