"""Phases as in the paper's appendix D: a rate and a queue that are fixed, and a rule that looks for its number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from leeward.policies.agiledart.scaling.health import Load, need, solution, whole
from leeward.policies.agiledart.scaling.rules import GuardedRule, Rule, SecantRule

#: r and q of an instance, as the paper labels them, and the first two guesses.
CAPACITIES = ((30, 10), (20, 20), (10, 30))
GUESSES = ((0, 10), (10, 20), (1, 100))
#: R, tuples/s, and Q, tuples, are drawn between these.
LEAST, MOST = 100.0, 3_000.0
#: Weight of the rate, and time to work a queue off, s.
A, DRAIN_S = 0.5, 30.0
#: Evaluations after which a phase that has not settled is given up.
PATIENCE = 20
#: A number that is further than this factor from the solution is a swing, from the solution's evaluation on.
SWING, SETTLED_BY = 2.0, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One of them, and its first number of instances."""

    r: int
    q: int
    R: float
    Q: float
    guesses: tuple[int, int]

    def load(self, x: int, factor: float = 1.0) -> Load:
        """A measurement; noise is a `factor` of rate and queue, and so of 1/f."""
        return Load(x=x, r=self.r, R=self.R * factor, Q=self.Q * factor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """How a rule did in a phase."""

    x: int  #: instances at its end
    evaluations: int
    settled: bool  #: it came to rest
    swings: bool  #: it asked for over twice or under half the solution, after the paper's four steps would be over
    served: bool  #: instances at the end are worth the rate
    over: float  #: instances at the end over the least that serve the rate and work the queue off, as a share


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """Of each measurement, relative and normal, and the number of them in an evaluation."""

    share: float
    window: int


EXACT = Noise(share=0.0, window=1)
NOISY = Noise(share=0.1, window=25)


def phases(count: int, rng: Random, *, empty: bool = False) -> Iterator[Phase]:
    """All capacities and guesses in turn. `empty`: no tuple waits."""
    for number in range(count):
        r, q = CAPACITIES[number % len(CAPACITIES)]
        rate, queue = rng.uniform(LEAST, MOST), rng.uniform(LEAST, MOST)
        guesses = GUESSES[number // len(CAPACITIES) % len(GUESSES)]
        yield Phase(r=r, q=q, R=rate, Q=0.0 if empty else queue, guesses=guesses)


def plain(phase: Phase, noise: Noise, rng: Random) -> Search:
    """The paper's rule from the phase's two guesses; each evaluation is told the mean of a window."""

    def measured(x: int) -> Load:
        mean = sum(_factor(noise, rng) for _ in range(noise.window)) / noise.window
        return phase.load(x, mean)

    rule = SecantRule(q=phase.q, a=A, second=phase.guesses[1])
    aim = solution(phase.load(1), q=phase.q, a=A)
    return _search(phase, rule, phase.guesses[0], aim, lambda x: rule.tell(measured(x)))


def guarded(phase: Phase, noise: Noise, rng: Random, *, x: int) -> Search:
    """Ours from the number `x`, the end of the phase before; it is told each measurement."""
    rule = GuardedRule(drain_s=DRAIN_S, window=noise.window)

    def evaluate(x: int) -> int | str:
        answer: int | str = "measure"
        for _ in range(noise.window):
            answer = rule.tell(phase.load(x, _factor(noise, rng)))
        return answer

    return _search(phase, rule, x, need(phase.load(1), drain_s=DRAIN_S), evaluate)


def _search(phase: Phase, rule: Rule, x: int, aim: float, evaluate: Callable[[int], int | str]) -> Search:
    swings = False
    answer: int | str = x
    while not isinstance(answer, str):
        x = answer
        answer = evaluate(x)
        if rule.evaluations >= PATIENCE and answer != "rest":
            break
        if rule.evaluations >= SETTLED_BY and not isinstance(answer, str):
            swings = swings or not aim / SWING <= answer <= max(1.0, aim * SWING)
    least = whole(need(phase.load(1), drain_s=DRAIN_S))
    return Search(
        x=x, evaluations=rule.evaluations, settled=answer == "rest", swings=swings, served=x * phase.r >= phase.R,
        over=x / least - 1,
    )  # fmt: skip


def _factor(noise: Noise, rng: Random) -> float:
    return max(0.0, 1 + noise.share * rng.gauss(0.0, 1.0)) if noise.share else 1.0
