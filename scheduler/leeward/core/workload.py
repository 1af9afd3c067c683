"""A workload of topologies that arrive and depart, as a published system supplies it to the simulator.

It gives a cluster, a catalogue of applications, and the figures of the placements that a policy decides. The simulator
draws the entries that arrive (`sim.workload.arrivals`). Names are found by entry points (`leeward.workloads`). A class
of workloads takes the keywords `nodes` and `seed`; equal ones give equal workloads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

from leeward.core.fields import check_number
from leeward.core.model import Component, Node
from leeward.core.network import Network
from leeward.core.plan import Slot

#: Component -> slot of its only task.
Slots = Mapping[str, Slot]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arriving:
    """An entry of the catalogue, as it arrives under a name of its own."""

    components: tuple[Component, ...]  #: by id, one task each
    streams: tuple[tuple[str, str], ...]  #: (from, to), by name


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A topology that runs."""

    arriving: Arriving
    places: Mapping[str, str]  #: component -> node


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The quality of a placement of all topologies together. Construction checks it; raises FieldError."""

    makespan_s: float  #: sum of the makespans, s
    violations: int  #: constraints that are broken

    def __post_init__(self) -> None:
        check_number("makespan_s", self.makespan_s)
        check_number("violations", self.violations)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """One control interval."""

    interval: int  #: from 0
    arrived: tuple[str, ...] = ()
    departed: tuple[str, ...] = ()  #: also one that was refused when it came, and so is not there to go
    refused: Mapping[str, str] = field(default_factory=dict)  #: topology -> why; of those that arrived
    active: int  #: topologies that run at the end
    makespan_s: float  #: of all of them together, s
    violations: int  #: constraints that are broken
    moves: int  #: components of running topologies that went to another node
    stabilization_s: float  #: until the last of these has caught up, s; infinite: never
    plan_s: float  #: time that planning took, s
    placed: Mapping[str, Slots] = field(default_factory=dict)  #: topologies that got other slots


class Workload(Protocol):
    """Topologies go by name, in the order of their arrival. No answer depends on earlier questions."""

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The cluster, by id."""

    @property
    def network(self) -> Network | None:
        """Sites and links of the nodes; None: not known."""

    @property
    def sizes(self) -> Sequence[int]:
        """The number of components of each entry of the catalogue."""

    def arriving(self, entry: int, name: str, rng: Random) -> Arriving:
        """An entry as it arrives; `rng` draws the things in which two arrivals of one entry differ."""

    def measure(self, running: Mapping[str, Running]) -> Figures:
        """The figures of all topologies that run."""

    def stabilization_s(self, before: Mapping[str, Running], after: Mapping[str, Running]) -> float:
        """How long the moved components need until they have caught up, s; infinite if one never does.

        `before` has topologies that have departed since, `after` those that have come.
        """
