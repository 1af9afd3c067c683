"""Queues and response times against the formulae; rate files and world files that cannot be read."""

from __future__ import annotations

import gzip

import pytest

from leeward.core.errors import ConfigError
from leeward.core.table import even_table
from leeward.sim.world.description import load_world, parse_world
from leeward.sim.world.flows import QUEUE_MAX, RHO_MAX, Flows, Layout, sojourn_s
from leeward.sim.world.rates import RateTrace, load_rates, parse_rates

WORLD = {
    "name": "w",
    "nodes": [{"id": "n1"}, {"id": "n2"}],
    "components": [
        {"id": "a", "kind": "source", "rate": 1000},
        {"id": "b", "kind": "stateful", "rate": 100, "tasks": 4},
        {"id": "c", "kind": "stateless", "rate": 50, "tasks": 4},
    ],
    "streams": [{"from": "a", "to": "b", "keyed": True}, {"from": "b", "to": "c", "ratio": 0.5}],
    "delay_s": 0.01,
}


def layout(world, b=1, c=1, nodes=None):
    tables = {"a": even_table([1]), "b": even_table([2, 3, 4, 5][:b]), "c": even_table([6, 7, 8, 9][:c])}
    return Layout.of(world, tables, nodes or dict.fromkeys(range(1, 10), "n1"))


def test_response_time_is_that_of_m_m_1_queues_along_the_path():
    world = parse_world(WORLD)
    passed = Flows(world).step(10.0, {"a": 600.0}, layout(world), runs=True)
    assert passed.response_s == pytest.approx(1 / (1000 - 60) + 1 / (100 - 60) + 1 / (50 - 30))
    assert passed.processed == pytest.approx({"a": 600.0, "b": 600.0, "c": 300.0})


def test_replicas_share_the_rate_and_the_busiest_one_counts():
    world = parse_world(WORLD)
    passed = Flows(world).step(10.0, {"a": 600.0}, layout(world, b=3, c=2), runs=True)
    busiest = 43 / 128  # 128 key groups for three replicas
    assert passed.response_s == pytest.approx(1 / 940 + 1 / (100 - 60 * busiest) + 1 / (50 - 15))


def test_a_stream_between_nodes_has_the_delay_of_the_link():
    world = parse_world(WORLD)
    same = Flows(world).step(10.0, {"a": 10.0}, layout(world), runs=True).response_s
    nodes = dict.fromkeys(range(1, 10), "n1") | {2: "n2"}
    apart = Flows(world).step(10.0, {"a": 10.0}, layout(world, nodes=nodes), runs=True).response_s
    assert apart - same == pytest.approx(0.02)  # a to b, and b to c


def test_near_saturation_the_queue_and_not_the_formula_says_how_long():
    assert sojourn_s(99.999, 100, 1.0) == pytest.approx(1 / (100 * (1 - RHO_MAX)))
    world = parse_world(WORLD)
    flows = Flows(world)
    first = flows.step(10.0, {"a": 1500.0}, layout(world), runs=True)  # 150 tuples/s for a bolt of 100
    assert flows.queues["b"] == pytest.approx(500.0)
    assert first.processed["b"] == pytest.approx(1000.0)
    second = flows.step(10.0, {"a": 1500.0}, layout(world), runs=True)
    assert second.response_s > first.response_s > 1.0


def test_storm_holds_the_source_back_and_nothing_is_lost():
    world = parse_world(WORLD)
    flows = Flows(world)
    for _ in range(20):
        flows.step(10.0, {"a": 1500.0}, layout(world), runs=True)
    assert flows.queues["b"] <= QUEUE_MAX + 1e-6
    assert flows.queues["a"] == pytest.approx(20 * 500 - QUEUE_MAX)
    assert flows.lost == pytest.approx(0.0, abs=1e-6)
    for _ in range(40):  # four replicas work it off
        flows.step(10.0, {"a": 500.0}, layout(world, b=4, c=4), runs=True)
    assert flows.waiting == pytest.approx(0.0, abs=1e-6)
    assert flows.lost == pytest.approx(0.0, abs=1e-6)


def test_nothing_flows_during_a_stop():
    world = parse_world(WORLD)
    flows = Flows(world)
    passed = flows.step(10.0, {"a": 500.0}, layout(world), runs=False)
    assert set(passed.processed.values()) == {0.0}
    assert flows.queues["a"] == 500.0


