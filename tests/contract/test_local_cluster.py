"""A real cluster of one supervisor: what it promises to others, and that nothing of it is left behind."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from kazoo.client import KazooClient
from typer.testing import CliRunner

from leeward.local import ClusterSpec, LocalCluster, end_cluster, processes
from leeward.local.cluster import MARK
from leeward.local.errors import FolderError, PortsTakenError, StartError
from tests.helpers.servers import port_block

BASE = port_block()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    folder = tmp_path_factory.mktemp("cluster") / "run"
    with LocalCluster(ClusterSpec(dir=folder, base_port=BASE, supervisors=1, slots=2)) as running:
        yield running
    assert processes.marked(MARK, str(folder)) == set()
    assert processes.listeners(running.layout.purposes()) == {}


def test_nimbus_leads_and_knows_the_node(cluster: LocalCluster):
    summary = cluster.summary()
    assert summary is not None and summary.leader
    assert summary.supervisors == {"127.0.0.11"}


def test_its_daemons_share_a_session_but_no_process_group(cluster: LocalCluster):
    daemons = [process.pid for process in cluster.daemons.values()]
    assert {os.getsid(pid) for pid in daemons} == {os.getsid(0)}  # else Linux lets one starve another
    assert {os.getpgid(pid) for pid in daemons} == set(daemons)  # else a Ctrl-C would reach them


def test_redis_wants_its_password_and_appends_every_write_to_a_file(cluster: LocalCluster):
    with cluster.open_redis(socket_timeout=60) as client:
        client.set("kept", "yes")
        assert client.config_get("appendonly", "maxmemory-policy") == {
            "appendonly": "yes",
            "maxmemory-policy": "noeviction",
        }
        client.eval("for i = 1, 300000 do redis.call('set', 'filler' .. i, i) end", 0)  # takes a moment to read again
    with redis.Redis(port=cluster.layout.redis) as stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()
    cluster.kill_daemon("redis")
    cluster.start_daemon("redis")
    with cluster.open_redis() as client:
        assert client.get("kept") == b"yes"


def test_zookeeper_keeps_its_data_over_a_restart(cluster: LocalCluster):
    client = KazooClient(cluster.zookeeper)
    client.start(timeout=10)
    try:
        client.create("/test/kept", b"yes", makepath=True)
        cluster.stop_daemon("zookeeper")
        cluster.start_daemon("zookeeper")
        value, _ = client.retry(client.get, "/test/kept")
        assert value == b"yes"
    finally:
        client.stop()
        client.close()


def test_the_record_tells_others_where_everything_is(cluster: LocalCluster):
    record = json.loads((cluster.dir / "cluster.json").read_text())
    assert record["nimbus"] == cluster.nimbus == f"127.0.0.1:{BASE + 27}"
    assert record["zookeeper"] == cluster.zookeeper
    assert record["redis_url"] == cluster.redis_url
    assert record["nodes"] == [
        {
            "name": "127.0.0.11",
            "address": "127.0.0.11",
            "daemon": "supervisor-1",
            "thrift_port": BASE + 31,
            "ports": [BASE + 100, BASE + 101],
            "meta": {},
        }
    ]
    attached = LocalCluster.attach(cluster.dir)
    assert attached.daemons == cluster.daemons
    assert attached.nodes == cluster.nodes


def test_a_second_start_is_refused_by_folder_and_by_port(cluster: LocalCluster, tmp_path: Path):
    with pytest.raises(FolderError, match="a cluster runs in"):
        LocalCluster(cluster.spec).up()
    owner = cluster.daemons["nimbus"].pid
    with pytest.raises(PortsTakenError, match=rf"port {BASE + 27} \(nimbus\) is taken by pid {owner} "):
        LocalCluster(ClusterSpec(dir=tmp_path / "other", base_port=BASE, supervisors=1)).up()
    assert cluster.summary() is not None, "the running one is left alone"


def test_status_shows_a_dead_daemon_and_its_return(cluster: LocalCluster):
    from leeward.local.status import observe

    until = time.monotonic() + 30  # the test before may just have taken ZooKeeper away
    while not (seen := observe(cluster)).healthy and time.monotonic() < until:
        time.sleep(0.1)
    assert seen.healthy and seen.processes == 4 and 100 < seen.memory_mb < 2000
    cluster.kill_daemon("nimbus")
    seen = observe(cluster)
    assert not seen.healthy
    assert [daemon.name for daemon in seen.daemons if not daemon.up] == ["nimbus"]
    with pytest.raises(StartError, match="supervisor-1: runs already"):
        cluster.start_daemon("supervisor-1")
    cluster.start_daemon("nimbus")


def test_a_daemon_that_cannot_start_is_reported_with_its_log_and_nothing_stays(tmp_path: Path):
    spec = ClusterSpec(
        dir=tmp_path / "run",
        base_port=BASE + 200,
        supervisors=1,
        settings={"storm.scheduler": "no.such.Scheduler"},
    )
    with pytest.raises(StartError, match=r"(?s)nimbus: ended while starting.*no\.such\.Scheduler.*whole log"):
        LocalCluster(spec).up()
    assert processes.marked(MARK, str(spec.dir)) == set()


def test_everything_ends_after_a_crash_even_without_the_record(tmp_path: Path):
    """The launcher is gone, its record too, and Nimbus was killed: `down` finds the rest by their mark."""
    from typer import Typer

    from leeward.cli import cluster as commands

    app, folder = Typer(), tmp_path / "run"
    commands.register(app)
    options = ["--dir", str(folder), "--base-port", str(BASE + 200), "--supervisors", "1", "--no-plugin"]
    done = CliRunner().invoke(app, ["cluster", "up", *options])
    assert done.exit_code == 0, done.output
    record = folder / "cluster.json"
    nimbus = json.loads(record.read_text())["daemons"]["nimbus"]["pid"]
    processes.send(processes.process_of(nimbus), signal.SIGKILL)
    while nimbus in {process.pid for process in processes.marked(MARK, str(folder))}:
        time.sleep(0.01)
    record.unlink()
    ended = CliRunner().invoke(app, ["cluster", "down", "--dir", str(folder)])
    assert ended.exit_code == 0 and "3 processes ended" in ended.output
    assert processes.marked(MARK, str(folder)) == set()
    assert end_cluster(folder) == 0, "a second time there is nothing to do"


def test_a_network_that_cannot_be_emulated_runs_on_loopback_and_is_shown_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from leeward.cli import _build

    folder, file = tmp_path / "run", tmp_path / "network.toml"
    file.write_text('site = [{id = "a"}]\nnode = [{id = "cloud", site = "a"}, {id = "a-1", site = "a"}]\n')
    monkeypatch.setattr("leeward.local.network.namespaces.hindrance", lambda: "it needs root")
    options = ["--dir", str(folder), "--base-port", str(BASE + 200), "--no-plugin", "--network", str(file)]
    try:
        done = CliRunner().invoke(_build(), ["cluster", "up", *options])
        assert done.exit_code == 0 and "The network is not emulated (it needs root)" in done.output, done.output
        record = json.loads((folder / "cluster.json").read_text())
        assert record["network"]["emulated"] is False
        assert [(node["id"], node["name"]) for node in record["network"]["nodes"]] == [
            ("cloud", "127.0.0.1"),
            ("a-1", "127.0.0.11"),
        ]
        seen = CliRunner().invoke(_build(), ["cluster", "status", "--dir", str(folder)])
        assert seen.exit_code == 0, seen.output
        assert "network: not emulated: all nodes are on loopback addresses, without delay" in seen.output
    finally:
        assert end_cluster(folder) == 4


def test_it_outlives_the_terminal_that_it_was_started_from(tmp_path: Path):
    folder, is_up = tmp_path / "run", tmp_path / "up"
    program = str(Path(sys.executable).with_name("leeward"))
    options = ["--dir", str(folder), "--base-port", str(BASE + 200), "--supervisors", "1", "--no-plugin"]
    up = shlex.join([program, "cluster", "up", *options])
    ours, its = os.openpty()
    # the first terminal that the leader of a session opens is its own: when it goes, the leader is told
    shell = subprocess.Popen(
        ["sh", "-c", f"exec < {os.ttyname(its)}; {up} && touch {is_up} && sleep 100"],
        start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # under nohup it would be ignored
    )  # fmt: skip
    os.close(its)
    try:
        until = time.monotonic() + 90
        while not is_up.exists():
            assert shell.poll() is None and time.monotonic() < until
            time.sleep(0.1)
        os.close(ours)
        assert shell.wait(10) == -signal.SIGHUP
        time.sleep(1.0)
        assert len(processes.marked(MARK, str(folder))) == 4
    finally:
        shell.kill()
        end_cluster(folder)
