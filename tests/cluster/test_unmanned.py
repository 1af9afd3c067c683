"""A real Nimbus assigns chains to nodes that are registered and have no supervisor; no worker is started."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import pytest

from leeward.local import ClusterSpec, LocalCluster
from leeward.local.unmanned import ASSIGNMENTS, STORMS, unmanned
from leeward.wire import zookeeper as wire
from tests.cluster.live_runs import play
from tests.helpers.servers import port_block

NODES, SLOTS, NAMES = 4, 2, ("a", "b-1", "c")


def test_chains_are_assigned_to_nodes_that_nobody_serves(tmp_path: Path):
    spec = ClusterSpec(dir=tmp_path / "c", base_port=port_block(), supervisors=1, slots=1, plugin=False)
    with LocalCluster(spec) as cluster, unmanned(cluster, nodes=NODES, slots=SLOTS, operators=3) as nimbus:
        began = time.time()
        found = nimbus.deploy(NAMES)
        assert [one["application"] for one in found["applications"]] == list(NAMES)
        assert all(0 < one["accepted_s"] < one["seconds"] for one in found["applications"])
        assert found["seconds"] == max(one["seconds"] for one in found["applications"]) <= time.time() - began
        client = wire.client(cluster.zookeeper)
        client.start()
        try:
            for topology in client.get_children(ASSIGNMENTS):
                assert b"node-" in gzip.decompress(client.get(f"{ASSIGNMENTS}/{topology}")[0])
            summary = cluster.summary()
            assert summary and summary.supervisors == {f"node-{number}" for number in range(NODES)}
            assert summary.topologies == tuple((name, "ACTIVE", 1, 3, 3) for name in NAMES)
            assert len(client.get_children(STORMS)) == len(NAMES)
            assert cluster.worker_pids() == {}
            nimbus.kill(NAMES)
            assert client.get_children(STORMS) == client.get_children(ASSIGNMENTS) == []
        finally:
            client.stop()
            client.close()


@pytest.mark.slow  # the test above has the Nimbus, tests/contract the agents
def test_the_experiment_measures_nimbus_beside_agents(tmp_path: Path):
    figures = play("agiledart-live-deployment", tmp_path, "--quick", timeout_s=240)
    assert figures["applications that are placed"] == 100
    assert 0 < figures["a topology, from its acceptance on"] <= figures["a topology"]
    assert figures["Nimbus: each one more, 1 to 10"] != 0
