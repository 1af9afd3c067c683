"""A real cluster over an emulated network of three sites: exact through a handover, and gone when it is down."""

from __future__ import annotations

import json
import os
import signal
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from leeward.core.network_document import parse_network
from leeward.core.table import replicas
from leeward.local import ClusterSpec, LocalCluster, processes
from leeward.local.cluster import MARK
from leeward.local.layout import RELAY
from leeward.local.network import namespaces
from tests.cluster.harness import Running, Stage, await_, leeward
from tests.helpers.servers import port_block

WHY = namespaces.hindrance()
pytestmark = [
    pytest.mark.skipif(WHY is not None, reason=f"needs hardware and rights to emulate a network: {WHY}"),
    pytest.mark.timeout(600),
]

#: As storm_conf/networks/three_sites.toml, with one worker at each site.
SITES = """
[inside]
delay_ms = 1
[[site]]
id = "core"
[[site]]
id = "north"
[[site]]
id = "south"
[[node]]
id = "cloud"
site = "core"
[[node]]
id = "core-1"
site = "core"
[[node]]
id = "north-1"
site = "north"
[[node]]
id = "south-1"
site = "south"
[[link]]
between = ["core", "north"]
delay_ms = 20
rate_mbps = 100
[[link]]
between = ["core", "south"]
delay_ms = 60
rate_mbps = 20
"""


def gone(folder: Path) -> bool:
    """No process, namespace or interface of the cluster is left."""
    return processes.marked(MARK, str(folder)) == set() and namespaces.left(folder) == []


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("network") / "run"
    spec = ClusterSpec(dir=folder, base_port=port_block(), slots=2, network=parse_network(tomllib.loads(SITES)))
    with LocalCluster(spec) as running:
        yield running
    assert gone(folder)


@pytest.fixture(scope="module")
def counting(cluster: LocalCluster) -> Iterator[Running]:
    stage = Stage(cluster, cluster.dir.parent)
    try:
        with stage.counting("network") as running:
            yield running
    finally:
        stage.close()


def test_what_is_measured_is_within_a_tenth_of_the_file(cluster: LocalCluster):
    done = leeward("network", "measure", "--cluster", str(cluster.dir), "--output", "json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["round_trips"]) == 6 and len(found["rates"]) == 10
    for trip in found["round_trips"]:
        assert trip["least_ms"] == pytest.approx(trip["expected_ms"], rel=0.1), found["round_trips"]
    for rate in found["rates"]:
        assert rate["mbps"] == pytest.approx(rate["expected_mbps"], rel=0.1), found["rates"]


def test_every_process_is_in_the_namespace_of_its_node(cluster: LocalCluster, counting: Running):
    spaces = {end.node: os.stat(end.path).st_ino for end in cluster.network.ends if end.path}
    where = {name: os.stat(f"/proc/{process.pid}/ns/net").st_ino for name, process in cluster.daemons.items()}
    assert where.pop(RELAY) == os.stat("/proc/self/ns/net").st_ino
    for name in ("zookeeper", "redis", "nimbus"):
        assert where.pop(name) == spaces["cloud"]
    assert where == {node.daemon: spaces[node.name] for node in cluster.nodes}
    workers, tasks = cluster.worker_pids(), cluster.python_pids()
    assert {node for node, _ in workers} == {"core-1", "north-1", "south-1"} and len(tasks) == 7
    for (node, _), pid in workers.items():
        assert os.stat(f"/proc/{pid}/ns/net").st_ino == spaces[node]
    for pid, task in tasks.items():
        assert os.stat(f"/proc/{pid}/ns/net").st_ino == spaces[task.node]


def test_the_topology_is_handed_over_between_sites_and_loses_nothing(cluster: LocalCluster, counting: Running):
    before = set(counting.stream.exact(400).tasks)
    node_of = {task: slot.node for task, slot in counting.snapshot().assigned.slots.items()}
    wanted = sorted({node_of[task] for task in counting.tasks("count") if task not in before})
    assert wanted, "the tasks of the count are at several nodes"
    asked = counting.asked("count=" + ",".join(f"{node}:1" for node in wanted))
    assert asked.returncode == 0, asked.stderr
    after = replicas(counting.record().tables["count"])
    assert {node_of[task] for task in after} == set(wanted) and set(after) != before
    counting.stream.exact(400)
    counting.stream.tally.tasks.clear()
    assert counting.stream.exact(400).tasks == set(after)
    counted = cluster.network.statistics(cluster.daemons[RELAY])
    assert counted.pairs["north-1", "south-1"].packets > 0
    assert sum(pair.dropped + pair.lost for pair in counted.pairs.values()) == 0
    print(f"\n  relay: {counted.packets} packets, {counted.microseconds:.1f} us of processor for each")


def test_the_stream_goes_on_after_the_relay_was_killed_and_started_again(cluster: LocalCluster, counting: Running):
    cluster.kill_daemon(RELAY)
    seen = json.loads(leeward("cluster", "status", "--dir", str(cluster.dir), "--output", "json").stdout)
    assert not seen["healthy"] and seen["network"] == "emulated"
    cluster.start_daemon(RELAY)
    counting.stream.settled(400, timeout_s=120)


def test_up_again_after_the_relay_was_killed_and_down_leave_nothing(tmp_path: Path):
    folder, file, port = tmp_path / "run", tmp_path / "net.toml", str(port_block())
    file.write_text(SITES.replace('[[node]]\nid = "north-1"\nsite = "north"\n', ""))
    up = ("cluster", "up", "--dir", str(folder), "--base-port", port, "--network", str(file), "--no-plugin")
    for _ in range(2):
        done = leeward(*up)
        assert done.returncode == 0, done.stderr
        assert len(namespaces.left(folder)) == 4
        relay = LocalCluster.attach(folder).daemons[RELAY]
        processes.send(relay, signal.SIGKILL)
        await_(lambda relay=relay: not processes.is_alive(relay), "the relay to be gone")
    done = leeward("cluster", "down", "--dir", str(folder))
    assert done.returncode == 0 and "5 processes ended" in done.stdout, done
    assert gone(folder)
    assert not (folder / "cluster.json").exists()
