"""The studies: parts, figures and bounds."""

from __future__ import annotations

from leeward.core.experiment import Part
from leeward.policies.dssp.disciplines import DISCIPLINES
from leeward.policies.dssp.experiments.scale import CASES, Scale
from leeward.policies.dssp.experiments.testbed import UNIFORM, Testbed


def measured(study, rates: dict[str, float]) -> dict[Part, dict[str, float]]:
    return {
        part: {"rate": rates[str(part.option("discipline"))], "passed": 0.5} for part in study.parts(seed=0, quick=True)
    }


def test_a_quick_part_of_the_testbed_is_measured():
    study = Testbed()
    part = next(part for part in study.parts(seed=0, quick=True) if part.option("discipline") == "EDFQ")
    found = study.measure(part)
    assert 15 < found["rate"] < 21 and found["passed"] == 0
    assert found == study.measure(part)


def test_gains_are_bound_around_those_of_the_independent_simulation():
    rates = {"FIFO": 10.0, "SPR": 10.0, "EDF": 14.0, "EDFQ": 13.0, "ours": 14.7}
    rows = Scale().conclude(measured(Scale(), rates)).rows
    of = {(row.setting, row.metric): row for row in rows}
    small = f"{CASES[0].name}, 1 seeds"
    assert abs(of[small, "EDFQ over FIFO"].ours - 30.0) < 1e-9 and of[small, "EDFQ over FIFO"].met
    assert of[small, "EDFQ over SPR"].met
    assert abs(of[small, "ours over the better of EDF and EDFQ"].ours - 5.0) < 1e-9
    assert [row.met for row in rows if row.setting == "mean of 2 sizes"] == [True]
    worse = Scale().conclude(measured(Scale(), rates | {"ours": 13.0})).rows
    assert [row.met for row in worse if row.metric == "ours over the better of EDF and EDFQ"] == [False] * 3


def test_the_testbed_has_bounds_for_the_model_that_fits_the_paper():
    rates = dict.fromkeys(DISCIPLINES, 17.7)
    rows = Testbed().conclude(measured(Testbed(), rates)).rows
    met = {row.metric: row.met for row in rows if row.setting.startswith(UNIFORM.name)}
    assert met["sustained load, EDFQ"] is True and met["sustained load, FIFO"] is False
    assert met["sustained load, ours"] is None and met["ours over the better of EDF and EDFQ"] is True
