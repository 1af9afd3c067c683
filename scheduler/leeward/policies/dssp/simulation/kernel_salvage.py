"""Compiled: a line of waiting subtasks in the order of `disciplines.Salvage`."""

from __future__ import annotations

from leeward.policies.dssp import disciplines
from leeward.policies.dssp.disciplines import CERTAIN, LOOK
from leeward.policies.dssp.simulation.compiled import kernel

fitting = kernel(disciplines.fitting)


@kernel
def worth(dues, place, waiting, now, mean, stages):  # type: ignore[no-untyped-def]
    """`Salvage._worth` of the item at a place of the line, which is in the order of `dues`."""
    left = (dues[place] - now) / mean
    if left <= 0:
        return False
    if left >= CERTAIN or place == waiting - 1:
        return True
    allowed, lost = 1.0 - fitting(0, left, stages), 0.0
    for count in range(1, min(LOOK, waiting - 1 - place) + 1):
        lost += fitting(count, (dues[place + count] - now) / mean, stages)
        if lost > allowed:
            return False
    return True


@kernel
def take_in(dues, items, waiting, due, item):  # type: ignore[no-untyped-def]
    """Adds to a line of `waiting` items, behind those that are due as soon."""
    at = waiting
    while at > 0 and dues[at - 1] > due:
        dues[at], items[at] = dues[at - 1], items[at - 1]
        at -= 1
    dues[at], items[at] = due, item


@kernel
def chosen(dues, items, waiting, now, mean, stages):  # type: ignore[no-untyped-def]
    """Takes the item to serve out of the line."""
    place = 0
    while place < waiting and not worth(dues, place, waiting, now, mean, stages):
        place += 1
    if place == waiting:
        place = 0
    item = items[place]
    for at in range(place, waiting - 1):
        dues[at], items[at] = dues[at + 1], items[at + 1]
    return item, place > 0
