"""The cluster and the dataflows of a live run: small enough for one machine, and such as a network file describes."""

from __future__ import annotations

import random

import pytest

from leeward.core.network_document import network_document, network_text, parse_network
from leeward.policies.edge_cloud.facts import fabric_of
from leeward.policies.edge_cloud.model.instance import check_places
from leeward.policies.edge_cloud.settings import EdgeCloudSettings
from leeward.policies.edge_cloud.workload.live import live_network, nodes_of, small_dataflow


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
