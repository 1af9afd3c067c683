"""Budgets of queries that fan out: from a query's objective to the deadline of each subtask (spec of DSSP, section 1).

A query goes to k_q domains, a task in a domain to k_t nodes, and the slowest counts at both.  Symbols of the paper:
x -> `objective_s`; p_q, p_t -> `percent`; F_i -> a distribution function of node i; x_u -> the unloaded latency;
t_D -> the queueing deadline; lambda_t -> `rate`; t_e -> the mean execution time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from leeward.core.fields import FieldError, check_number

#: P(response time <= t seconds) of an idle node.
Distribution = Callable[[float], float]
#: The search for a latency ends at this part of its width.
PRECISION = 1e-12
#: Doublings of the bound of that search; a distribution that is still below then never gets there.
DOUBLINGS = 200


def task_percent(percent: float, domains: int) -> float:
    """p_t = 100 (p_q / 100)^(1 / k_q) [1, 2]: the slowest of so many tasks keeps the percentile of the query."""
    check_percent("percent", percent)
    _check_count("domains", domains)
    return 100.0 * math.pow(percent / 100.0, 1.0 / domains)


def unloaded_s(percent: float, nodes: Sequence[Distribution]) -> float:
    """x_u = G^-1(p_t / 100), where G(t) is the product of F_i(t) [3, 4]: of the slowest subtask, by bisection.

    Raises FieldError if there is no node, or if the percentile is never reached.
    """
    check_percent("percent", percent)
    _check_count("nodes", len(nodes))
    wanted = percent / 100.0

    def reached(t: float) -> bool:
        return math.prod(node(t) for node in nodes) >= wanted

    low, high = 0.0, 1e-6
    for _ in range(DOUBLINGS):
        if reached(high):
            break
        low, high = high, 2 * high
    else:
        raise FieldError("nodes", percent, "this percentile is never reached", remedy="give complete distributions")
    while high - low > PRECISION * high:
        middle = (low + high) / 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def deadline_s(arrived_s: float, objective_s: float, unloaded: float, spent_s: float = 0.0) -> float:
    """t_D = t_0 + (x - x_u) [5, 6]: a subtask that starts by then meets the task's budget.

    `spent_s`: measured delays before and after the queue, which are taken off the objective.  With a deadline before
    the arrival the objective cannot be promised.
    """
    return arrived_s + (objective_s - spent_s - unloaded)


def allowance_s(objective_s: float, unloaded: float, spent_s: float = 0.0) -> float:
    """Time in queues that an objective leaves. Raises FieldError, with the least objective, if there is none."""
    left = objective_s - spent_s - unloaded
    if left < 0:
        least = unloaded + spent_s
        raise FieldError(
            "objective_s", objective_s, f"idle nodes already take {least:.6g} s", remedy=f"give {least:.6g} or more"
        )
    return left


def affordable_s(rate: float, percent: float, nodes: int, objective_s: float) -> float:
    """t_e = 1 / (lambda_t - ln(1 - (p_t / 100)^(1 / n)) / x): the largest mean execution time [7-10], of M/M/1 nodes.

    `rate`: subtasks/s of each node.
    """
    check_number("rate", rate)
    check_percent("percent", percent)
    _check_count("nodes", nodes)
    check_number("objective_s", objective_s, positive=True)
    return 1.0 / (rate - math.log1p(-((percent / 100.0) ** (1.0 / nodes))) / objective_s)


def check_percent(field: str, value: float) -> None:
    """Raises FieldError for a percentile that nothing or everything keeps."""
    if not 0 < value < 100:
        raise FieldError(field, value, "is not between 0 and 100", remedy="give a percentile such as 99")


def _check_count(field: str, value: int) -> None:
    if value < 1:
        raise FieldError(field, value, "must be 1 or more", remedy="give 1 or more")
