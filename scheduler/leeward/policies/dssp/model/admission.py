"""Promises of a domain: objectives that idle nodes keep, and rates that its nodes sustain (spec, section 1)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leeward.policies.dssp.model.budgets import affordable_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The verdict on an objective at a rate."""

    accepted: bool
    why: str = ""
    least_s: float | None = None  #: the least objective that can be promised; None: not known, or none at this rate
    pods: tuple[int, ...] = ()  #: of each node, the fewest that are enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """A node of the set that a service asks for."""

    rate: float  #: subtasks/s of all services, with the new one
    mean_s: float  #: of an execution
    most_pods: int


def promise(
    loads: Sequence[Load], percent: float, objective_s: float, unloaded: float | None, busy: float | None = None
) -> Promise:
    """Of p_t and x: idle nodes have to keep the objective, and a node with its pods the mean time that [7-10] affords.

    Pods of a node share its rate, each as an M/M/1 queue.  `unloaded`: x_u, None if not known.  With `busy`, nodes
    may instead be busy for this part of the time: execution times that vary less than exponential ones allow for more.
    """
    if unloaded is None:
        return Promise(accepted=False, why="its latency is not known yet: too few measurements")
    if objective_s < unloaded:
        return Promise(accepted=False, why=f"idle nodes already take {unloaded:.6g} s", least_s=unloaded)
    if busy is None:
        pods = tuple(fewest_pods(load, percent, len(loads), objective_s) for load in loads)
    else:
        pods = tuple(_fewest_busy(load, busy) for load in loads)
    if None not in pods:
        return Promise(accepted=True, pods=tuple(count for count in pods if count is not None))
    least = max(least_objective_s(load, percent, len(loads)) for load in loads)
    if math.isinf(least) or busy is not None:
        return Promise(accepted=False, why="its nodes do not sustain this rate")
    return Promise(accepted=False, why=f"at this rate its nodes need {least:.6g} s", least_s=max(least, unloaded))


def fewest_pods(load: Load, percent: float, nodes: int, objective_s: float) -> int | None:
    """The smallest number of pods with which a node is fast enough; None if its most are too few."""
    for pods in range(1, load.most_pods + 1):
        if load.mean_s <= affordable_s(load.rate / pods, percent, nodes, objective_s):
            return pods
    return None


def _fewest_busy(load: Load, busy: float) -> int | None:
    pods = max(1, math.ceil(load.rate * load.mean_s / busy))
    return pods if pods <= load.most_pods else None


def least_objective_s(load: Load, percent: float, nodes: int) -> float:
    """The objective that a node with all its pods can keep, s; infinite at a rate that it does not sustain."""
    spare = 1.0 / load.mean_s - load.rate / load.most_pods
    return -math.log1p(-((percent / 100.0) ** (1.0 / nodes))) / spare if spare > 0 else math.inf
