"""The parts of a published system that Leeward calls, as small protocols. Standard library only, as bolts import it.

Each is the same object on Storm and in the simulator. Names are found by entry points (`leeward.policies`,
`leeward.routers`, `leeward.disciplines`), so a system stands in a package of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Protocol, runtime_checkable

from leeward.core.model import ClusterView
from leeward.core.peers import Directory, Letter
from leeward.core.plan import Plan, Refusal


class Policy(Protocol):
    """Decides which tasks own key groups and where every task runs.

    The loop asks it once in each period, on a thread of its own, while no reconfiguration is in progress. It may not
    act, wait, read a clock or draw from a generator other than `rng`; it may keep what it has learned. The loop
    refuses a plan that breaks a capacity, a pin or a drain, and a plan whose gain is too small.

    A class of policies takes one argument, its settings: an object of its attribute `Settings` (a class of
    `core/options.py`), or None if it has no such attribute.

    With the attribute `at_once = True` it plans from facts and needs no rates: it is asked as soon as a topology is
    led, if possible before Storm has placed it (`control/early.py`). Others wait for one period. A method `prepare()`
    is called once before it is asked anything: it compiles, say.
    """

    def decide(self, view: ClusterView, *, now: float, rng: Random) -> Plan:
        """The plan for this view; `now` in seconds. Raises LeewardError for a view that it cannot work with."""


class JointPolicy(Protocol):
    """A policy that is asked about all topologies of the service at once.

    The loop asks it as it asks a Policy, with the views of all topologies that chose it. It may return plans for some
    only; each is checked as if it came alone.
    """

    def decide_all(self, views: Sequence[ClusterView], *, now: float, rng: Random) -> Mapping[str, Plan | Refusal]:
        """Topology name -> plan, or why the topology cannot run beside the others."""


class Correspondent(JointPolicy, Protocol):
    """A joint policy that does not decide alone: it asks peers, servers that decide together by messages.

    After each decision the loop sends its letters, gives it the answers, and asks it again with the same `now`, until
    it has no letter or the loop's patience is over. It goes on with what it knows then.
    """

    def directory(self) -> Directory:
        """Where the peers are; called once. Raises LeewardError if its settings name no peers."""

    def letters(self) -> Sequence[Letter]:
        """Messages that follow from the newest decision, each given once."""

    def receive(self, sender: int, answer: Any) -> None:
        """An answer of a server."""


class Router(Protocol):
    """Chooses the next hop of a tuple.

    An agent asks it for each packet; a bolt asks it for many choices at once, whose counts weigh the sender's rotation
    (`core/route.py`). It may not wait, and it may not choose a task that is not in `hops`. It never routes a keyed
    stream, as the owner of a key group is the table's matter. With the attribute `steady = True` it chooses the same
    hop as long as it learns nothing and no time passes: a bolt then asks it once.
    """

    def next_hop(self, hops: Sequence[int], *, now: float, rng: Random) -> int:
        """One of `hops` (task ids)."""

    def learn(self, hop: int, delay_s: float) -> None:
        """A tuple that went to `hop` was acknowledged after `delay_s` seconds."""


@runtime_checkable
class PathRouter(Router, Protocol):
    """A router that looks beyond the next hop: each hop reports the time from there to the sink."""

    def hear(self, hop: int, ahead_s: float) -> None:
        """A tuple needs so many seconds from `hop` to the sink."""

    def ahead_s(self, hops: Sequence[int], *, now: float, rng: Random) -> float:
        """Seconds from here to the sink, which this node reports to those before it."""


class Discipline(Protocol):
    """Orders the tuples that wait in front of an operator.

    It is asked whenever the operator is free. It may not drop a tuple, and it may not let one overtake a marker.
    """

    def next_item(self, waiting: Sequence[Any], *, now: float) -> int:
        """The position in `waiting` (oldest first, not empty) of the tuple to process."""
