"""Compiled: `estimates.py`, the expected attempts on a link as each planner sees them, for all links at once.

Arrays have one entry for each link: `s` packets delivered, `t` attempts made.
"""

from __future__ import annotations

import math

from leeward.policies.agiledart.paths.compiled import kernel
from leeward.policies.agiledart.paths.kernel_draws import beta

#: Newton's steps end when they are as short.
_NEAR = 1e-13


@kernel
def divergence(p, u):  # type: ignore[no-untyped-def]
    """KL of Bernoullis of means p and u, nats; p in (0, 1], u in (0, 1)."""
    rest = (1.0 - p) * math.log((1.0 - p) / (1.0 - u)) if p < 1.0 else 0.0
    return p * math.log(p / u) + rest


@kernel
def optimistic(p, bound):  # type: ignore[no-untyped-def]
    """The largest u in [p, 1] whose divergence from p is at most `bound`, by Newton's method.

    The divergence is convex in u and at least 2 (u - p)^2, so steps from there go down to the root and never past it.
    """
    if p >= 1.0:
        return 1.0
    u = p + math.sqrt(0.5 * bound)
    while u >= 1.0 or divergence(p, u) < bound:
        # near 1 the term (1 - p) log(1 / (1 - u)) alone bounds u from above
        u = 1.0 - math.exp(-(bound - p * math.log(p) - (1.0 - p) * math.log(1.0 - p)) / (1.0 - p))
        if u >= 1.0 or divergence(p, u) <= bound:
            return min(1.0, max(p, u))
    while u - p > _NEAR:
        step = (divergence(p, u) - bound) * u * (1.0 - u) / (u - p)
        u -= step
        if step < _NEAR:
            break
    return max(p, u)


@kernel
def kl_costs(s, t, c, tau, costs):  # type: ignore[no-untyped-def]
    """Equation (6): omega of each link."""
    budget = c * math.log(tau)
    for link in range(len(s)):
        costs[link] = 1.0 if t[link] == 0.0 else 1.0 / optimistic(s[link] / t[link], budget / t[link])


@kernel
def thompson_costs(s, t, doubt, stream, costs):  # type: ignore[no-untyped-def]
    """1 / theta of each link, theta drawn from Beta(1 + 2 s, 1 + 2 (t - s + doubt))."""
    for link in range(len(s)):
        theta = beta(stream, 1.0 + 2.0 * s[link], 1.0 + 2.0 * (t[link] - s[link] + doubt))
        costs[link] = 1.0 / theta if theta > 0.0 else math.inf


@kernel
def learn(s, t, link, attempts, fade):  # type: ignore[no-untyped-def]
    """A packet was delivered by a link; a fade below 1 forgets earlier ones."""
    s[link] = fade * s[link] + 1.0
    t[link] = fade * t[link] + attempts


@kernel
def forget(s, t, age, slots):  # type: ignore[no-untyped-def]
    """All links age by so many slots."""
    if age < 1.0:
        aged = age**slots
        for link in range(len(s)):
            s[link] *= aged
            t[link] *= aged
