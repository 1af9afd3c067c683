"""The study of Fig. 10: its networks and applications, a small run, figures and bounds."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from leeward.core.errors import LeewardError
from leeward.policies.agiledart.dataflow.nodes import ByTables, Loads
from leeward.policies.agiledart.dataflow.placement import place
from leeward.policies.agiledart.experiments.placement import (
    APPLICATIONS,
    LOCAL,
    ONE,
    RANDOM,
    STALE,
    TWO,
    WAYS,
    Spread,
    spread,
)
from leeward.policies.agiledart.platform.zones import chain, zoned


def test_zones_share_the_nodes_evenly_and_stand_together():
    network = zoned(210, 20, Random(1))
    assert {len(zone) for zone in network.zones} == {10, 11}
    assert sorted(node for zone in network.zones for node in zone) == list(network.overlay.ids)
    proximity, rng = network.overlay.proximity, Random(2)
    inside = [proximity(*rng.sample(rng.choice(network.zones), 2)) for _ in range(200)]
    anywhere = [proximity(*rng.sample(network.overlay.ids, 2)) for _ in range(200)]
    assert sum(inside) < 0.5 * sum(anywhere)
    with pytest.raises(LeewardError, match="zones: 5 of 4 nodes"):
        zoned(4, 5, Random(1))


def test_a_zone_of_one_node_hosts_both_ends_of_its_application():
    network = zoned(6, 6, Random(1))
    (node,) = network.zones[2]
    application = chain("app", network.zones[2], Random(1), operators=10)
    placed = place(application, ByTables(network.overlay), Loads(dict.fromkeys(network.overlay.ids, 2)))
    assert placed.hosts["source0"] == placed.hosts["sink"] == node
    assert Counter(placed.hosts.values())[node] == 2 and max(Counter(placed.hosts.values()).values()) == 2


def test_chains_have_so_many_operators_and_end_in_their_zone():
    zone = (3, 5)
    made = chain("app", zone, Random(1), operators=10, sources=2)
    assert len(made.operators) == 10 and made.joins == (("source0", "sink"), ("source1", "sink"))
    assert {operator.at for operator in made.operators} <= {*zone, None}
    with pytest.raises(LeewardError, match="'app': 2 operators with 2 sources"):
        chain("app", zone, Random(1), operators=2, sources=2)


@pytest.mark.parametrize("way", WAYS)
def test_a_small_network_is_counted_and_the_same_for_a_seed(way):
    network = zoned(300, 5, Random(4))
    found = spread(network, way, Random(5), applications=(10, 30))
    assert found == spread(network, way, Random(5), applications=(10, 30))
    for applications in (10, 30):
        named = {name: count for name, count in found.items() if name.startswith(f"{applications} applications")}
        assert sum(named.values()) == 300
        assert sum(int(name.split()[-2]) * count for name, count in named.items()) == 10 * applications
    joins = sum(count for name, count in found.items() if name.endswith("hops"))
    assert joins == {ONE: 30, LOCAL: 30, TWO: 60, STALE: 30, RANDOM: 0}[way]


def test_dataflows_lie_more_evenly_than_random_nodes():
    network = zoned(1_000, 20, Random(6))
    found = {way: spread(network, way, Random(7), applications=(100,)) for way in (ONE, RANDOM)}
    crowded = {
        way: sum(counts[f"100 applications: {operators} operators"] for operators in range(3, 9))
        for way, counts in found.items()
    }
    assert crowded[ONE] < crowded[RANDOM] / 3


def test_old_loads_cost_little_unless_as_many_operators_come_in_a_heartbeat_as_there_are_nodes():
    network = zoned(1_000, 20, Random(6))

    def crowded(way: str, beat: int = 1) -> int:
        counts = spread(network, way, Random(7), applications=(100,), beat=beat)
        return 1_000 - sum(counts[f"100 applications: {operators} operators"] for operators in range(3))

    assert crowded(ONE) <= crowded(STALE, 10) < crowded(RANDOM) / 2
    assert crowded(STALE, 100) > crowded(RANDOM), "all choose the same nodes"


def figures(*, three: int) -> dict[str, float]:
    """Of each way 10,000 nodes, `three` of them with three operators, and 10 JOINs."""
    found: dict[str, float] = {}
    for way in WAYS:
        for applications in APPLICATIONS:
            found[f"{way}; {applications} applications: 1 operators"] = 10_000 - three
            found[f"{way}; {applications} applications: 3 operators"] = three
        if way != RANDOM:
            found |= {f"{way}; 3 hops": 9, f"{way}; 4 hops": 1}
    return found


def test_rows_have_the_bounds_of_the_issue():
    study = Spread()
    parts = study.parts(seed=0, quick=False)
    assert len(parts) == 10 and len(study.parts(seed=0, quick=True)) == 1
    good = study.conclude({part: figures(three=20) for part in parts})
    bounded = [row for row in good.rows if row.met is not None]
    assert len(bounded) == 2 * 4 + 2 and all(row.met for row in bounded)
    at_500 = next(row for row in good.rows if row.setting == f"500 applications, {ONE}")
    assert (at_500.ours, at_500.paper, at_500.independent, at_500.low) == (99.8, 97.85, 99.84, 99.8)
    assert {row.ours for row in good.rows if row.metric == "JOIN, mean"} == {3.1}
    bad = study.conclude({part: figures(three=21) for part in parts})
    assert [row.setting for row in bad.rows if row.met is False] == [
        f"500 applications, {ONE}", f"500 applications, {LOCAL}",
    ]  # fmt: skip
    assert len(good.panels) == 3 and good.panels[0].curves[0].values[1] == 99.8
