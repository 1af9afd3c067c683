"""The compiled queues: against formulas, and against a slow twin that asks the disciplines item by item."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.policies.dssp.disciplines import DISCIPLINES, Ordered
from leeward.policies.dssp.simulation.kernel_nodes import outwards
from leeward.policies.dssp.simulation.kernel_queues import EXPONENTIAL, UNIFORM, drawn, mixed
from leeward.policies.dssp.simulation.run import SHAPES, STAGES, Outcome, Simulation, unloaded_of
from leeward.policies.dssp.simulation.setup import PERCENT, QueryClass, Setting, Shape, queries, scale
from leeward.policies.dssp.simulation.setup import testbed as the_testbed

MEAN = 0.1
STEP = 0x9E3779B97F4A7C15


def single(shape: Shape) -> Setting:
    """One node, and queries that go to it alone."""
    return Setting(
        name="single", means=np.full((1, 1), MEAN), shape=shape,
        classes=(QueryClass(name="all", share=1.0, objective_s=1.0, rank=0, domains=1, nodes=1),),
    )  # fmt: skip


@pytest.mark.parametrize("load", [0.3, 0.7])
@pytest.mark.parametrize(("shape", "variation"), [("exponential", 1.0), ("uniform", 1 / 3), ("constant", 0.0)])
def test_the_mean_wait_is_pollaczeks_and_khinchines(shape: Shape, variation: float, load: float):
    """M/G/1: mean wait = load * mean * (1 + squared coefficient of variation) / 2 / (1 - load)."""
    ones = queries(single(shape), 400_000, 1)
    ones = replace(ones, before=0 * ones.before, after=0 * ones.after)
    latency = Simulation(ones).outcome(load / MEAN, DISCIPLINES["FIFO"]).latency_s
    wait = load * MEAN * (1 + variation) / 2 / (1 - load)
    assert latency.mean() == pytest.approx(MEAN + wait, rel=0.03)


def test_the_response_time_of_exponential_nodes_is_exponential():
    """M/M/1: its mean is 1 / (1 / t_e - lambda), and so are its percentiles."""
    ones = queries(single("exponential"), 400_000, 2)
    ones = replace(ones, before=0 * ones.before, after=0 * ones.after)
    latency = Simulation(ones).outcome(6.0, DISCIPLINES["FIFO"]).latency_s
    mean = 1 / (1 / MEAN - 6.0)
    for percent in (50, 90, 99):
        assert np.percentile(latency, percent) == pytest.approx(-mean * np.log(1 - percent / 100), rel=0.05)


@dataclass(frozen=True, kw_only=True)
class Waiting:
    query: int
    comes: float
    after: float
    arrived: float
    rank: int
    due: float
    unloaded: float
    execution: float
    stages: int
    weight: float


def twin(simulation: Simulation, rate: float, discipline: Ordered, weights: dict[str, float]) -> np.ndarray:
    """Latencies by asking the discipline whenever a node is free."""
    ones, setting = simulation.queries, simulation.queries.setting
    arrived = np.cumsum(ones.gaps) / rate
    ends = np.zeros(len(arrived))
    for d, means in enumerate(setting.means):
        for n, mean in enumerate(means):
            coming = []
            for task in np.flatnonzero(ones.domain == d):
                q = ones.query[task]
                if ones.first_node[q] <= n < ones.first_node[q] + ones.nodes[q]:
                    kind = setting.classes[ones.kind[q]]
                    coming.append(
                        Waiting(
                            query=int(q), comes=arrived[q] + ones.before[task], after=ones.after[task],
                            arrived=arrived[q], rank=kind.rank, due=arrived[q] + kind.objective_s,
                            unloaded=simulation.unloaded[task], execution=float(mean), stages=STAGES[setting.shape],
                            weight=weights.get(kind.name, 1.0),
                        )
                    )  # fmt: skip
            coming.sort(key=lambda one: one.comes)
            _serve(coming, d * len(means) + n, mean, simulation, discipline, ends)
    return ends - arrived


def _serve(coming, node, mean, simulation, discipline, ends) -> None:
    base = int(mixed(np.uint64((simulation.queries.seed + STEP * (node + 1)) % 2**64)))
    shape, waiting, now = SHAPES[simulation.queries.setting.shape], [], 0.0
    while coming or waiting:
        if not waiting:
            now = max(now, coming[0].comes)
        while coming and coming[0].comes <= now:
            waiting.append(coming.pop(0))
        one = waiting.pop(discipline.next_item(waiting, now=now))
        now += drawn(shape, mean, np.uint64((base + STEP * one.query) % 2**64))
        ends[one.query] = max(ends[one.query], now + one.after)


@pytest.mark.parametrize("name", list(DISCIPLINES))
@pytest.mark.parametrize(
    ("setting", "rate"), [(the_testbed(), 90.0), (the_testbed("exponential"), 60.0), (scale(3, 4), 12.0)]
)
def test_the_compiled_queues_are_those_of_the_discipline(setting: Setting, rate: float, name: str, monkeypatch):
    monkeypatch.setattr("leeward.policies.dssp.simulation.run.WARM", 0.0)
    simulation = Simulation(queries(setting, 400, 3))
    found, weights = simulation.outcome(rate, DISCIPLINES[name]), simulation.weights(rate, DISCIPLINES[name])
    assert found.latency_s == pytest.approx(twin(simulation, rate, DISCIPLINES[name], weights), abs=1e-9)
    assert (len(set(weights.values())) > 1) == (name == "ours"), "classes differ"
    assert (found.passed > 0) == (name == "ours"), "the load is high enough"


def test_fan_outs_are_within_the_tiers_and_in_the_middle():
    ones = queries(scale(20, 50), 5_000, 1)
    assert ones.domains.min() >= 1 and ones.domains.max() <= 20 and ones.nodes.max() <= 50
    middle = 24  # every centred fan-out has it
    assert ((ones.first_node <= middle) & (middle < ones.first_node + ones.nodes)).all()
    assert (np.bincount(ones.kind) / 5_000) == pytest.approx([0.1, 0.4, 0.3, 0.2], abs=0.02)
    assert len(ones.query) == ones.domains.sum() and (np.bincount(ones.query) == ones.domains).all()


def test_queries_of_the_testbed_go_where_table_ii_says():
    ones = queries(the_testbed(), 4_000, 1)
    kinds = [ones.domain[ones.kind[ones.query] == kind] for kind in range(4)]
    assert set(kinds[0]) == {0, 1, 2, 3} and set(kinds[1]) == {3} and set(kinds[2]) == {0, 1, 2, 3}
    assert set(ones.nodes[ones.kind == 3]) == {8} and set(ones.first_node[ones.kind == 2]) == set(range(8))


def test_the_unloaded_time_of_unlike_nodes_is_between_those_of_its_nodes():
    fast, slow = (unloaded_of(np.full(8, mean), 99.0, "uniform") for mean in (0.06, 0.13))
    assert fast < unloaded_of(np.array([0.06] * 4 + [0.13] * 4), 99.0, "uniform") < slow
    assert unloaded_of(np.full(3, 0.1), 99.0, "constant") == 0.1


def test_the_same_seed_gives_the_same_latencies_and_another_one_others():
    one, again = (Simulation(queries(the_testbed(), 2_000, 5)).outcome(12.0, DISCIPLINES["EDF"]) for _ in range(2))
    other = Simulation(queries(the_testbed(), 2_000, 6)).outcome(12.0, DISCIPLINES["EDF"])
    assert (one.latency_s == again.latency_s).all() and (one.latency_s != other.latency_s).any()


def test_draws_have_the_mean_of_their_node():
    rng = random.Random(1)
    states = [np.uint64(rng.getrandbits(64)) for _ in range(20_000)]
    for shape in (UNIFORM, EXPONENTIAL):
        assert np.mean([drawn(shape, 0.2, state) for state in states]) == pytest.approx(0.2, rel=0.02)


def test_a_rate_is_sustained_up_to_where_a_class_misses_its_objective():
    simulation = Simulation(queries(the_testbed(), 20_000, 1))
    objectives = np.array([one.objective_s for one in the_testbed().classes])
    found = simulation.sustained(DISCIPLINES["FIFO"], 5.0, 30.0)
    rate = found.rate
    assert (found.outcome.latency_s == simulation.outcome(rate, DISCIPLINES["FIFO"]).latency_s).all()
    assert simulation.outcome(rate, DISCIPLINES["FIFO"]).worst(objectives) <= 1
    assert simulation.outcome(1.02 * rate, DISCIPLINES["FIFO"]).worst(objectives) > 1


@pytest.mark.parametrize("name", list(DISCIPLINES))
@pytest.mark.parametrize(("setting", "rates"), [(the_testbed(), (8.0, 24.0)), (scale(8, 10), (5.0, 16.0))])
def test_a_rate_that_is_not_kept_is_found_out_before_the_end(setting: Setting, rates: tuple, name: str):
    """And for the same rates as by the whole simulation."""
    simulation = Simulation(queries(setting, 4_000, 1))
    objectives = np.array([one.objective_s for one in setting.classes])
    kept = []
    for rate in np.linspace(*rates, 15):
        whole, found = simulation.outcome(rate, DISCIPLINES[name]), simulation.kept(rate, DISCIPLINES[name])
        kept.append(whole.worst(objectives) <= 1)
        assert (found is not None) == kept[-1]
        assert found is None or ((found.latency_s == whole.latency_s).all() and found.passed == whole.passed)
    assert len(set(kept)) == 2


@given(count=st.integers(2, 100_000))
def test_one_more_late_query_than_there_are_to_spare_makes_the_percentile_late(count: int):
    """And so it is decided early: with two less it is not late."""
    latencies = np.zeros(count)
    spare = Outcome.spare(count)
    latencies[: max(0, spare - 1)] = 1.0
    assert np.percentile(latencies, PERCENT) < 1.0
    latencies[: spare + 1] = 1.0
    assert np.percentile(latencies, PERCENT) == 1.0


@pytest.mark.parametrize("size", [1, 2, 3, 4, 25, 300])
def test_outwards_each_place_comes_once_the_middle_first(size: int):
    order = [outwards(number, size) for number in range(size)]
    assert sorted(order) == list(range(size)) and order[0] == size // 2 and order[-1] in (0, size - 1)
