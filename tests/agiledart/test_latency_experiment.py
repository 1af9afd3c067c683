"""Latency beside plain Storm's, without a cluster: the scenario, the model, and the figures from the sinks' lines."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leeward.core.fields import FieldError
from leeward.core.network import NIMBUS, Link, Network, NetworkNode, Site
from leeward.local.places import checkout
from leeward.policies.agiledart.experiments import latency, latency_model, latency_setup
from leeward.policies.agiledart.experiments.latency import FIXED, OURS, STORM, Measured, Result
from leeward.policies.agiledart.experiments.latency_model import Graph
from leeward.policies.agiledart.experiments.latency_setup import HIGH, LOW, MEDIUM, Application, Ends, Scenario

DOCUMENT = {
    "seed": 1, "sites": 3, "nodes": 2, "slots": 4, "inside_ms": 0.5, "least_ms": 2, "most_ms": 10, "speed": 0.5,
    "settle_s": 5, "window_s": 10, "application": [
        {"topology": "app", "title": "an app", "source": "in", "sink": "out", "rates": {"high": 200, "low": 50}},
        {"topology": "other", "title": "another", "source": "in", "sink": "out", "rates": {"medium": 90},
         "options": {"other.pulse_s": 2}},
    ],
}  # fmt: skip


def scenario(**changes: object) -> Scenario:
    return latency_setup.scenario_of({**DOCUMENT, **changes})


def application(**changes: object) -> dict[str, object]:
    return {**DOCUMENT["application"][0], **changes}  # type: ignore[index]


# --- scenario


def test_a_scenario_has_its_applications_with_rates_from_low_to_high():
    found = scenario()
    assert list(found.applications[0].rates.items()) == [(LOW, 50.0), (HIGH, 200.0)]
    assert found.applications[1].options == {"other.pulse_s": 2} and found.applications[0].options == {}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"sites": 1}, "sites"),
        ({"sites": 11}, "nodes"),
        ({"most_ms": 1}, "most_ms"),
        ({"window_s": 0}, "window_s"),
        ({"speed": 0}, "speed"),
        ({"surplus": 1}, "scenario.surplus"),
        ({"application": []}, "application"),
        ({"application": [application(), application()]}, "application"),
        ({"application": [application(rates={})]}, r"application[0].rates"),
        ({"application": [application(rates={"huge": 9})]}, r"application[0].rates.huge"),
        ({"application": [application(rates={"low": -1})]}, r"application[0].rates.low"),
        ({"application": [application(sink=3)]}, r"application[0].sink"),
    ],
)
def test_a_wrong_scenario_is_refused_by_field(changes: Mapping[str, object], field: str):
    with pytest.raises(FieldError) as refused:
        scenario(**changes)
    assert refused.value.field == field


@pytest.mark.parametrize("name", ["agiledart-latency", "agiledart-latency-quick"])
def test_scenarios_of_the_checkout_name_topologies_that_are_there(name: str):
    root = checkout()
    assert root is not None
    found = latency_setup.scenario_of(tomllib.loads((root / f"storm_conf/scenarios/{name}.toml").read_text()))
    for one in found.applications:
        text = (root / f"topologies/{one.topology}.py").read_text()
        assert f"    {one.source} = " in text and f"    {one.sink} = " in text


def test_only_some_topologies():
    assert [one.topology for one in latency_setup.only(scenario(), ["other"])] == ["other"]
    assert len(latency_setup.only(scenario(), [])) == 2
    with pytest.raises(FieldError, match=r"'none': is no topology.*app, other"):
        latency_setup.only(scenario(), ["none"])


@given(st.integers(0, 50), st.integers(2, 6))
def test_sites_are_as_far_apart_as_the_scenario_says(seed: int, sites: int):
    made = scenario(seed=seed, sites=sites)
    network = latency_setup.network_of(made)
    names = [node.id for node in network.workers]
    assert len(names) == 2 * sites and network == latency_setup.network_of(made)
    for a in names:
        for b in names:
            inside = network.node(a).site == network.node(b).site
            delay_ms = network.pair(a, b).delay_ms
            assert a == b or delay_ms == network.pair(b, a).delay_ms
            assert a == b or (delay_ms == 0.5 if inside else 2 <= delay_ms <= 10)
    ends = latency_setup.ends_of(made, made.applications[0])
    assert {ends.sensors, ends.users} <= set(names) and network.node(ends.sensors).site != network.node(ends.users).site


# --- model

NETWORK = Network(
    sites=(Site(id="a", inside=Link(delay_ms=1)), Site(id="b"), Site(id="c")),
    nodes=(
        NetworkNode(id="a1", site="a"), NetworkNode(id="a2", site="a"), NetworkNode(id="b1", site="b"),
        NetworkNode(id="n", site="c", role=NIMBUS),
    ),
    links={(x, y): Link(delay_ms=10) for x in "abc" for y in "abc" if x != y},
)  # fmt: skip
GRAPH = Graph(
    inputs={"left": ["in"], "right": ["in"], "out": ["left", "right"]},
    service_s={"in": 0.001, "left": 0.005, "right": 0.002},
    source="in",
    sink="out",
)


def test_the_model_adds_the_longest_way_of_services_and_delays():
    hosts = {"in": ["a1"], "left": ["a1"], "right": ["a2"], "out": ["b1"]}
    near = latency_model.modelled_s(NETWORK, hosts, GRAPH, Ends(sensors="a1", users="b1"))
    assert near == pytest.approx(0.001 + 0.005 + 0.010), "the left way is longer, by its service time"
    apart = {**hosts, "right": ["b1", "a2"]}
    assert latency_model.modelled_s(NETWORK, apart, GRAPH, Ends(sensors="a1", users="b1")) == pytest.approx(near)
    away = {**hosts, "right": ["b1"], "out": ["a1"]}
    far = latency_model.modelled_s(NETWORK, away, GRAPH, Ends(sensors="b1", users="b1"))
    assert far == pytest.approx(0.010 + 0.001 + 0.010 + 0.002 + 0.010 + 0.010), "to the source, and to the users, too"
    assert latency_model.outside_s(NETWORK, away, GRAPH, Ends(sensors="b1", users="b1")) == pytest.approx(0.020)
    assert latency_model.modelled_s(NETWORK, away, GRAPH, Ends(sensors="b1", users="b1"), scale=0.0) == pytest.approx(
        0.006
    )


def test_replicas_share_tuples_evenly():
    assert latency_model.between_s(NETWORK, ["a1"], ["a1", "a2", "b1"]) == pytest.approx((0 + 0.001 + 0.010) / 3)


def test_a_circle_ends():
    circle = replace(GRAPH, inputs={"in": [], "left": ["in", "out"], "out": ["left"]})
    hosts = {name: ["a1"] for name in ("in", "left", "out")}
    assert latency_model.modelled_s(NETWORK, hosts, circle, Ends(sensors="a1", users="a1")) == pytest.approx(0.006)


# --- results


def line(number: int, sent: float, received: float, row: str = "") -> str:
    return json.dumps({"seq": number, "sent": sent, "received": received, "row": row})


def test_lines_that_are_cut_off_or_no_results_are_left_out():
    lines = [line(1, 2.0, 2.5, "a"), '{"seq": 2, "se', "[]", '{"seq": 3}', line(4, 3.0, 3.25)]
    assert latency.read_results(lines) == [Result(1, 2.0, 2.5, "a"), Result(4, 3.0, 3.25)]


@given(st.lists(st.floats(0.001, 100.0), min_size=1, max_size=60))
def test_the_summary_lies_within_its_results(delays: list[float]):
    found = latency.summary([Result(n, 0.0, delay) for n, delay in enumerate(delays)])
    assert min(delays) <= found["median_s"] <= found["p95_s"] <= max(delays)
    assert sum(delay <= found["p95_s"] for delay in delays) >= 0.95 * len(delays)
    assert found["mean_s"] == pytest.approx(sum(delays) / len(delays))


def test_latency_is_steady_when_no_backlog_is_worked_off():
    def spans(before: float, after: float) -> list[Result]:
        return [Result(n, t - (before if t < 15 else after), t) for n, t in enumerate(range(10, 20))]

    for may_grow in (True, False):
        assert latency.is_steady(spans(1.0, 0.95), 20.0, 5.0, may_grow=may_grow)
        assert not latency.is_steady(spans(1.0, 0.5), 20.0, 5.0, may_grow=may_grow), "it falls"
        assert not latency.is_steady(spans(1.0, 1.0)[5:], 20.0, 5.0, may_grow=may_grow), "one span says nothing"
    assert latency.is_steady(spans(1.0, 3.0), 20.0, 5.0, may_grow=True), "it grows: no waiting helps"
    assert not latency.is_steady(spans(1.0, 3.0), 20.0, 5.0, may_grow=False), "the policy has yet to scale"


def test_results_of_two_systems_are_compared_as_far_as_both_came():
    one = [Result(2, 0, 0, "a"), Result(5, 0, 0, "b"), Result(7, 0, 0, "c")]
    assert latency.compare(one, one) == (3, 0)
    assert latency.compare(one, one[:2]) == (2, 0), "the other has not come to 7"
    assert latency.compare(one, [one[0], one[2]]) == (3, 1), "5 is missing"
    assert latency.compare(one, [*one[:2], Result(7, 0, 0, "x")]) == (3, 1)
    assert latency.compare([*one, Result(2, 0, 0, "again")], one) == (3, 0), "the first of a number counts"
    assert latency.compare([], one) == (0, 0)
    assert latency.repeated([*one, one[0], one[0]]) == 2


# --- figures

MANY = Measured(
    topology="app", rate=HIGH, system=OURS, per_s=200.0, mean_s=0.05, median_s=0.04, p95_s=0.08, outside_s=0.0,
    model_s=0.03, model_fifth_s=0.02, results=100, progress=5.0, repeated=0, compared=0, differ=0, resets=0,
    replicas={"in": 1, "work": 2, "out": 1}, hosts={"in": ["a1"], "work": ["a1", "a2"], "out": ["b1"]},
)  # fmt: skip


def storms(mean_s: float, **changes: object) -> Measured:
    return replace(MANY, **{"system": STORM, "mean_s": mean_s, "compared": 90, **changes})  # type: ignore[arg-type]


def figures(*measured: Measured) -> dict[str, tuple[float, bool | None]]:
    return {row.metric: (row.ours, row.met) for row in latency.conclude(scenario(), measured).rows}


def test_plain_storm_runs_with_the_replicas_that_ours_had():
    both = Application(topology="app", title="", source="in", sink="out", rates={LOW: 1, MEDIUM: 2, HIGH: 3})
    assert latency.runs_of(both) == [
        (OURS, LOW), (OURS, MEDIUM), (OURS, HIGH), (STORM, LOW), (STORM, MEDIUM), (STORM, HIGH), (FIXED, HIGH),
    ]  # fmt: skip
    assert latency.runs_of(replace(both, rates={HIGH: 3})) == [(OURS, HIGH), (STORM, HIGH)]
    assert [latency.replicas_from(system, HIGH) for system in (STORM, FIXED)] == [HIGH, MEDIUM]


@pytest.mark.parametrize(("storm_s", "met"), [(0.0601, True), (0.0600, False)])
def test_the_papers_least_is_the_bound_at_high_rates(storm_s: float, met: bool):
    found = figures(MANY, storms(storm_s))
    assert found["mean latency lower than plain Storm's"] == (pytest.approx(100 * (1 - 0.05 / storm_s)), met)


@pytest.mark.parametrize(("pace", "met"), [(5.0, True), (4.4, False), (5.6, False)])
def test_runs_that_were_held_up_are_not_at_one_rate(pace: float, met: bool):
    found = figures(MANY, storms(0.1, progress=pace))
    assert found["plain Storm's pace through the input, of ours"] == (pytest.approx(20 * pace), met)


def test_progress_is_by_numbers_and_not_by_results():
    assert latency.progress([Result(10, 0, 2.0), Result(11, 0, 3.0), Result(50, 0, 6.0)]) == pytest.approx(10.0)
    assert latency.progress([Result(10, 0, 2.0)]) == 0.0


def test_at_low_rates_there_is_no_bound():
    found = figures(replace(MANY, rate=LOW), storms(0.04, rate=LOW))
    assert found["mean latency lower than plain Storm's"] == (pytest.approx(-25.0), None)


def test_ways_outside_count_and_are_shown():
    found = figures(MANY, storms(0.05, outside_s=0.05, median_s=0.05, model_s=0.06))
    assert found["mean latency lower than plain Storm's"][0] == pytest.approx(50.0)
    assert found["the same of the medians"][0] == pytest.approx(60.0)
    assert found["the same without the ways outside"][0] == pytest.approx(0.0)
    assert found["the same by the model"][0] == pytest.approx(50.0)
    assert found[f"{STORM}: mean latency"][0] == pytest.approx(100.0)
    assert found[f"{OURS}: replicas"][0] == 4 and found[f"{OURS}: nodes"][0] == 3


def test_results_that_are_missing_or_come_twice_are_not_met():
    found = figures(MANY, storms(0.1, differ=1, repeated=2))
    assert found["of these, missing in one or different"] == (1, False)
    assert found[f"{STORM}: results that came twice"] == (2, False)
    assert found[f"{OURS}: results that came twice"] == (0, True)


def test_storm_with_the_replicas_of_the_medium_rate_stands_beside():
    found = figures(MANY, storms(0.1), storms(0.5, system=FIXED))
    assert found[f"lower than {FIXED}"] == (pytest.approx(90.0), None)


def test_a_run_without_its_partner_gives_no_row_and_no_panel():
    finding = latency.conclude(scenario(), [MANY])
    assert [row.metric for row in finding.rows] == ["runs that failed"] and finding.panels == ()


def test_a_run_that_failed_is_not_met_and_its_reason_is_told():
    finding = latency.conclude(scenario(), [MANY], failed=["app-low-ours: no result in 10 s."])
    assert finding.rows[-1].ours == 1 and finding.rows[-1].met is False
    assert finding.notes[-1] == "app-low-ours: no result in 10 s."
    assert latency.conclude(scenario(), [MANY]).rows[-1].met is True


def test_the_picture_has_the_papers_range_beside_ours():
    (panel,) = latency.conclude(scenario(), [MANY, storms(0.1)]).panels
    assert panel.at == (200.0,) and {curve.name: curve.values for curve in panel.curves} == {
        OURS: (pytest.approx(50.0),),
        STORM: (pytest.approx(100.0),),
        "16.7 % lower, the paper's range": (pytest.approx(83.3),),
        "52.7 % lower, the paper's range": (pytest.approx(47.3),),
    }
