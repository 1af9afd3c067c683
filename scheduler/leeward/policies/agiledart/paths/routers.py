"""Routers (`core.policy.Router`) for one node: the next hop of a tuple by Algorithm 1 or its rivals.

Standard library only, as bolts import it.  A hop's delay in slots stands for the attempts on its link.  J of a hop,
the slots from there to the sink, is what that hop last told (`hear`); untold it is 0, and the choice is by the link.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from leeward.core.errors import ConfigError, ProtocolError
from leeward.policies.agiledart.paths.choices import epsilon_greedy
from leeward.policies.agiledart.paths.estimates import Cost, KlCost, Record, ThompsonCost, checked_fade, mean_cost

#: A slot: the least mean delay of a link, s (paper, section VII-F).
SLOT_S = 0.05


class Learning:
    """The records of all hops that were offered."""

    def __init__(self, *, slot_s: float = SLOT_S, fade: float = 1.0) -> None:
        if not (math.isfinite(slot_s) and slot_s > 0):
            raise ConfigError(f"A slot of {slot_s} s is none.", remedy="Give the least mean delay of a link, s.")
        self._slot_s, self._fade = slot_s, checked_fade(fade)
        self._records: dict[int, Record] = {}

    def learn(self, hop: int, delay_s: float) -> None:
        """See Router.  Raises ProtocolError for a hop that was never offered, and for a delay that is none."""
        if not (math.isfinite(delay_s) and delay_s >= 0):
            raise ProtocolError(f"Hop {hop} has a delay of {delay_s} s.", remedy="Give 0 or more.")
        self._known(hop).learn(max(1.0, delay_s / self._slot_s), self._fade)

    def _offered(self, hops: Sequence[int]) -> None:
        if not hops:
            raise ProtocolError("There is no hop to choose from.", remedy="Ask when there is one.")
        for hop in hops:
            self._records.setdefault(hop, Record())

    def _known(self, hop: int) -> Record:
        if hop not in self._records:
            raise ProtocolError(f"Hop {hop} was never offered.", remedy=f"Known are {sorted(self._records)}.")
        return self._records[hop]


class CostRouter(Learning):
    """Algorithm 1 at one node: the hop of least C = cost of its link + J.

    `fade`: a hop's earlier tuples count as much at each that is acknowledged; `age`: all hops' at each slot, and J that
    a hop told fades as much, so that a hop is asked again that was far from the sink long ago.
    """

    def __init__(self, cost: Cost, *, slot_s: float = SLOT_S, fade: float = 1.0, age: float = 1.0) -> None:
        super().__init__(slot_s=slot_s, fade=fade)
        self._cost, self._age = cost, checked_fade(age, "age")
        self._ahead: dict[int, float] = {}
        self._began: float | None = None
        self._tau = 1.0

    def next_hop(self, hops: Sequence[int], *, now: float, rng: Random) -> int:
        """See Router; `now` in s.  Ties go to the first."""
        self._offered(hops)
        return min(self._costs(hops, now, rng), key=lambda pair: pair[0])[1]

    def hear(self, hop: int, ahead_s: float) -> None:
        """A hop says that a tuple needs so many seconds from there to the sink.  Raises ProtocolError."""
        if not (math.isfinite(ahead_s) and ahead_s >= 0):
            raise ProtocolError(f"Hop {hop} is {ahead_s} s from the sink.", remedy="Give 0 or more.")
        self._known(hop)
        self._ahead[hop] = ahead_s / self._slot_s

    def ahead_s(self, hops: Sequence[int], *, now: float, rng: Random) -> float:
        """J of this node, s, as it tells the nodes before it."""
        self._offered(hops)
        return self._slot_s * min(cost for cost, _ in self._costs(hops, now, rng))

    def _costs(self, hops: Sequence[int], now: float, rng: Random) -> list[tuple[float, int]]:
        self._began = now if self._began is None else self._began
        before, self._tau = self._tau, max(self._tau, 1.0 + (now - self._began) / self._slot_s)
        if self._age < 1.0:
            aged = self._age ** (self._tau - before)
            for record in self._records.values():
                record.forget(aged)
            self._ahead = {hop: aged * ahead for hop, ahead in self._ahead.items()}
        return [(self._cost(self._records[hop], self._tau, rng) + self._ahead.get(hop, 0.0), hop) for hop in hops]


class KlRouter(CostRouter):
    """The paper's (section V-B)."""

    steady = True  #: see Router

    def __init__(self, *, c: float = 0.3, slot_s: float = SLOT_S) -> None:
        super().__init__(KlCost(c), slot_s=slot_s)


class ThompsonRouter(CostRouter):
    """Ours, the default; where links drift DRIFT_FADE, DRIFT_AGE and DRIFT_DOUBT, see `estimates.py`."""

    def __init__(self, *, slot_s: float = SLOT_S, fade: float = 1.0, age: float = 1.0, doubt: float = 0.0) -> None:
        super().__init__(ThompsonCost(doubt), slot_s=slot_s, fade=fade, age=age)


class ReplicaRouter(ThompsonRouter):
    """Thompson for the replicas of a bolt, whose delays follow what they are sent (experiments/replicas.py).

    A delay within a slot is as good as any other, so replicas that keep up share the tuples evenly; and only the last
    few samples count, as a sender that remembers more swings from one replica to the other.
    """

    def __init__(self, *, slot_s: float = 0.2, fade: float = 0.6, age: float = 0.998, doubt: float = 1.0) -> None:
        super().__init__(slot_s=slot_s, fade=fade, age=age, doubt=doubt)


class NextHopRouter(Learning):
    """Algorithm 3 of the paper (appendix E.2): epsilon-greedy on the mean delays of the links."""

    def __init__(self, *, slot_s: float = SLOT_S) -> None:
        super().__init__(slot_s=slot_s)
        self._visits = 0

    def next_hop(self, hops: Sequence[int], *, now: float, rng: Random) -> int:
        """See Router."""
        self._offered(hops)
        self._visits += 1
        return epsilon_greedy(hops, self._visits, lambda hop: mean_cost(self._records[hop]), rng)
