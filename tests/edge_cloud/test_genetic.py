"""The genetic algorithm: its fitness against the formulas, its placements, its refusals, and its settings."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leeward.core.fields import FieldError
from leeward.policies.edge_cloud.facts import fabric_of
from leeward.policies.edge_cloud.methods.genetic import Genetic, gag, gag_again, gai
from leeward.policies.edge_cloud.methods.outcome import Placed, Refused
from leeward.policies.edge_cloud.methods.topset import topset
from leeward.policies.edge_cloud.model.document import instance_from_json
from leeward.policies.edge_cloud.model.evaluate import evaluate
from leeward.policies.edge_cloud.model.instance import Instance
from leeward.policies.edge_cloud.planning.board import Board
from leeward.policies.edge_cloud.planning.loads import Loads
from leeward.policies.edge_cloud.planning.population import Placing
from leeward.policies.edge_cloud.settings import EdgeCloudSettings
from leeward.policies.edge_cloud.workload.catalogue import at_sensors, catalogue
from leeward.policies.edge_cloud.workload.setup import REF, cluster
from tests.helpers.edge_cloud_builders import board_with, case_document, crowds, instances, placed, placements, snapshot

near = pytest.approx
FEW = settings(max_examples=40)
SOME = settings(max_examples=15)
SHORT = Genetic(population=10, generations=12)
#: A placement of a few queries is found in a blink.
LONG = Genetic(population=20, generations=40)


def seeded(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def running(board: Board) -> tuple[Instance, list[tuple[int, ...]]]:
    """The dataflows and placements of a board, as the formulas take them."""
    flows = tuple(one.dataflow for one in board.active.values())
    return Instance(fabric=board.fabric, dataflows=flows), [board.placement(name) for name in board.active]


def check_valid(board: Board) -> None:
    instance, rows = running(board)
    found = evaluate(instance, rows)
    # an edge whose base load alone is too much has no query, and breaks its bound without anybody
    assert all(name == "energy" and found.service_time[r] == 0 for name, r, *_ in found.violations)
    assert board.total() == near(found.total, rel=1e-12)


@FEW
@given(placed() | crowds(), st.data())
def test_a_population_is_worth_what_the_formulas_say(case, data):
    """Some dataflows are on the board, the others are placed in several ways at once."""
    instance, rows = case
    there = data.draw(st.integers(0, len(rows) - 1))
    board = board_with(Instance(fabric=instance.fabric, dataflows=instance.dataflows[:there]), rows[:there])
    coming = Instance(fabric=instance.fabric, dataflows=instance.dataflows[there:])
    ways = data.draw(st.lists(placements(coming), min_size=1, max_size=3))
    placing = Placing(board.loads, coming.dataflows)
    total_s, broken = placing.evaluate(np.array([[r for row in way for r in row] for way in ways]))
    for p, way in enumerate(ways):
        found = evaluate(instance, [*rows[:there], *way])
        assert total_s[p] == near(sum(found.makespans[there:]), rel=1e-9)
        assert set(np.flatnonzero(broken[p]).tolist()) == broken_queries(instance, found, [*rows[:there], *way], there)


def broken_queries(instance: Instance, found, rows, first: int) -> set[int]:
    """The queries from dataflow `first` on that are misplaced, too slow, or beside one of another that is too slow."""
    over = {r for name, r, *_ in found.violations if name == "energy"}
    over |= {rows[d][v[0]] for name, d, *v in found.violations if name == "throughput" and d < first}
    itself = {(d, v[0]) for name, d, *v in found.violations if name in ("sink_not_in_cloud", "throughput")}
    every = [
        (d, v, query.kind)
        for d, dataflow in enumerate(instance.dataflows)
        for v, query in enumerate(dataflow.queries)
        if d >= first
    ]
    return {
        number
        for number, (d, v, kind) in enumerate(every)
        if kind != "source" and (rows[d][v] in over or (d, v) in itself)
    }


@SOME
@given(instances())
def test_arrivals_of_either_kind_break_no_constraint_or_change_nothing(instance):
    for arrive in (gai, gag):
        board = Board(instance.fabric)
        for seed, dataflow in enumerate(instance.dataflows):
            before, others = snapshot(board), {name: board.placement(name) for name in board.active}
            outcome = arrive(board, dataflow, seeded(seed), SHORT)
            if isinstance(outcome, Refused):
                assert snapshot(board) == before
                assert 0 <= outcome.query < len(dataflow.queries)
                continue
            assert board.placement(dataflow.name) == outcome.placement
            check_valid(board)
            if arrive is gai:
                assert all(board.placement(name) == where for name, where in others.items())


@SOME
@given(instances())
def test_equal_seeds_give_equal_placements(instance):
    for arrive in (gai, gag):
        first, second = ([], Board(instance.fabric)), ([], Board(instance.fabric))
        for found, board in (first, second):
            rng = seeded(7)
            found.extend(arrive(board, dataflow, rng, SHORT) for dataflow in instance.dataflows)
        assert first[0] == second[0]
        assert snapshot(first[1]) == snapshot(second[1])


def three(sigma: float = 0.5) -> Instance:
    document = case_document(edges=3, clouds=2)["instance"]
    document["dataflows"][0]["queries"][1]["sigma"] = sigma
    document["dataflows"] += [document["dataflows"][0] | {"name": name} for name in ("second", "third")]
    return instance_from_json(document)


def test_another_seed_takes_another_way():
    long = Genetic(population=4, generations=1)
    found = {gai(Board(three().fabric), three().dataflows[0], seeded(seed), long) for seed in range(20)}
    assert len(found) > 1


def test_a_small_dataflow_gets_its_best_placement():
    """All 25 placements are known: the algorithm finds the best, as it does beside another dataflow."""
    instance = three()
    board = Board(instance.fabric)
    for dataflow in instance.dataflows:
        board.add(dataflow)
        totals = {}
        for work in range(5):
            for sink in (3, 4):
                for v, r in enumerate((0, work, sink)):
                    board.place(dataflow.name, v, r)
                if not board.loads.broken()[[work, sink]].any():
                    totals[0, work, sink] = board.makespan(dataflow.name)
                for v in range(3):
                    board.take(dataflow.name, v)
        board.remove(dataflow.name)
        outcome = gai(board, dataflow, seeded(), LONG)
        assert isinstance(outcome, Placed)
        assert totals[outcome.placement] == near(min(totals.values()), rel=1e-12)


def test_global_places_others_anew_and_gains_by_it():
    """All begin crowded on one machine; the sum falls when a dataflow comes or goes, and all may move."""
    instance = three()
    board = board_with(Instance(fabric=instance.fabric, dataflows=instance.dataflows[:2]), [[0, 3, 3]] * 2)
    before = board.total()
    assert gag_again(board, seeded(), LONG)
    assert board.total() < before
    check_valid(board)
    assert isinstance(gag(board, instance.dataflows[2], seeded(), LONG), Placed)
    assert list(board.active) == ["chain", "second", "third"]
    check_valid(board)
    # the sum is what counts, and it is as good as by TopSet here
    other = Board(instance.fabric)
    for dataflow in instance.dataflows:
        topset(other, dataflow, penalty=True)
    assert board.total() <= other.total() * (1 + 1e-9)


def test_a_departure_without_a_valid_placement_leaves_the_board_as_it_was():
    instance = three()
    board = board_with(Instance(fabric=instance.fabric, dataflows=instance.dataflows[:1]), [[0, 3, 3]])
    before = snapshot(board)
    # a single draw on which the sink is on an edge
    never = Genetic(population=2, generations=1, elite=0, sinks_anywhere=True)
    refused = [seed for seed in range(40) if not gag_again(board_with(*running(board)), seeded(seed), never)]
    assert refused
    assert not gag_again(board, seeded(refused[0]), never)
    assert snapshot(board) == before
    assert not gag_again(Board(instance.fabric), seeded(), LONG), "nothing to place"


def test_a_dataflow_that_fits_nowhere_is_refused_with_query_and_reason():
    document = case_document()["instance"]
    document["dataflows"][0]["queries"][0]["rate"] = 5000.0
    instance = instance_from_json(document)
    for arrive in (gai, gag):
        outcome = arrive(Board(instance.fabric), instance.dataflows[0], seeded(), SHORT)
        assert isinstance(outcome, Refused)
        assert outcome.query in (1, 2) and "processes 5000 events/s of type 0 within its bounds" in outcome.reason


def test_a_dataflow_without_room_names_a_query_of_its_own():
    """Two dataflows are there; the machine has no room for the sink of a third."""
    document = case_document()["instance"]
    document["lam"] = [document["lam"][0], [0.01, 0.01, 0.009]]
    document["dataflows"] += [document["dataflows"][0] | {"name": name} for name in ("second", "third")]
    instance = instance_from_json(document)
    two = Instance(fabric=instance.fabric, dataflows=instance.dataflows[:2])
    for arrive in (gai, gag):
        board = board_with(two, [[0, 0, 2], [0, 1, 2]])
        outcome = arrive(board, instance.dataflows[2], seeded(), SHORT)
        assert outcome == Refused(
            query=2,
            reason="queries[2] = 'sink': the genetic algorithm found no placement of all queries within the bounds.",
        )
        assert list(board.active) == ["chain", "second"]


def test_without_a_resource_of_a_class_it_is_refused():
    document = case_document(edges=2, clouds=0)["instance"]
    instance = instance_from_json(document | {"dataflows": []})
    (dataflow,) = instance_from_json(case_document()["instance"]).dataflows
    outcome = gai(Board(instance.fabric), dataflow, seeded(), SHORT)
    assert isinstance(outcome, Refused) and outcome.query == 2


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("population", 1, "2 or more"),
        ("population", 51, "an even number"),
        ("generations", 0, "1 or more"),
        ("patience", 1.5, "0 to 1"),
        ("elite", 50, "0 to 48"),
        ("elite", 3, "an even number"),
        ("crossover", -0.1, "0 to 1"),
        ("mutation", -1.0, "0 or more"),
        ("penalty", -1.0, "0 or more"),
    ],
)
def test_numbers_out_of_bounds_are_refused(name: str, value: float, said: str):
    with pytest.raises(FieldError) as told:
        Genetic(**{name: value})
    assert f"{name} = {value}" in str(told.value) and said in str(told.value.remedy).lower()


def test_a_run_without_gain_ends_after_its_share_of_the_generations(monkeypatch):
    """A dataflow with one placement only gains nothing after the first generation."""
    instance = instance_from_json(case_document(edges=1, clouds=1)["instance"])
    document = case_document(edges=1, clouds=1)["instance"]
    document["dataflows"][0]["queries"] = [document["dataflows"][0]["queries"][k] for k in (0, 2)]
    document["dataflows"][0]["edges"] = [[0, 1]]
    instance = instance_from_json(document)
    asked = []
    evaluate_all = Placing.evaluate
    monkeypatch.setattr(Placing, "evaluate", lambda self, places: asked.append(1) or evaluate_all(self, places))
    for patience, generations in ((0.5, 1 + 10), (0.1, 1 + 2), (0.0, 1 + 1), (1.0, 20)):
        asked.clear()
        gai(Board(instance.fabric), instance.dataflows[0], seeded(), Genetic(generations=20, patience=patience))
        assert len(asked) == generations
    assert Placing(Loads(instance.fabric), instance.dataflows).evaluate(np.array([[0, 1]]))[1].sum() == 0


def test_the_best_valid_placement_is_kept_though_a_broken_one_is_shorter():
    """Work on the sensor's edge would be shortest, and drain its battery; here nothing is penalised."""
    document = case_document(edges=1)["instance"]
    document["resources"][0]["battery_mAh"] = 5550.0
    instance = instance_from_json(document)
    placing = Placing(Loads(instance.fabric), instance.dataflows)
    total_s, broken = placing.evaluate(np.array([[0, 0, 1], [0, 1, 1]]))
    assert total_s[0] < total_s[1] and broken.any(axis=1).tolist() == [True, False]
    outcome = gai(Board(instance.fabric), instance.dataflows[0], seeded(), Genetic(penalty=0.0))
    assert outcome == Placed(placement=(0, 1, 1))


