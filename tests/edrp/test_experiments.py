"""The papers' experiments: the problems are what we say they are, and the commands work from end to end."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from leeward.cli import _build
from leeward.core.errors import LeewardError
from leeward.policies.edrp.experiments import isolated, table3, table4
from leeward.policies.edrp.experiments.instances import SHAPES, graph_instance, reference_instance
from leeward.policies.edrp.experiments.isolated import Task, measure
from leeward.policies.edrp.experiments.network import City, Network, great_circle_km, read_graphml, scaled_delays_s
from leeward.policies.edrp.experiments.table3_report import PLAN_COLUMNS, SUMMARY_COLUMNS, Hours, dependence
from leeward.policies.edrp.methods import solve
from leeward.policies.edrp.milp.ilp import variable_count
from leeward.policies.edrp.problem.document import problem_to_json
from leeward.policies.edrp.problem.evaluate import verify
from leeward.policies.edrp.problem.outcome import Optimal
from tests.helpers.shared_folder import stored

XML = "http://graphml.graphdrawing.org/xmlns"

#: Four cities on the equator, a degree apart, in a ring; every two that are neighbours have a link.
RING = Network(
    cities=tuple(City(name=name, latitude=0.0, longitude=float(east)) for east, name in enumerate("ABCD")),
    links=((0, 1), (1, 2), (2, 3), (3, 0)),
)


@pytest.fixture
def graph() -> Path:
    return stored("data/topologies", "Ans.graphml")[0]


@pytest.fixture
def ansnet(graph: Path) -> Network:
    return read_graphml(graph)


# --- the network ------------------------------------------------------------------------------------------


def test_a_degree_of_the_equator():
    assert great_circle_km(RING.cities[0], RING.cities[1]) == pytest.approx(111.19, abs=0.01)


def test_delays_follow_shortest_paths_and_have_the_mean():
    names, delay = scaled_delays_s(RING, (), 0.032)
    assert names == ("A", "B", "C", "D")
    pairs = [delay[u][v] for u in range(4) for v in range(4) if u != v]
    assert sum(pairs) / len(pairs) == pytest.approx(0.032)
    assert delay[0][2] == pytest.approx(2 * delay[0][1])
    assert delay[0][3] == pytest.approx(3 * delay[0][1])  # the link A-D is as long as the way round
    assert all(delay[u][u] == 0 for u in range(4))


def test_a_city_that_hosts_nothing_still_forwards():
    names, delay = scaled_delays_s(RING, ("B",), 0.01)
    assert names == ("A", "C", "D")
    assert sum(map(sum, delay)) / 6 == pytest.approx(0.01)
    assert delay[0][1] == pytest.approx(2 * delay[1][2])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<graphml", "cannot be read"),
        (f'<graphml xmlns="{XML}"><graph><node id="7"/></graph></graphml>', "'7' has no"),
        (f'<graphml xmlns="{XML}"/>', "0 nodes"),
    ],
)
def test_a_wrong_network_file_is_refused(tmp_path: Path, text: str, said: str):
    path = tmp_path / "graph.graphml"
    path.write_text(text)
    with pytest.raises(LeewardError, match=said):
        read_graphml(path)


def test_unknown_cities_and_islands_are_refused():
    with pytest.raises(LeewardError, match="no node 'Atlantis'"):
        scaled_delays_s(RING, ("Atlantis",), 0.032)
    with pytest.raises(LeewardError, match="not connected"):
        scaled_delays_s(Network(cities=RING.cities, links=((0, 1), (2, 3))), (), 0.032)


# --- Table III --------------------------------------------------------------------------------------------


def test_the_problem_of_table_iii_is_the_papers(ansnet: Network):
    problem = table3.problem_at(ansnet, table3.Assumptions(), 30, table3.FIRST, None)
    assert len(problem.nodes) == 15
    assert sum(map(sum, problem.delay_s)) / (15 * 14) == pytest.approx(0.032)
    assert all(node.res == 2 and node.store_up_s == 0.005 for node in problem.nodes)
    assert {op.id: op.k for op in problem.operators if op.k == 1}.keys() == {"data_source", "metronome", "global_rank"}
    assert problem.load_tps[problem.operator_index["partial_rank"]] == pytest.approx(220 * 21.2)
    assert (problem.bounds.r, problem.bounds.c, problem.bounds.d) == (0.175, 30, 7.5)
    pinned = {op.id: op.allowed for op in problem.operators if op.allowed}
    assert pinned == {"data_source": ("New York",), "global_rank": ("Los Angeles",)}


def test_the_source_climbs_and_falls():
    assert [table3.source_rate(m) for m in (0, 15, 30, 45, 60)] == [70, 145, 220, 145, 70]


def test_every_variation_is_a_problem_and_differs(ansnet: Network):
    problems = [
        problem_to_json(table3.problem_at(ansnet, a, 10, table3.FIRST, None)) | {"name": ""}
        for a in (table3.Assumptions(), *table3.variations())
    ]
    assert all(problem not in problems[:at] for at, problem in enumerate(problems))
    assert set(table3.QUICK_VARIATIONS) <= {a.name for a in table3.variations()}


def test_an_hour_is_a_first_deployment_and_plans(ansnet: Network):
    solver_calls = []

    def solver(problem):
        solver_calls.append(problem)
        return solve(problem, method="exact")

    objective = table3.OBJECTIVES[1]
    plans = list(table3.run_hour(ansnet, table3.Assumptions(), objective, solver, step=30))
    assert [plan.minute for plan in plans] == [0, 30, 60]
    assert solver_calls[0].weights == table3.FIRST and solver_calls[0].current is None
    assert all(p.weights == objective.weights for p in solver_calls[1:])
    assert solver_calls[2].current == plans[1].deployment
    row = table3.summarise(objective, plans)
    assert row is not None
    assert row.response_ms == pytest.approx(1000 * sum(plan.response_s for plan in plans) / 3)
    assert row.downtime_s == pytest.approx(sum(plan.downtime_s for plan in plans))
    assert plans[0].downtime_s == 0 < plans[1].downtime_s  # partial_rank has to be replicated at the peak


def test_without_a_first_deployment_there_is_no_row(ansnet: Network):
    impossible = table3.Assumptions(mean_delay_s=0.5)
    plans = list(table3.run_hour(ansnet, impossible, table3.OBJECTIVES[0], lambda p: solve(p, method="exact"), step=30))
    assert plans == [] and table3.summarise(table3.OBJECTIVES[0], plans) is None


def hours(name: str, response_ms: float, *, failed: int = 0) -> Hours:
    rows = tuple(
        table3.Row(
            objective=objective, response_ms=response_ms, cost=10.0, downtime_s=2.0, reconfigurations=3,
            most_replicas=12, unproven=0, failed=failed, seconds=1.0, slowest_s=0.1,
        )
        for objective in table3.OBJECTIVES
    )  # fmt: skip
    return Hours(assumptions=table3.Assumptions(name=name), rows=rows, plans=())


def test_what_the_figures_hang_on_is_said():
    varied = [hours("a", 101.0), hours("b", 80.0), hours("c", 130.0, failed=2), hours("d", 90.0)]
    first, *others = dependence(hours("reference", 100.0), varied, most=2)
    assert first == "mean R hangs most on: b (-20 %), d (-10 %); each other moves it by 1 % at most."
    assert len(others) == 2


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_quick_run_of_table_iii(tmp_path: Path, graph: Path):
    arguments = ["experiment", "edrp-table3", "--quick", "--no-sensitivity", "--out", str(tmp_path)]
    done = CliRunner().invoke(_build(), [*arguments, "--graph", str(graph)])
    assert done.exit_code == 0, done.output
    assert "reference run: 20 plans" in done.output and "120.8 / " in done.output
    summary, plans = read_csv(tmp_path / "summary.csv"), read_csv(tmp_path / "plans.csv")
    assert tuple(summary[0]) == SUMMARY_COLUMNS and tuple(plans[0]) == PLAN_COLUMNS
    assert [row["objective"] for row in summary] == [objective.name for objective in table3.OBJECTIVES]
    assert len(plans) == 20 and {plan["status"] for plan in plans} == {"optimal"}
    assert json.loads((tmp_path / "assumptions.json").read_text())["runs"][0]["link_cost"] == 0
    for name in ("table3.png", "hours.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_a_missing_graph_is_said_and_how_to_name_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LEEWARD_SHARED", str(tmp_path))
    done = CliRunner().invoke(_build(), ["experiment", "edrp-table3"])
    assert done.exit_code == 2 and "--graph" in done.output and "Traceback" not in done.output


# --- Table IV ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", table4.PAPER, ids=lambda cell: f"n{cell.nodes}-k{cell.k}")
def test_variables_are_the_papers_in_every_cell(cell: table4.Cell):
    count = variable_count(table4.problem_of(cell))
    if cell.variables_k is None:
        assert count > 1_200_000  # the paper could not build these either
    else:
        assert count / 1000 == pytest.approx(cell.variables_k, abs=0.1)


def test_the_quick_run_of_table_iv(tmp_path: Path):
    arguments = ["experiment", "edrp-table4", "--quick", "--methods", "exact", "--out", str(tmp_path)]
    done = CliRunner().invoke(_build(), arguments)
    assert done.exit_code == 0, done.output
    rows = read_csv(tmp_path / "table4.csv")
    assert tuple(rows[0]) == table4.COLUMNS
    assert [(row["nodes"], row["k"], row["status"]) for row in rows] == [("8", "2", "optimal"), ("8", "3", "optimal")]
    assert (tmp_path / "table4.png").read_bytes().startswith(b"\x89PNG")


def test_a_cell_shows_the_paper_beside_ours():
    cell = table4.PAPER[0]
    (row,) = table4.rows([cell], ["restricted"], [])
    assert row["paper_variables_k"] == 1.6 and row["our_variables_k"] == pytest.approx(1.6, abs=0.3)


def test_what_is_too_large_to_build_is_said_and_not_tried():
    cells = [cell for cell in table4.PAPER if cell.k == 4]
    assert [task.key for task in table4.tasks(cells, ["ilp"], limit_s=1.0)] == ["8 4 ilp"]
    rows = table4.rows(cells, ["ilp"], [])
    assert rows[1]["status"] == "not built" and rows[1]["paper_variables_k"] is None


def test_an_unknown_method_is_refused():
    done = CliRunner().invoke(_build(), ["experiment", "edrp-table4", "--methods", "exact,guess"])
    assert done.exit_code == 2 and "'guess' is not a method" in done.output


# --- instances and processes of their own -------------------------------------------------------------------


@pytest.mark.parametrize("traffic", [False, True])
@pytest.mark.parametrize("present", [False, True])
def test_reference_instances_repeat_and_their_present_deployment_fits(traffic: bool, present: bool):
    problem = reference_instance(12, 3, traffic=traffic, present=present, seed=4)
    assert problem == reference_instance(12, 3, traffic=traffic, present=present, seed=4)
    assert problem != reference_instance(12, 3, traffic=traffic, present=present, seed=5)
    assert (problem.current is None) == (not present)
    if problem.current is not None:
        broken = {violation.kind for violation in verify(problem, problem.current)}
        assert not broken & {"unknown operator", "node not allowed", "count below one", "replicas", "capacity"}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("operators", [3, 17, 40])
def test_graphs_have_one_source_and_conserve_its_tuples(shape: str, operators: int):
    problem = graph_instance(shape, operators, 12, seed=1)
    fed = {j for _, j in problem.edges}
    assert fed == set(range(1, operators))
    sending = {i for i, _ in problem.edges}
    assert sum(problem.load_tps[i] for i in range(operators) if i not in sending) == pytest.approx(200.0)


def test_a_process_of_its_own_gives_the_same_and_ends_what_overruns(monkeypatch: pytest.MonkeyPatch):
    small = reference_instance(8, 2, seed=0)
    here = solve(small, method="exact")
    assert isinstance(here, Optimal)
    monkeypatch.setattr(isolated, "GRACE_S", 0.0)
    tasks = [
        Task(key="too long", problem=reference_instance(150, 4), method="exact", limit_s=0.001),
        Task(key="after it", problem=small, method="exact", limit_s=60.0),
        Task(key="no such", problem=small, method="guess", limit_s=60.0),
    ]
    ended, same, refused = measure(tasks)
    assert (ended.key, ended.status, ended.seconds) == ("too long", "limit", 0.001)
    assert (same.key, same.status, same.F) == ("after it", "optimal", here.metrics.F)
    assert same.peak_mb is not None and same.peak_mb > 20
    assert (refused.key, refused.status) == ("no such", "refused") and "'guess'" in refused.why
