"""The lines of sinks: the longest path's delay, and every loss and repeat."""

from __future__ import annotations

import random

import pytest

from leeward.core.network_document import network_document, network_text, parse_network
from leeward.policies.edge_cloud.experiments.arrivals import Arrival, Faults, faults, longest_s, makespan_s, read
from leeward.policies.edge_cloud.facts import fabric_of
from leeward.policies.edge_cloud.model.instance import check_places
from leeward.policies.edge_cloud.settings import EdgeCloudSettings
from leeward.policies.edge_cloud.workload.live import live_network, nodes_of, small_dataflow


def one(number: int, delay_us: int = 1000, path: str = "q0.q1", lost: int = 0, doubled: int = 0) -> Arrival:
    sent = number * 1_000_000
    return Arrival("q2", path, number, sent, lost, doubled, sent + delay_us, "vm-1")


def test_lines_are_read_and_half_ones_left_out():
    assert read(["q2 q0.q1 3 3000000 0 0 3001000 vm-1", "q2 q0.q1 4"]) == [one(3)]


def test_the_makespan_is_the_median_of_the_slowest_path():
    quick = [one(n, 1000, "q0") for n in range(1, 10)]
    slow = [one(n, 5000 if n != 4 else 900_000) for n in range(1, 10)]
    assert makespan_s(quick + slow) == pytest.approx(0.005)
    assert makespan_s(slow, since_us=4_000_000, until_us=5_000_000) == pytest.approx(0.9)
    assert makespan_s(slow, since_us=99_000_000) is None
    assert longest_s(slow, 0, 99_000_000) == pytest.approx(0.9)


def test_gaps_and_repeats_are_counted_on_each_path():
    assert faults([one(n) for n in (1, 2, 3)] + [one(n, path="q0") for n in (1, 2)]) == Faults()
    assert faults([one(n) for n in (2, 3, 6)]) == Faults(lost=3)
    assert faults([one(n) for n in (1, 2, 1, 2, 3)]) == Faults(again=2), "the sink was set back"
    assert faults([one(1), one(2, lost=4, doubled=1)]) == Faults(lost=4, doubled=1), "swallowed on the way"


@pytest.mark.parametrize(("nodes", "edges"), [(4, 2), (8, 5)])
def test_the_cluster_is_one_that_a_network_file_can_describe(nodes: int, edges: int):
    network = live_network(nodes, 0.02, 3.0, random.Random(1))
    assert [node.id.partition("-")[0] for node in network.workers] == ["edge"] * edges + ["vm"] * (nodes - edges)
    assert parse_network(network_document(network)) == network
    import tomllib

    assert parse_network(tomllib.loads(network_text(network))) == network


@pytest.mark.parametrize("seed", range(20))
def test_a_small_dataflow_fits_the_cluster(seed: int):
    rng = random.Random(seed)
    network = live_network(8, 0.02, 3.0, rng)
    fabric = fabric_of(nodes_of(network), network, EdgeCloudSettings(mode="exclusive"))
    dataflow = small_dataflow("d", range(5), 1.0, rng)
    check_places(fabric, dataflow)
    plain = small_dataflow("e", range(5), 1.0, rng, joins=False)
    assert all(len(parents) < 2 for parents in plain.parents)
    assert 4 <= len(dataflow.queries) <= 6 and 4 <= len(plain.queries) <= 6
    assert all(0.5 <= query.selectivity <= 1 for query in dataflow.queries)
