"""Fig. 22 (appendix D): evaluations until a rule has the number of instances of a phase, and whether that serves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from random import Random

from leeward.core.experiment import Curve, Finding, Panel, Part, Row
from leeward.policies.agiledart.experiments.phases import EXACT, NOISY, PATIENCE, guarded, phases, plain

FIGURE = "Fig. 22"
RULES = PLAIN, GUARDED = ("secant", "guarded")
NAMES = {PLAIN: "the paper's rule", GUARDED: "guarded rule"}
NONE, TEN = "no noise", "10 % noise, mean of 25"
FULL, EMPTY = "", ", empty queues"
#: Phases of a part without noise: 20 times the paper's 50, and with noise; parts of a setting with noise.
PHASES, NOISY_PHASES = 1_000, 5_000
QUICK_PARTS, PARTS = 4, 20
#: Evaluations of the paper: two guesses, the solution, a check.
PAPER, OURS = 4, 2
#: Phases of the paper's rule whose rate is not served, %: half, as R/r and Q/q are drawn alike.
HALF = (45.0, 55.0)
#: Least share of phases, %, that end within PAPER evaluations; and of the paper's rule under noise, that do not.
WITHIN, BEYOND = 99.9, 10.0

Key = tuple[str, str, str]  # noise, queues, rule


class Secant:
    """A study whose parts are (noise, queues, rule, number)."""

    def parts(self, *, seed: int, quick: bool) -> list[Part]:
        """Both rules meet the same phases."""
        return [
            Part(
                name=f"{noise}{queues}, {rule}, {number}", seed=1000 * seed + number,
                options=(("noise", noise), ("queues", queues), ("rule", rule)),
            )
            for noise, queues, count in (
                (NONE, FULL, 1), (NONE, EMPTY, 1),
                (TEN, FULL, QUICK_PARTS if quick else PARTS), (TEN, EMPTY, 1 if quick else QUICK_PARTS),
            )
            for number in range(count)
            for rule in RULES
        ]  # fmt: skip

    def measure(self, part: Part) -> Mapping[str, float]:
        """Phases by `evaluations N`, and those that settled, swung and were served; the mean of what is over."""
        noise = EXACT if part.option("noise") == NONE else NOISY
        draws, errors, x = Random(part.seed), Random(part.seed + 1), 1
        found: Counter[str] = Counter()
        over = 0.0
        for phase in phases(PHASES if noise is EXACT else NOISY_PHASES, draws, empty=part.option("queues") == EMPTY):
            if part.option("rule") == PLAIN:
                search = plain(phase, noise, errors)
            else:
                search = guarded(phase, noise, errors, x=x)
                x = search.x
            found["phases"] += 1
            found[f"evaluations {search.evaluations}"] += 1
            found["settled"] += search.settled
            found["swings"] += search.swings
            found["served"] += search.served
            over += search.over
        return {**found, "over": over}

    def conclude(self, measured: Mapping[Part, Mapping[str, float]]) -> Finding:
        """Over all parts of a setting together."""
        sums: dict[Key, Counter[str]] = {}
        for part, figures in measured.items():
            key = str(part.option("noise")), str(part.option("queues")), str(part.option("rule"))
            sums.setdefault(key, Counter()).update(figures)
        found = {key: _Found(one) for key, one in sums.items()}
        rows = [row for (noise, queues, rule), one in found.items() for row in _rows(noise, queues, rule, one)]
        rows.sort(key=lambda row: row.setting)
        return Finding(rows=tuple(rows), panels=_panels(found), notes=NOTES)


class _Found:
    """Sums of a setting."""

    def __init__(self, sums: Counter[str]) -> None:
        self._sums, self.phases = sums, sums["phases"]

    def share(self, name: str) -> float:
        """Of the phases, %."""
        return 100 * self._sums[name] / self.phases

    def within(self, most: int) -> float:
        """Share of the phases that settled within so many evaluations, %."""
        number = sum(self._sums[f"evaluations {count}"] for count in range(most + 1))
        return 100 * number / self.phases

    @property
    def most(self) -> int:
        """Evaluations of a phase."""
        return max(count for count in range(PATIENCE + 1) if self._sums[f"evaluations {count}"])

    @property
    def over(self) -> float:
        """Instances over the least, mean over phases, %."""
        return 100 * self._sums["over"] / self.phases


def _rows(noise: str, queues: str, rule: str, found: _Found) -> Iterator[Row]:
    where, name = f"{noise}{queues}, {found.phases:,.0f} phases", NAMES[rule]

    def row(metric: str, unit: str, ours: float, **known: float | None) -> Row:
        return Row(figure=FIGURE, setting=where, metric=f"{metric}, {name}", unit=unit, ours=ours, **known)

    full, ours = queues == FULL, rule == GUARDED
    if noise == NONE:
        most = OURS if ours else PAPER
        yield row("most evaluations", "", found.most, paper=None if ours else PAPER, independent=most, high=most)
    elif ours:
        yield row("phases of at most 4 evaluations", "%", found.within(PAPER), independent=99.96, low=WITHIN)
        yield row("most evaluations", "", found.most, independent=5)
        yield row("instances over the least that serve", "%", found.over)
    elif full:
        yield row("phases of more than 4 evaluations", "%", 100 - found.within(PAPER), low=BEYOND)
        yield row("phases that swing beyond half or twice the solution", "%", found.share("swings"))
        yield row(f"phases that do not settle in {PATIENCE} evaluations", "%", 100 - found.share("settled"))
    if ours:
        yield row("phases whose rate is served", "%", found.share("served"), low=100.0)
    else:
        low, high = HALF if full else (None, None)
        unserved = 100 - found.share("served")
        yield row(
            "phases whose rate is not served", "%", unserved, independent=50.0 if full else None, low=low, high=high
        )


def _panels(found: Mapping[Key, _Found]) -> tuple[Panel, ...]:
    at = tuple(float(count) for count in range(1, PATIENCE + 1))
    curves = tuple(
        Curve(name=rule if noise == NONE else f"{rule}, noise", values=tuple(one.within(int(count)) for count in at))
        for (noise, queues, rule), one in found.items() if queues == FULL
    )  # fmt: skip
    settings = [(noise, queues) for noise in (NONE, TEN) for queues in (FULL, EMPTY)]
    served = tuple(
        Curve(name=rule, values=tuple(found[(*setting, rule)].share("served") for setting in settings))
        for rule in RULES
    )
    return (
        Panel(title="phases that have settled", unit="%", kind="lines", along="evaluations", at=at, curves=curves),
        Panel(
            title="phases whose rate is served", unit="%", kind="dots", curves=served,
            along="0, 1: no noise; 1, 3: empty queues",
        ),
    )  # fmt: skip


NOTES = (
    "R is 100 to 3,000 tuples/s and Q 100 to 3,000 tuples, uniform, for instances of 30-10, 20-20, 10-30 and guesses "
    "0 and 10, 10 and 20, 1 and 100 in turn; a = 0.5; T_drain = 30 s. The guarded rule begins at the end of the phase "
    "before. Noise is a factor of R and Q. The paper's rule rests when a number comes out again, so the evaluation of "
    "its solution is the check; under noise that is luck, and it is given up after 20 evaluations.",
)
