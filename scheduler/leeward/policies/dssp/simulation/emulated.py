"""Execution times and readings of emulated nodes: those that the simulation draws for the same seed, node and query."""

from __future__ import annotations

import numpy as np

from leeward.policies.dssp.simulation.kernel_queues import STEP, drawn, mixed
from leeward.policies.dssp.simulation.run import SHAPES

_WRAP = (1 << 64) - 1
#: Of readings: mean and spread, as of a temperature.
MEAN, SPREAD = 20.0, 10.0


def execution_s(shape: str, mean_s: float, seed: int, node: int, query: int) -> float:
    """Of query number `query` on the node of this number in the whole system (both from 0; calibrations below)."""
    return float(drawn(SHAPES[shape], mean_s, _state(seed, node, query)))


def reading_of(seed: int, node: int, query: int) -> float:
    """A random reading."""
    return MEAN + SPREAD * (float(drawn(SHAPES["uniform"], 0.5, _state(seed + 1, node, query))) - 0.5)


def _state(seed: int, node: int, query: int) -> np.uint64:
    step = int(STEP)
    base = int(mixed(np.uint64((seed + step * (node + 1)) & _WRAP)))
    return np.uint64((base + step * query) & _WRAP)
