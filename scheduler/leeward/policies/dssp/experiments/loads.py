"""The common part of the studies: the load that each discipline sustains in a setting, from several seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from leeward.core.experiment import Part
from leeward.policies.dssp.disciplines import DISCIPLINES
from leeward.policies.dssp.simulation.run import Simulation
from leeward.policies.dssp.simulation.setup import Setting, queries

OURS, RIVALS = "ours", ("EDF", "EDFQ")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A setting, how many queries it gets, and rates between which the sustained one is looked for."""

    setting: Setting
    queries: int
    quick: int  #: queries of a quick run
    low: float
    high: float

    @property
    def name(self) -> str:
        """For people."""
        return self.setting.name


class LoadStudy:
    """A study whose parts are (case, seed, discipline)."""

    cases: Sequence[Case]
    quick_cases: Sequence[Case]
    seeds: int

    def parts(self, *, seed: int, quick: bool) -> Sequence[Part]:
        """Each discipline meets the same queries of a seed."""
        return [
            Part(
                name=f"{case.name}, {discipline}, seed {number}", seed=1000 * seed + number,
                options=(
                    ("case", case.name), ("discipline", discipline), ("queries", case.quick if quick else case.queries),
                ),
            )
            for case in (self.quick_cases if quick else self.cases)
            for number in range(1 if quick else self.seeds)
            for discipline in DISCIPLINES
        ]  # fmt: skip

    def measure(self, part: Part) -> Mapping[str, float]:
        """The sustained rate, queries/s, and the queries that were preferred to more urgent ones there, %."""
        case = next(case for case in self.cases if case.name == part.option("case"))
        simulation = Simulation(queries(case.setting, int(part.option("queries")), part.seed))
        discipline = DISCIPLINES[str(part.option("discipline"))]
        found = simulation.sustained(discipline, case.low, case.high)
        return {"rate": found.rate, "passed": 100 * found.outcome.passed}


class Loads:
    """Sustained rates by case, discipline and seed."""

    def __init__(self, measured: Mapping[Part, Mapping[str, float]]) -> None:
        self._found: dict[tuple[str, str], list[Mapping[str, float]]] = {}
        for part, one in measured.items():
            self._found.setdefault((str(part.option("case")), str(part.option("discipline"))), []).append(one)

    def has(self, case: Case) -> bool:
        """It was run."""
        return (case.name, OURS) in self._found

    def rate(self, case: Case, discipline: str) -> float:
        """Mean over seeds, queries/s."""
        return fmean(one["rate"] for one in self._found[case.name, discipline])

    def passed(self, case: Case, discipline: str) -> float:
        """Mean over seeds, % of the queries."""
        return fmean(one["passed"] for one in self._found[case.name, discipline])

    def gain(self, case: Case, one: str, other: str) -> float:
        """Mean over seeds of how much more load `one` sustains, %."""
        pairs = zip(self._found[case.name, one], self._found[case.name, other], strict=True)
        return 100 * fmean(a["rate"] / b["rate"] - 1 for a, b in pairs)

    def over_best(self, case: Case) -> float:
        """How much more ours sustains than the better of EDF and EDFQ, %, of their means."""
        return 100 * (self.rate(case, OURS) / max(self.rate(case, rival) for rival in RIVALS) - 1)

    def setting(self, case: Case) -> str:
        """In words."""
        return f"{case.name}, {len(self._found[case.name, OURS])} seeds"
