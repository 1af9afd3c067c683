"""Figures of a run on the testbed as the live page gets them: class 2 is over its objective, d3's queues are long."""

from __future__ import annotations

from random import Random

from leeward.dashboard.queries.figures import ClassFigures, DomainFigures, Figures

CLASSES = {"1.1": (0.5, 0.41, 0.12), "1.2": (0.5, 0.46, 0.14), "2": (0.8, 0.86, 0.31), "3": (1.2, 1.08, 0.58)}
DOMAINS = {"d1": 3, "d2": 5, "d3": 21, "d4": 9}
KEPT = 300


def figures(seconds: int = 420) -> Figures:
    """After so many seconds; the same each time."""
    rng = Random(4)
    times = [float(at) for at in range(max(0, seconds - KEPT) + 1, seconds + 1)]
    grown = [min(1.0, at / seconds) for at in times]
    waiting = {
        name: [round(rng.uniform(0.3, 1.4) * level * share**2) for share in grown] for name, level in DOMAINS.items()
    }
    return {
        "profile": "testbed",
        "discipline": "dssp-edfq",
        "seconds": float(seconds),
        "rate": 18.0,
        "served": 17.8 if seconds else 0.0,
        "done": 18 * seconds,
        "partial": 2 if seconds else 0,
        "running": True,
        "classes": [_class(name, seconds) for name in CLASSES],
        "domains": [_domain(name, seconds, rng) for name in DOMAINS],
        "history": {
            "t": times,
            "tails": {
                name: [None if at < 10 else tail * (0.7 + 0.3 * g) * rng.uniform(0.995, 1.005)
                       for at, g in zip(times, grown, strict=True)]
                for name, (_, tail, _) in CLASSES.items()
            },
            "waiting": waiting,
            "late": {
                name: [None if at % 37 == 0 else max(0.0, rng.gauss(0.002 * level * g**3, 0.01))
                       for at, g in zip(times, grown, strict=True)]
                for name, level in DOMAINS.items()
            },
        },
    }  # fmt: skip


def _class(name: str, seconds: int) -> ClassFigures:
    objective, tail, median = CLASSES[name]
    queries = 18 * seconds // 4
    return {
        "name": name,
        "objective_s": objective,
        "percent": 99,
        "p_s": tail if seconds else None,
        "median_s": median if seconds else None,
        "queries": queries,
        "late": round(queries * (0.016 if tail > objective else 0.004)),
    }


def _domain(name: str, seconds: int, rng: Random) -> DomainFigures:
    level = DOMAINS[name] if seconds else 0
    waiting = [round(rng.expovariate(8 / level)) if level else 0 for _ in range(8)]
    return {
        "name": name,
        "started": 52 * seconds,
        "late": seconds * level // 20,
        "waiting": waiting,
        "busy": [1 if level and (count or rng.random() < 0.6) else 0 for count in waiting],
        "pods": [1] * 8,
        "answers": True,
    }
