"""The queues of a domain's nodes: subtasks wait in the order of a discipline for one of the node's pods."""

from __future__ import annotations

from dataclasses import dataclass

from leeward.core.policy import Discipline

#: Of the running means of execution times.
WEIGHT = 0.02
#: Erlang stages of execution times are looked for between these.
MOST_STAGES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Subtask:
    """Work of one node for one task, as disciplines see it (disciplines.Item); times in s on the domain's clock."""

    task: tuple[str, str]  #: provider and query
    node: int
    arrived: float
    rank: int
    due: float  #: when the task is to be answered
    unloaded: float
    execution: float
    stages: int
    weight: float = 1.0

    @property
    def deadline(self) -> float:
        """t_D: it is late if it starts after."""
        return self.due - self.unloaded


@dataclass(slots=True)
class Paced:
    """Mean and variance of a node's execution times, s and s^2, of about its last 50."""

    mean: float
    variance: float

    def add(self, seconds: float) -> None:
        """A new one."""
        apart = seconds - self.mean
        self.mean += WEIGHT * apart
        self.variance = (1 - WEIGHT) * (self.variance + WEIGHT * apart * apart)

    @property
    def stages(self) -> int:
        """An Erlang distribution of so many stages is about as variable."""
        if self.variance * MOST_STAGES <= self.mean * self.mean:
            return MOST_STAGES
        return max(1, round(self.mean * self.mean / self.variance))


class NodeQueue:
    """One node: `pods` subtasks at a time, the others wait."""

    def __init__(self, number: int, discipline: Discipline, *, execution_s: float, pods: int = 1) -> None:
        self.number, self.pods, self.busy = number, pods, 0
        self.paced = Paced(execution_s, execution_s**2)
        self.waiting: list[Subtask] = []
        self._discipline = discipline

    def start(self, now: float) -> list[Subtask]:
        """Those whose turn it is, as far as pods are free."""
        begun = []
        while self.waiting and self.busy < self.pods:
            self.busy += 1
            begun.append(self.waiting.pop(self._discipline.next_item(self.waiting, now=now)))
        return begun

    def drop(self, task: tuple[str, str]) -> int:
        """Take what waits for a task out; how many that were."""
        kept = [one for one in self.waiting if one.task != task]
        dropped, self.waiting = len(self.waiting) - len(kept), kept
        return dropped
