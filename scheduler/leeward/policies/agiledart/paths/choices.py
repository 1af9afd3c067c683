"""Choices that planners and routers share.  Standard library only, as bolts import it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from random import Random

#: Of the golden section: steps of it leave no large gap.
GOLDEN = 0.618


def epsilon_greedy(choices: Sequence[int], visits: int, mean: Callable[[int], float], rng: Random) -> int:
    """Algorithm 3 (appendix E.2): the choice of least mean delay, or with probability 1 / visits any.

    Ties go to the first.  `visits` count this one, so that the first explores.
    """
    if rng.random() <= 1.0 - 1.0 / visits:
        return min(choices, key=mean)
    return choices[int(rng.random() * len(choices))]


def stride(size: int) -> int:
    """A step that visits each of `size` places once before it comes back; 1 for none."""
    step = max(1, int(GOLDEN * size))
    while math.gcd(step, size) > 1:
        step += 1
    return step
