"""The order in which a sender's tuples go round tasks of different weights. Pure; ties break by id.

storm/worker/src/main/java/leeward/grouping/Rotation.java has the same rule; tests/vectors/rotation.json holds both.
"""

from __future__ import annotations

from collections.abc import Mapping

from leeward.core.errors import ProtocolError

#: Weights add up to at most so many: that is the length of one round, which a sender keeps in memory.
LONGEST = 1024


def rotation(weights: Mapping[int, int]) -> tuple[int, ...]:
    """One round over the tasks, in which each has as many turns as its weight, spread as evenly as can be.

    Smooth weighted rotation: at each turn every task gains its weight as credit, and the one with most credit (of
    several the lowest id) has the turn and pays the sum of the weights. No weight at all: an empty round. Raises
    ProtocolError for a weight below 0 and for a round longer than LONGEST.
    """
    total = sum(weights.values())
    if total > LONGEST or any(weight < 0 for weight in weights.values()):
        raise ProtocolError(
            f"weights {dict(weights)!r:.200} are no shares.", remedy=f"Give each task 0 or more, and {LONGEST} in all."
        )
    tasks = sorted(weights)
    credit = dict.fromkeys(tasks, 0)
    turns = []
    for _ in range(total):
        for task in tasks:
            credit[task] += weights[task]
        chosen = max(tasks, key=lambda task: (credit[task], -task))
        credit[chosen] -= total
        turns.append(chosen)
    return tuple(turns)
