"""The figures of a live run, and its scenario."""

from __future__ import annotations

import random
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.experiments.live import Drain, Lived, Scenario, conclude, scenario_of
from leeward.policies.edge_cloud.workload.live import small_dataflow

SCENARIOS = Path(__file__).resolve().parents[2] / "storm_conf" / "scenarios"


def written(name: str = "edge-cloud-quick") -> dict[str, object]:
    return tomllib.loads((SCENARIOS / f"{name}.toml").read_text())


def lived(name: str, model_s: float, measured_s: float, **changes: object) -> Lived:
    dataflow = small_dataflow(name, range(2), 1.0, random.Random(1), joins=False)
    facts = {"submitted_to_plan_s": 0.4, "seen_to_plan_s": 0.2, "events": 10, "moves": Counter(handover=1)}
    facts |= {"placed_first": True} | changes
    return Lived(name=name, dataflow=dataflow, model_s=model_s, measured_s=measured_s, **facts)  # type: ignore[arg-type]


def figures(*dataflows: Lived, left: tuple[str, ...] = ()) -> dict[str, tuple[float, bool | None]]:
    drain = Drain(node="vm-1", dataflows=len(dataflows), seconds=3.0, left=left)
    rows = conclude(scenario_of(written()), dataflows, drain).rows
    return {row.metric: (row.ours, row.met) for row in rows if row.setting.startswith("3 dataflows")}


@pytest.mark.parametrize("name", ["edge-cloud", "edge-cloud-quick"])
def test_the_scenarios_that_come_along_are_read(name: str):
    assert isinstance(scenario_of(written(name)), Scenario)


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("nodes", 2, "is not from 3 to 20"),
        ("speed", 0.0, "must be greater than 0"),
        ("rebalance", "all", "is unknown"),
        ("method", "best", "is unknown"),
        ("joins", 1, "must be true or false"),
        ("rates", 1, "unknown key"),
    ],
)
def test_a_scenario_with_a_wrong_field_is_refused_by_its_name(key: str, value: object, says: str):
    with pytest.raises(FieldError, match=says) as caught:
        scenario_of(written() | {key: value})
    assert key in caught.value.field


def test_a_good_run_meets_its_bounds():
    moved = Counter(handover=2)
    found = figures(
        lived("a", 0.1, 0.11), lived("b", 0.2, 0.21), lived("c", 0.1, 0.13, rebalanced=moved, moves=Counter(restart=1))
    )
    assert all(met is not False for _, met in found.values())
    assert found["measured makespan from the model's, median of 3"][0] == pytest.approx(10)
    assert found["handovers in the drain, 2 dataflows that nothing had moved"] == (2, True)
    assert found["handovers by the rebalance (vertex-edge)"] == (2, True)
    assert found["their other reconfigurations"] == (1, None), "its warm task is beside others that work"


@pytest.mark.parametrize(
    ("changes", "missed"),
    [
        ({"measured_s": 0.2}, "measured makespan from the model's, median of 1"),
        ({"submitted_to_plan_s": 1.2}, "plan after submission, most"),
        ({"lost": 1}, "lost"),
        ({"doubled": 1}, "doubled"),
        ({"placed_first": False}, "dataflows whose first placement was the plan"),
        ({"moves": Counter(restart=1)}, "handovers in the drain, 1 dataflows that nothing had moved"),
        ({"rebalanced": Counter()}, "handovers by the rebalance (vertex-edge)"),
        ({"rebalanced": Counter(handover=1, restart=1)},
         "its other reconfigurations, and handovers that were given up"),
        ({"moves": Counter({"handover": 1, "handover given up": 1})},
         "their other reconfigurations, and handovers that were given up"),
    ],
)  # fmt: skip
def test_each_fault_of_a_run_is_a_bound_that_is_not_met(changes: dict[str, object], missed: str):
    one = lived("a", 0.1, float(changes.pop("measured_s", 0.1)), **changes)  # type: ignore[arg-type]
    assert figures(one)[missed][1] is False


def test_a_dataflow_left_on_the_drained_node_is_told():
    assert figures(lived("a", 0.1, 0.1), left=("a",))["dataflows left on the drained node, of 1"] == (1, False)


def test_lines_that_a_sink_wrote_again_are_no_fault():
    assert figures(lived("a", 0.1, 0.1, again=4))["written again after a reset"] == (4, None)
