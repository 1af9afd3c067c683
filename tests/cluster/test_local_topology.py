"""A stock streamparse topology on the local cluster: submitted, seen, and undisturbed by ZooKeeper's absence."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from leeward.local import ClusterSpec, LocalCluster, build_jar, processes, submit_topology
from leeward.local.cluster import MARK
from leeward.local.errors import NameTakenError, SubmitError
from leeward.local.places import checkout
from tests.cluster.harness import await_
from tests.helpers.servers import port_block

BASE = port_block()

PARTS = """
import json
import time
from streamparse import Bolt, Spout

class Numbers(Spout):
    outputs = ["n"]
    def initialize(self, conf, context):
        self.n = 0
    def next_tuple(self):
        self.n += 1
        time.sleep(0.02)
        self.emit([self.n])

class Count(Bolt):
    outputs = ["n"]
    def initialize(self, conf, context):
        import redis
        with open(conf["leeward.secrets.file"]) as file:
            password = json.load(file)["redis_password"]
        self.redis = redis.Redis.from_url(conf["leeward.redis.url"], password=password)
    def process(self, tup):
        self.redis.incr("seen")
"""
TOPOLOGY = """
from streamparse import Grouping, Topology
from parts import Count, Numbers

class Counting(Topology):
    numbers = Numbers.spec()
    count = Count.spec(inputs={numbers: Grouping.SHUFFLE}, par=2)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    for name, text in (("src/parts.py", PARTS), ("topologies/counting.py", TOPOLOGY)):
        path = folder / name
        path.parent.mkdir()
        path.write_text(text)
    shutil.copy(checkout() / "config.json", folder)
    build_jar(folder / "t.jar", src=folder / "src", worker_jar=checkout() / "build" / "jars" / "leeward-worker.jar")
    return folder


@pytest.fixture(scope="module")
def cluster(project: Path) -> Iterator[LocalCluster]:
    """Two nodes of one slot each, with the topology running on them."""
    folder = project / "cluster"
    with LocalCluster(ClusterSpec(dir=folder, base_port=BASE, supervisors=2, slots=1)) as running:
        submit_topology("counting", nimbus=running.nimbus, jar=project / "t.jar", project=project)
        await_flow(running, more=1, timeout_s=90)
        # The first tuple needs one Count; the worker of the other may still be on its start.
        await_(lambda: len(running.python_pids()) == 3, "all three Python processes", 60)
        yield running
    assert processes.marked(MARK, str(folder)) == set()


def seen(cluster: LocalCluster) -> int:
    with cluster.open_redis() as client:
        return int(client.get("seen") or 0)


def await_flow(cluster: LocalCluster, *, more: int, timeout_s: float) -> None:
    target, until = seen(cluster) + more, time.monotonic() + timeout_s
    while seen(cluster) < target:
        assert time.monotonic() < until, f"no {more} tuples in {timeout_s} s; Nimbus says {cluster.summary()}"
        time.sleep(0.1)


@pytest.mark.timeout(240)
def test_workers_and_python_tasks_are_seen_where_they_are(cluster: LocalCluster):
    workers = cluster.worker_pids()
    assert set(workers) == {("127.0.0.11", BASE + 100), ("127.0.0.12", BASE + 101)}
    children = cluster.python_pids().values()
    assert sorted(child.target for child in children) == ["parts.Count", "parts.Count", "parts.Numbers"]
    assert {processes.parent_of(child.pid) for child in children} <= set(workers.values())


def test_a_name_that_is_taken_is_refused_before_anything_is_uploaded(cluster: LocalCluster, project: Path):
    with pytest.raises(NameTakenError, match=r"topology 'counting' exists already .*--name"):
        submit_topology("counting", nimbus=cluster.nimbus, jar=project / "t.jar", project=project)


def test_sparse_submit_by_hand_refuses_it_too_through_our_fabfile(cluster: LocalCluster, project: Path):
    shutil.copy(checkout() / "fabfile.py", project)
    sparse = Path(sys.executable).parent / "sparse"
    done = subprocess.run(
        [sparse, "submit", "-n", "counting", "-e", "local", "-j", "t.jar"],
        cwd=project,
        env=os.environ | {"STREAMPARSE_NIMBUS": cluster.nimbus, "LEIN_ROOT": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "a topology 'counting' exists already" in done.stdout + done.stderr


def test_a_nimbus_that_is_not_there_is_said_so(project: Path):
    with pytest.raises(SubmitError, match=r"127\.0\.0\.1:16599 does not answer"):
        submit_topology("counting", nimbus="127.0.0.1:16599", jar=project / "t.jar", project=project)


def test_ten_seconds_without_zookeeper_restart_no_worker(cluster: LocalCluster):
    before = cluster.worker_pids()
    cluster.stop_daemon("zookeeper")
    await_flow(cluster, more=50, timeout_s=10)
    time.sleep(9)
    cluster.start_daemon("zookeeper")
    await_flow(cluster, more=50, timeout_s=10)
    until = time.monotonic() + 30
    while (summary := cluster.summary()) is None or not summary.leader or len(summary.supervisors) < 2:
        assert time.monotonic() < until, f"not whole again: {summary}"
        time.sleep(0.2)
    time.sleep(5)  # several scheduling passes of Nimbus
    assert cluster.worker_pids() == before


def test_a_dead_supervisor_leaves_its_workers_running(cluster: LocalCluster):
    before = cluster.worker_pids()
    cluster.kill_daemon("supervisor-1")
    await_flow(cluster, more=50, timeout_s=10)
    cluster.start_daemon("supervisor-1")
    await_flow(cluster, more=50, timeout_s=10)
    assert cluster.worker_pids() == before


def test_two_clusters_run_beside_each_other_and_end_alone(cluster: LocalCluster, tmp_path: Path):
    spec = ClusterSpec(dir=tmp_path / "other", base_port=BASE + 200, supervisors=1, plugin=False)
    with LocalCluster(spec) as other:
        record = json.loads((other.dir / "cluster.json").read_text())
        assert record["spec"]["plugin"] is False
        assert other.summary().topologies == ()
        before = cluster.worker_pids()
        assert before
    assert cluster.worker_pids() == before
    assert cluster.summary() is not None
