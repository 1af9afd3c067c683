"""How long a rebuild takes, and the choice of m, k and the period of checkpoints. Bytes, bytes/s and seconds.

The paper (section VII-D) models the recovery of m fragments of B bytes as m B / (m + k - 1) over the upload rate of one
holder. For a state of S = m B bytes that is S / ((m + k - 1) u): at a fixed S it falls with m, and downloads, decoding
and set-up cost nothing. Ours counts these, and the uplink of each holder.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leeward.core.errors import LeewardError

#: Of the period that a choice may have at most, s, and the steps of the search for one, as a factor.
LONGEST_S, STEP = 3600.0, 1.1
#: A fragment costs as much as so many bytes more: an exchange, a file, and the time until it is durable.
OVERHEAD = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The network of a node and its neighbours."""

    uplinks: tuple[float, ...]  #: of each neighbour, in the order in which fragments are given to them
    download: float  #: of the node that rebuilds
    upload: float  #: of the node that writes checkpoints
    failures: float  #: of one neighbour in a second
    setup_s: float = 0.05  #: to read the manifest, connect and ask
    coding: float = 500e6  #: bytes that are encoded or decoded in a second
    stripes: int = 256  #: the last of them is decoded when nothing is left to fetch


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The service-level agreement, and the price that may be paid for it."""

    recover_s: float  #: from the failure until the input since the last checkpoint is worked off
    loss: float = 1e-6  #: most probability that the state is lost when its node fails
    busy: float = 0.5  #: share of its time that the operator works: input of 1 s is repeated in so many seconds
    share: float = 0.1  #: most of the upload that checkpoints may take


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Of the parameters, and the consequences that the model expects."""

    m: int
    k: int
    period_s: float
    rebuild_s: float  #: of the state alone
    checkpoint_s: float  #: to encode and to write one
    loss: float  #: probability when the node fails


def papers_s(size: float, m: int, k: int, uplink: float) -> float:
    """The paper's recovery time; `uplink`: of one holder."""
    return size / ((m + k - 1) * uplink)


def central_s(size: float, uplink: float, download: float, setup_s: float = 0.0) -> float:
    """From one central store."""
    return setup_s + size / min(uplink, download)


def whole_fragments_s(size: float, m: int, uplinks: Sequence[float], download: float, setup_s: float = 0.0) -> float:
    """m whole fragments from the first m holders in parallel: the slowest of them counts."""
    return setup_s + max(size / download, size / m / min(uplinks[:m]))


def striped_s(size: float, m: int, uplinks: Sequence[float], download: float) -> float:
    """Stripes from all holders, each at its speed: the least t with sum of min(r t, size / m) = size.

    Raises ValueError if there are fewer holders than m.
    """
    if len(uplinks) < m:
        raise ValueError(f"{len(uplinks)} holders cannot give {m} blocks of a stripe")
    left, rate = size, sum(uplinks)
    found = size / rate
    for number, fastest in enumerate(sorted(uplinks, reverse=True)[:m]):
        if fastest * found <= size / m * (1 + 1e-12):
            break
        left, rate = size * (m - number - 1) / m, rate - fastest  # it has given its whole fragment
        found = left / rate if left else size / m / fastest
    return max(found, size / download)


def rebuild_s(size: float, m: int, k: int, facts: Facts) -> float:
    """Ours, with all m + k holders: set-up, then fetching and decoding at the same time, then the last stripe."""
    coding_s = size / facts.coding
    return (
        facts.setup_s
        + max(striped_s(size, m, facts.uplinks[: m + k], facts.download), coding_s)
        + coding_s / max(1, facts.stripes)
    )


def checkpoint_s(size: float, m: int, k: int, facts: Facts) -> float:
    """Encoding, and sending n / m times the state at the same time."""
    return facts.setup_s + max(size / facts.coding, size * (m + k) / m / facts.upload)


def loss(m: int, k: int, seconds: float, failures: float) -> float:
    """Probability that more than k of m + k holders fail within this time."""
    n, p = m + k, -math.expm1(-failures * seconds)
    return math.fsum(math.comb(n, dead) * p**dead * (1 - p) ** (n - dead) for dead in range(k + 1, n + 1))


def tune(size: float, facts: Facts, wish: Wish) -> Choice:
    """The choice that keeps the wish and costs least (`_cost`); of equal ones, fewest fragments.

    Raises LeewardError if none does, with the nearest reason.
    """
    neighbours = len(facts.uplinks)
    pairs = [(m, n - m) for n in range(1, neighbours + 1) for m in range(1, n + 1)]
    choices = [choice for m, k in pairs if (choice := _with(size, m, k, facts, wish)) is not None]
    if choices:
        return min(choices, key=lambda one: (_cost(size, one), one.m + one.k, one.m))
    fastest = min((rebuild_s(size, m, k, facts) for m, k in pairs), default=math.inf)
    raise LeewardError(
        f"recover_s = {wish.recover_s:g} with a loss of at most {wish.loss:g} cannot be kept: {neighbours} neighbours "
        f"rebuild {size / 1e6:.1f} MB in {fastest:.2f} s at best; checkpoints may take {wish.share:.0%} of the upload.",
        remedy="Allow more time, a greater share or loss, name more neighbours, or keep less state in one task.",
    )


def _cost(size: float, choice: Choice) -> float:
    """Bytes/s of checkpoints."""
    return (choice.m + choice.k) * (size / choice.m + OVERHEAD) / choice.period_s


def _with(size: float, m: int, k: int, facts: Facts, wish: Wish) -> Choice | None:
    """The longest period that keeps the wish; None if checkpoints would take too much of the upload."""
    rebuild, checkpoint = rebuild_s(size, m, k, facts), checkpoint_s(size, m, k, facts)
    period = min(LONGEST_S, (wish.recover_s - rebuild) / wish.busy)
    least = checkpoint / wish.share
    while period >= least:
        lost = loss(m, k, period + checkpoint + rebuild, facts.failures)
        if lost <= wish.loss:
            return Choice(m=m, k=k, period_s=period, rebuild_s=rebuild, checkpoint_s=checkpoint, loss=lost)
        period /= STEP
    return None
