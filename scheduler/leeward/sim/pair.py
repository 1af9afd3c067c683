"""Both ends of the protocol in memory: the real coordinator and real tasks, under faults, by one seed.

`Pair(seed).run()` builds a small topology on a simulated Storm, takes some hundred steps in an order that the seed
decides (a tuple is delivered, a task reads the record, the coordinator works, a process dies ...), then lets faults
stop and everything come to rest. After each step it checks what must always hold: at most one process owns a key
group, nothing is counted twice, every committed cut is a consistent snapshot, every result is right. At the end
nothing may be missing. A failure raises `Broken`, with the seed, the last steps, and how to replay them.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Callable
from itertools import accumulate

from leeward.sim import faults
from leeward.sim.ends import Broken, Ends
from leeward.sim.rest import come_to_rest, get_going

#: Steps with faults.
STEPS = 260
#: (share of the steps, deed)
_DEEDS: tuple[tuple[float, Callable[[Ends], object]], ...] = (
    (0.40, Ends.deliver),
    (0.10, Ends.let_emit),
    (0.22, Ends.work),
    (0.08, Ends.carry),
    (0.10, Ends.coordinate),
    (0.03, Ends.tell_silence),
    (0.03, Ends.time),
    (0.02, Ends.supervise),
    (0.02, Ends.connect),
    (0.05, Ends.plan),
    (0.015, faults.disturb),
)


class Pair(Ends):
    """See the module."""

    def __init__(self, seed: int, *, steps: int = STEPS) -> None:
        super().__init__(seed, steps=steps, choose=faults.some_of, weigh=_shares)

    def run(self) -> Pair:
        """All of it. Raises Broken."""
        try:
            get_going(self, self.cuts)
            for _ in range(self.steps):
                self._step()
            come_to_rest(self)
        except Broken:
            raise
        except Exception as error:
            lines = "\n  ".join(self.story)
            raise Broken(
                f"seed {self.seed}: {type(error).__name__}: {error}\n  {lines}\n"
                f"Replay it: python -m leeward.sim.torture --replay {self.seed}"
            ) from error
        return self

    def _step(self) -> None:
        _DEEDS[bisect(self.shares, self.rng.random())][1](self)
        self.check()


def _shares(rng: random.Random) -> list[float]:
    """How often each deed comes, added up: in some runs one is rare or frequent, such as carrying pieces."""
    shares = [share * rng.choice((0.3, 1.0, 1.0, 1.0, 2.0)) for share, _ in _DEEDS]
    return list(accumulate(share / sum(shares) for share in shares[:-1]))
