"""Packets sent over a network by the compiled planners."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from leeward.core.errors import ConfigError
from leeward.policies.agiledart.paths.choices import stride
from leeward.policies.agiledart.paths.estimates import DRIFT_AGE, DRIFT_DOUBT, DRIFT_FADE
from leeward.policies.agiledart.paths.kernel_plan import (
    ALL_HOPS,
    END_TO_END,
    KL,
    NEXT_HOP,
    OPTIMAL,
    THOMPSON,
    counted,
    send,
)  # fmt: skip
from leeward.policies.agiledart.paths.network import Network

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A planner of `planners.py` and its settings."""

    kind: int  #: of kernel_plan
    c: float = 0.0
    fade: float = 1.0
    age: float = 1.0
    doubt: float = 0.0
    hops: int = ALL_HOPS
    constant: float = 1.0  #: L of end-to-end


RULES = {
    "KL, c = 0.3": Rule(kind=KL, c=0.3),
    "KL, c = 0.1": Rule(kind=KL, c=0.1),
    "2 hops": Rule(kind=KL, c=0.3, hops=2),
    "1 hop": Rule(kind=KL, c=0.3, hops=1),
    "next-hop": Rule(kind=NEXT_HOP),
    "end-to-end": Rule(kind=END_TO_END),
    "Thompson": Rule(kind=THOMPSON),
    "Thompson, fade 0.98": Rule(kind=THOMPSON, fade=0.98),
    "Thompson for drift": Rule(kind=THOMPSON, fade=DRIFT_FADE, age=DRIFT_AGE, doubt=DRIFT_DOUBT),
    "optimal": Rule(kind=OPTIMAL),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """Packet by packet."""

    paths: NDArray[np.int64]  #: [packets, nodes]: positions of links, then -1
    excess: Floats  #: [packets]: expected delay beyond that of the best path, slots


def simulate(rule: Rule, network: Network, thetas: Floats, *, packets: int, every: int, seed: tuple[int, int]) -> Sent:
    """Sends packets from source to sink, one after the other.

    `thetas` [changes, links]: success probabilities, a row for each `every` packets; `seed`: of attempts, and of
    the planner.  Raises ConfigError for a probability outside (0, 1], and for a link back to a lower node.
    """
    if not ((thetas > 0) & (thetas <= 1)).all():
        raise ConfigError("A link has no chance of success.", remedy="Give probabilities in (0, 1].")
    if any(tail > head for tail, head in network.links):
        raise ConfigError("A link leads back.", remedy="Number the nodes so that each link leads to a higher one.")
    if thetas.shape != (-(-packets // every), len(network.links)):
        raise ConfigError(f"Probabilities are {thetas.shape}.", remedy="Give a row for each change, a column a link.")
    first = np.searchsorted([tail for tail, _ in network.links], np.arange(network.nodes + 1)).astype(np.int64)
    heads = np.array([head for _, head in network.links], np.int64)
    ways = np.zeros((network.nodes, network.nodes), np.int64)
    counted(first, heads, ways)
    strides = np.array([stride(int(size)) for size in ways[0]], np.int64)
    paths, excess = np.zeros((packets, network.nodes), np.int64), np.zeros(packets)
    send(
        (rule.kind, rule.c, rule.fade, rule.age, rule.doubt, rule.hops, rule.constant + 1.0),
        first, heads, thetas, every, strides, np.array(seed, np.uint64), paths, excess,
    )  # fmt: skip
    return Sent(paths=paths, excess=excess)


def drawn_thetas(
    links: int, delays_ms: tuple[float, float], slot_ms: float, rng: Random, *, changes: int = 1, share: float = 1.0
) -> Floats:
    """[changes, links]: probabilities of links of uniform mean delays; each change draws a share of them anew."""
    rows = [[slot_ms / rng.uniform(*delays_ms) for _ in range(links)]]
    for _ in range(changes - 1):
        rows.append([slot_ms / rng.uniform(*delays_ms) if rng.random() < share else theta for theta in rows[-1]])
    return np.array(rows)
