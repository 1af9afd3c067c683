"""What others on the machine can see and do of a running local cluster: nothing that a secret protects."""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from leeward.core.control import Paths
from leeward.core.errors import ConfigError
from leeward.core.secrets import Secrets
from leeward.local import processes, submit_topology
from leeward.local.cluster import MARK
from leeward.local.places import checkout
from tests.cluster.builders import moved, scaled
from tests.cluster.harness import COUNTING, ROOT, Running, Stage


@pytest.fixture(scope="module")
def used(counting: Running) -> Running:
    """After a handover, a restart with checkpoints, and a request by a command: everything was written somewhere."""
    with counting.pilot() as pilot:
        pilot.reconfigure(scaled("count", 2))
        pilot.reconfigure(moved("count"))
        pilot.checkpoint()
        asked = counting.asked("count=127.0.0.11:1")
        assert asked.returncode == 0, asked.stderr
    return counting


def values(stage: Stage) -> list[bytes]:
    secrets: Secrets = stage.cluster.secrets()
    assert len(secrets.redis_password) >= 20 and len(secrets.zookeeper_secret) >= 20
    return [secrets.redis_password.encode(), secrets.zookeeper_secret.encode()]


def own_processes(stage: Stage) -> list[int]:
    return [process.pid for process in processes.marked(MARK, str(stage.cluster.dir))]


@pytest.mark.timeout(400)
def test_every_server_of_the_cluster_listens_on_a_loopback_address(used: Running, stage_: Stage):
    seen = {where for pid in own_processes(stage_) for where in processes.listening(pid)}
    assert {(address, port) for address, port in seen if not address.is_loopback} == set()
    layout = stage_.cluster.layout
    expected = {(layout.host_of(daemon), layout.port_of(daemon)) for daemon in layout.daemons}
    expected |= set(stage_.cluster.worker_pids())  # each worker on its node's address, at its slot's port
    assert {(ipaddress.ip_address(host), port) for host, port in expected} <= seen


def test_no_configuration_that_nimbus_tells_holds_a_secret(used: Running, stage_: Stage):
    confs = [
        stage_.nimbus._call(lambda client: client.getTopologyConf(used.id)),
        stage_.nimbus._call(lambda client: client.getNimbusConf()),
    ]
    for conf in confs:
        assert json.loads(conf)["leeward.redis.url"] == stage_.cluster.redis_url
        assert not any(value in conf.encode() for value in values(stage_))


def files_below(folder: Path) -> Iterator[Path]:
    return (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)


def test_no_file_but_the_private_one_holds_a_secret(used: Running, stage_: Stage):
    cluster = stage_.cluster
    holders, count = set(), 0
    for path in files_below(stage_.folder):  # the run folder, jars and results
        if path.is_file():
            content, count = path.read_bytes(), count + 1
            holders |= {path for value in values(stage_) if value in content}
    assert count > 50
    assert holders == {cluster.secrets_file}
    assert cluster.secrets_file.stat().st_mode & 0o7777 == 0o600
    assert (cluster.dir / "conf" / "redis.conf").stat().st_mode & 0o7777 == 0o600
    assert cluster.dir.stat().st_mode & 0o7777 == 0o700


def test_no_command_line_and_no_environment_holds_a_secret(used: Running, stage_: Stage):
    pids = own_processes(stage_)
    assert len(pids) > 10
    for pid in processes.pids():  # command lines of all, as everybody sees them
        command = "\0".join(processes.command_line(pid)).encode()
        assert not any(value in command for value in values(stage_)), processes.command_line(pid)
    for pid in pids:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
        assert not any(value in environment for value in values(stage_)), processes.command_line(pid)


def test_others_can_neither_read_nor_write_what_is_below_leeward(used: Running, stage_: Stage):
    paths = Paths(ROOT, used.id)
    stranger = KazooClient(stage_.cluster.zookeeper)
    stranger.start(timeout=30)
    try:
        for path in (paths.control, paths.journal, paths.requests, Paths.placement(ROOT, used.name), ROOT):
            assert stage_.zookeeper.exists(path), path
            for attempt in (stranger.get, stranger.get_children, stranger.delete):
                if not (attempt == stranger.delete and path == ROOT):  # it is not empty
                    with pytest.raises(NoAuthError):
                        attempt(path)
            with pytest.raises(NoAuthError):
                stranger.set(path, b"{}")
            with pytest.raises(NoAuthError):
                stranger.create(f"{path}/forged", b"{}")
    finally:
        stranger.stop()
        stranger.close()


def test_every_znode_below_leeward_belongs_to_the_secret(used: Running, stage_: Stage):
    client, todo, seen = stage_.zookeeper, [ROOT], []
    while todo:
        path = todo.pop()
        seen.append(path)
        assert client.get_acls(path)[0] == client.default_acl, path
        todo += [f"{path}/{name}" for name in client.get_children(path)]
    assert {f"{ROOT}/snapshot", f"{ROOT}/placement/{used.name}", Paths(ROOT, used.id).joined} <= set(seen)


def test_a_password_in_a_topologys_configuration_is_refused(stage_: Stage):
    option = "leeward.redis.url=redis://:hidden@127.0.0.1:1/0"
    with pytest.raises(ConfigError, match=r"leeward\.redis\.url .*redis_password.*leeward\.secrets\.file"):
        submit_topology("counting", nimbus="127.0.0.1:1", jar=Path("no.jar"), project=COUNTING, options=[option])
    done = subprocess.run(
        [Path(sys.executable).parent / "sparse", "submit", "-n", "query1", "-e", "local", "-j", "no.jar", "-o", option],
        cwd=checkout(),
        env=os.environ | {"STREAMPARSE_NIMBUS": stage_.cluster.nimbus, "LEIN_ROOT": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "leeward.secrets.file" in done.stdout + done.stderr
    assert "hidden" not in done.stdout + done.stderr
