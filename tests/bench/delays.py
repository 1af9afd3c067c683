"""Delays of a stream's tuples, and what several runs of one case come to. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from sink_log import Row


def delays_in(rows: Sequence[Row], start_s: float, end_s: float) -> list[float]:
    """Of the tuples that arrived in that time, in order."""
    return sorted(row.delay_s for row in rows if start_s <= row.arrived_s <= end_s)


def quantiles(delays: Sequence[float]) -> dict[str, float]:
    """`delays` in order."""
    if not delays:
        return {"longest_s": 0.0, "p999_s": 0.0, "median_s": 0.0}
    at = [delays[min(len(delays) - 1, int(share * len(delays)))] for share in (0.5, 0.999)]
    return {"longest_s": delays[-1], "p999_s": at[1], "median_s": at[0]}


def p999_of(runs: Iterable[Sequence[float]]) -> float:
    """Of all delays of these runs together."""
    return quantiles(sorted(chain.from_iterable(runs)))["p999_s"]


def worst_of(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The worst of each, or their sum; and the least silence."""
    worst = {name: max(run[name] for run in runs) for name in ("silence_s", "longest_s")}
    total = {name: sum(run[name] for run in runs) for name in ("lost", "doubled", "forgotten", "out_of_order")}
    best = min(run["silence_s"] for run in runs)
    return {**worst, **total, "best_silence_s": best, "stolen_s": round(sum(run["stolen_s"] for run in runs), 2)}
