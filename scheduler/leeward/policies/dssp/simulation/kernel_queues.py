"""Compiled: a heap of waiting subtasks, the least key first, and the draws of execution times."""

from __future__ import annotations

import math

import numpy as np

from leeward.policies.dssp.simulation.compiled import kernel

#: Of splitmix64.
STEP = np.uint64(0x9E3779B97F4A7C15)
_ONE, _TWO = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31, _S11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)
#: Distributions of execution times.
UNIFORM, EXPONENTIAL, CONSTANT = 0, 1, 2


@kernel
def mixed(value):  # type: ignore[no-untyped-def]
    """A hash of 64 bits."""
    value = (value ^ (value >> _S30)) * _ONE
    value = (value ^ (value >> _S27)) * _TWO
    return value ^ (value >> _S31)


@kernel
def drawn(shape, mean, state):  # type: ignore[no-untyped-def]
    """An execution time; `state`: a number for each subtask."""
    share = (float(mixed(state) >> _S11) + 0.5) / 9007199254740992.0
    if shape == UNIFORM:
        return 2.0 * mean * share
    if shape == EXPONENTIAL:
        return -mean * math.log(share)
    return mean


@kernel
def push(keys, items, count, key, item):  # type: ignore[no-untyped-def]
    """Adds to a heap of `count` items, the least key first; ties go to the lower item."""
    at = count
    while at > 0:
        above = (at - 1) >> 1
        if keys[above] < key or (keys[above] == key and items[above] < item):
            break
        keys[at], items[at] = keys[above], items[above]
        at = above
    keys[at], items[at] = key, item


@kernel
def drop_first(keys, items, count):  # type: ignore[no-untyped-def]
    """Takes the first of `count` items out."""
    last = count - 1
    key, item, at = keys[last], items[last], 0
    while True:
        child = 2 * at + 1
        if child >= last:
            break
        other = child + 1
        if other < last and (keys[other] < keys[child] or (keys[other] == keys[child] and items[other] < items[child])):
            child = other
        if key < keys[child] or (key == keys[child] and item < items[child]):
            break
        keys[at], items[at] = keys[child], items[child]
        at = child
    keys[at], items[at] = key, item
