"""A query on given nodes, and the paper's quantities for it (`leeward evaluate dssp FILE`).

    {"query": {"percent": 99, "objective_s": 0.8, "domains": 4, "spent_s": 0.01},
     "nodes": [{"mean_s": 0.1, "shape": "exponential"}, {"samples_s": [0.08, 0.13, 0.11]}],
     "rate": 2.0}

The nodes are those of one of its tasks.  `spent_s`: known delays beside the queue; `rate`: subtasks/s of each node.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from leeward.core import fields
from leeward.core.fields import FieldError
from leeward.policies.dssp.model.budgets import Distribution, affordable_s, check_percent, task_percent, unloaded_s
from leeward.policies.dssp.model.distributions import Shape, distribution, empirical


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """See the module."""

    percent: float  #: p_q
    objective_s: float  #: x
    domains: int  #: k_q
    spent_s: float
    nodes: tuple[Distribution, ...]
    rate: float | None


def read_case(path: Path) -> Case:
    """Raises FieldError naming field, value and remedy."""
    top = fields.mapping(
        "case", fields.read_json(path), frozenset({"query", "nodes", "rate"}), required=("query", "nodes")
    )
    known = ("percent", "objective_s", "domains")
    query = fields.mapping("query", top["query"], frozenset((*known, "spent_s")), required=known)
    nodes = fields.each("nodes", top["nodes"], _node)
    if not nodes:
        raise FieldError("nodes", [], "are none", remedy="give one or more")
    case = Case(
        percent=fields.number("query.percent", query["percent"]),
        objective_s=fields.number("query.objective_s", query["objective_s"]),
        domains=fields.whole("query.domains", query["domains"]),
        spent_s=fields.number("query.spent_s", query.get("spent_s", 0.0)), nodes=nodes,
        rate=fields.number("rate", top["rate"]) if top.get("rate") is not None else None,
    )  # fmt: skip
    check_percent("query.percent", case.percent)
    fields.check_number("query.objective_s", case.objective_s, positive=True)
    fields.check_number("query.domains", case.domains, positive=True)
    fields.check_number("query.spent_s", case.spent_s)
    if case.rate is not None:
        fields.check_number("rate", case.rate)
    return case


def evaluate(case: Case) -> dict[str, Any]:
    """The paper's p_t, x_u, the queueing deadline after the arrival, and t_e; a broken objective is a quantity."""
    percent = task_percent(case.percent, case.domains)
    unloaded = unloaded_s(percent, case.nodes)
    allowance = case.objective_s - case.spent_s - unloaded
    left = case.objective_s - case.spent_s
    affordable = None
    if case.rate is not None and left > 0:
        affordable = affordable_s(case.rate, percent, len(case.nodes), left)
    return {
        "task_percent": percent, "unloaded_s": unloaded, "deadline_s": allowance,
        "least_objective_s": unloaded + case.spent_s, "affordable_execution_s": affordable,
        "violations": [] if allowance >= 0 else ["objective_below_unloaded"],
    }  # fmt: skip


def _node(field: str, value: object) -> Distribution:
    top = fields.mapping(field, value, frozenset({"mean_s", "shape", "samples_s"}))
    if ("samples_s" in top) is ("mean_s" in top):
        raise FieldError(field, value, "has not just one of them", remedy="give `samples_s`, or `mean_s` and `shape`")
    if "samples_s" in top:
        samples = fields.row(f"{field}.samples_s", top["samples_s"])
        if not samples:
            raise FieldError(f"{field}.samples_s", [], "are none", remedy="give one or more")
        for number, sample in enumerate(samples):
            fields.check_number(f"{field}.samples_s[{number}]", sample)
        return empirical(samples)
    mean, shape = fields.number(f"{field}.mean_s", top["mean_s"]), top.get("shape", "exponential")
    fields.check_number(f"{field}.mean_s", mean, positive=True)
    if shape not in get_args(Shape):
        raise FieldError(f"{field}.shape", shape, "is unknown", remedy=f"choose one of {', '.join(get_args(Shape))}")
    return distribution(mean, shape)