def test_rates_are_linear_between_the_middles_of_hours_and_weeks_repeat():
    rows = "\n".join(f"{hour},{60 * hour}" for hour in range(168))
    week = parse_rates(f"# a comment\nhour_of_week,rows_per_minute\n{rows}\n")
    assert week.at(1.5 * 3600) == pytest.approx(1.0)
    assert week.at(2.0 * 3600) == pytest.approx(1.5)
    assert week.at(168 * 3600 + 1.5 * 3600) == pytest.approx(1.0)
    assert week.at(0.0) == pytest.approx((167 + 0) / 2)
    assert week.from_hour(10).at(1.5 * 3600) == pytest.approx(11.0)
    assert week.scaled(2.0).peak == pytest.approx(2 * 167)


def test_a_rate_file_may_be_of_minutes_and_packed(tmp_path):
    path = tmp_path / "rates.csv.gz"
    path.write_bytes(gzip.compress(b"dropoff_minute,rows\n2013-01-14 00:00,60\n2013-01-14 00:02,180\n"))
    trace = load_rates(path)
    assert [trace.at(t) for t in (0, 60, 120, 999)] == [1.0, 2.0, 3.0, 3.0]
    with pytest.raises(ConfigError, match="--start is 1 h"):
        trace.from_hour(1.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has 0 lines"),
        ("time,rate\n1,2\n", "the header is 'time,rate'"),
        ("time_s,tuples_per_s\n1,x\n", "line 2 is '1,x'"),
        ("time_s,tuples_per_s\n1,-2\n", "a rate of at least 0"),
        ("time_s,tuples_per_s\n1,2,3\n", "line 2 is '1,2,3'"),
        ("time_s,tuples_per_s\n2,1\n1,1\n", "time 1 s follows 2 s"),
        ("dropoff_minute,rows\nmonday,1\n", "line 2 is 'monday,1'"),
        ("dropoff_minute,rows\n2013-01-14 00:00,1\nNaT,1\n", "line 3 is 'NaT,1'"),
        ("time_s,tuples_per_s\n1,nan\n", "Give finite numbers"),
    ],
)
def test_a_bad_rate_file_names_line_value_and_remedy(text, said):
    with pytest.raises(ConfigError, match="rates") as caught:
        parse_rates(text)
    assert said in str(caught.value)
    assert caught.value.remedy


def without(name):
    return {key: value for key, value in WORLD.items() if key != name}


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (without("name"), "name is missing"),
        ({**WORLD, "nodes": []}, "nodes is empty"),
        ({**WORLD, "nodes": [{"id": "n1"}, {"id": "n1"}]}, "nodes has 'n1' twice"),
        ({**WORLD, "nodes": [{"id": "n1", "slots": 0}]}, "nodes[0].slots is 0"),
        ({**WORLD, "nodes": [{"id": "n1", "memory": 3}]}, "nodes[0].memory is not known (value 3)"),
        ({**WORLD, "delay_s": "slow"}, "delay_s is 'slow'. Give a number"),
        ({**WORLD, "costs": {"restart_s": -1}}, "costs.restart_s is -1"),
        ({**WORLD, "streams": [{"from": "a", "to": "z"}]}, "streams name component 'z'"),
        ({**WORLD, "streams": [{"from": "a", "to": "b"}]}, "'c': no stream leads to it"),
        ({**WORLD, "streams": [*WORLD["streams"], {"from": "c", "to": "b"}]}, "streams form a circle"),
        ({**WORLD, "components": [{"id": "b", "kind": "bolt", "rate": 1}]}, "no component has kind 'source'"),
    ],
)
def test_a_bad_world_names_field_value_and_remedy(document, said):
    with pytest.raises(ConfigError) as caught:
        parse_world(document)
    assert said in str(caught.value)
    assert caught.value.remedy


def test_a_file_that_is_no_toml_or_not_there_is_named(tmp_path):
    bad = tmp_path / "bad.toml"
    bad.write_text("name = ")
    for path, said in ((bad, "cannot be read"), (tmp_path / "none.toml", "does not exist")):
        with pytest.raises(ConfigError, match=said) as caught:
            load_world(path)
        assert str(path) in str(caught.value)


def test_rates_before_the_first_and_after_the_last_are_theirs():
    trace = RateTrace((10.0, 20.0), (1.0, 2.0))
    assert [trace.at(t) for t in (0.0, 15.0, 99.0)] == [1.0, 1.5, 2.0]
