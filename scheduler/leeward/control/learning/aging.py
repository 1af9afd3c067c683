"""Old samples count less: a sum halves with each half-life that passes."""

from __future__ import annotations


def kept_share(since: float | None, now: float, half_life_s: float) -> float:
    """The part of a sum that still counts at `now`, s; all of it if nothing was added yet, or a clock went back."""
    return 1.0 if since is None else 0.5 ** (max(0.0, now - since) / half_life_s)
