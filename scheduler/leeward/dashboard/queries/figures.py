"""The figures that the page shows, as `GET /data` gives them; None: not known yet."""

from __future__ import annotations

from typing import TypedDict


class ClassFigures(TypedDict):
    """A class of queries against its objective; times over the same window."""

    name: str
    objective_s: float
    percent: float  #: that the objective speaks of, such as 99
    p_s: float | None  #: that percentile of the measured latencies
    median_s: float | None
    queries: int
    late: int  #: queries that took longer than the objective


class DomainFigures(TypedDict):
    """A domain; each list has one number for each of its nodes."""

    name: str
    started: int  #: subtasks
    late: int  #: of those, after their deadlines
    waiting: list[int]  #: subtasks
    busy: list[int]  #: pods that execute one
    pods: list[int]
    answers: bool  #: otherwise its figures are the last that it gave


class History(TypedDict):
    """The last snapshots, one a second; every list is as long as `t`."""

    t: list[float]  #: s since the run began
    tails: dict[str, list[float | None]]  #: class -> the percentile of its objective, s
    waiting: dict[str, list[int]]  #: domain -> subtasks, of all its nodes
    late: dict[str, list[float | None]]  #: domain -> share of the starts since the snapshot before; None: no start


class Figures(TypedDict):
    """All of them."""

    profile: str
    discipline: str
    seconds: float  #: since the run began
    rate: float  #: queries/s asked for
    served: float  #: queries/s over the last 30 s
    done: int
    partial: int  #: of those done, queries that lack a part of their answer
    running: bool
    classes: list[ClassFigures]
    domains: list[DomainFigures]
    history: History