def outcomes(**numbers: float) -> list[float | None]:
    """The makespan of a dataflow of 21 queries on an empty cluster, by six seeds; None: refused."""
    rng = random.Random(1)
    nodes, network = cluster(50, REF, rng)
    fabric = fabric_of(nodes, network, EdgeCloudSettings())
    flow = at_sensors(catalogue(REF, rng)[25], "one", len(fabric.edges), rng)
    found = []
    for seed in range(6):
        board = Board(fabric)
        outcome = gai(board, flow, seeded(seed), Genetic(**numbers))
        found.append(board.total() if isinstance(outcome, Placed) else None)
    return found


def makespans(**numbers: float) -> list[float]:
    found = [one for one in outcomes(**numbers) if one is not None]
    assert len(found) == 6
    return found


def test_the_penalty_leads_sinks_out_of_the_edges():
    """Drawn anywhere, as in the paper, a sink is mostly on an edge, where the way to it is shorter."""
    assert None not in outcomes(sinks_anywhere=True, penalty=1.0)
    assert None in outcomes(sinks_anywhere=True, penalty=0.0)


def test_without_mutation_and_crossover_nothing_new_appears_and_each_alone_brings_some():
    first = makespans(generations=1)
    still = {"generations": 30, "mutation": 0.0, "crossover": 0.0}
    assert makespans(**still) == first
    for alone in ({"mutation": 1.0}, {"crossover": 1.0}):
        assert all(later < at_first for later, at_first in zip(makespans(**still | alone), first, strict=True))


def test_the_better_parents_are_chosen():
    """Without an elite, selection alone keeps what is good: as many placements at random are far worse."""
    chosen = makespans(generations=60, elite=0, patience=1.0)
    at_random = makespans(generations=60, elite=0, patience=1.0, mutation=1000.0)
    assert sum(chosen) < 0.9 * sum(at_random)
