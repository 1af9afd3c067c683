"""Agents as processes: the network and the tasks that they get, and the figures of a run.

Servers of the paper's platform (section 6.1) with more CPU, and tasks with a lower rate, so that most can run: time and
frames of mapping count here, not refusals.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from leeward.core.experiment import Finding, Row
from leeward.policies.bimodal.model.values import Network, Task
from leeward.policies.bimodal.platform.setup import Platform, arrivals, network

FIGURE = "Agents"
SERVERS, TASKS = 120, 100
QUICK_SERVERS, QUICK_TASKS = 20, 10
#: Bound of the time for all tasks, s.
ALL_S = 60.0
#: Tasks run at this part of the paper's rate, and servers have so many times its CPU.
RATE, CPU = 0.1, 10


def made(servers: int, count: int, seed: int) -> tuple[Network, list[Task]]:
    """Servers with one dedicated link more than a tree has for every fifth, and the tasks."""
    rng = random.Random(seed)
    platform = Platform(servers=servers, links=servers - 1 + servers // 5, direction="each", tasks=count)
    net = network(platform, rng)
    tasks = [task for _, task, _ in arrivals(platform, rng)]
    roomy = [replace(server, cpu=CPU * server.cpu) for server in net.servers.values()]
    return Network(roomy, net.links, direction=net.direction), tasks


def task_of(task: Task) -> Task:
    """The task at the rate at which it is mapped here."""
    return replace(task, bandwidth=tuple(RATE * one for one in task.bandwidth))


def conclude(method: str, servers: int, found: Mapping[str, Any], left: int) -> list[Row]:
    """Rows of one method's run; `left`: servers that still hold something a lease after all tasks were ended."""
    count = len(found["tasks"])
    where = f"{method}, {servers} processes, {count} tasks at once"
    running = sum(one["status"] == "running" for one in found["tasks"])
    whole = method == "survey" and servers == SERVERS
    figures: list[tuple[str, str, float, float | None, float | None]] = [
        ("all tasks decided", "s", found["seconds"], None, ALL_S if whole else None),
        ("tasks that run", "%", 100 * running / count, 100.0 if whole else None, None),
        ("frames of a task, gossip included", "", found["frames_per_task"], None, None),
        ("bytes of a task, gossip included", "", found["bytes_per_task"], None, None),
        ("frames that were dropped", "", found["dropped"], None, 0),
        ("servers with reservations a lease after the end", "", left, None, 0),
    ]
    return [
        Row(figure=FIGURE, setting=where, metric=metric, unit=unit, ours=ours, low=low, high=high)
        for metric, unit, ours, low, high in figures
    ]


def finding(rows: Sequence[Row]) -> Finding:
    """Without a picture."""
    return Finding(rows=tuple(rows), panels=(), notes=NOTES)


NOTES = (
    "Each server is a process of its own; all are on one machine with two processors. All tasks are submitted at once, "
    "so they compete for what their maps want.",
)
