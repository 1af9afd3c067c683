"""Compiled: a line of waiting subtasks in the order of `disciplines.Salvage`."""

from __future__ import annotations

import math

from leeward.policies.dssp import disciplines
from leeward.policies.dssp.disciplines import CERTAIN, LOOK
from leeward.policies.dssp.simulation.compiled import kernel

fitting = kernel(disciplines.fitting)


@kernel
def worth(items, dues, weights, queries, place, waiting, now, mean, stages):  # type: ignore[no-untyped-def]
    """`Salvage._worth` of the item at a place of the line."""
    left = (dues[items[place]] - now) / mean
    if left <= 0:
        return False
    if left >= CERTAIN or place == waiting - 1:
        return True
    saved, lost = weights[queries[items[place]]] * (1.0 - fitting(0, left, stages)), 0.0
    for count in range(1, min(LOOK, waiting - 1 - place) + 1):
        item = items[place + count]
        lost += weights[queries[item]] * fitting(count, (dues[item] - now) / mean, stages)
        if lost > saved:
            return False
    return True


@kernel
def place_of(due, weight, mean, stages):  # type: ignore[no-untyped-def]
    """`Salvage.place`."""
    return due - mean * (math.log(weight) / stages)


@kernel
def take_in(line, items, waiting, place, item):  # type: ignore[no-untyped-def]
    """Adds to a line of `waiting` items by their places, behind those of the same place."""
    at = waiting
    while at > 0 and line[at - 1] > place:
        line[at], items[at] = line[at - 1], items[at - 1]
        at -= 1
    line[at], items[at] = place, item


@kernel
def chosen(line, items, dues, weights, queries, waiting, now, mean, stages):  # type: ignore[no-untyped-def]
    """Takes the item to serve out of the line; also whether it was preferred to one before it."""
    place = 0
    while place < waiting and not worth(items, dues, weights, queries, place, waiting, now, mean, stages):
        place += 1
    if place == waiting:
        place = 0
    item = items[place]
    for at in range(place, waiting - 1):
        line[at], items[at] = line[at + 1], items[at + 1]
    return item, place > 0
