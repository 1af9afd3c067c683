"""What killed topologies leave goes, and nothing else: on a real ZooKeeper and Redis, with a Nimbus made here."""

from __future__ import annotations

import json
import os
import signal
import time
from types import SimpleNamespace

import pytest

from leeward.adapters.leftovers import ServerLeftovers
from leeward.adapters.redis import RedisSnapshots
from leeward.adapters.zookeeper import ZooControlStore, connect
from leeward.core.control import ControlRecord, Paths
from leeward.core.leftovers import Leftover
from leeward.core.plan import Placement
from leeward.core.secrets import FILE_VARIABLE, Secrets
from leeward.wire.secrets import write_secrets
from tests.helpers.control_commands import STARTED, App, Bots, actions, events, finish, leeward
from tests.helpers.control_twins import SLOTS
from tests.helpers.nimbus_twin import Cluster as NimbusState
from tests.helpers.nimbus_twin import serving
from tests.helpers.servers import PASSWORD, free_port
from tests.helpers.waiting import wait_for

GONE, RUNS = "gone-1-1600000000", "runs-2-1600000000"


@pytest.fixture
def zookeeper(zoo):
    client = connect(zoo.hosts, timeout_s=60)
    yield client
    for root in ("/leeward", "/storm"):
        if client.exists(root):
            client.delete(root, recursive=True)
    client.stop()
    client.close()


@pytest.fixture
def leftovers(zookeeper, server, tmp_path):
    snapshots = RedisSnapshots(server.url)
    yield ServerLeftovers(zookeeper, "/leeward", snapshots, swaps=[tmp_path / "swap"])
    snapshots.close()


def populate(zookeeper, redis, topology_id):
    """What a topology has after it was served."""
    name = topology_id.split("-")[0]
    store = ZooControlStore(zookeeper, Paths("/leeward", topology_id), name)
    store.claim()
    store.write_record(ControlRecord(epoch=1), barrier="ahead-1")
    store.write_placement(Placement(topology_id=topology_id, epoch=1, slots=SLOTS))
    for key in ("cut:3:count", "cut:3:count:tasks", "metrics"):
        redis.hset(f"leeward:{topology_id}:{key}", "1", b"x")
    redis.set(f"leeward:{topology_id}:fence", 1)
    redis.xadd(f"leeward:{topology_id}:handover:4:7", {"p": b"x"})


def test_everything_of_the_topology_goes_and_nothing_else(zookeeper, client, leftovers, tmp_path):
    for topology_id in (GONE, RUNS):
        populate(zookeeper, client, topology_id)
        (tmp_path / "swap" / topology_id).mkdir(parents=True)
    client.xadd("query1:out", {"r": b"result"})
    before = leftovers.found()
    assert before.keys() == {GONE, RUNS}
    assert (before[GONE].keys, before[GONE].placement, before[GONE].listed) == (5, "gone", False)
    deleted = leftovers.delete(GONE)
    assert deleted == before[GONE] and deleted.znodes >= 6
    assert leftovers.found() == {RUNS: before[RUNS]}
    assert sorted(key.decode().split(":")[1] for key in client.keys("leeward:*")) == [RUNS] * 5
    assert client.exists("query1:out") and (tmp_path / "swap" / RUNS).is_dir()
    assert not leftovers.delete(GONE) and not leftovers.delete("never-1-1")


def test_a_placement_of_the_topology_that_was_submitted_again_stays(zookeeper, client, leftovers):
    populate(zookeeper, client, GONE)
    again = Placement(topology_id="gone-9-1600000000", epoch=1, slots=SLOTS)
    ZooControlStore(zookeeper, Paths("/leeward", again.topology_id), "gone").claim()
    zookeeper.set("/leeward/placement/gone", again.to_json().encode())
    assert leftovers.delete(GONE).placement == ""
    assert Placement.from_json(zookeeper.get("/leeward/placement/gone")[0]) == again


def test_a_name_like_a_pattern_takes_no_other_topology_with_it(zookeeper, client, leftovers):
    populate(zookeeper, client, GONE)
    assert leftovers.delete("g*-1-1600000000") == Leftover()
    assert leftovers.found()[GONE].keys == 5


def test_a_topology_that_storm_lists_is_seen_to_run(zookeeper, client, leftovers):
    populate(zookeeper, client, GONE)
    zookeeper.ensure_path(f"/storm/storms/{GONE}")
    assert leftovers.found()[GONE].listed


# --- the commands


@pytest.fixture
def cluster(zoo, server, client, zookeeper):
    """A Nimbus that can be started and told what runs, the tasks of one topology, and commands that find both."""
    state, port = NimbusState(), free_port()
    state.leader, state.both = port, False
    App.redis_url, App.zookeeper_port = server.url, zoo.port
    bots = Bots(zoo.hosts)
    address = ("--nimbus", f"127.0.0.1:{port}", "--zookeeper", zoo.hosts, "--redis", server.address)

    def run(*words, secrets=server.secrets_file, **options):
        environment = os.environ | {FILE_VARIABLE: str(secrets)} | options.pop("env", {})
        return leeward(*words, *address, nimbus=False, env=environment, **options)

    yield SimpleNamespace(state=state, run=run, nimbus=lambda: serving(state, port, App), redis=client, zoo=zookeeper)
    for process in STARTED:  # of a test that failed
        process.kill()
        process.communicate()
    STARTED.clear()
    bots.stop()


def test_a_standby_that_starts_while_nimbus_is_away_waits_for_it(cluster, tmp_path):
    file = tmp_path / "events.jsonl"
    service = cluster.run("serve", "app", "-o", "policy=none", "--events", file)
    wait_for(lambda: "waiting" in actions(file))
    assert "has not served" in events(file)[0]["why"] and service.poll() is None
    with cluster.nimbus():
        wait_for(lambda: "leading" in actions(file))
        service.send_signal(signal.SIGTERM)
        assert finish(service)[0] == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_service_that_waits_for_nimbus_ends_when_it_is_told_to(cluster, tmp_path, number, code):
    file = tmp_path / "events.jsonl"
    service = cluster.run("serve", "app", "-o", "policy=none", "--events", file)
    wait_for(lambda: "waiting" in actions(file))
    service.send_signal(number)
    got, _, err = finish(service)
    assert got == code and "Traceback" not in err


def test_leader_and_standby_end_with_their_topology_and_leave_nothing(cluster, tmp_path):
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    options = ("-o", "policy=none", "-o", "checkpoint_every_s=1")
    populate(cluster.zoo, cluster.redis, RUNS)
    with cluster.nimbus():
        cluster.state.running[RUNS.split("-")[0]] = RUNS
        leader = cluster.run("serve", "app", *options, "--events", first)
        wait_for(lambda: "leading" in actions(first))
        standby = cluster.run("serve", "app", *options, "--events", second)
        wait_for(lambda: "standby" in actions(second))
        wait_for(lambda: cluster.redis.exists("leeward:app-1-1:fence") or "checkpoint_committed" in actions(first))
        cluster.redis.hset("leeward:app-1-1:metrics", "1", "{}")
        del cluster.state.running["app"]
        assert [finish(process)[0] for process in (leader, standby)] == [0, 0]
    assert actions(first)[-2:] == actions(second)[-2:] == ["topology_gone", "tidied"]
    assert not cluster.zoo.exists("/leeward/topologies/app-1-1")
    assert not cluster.zoo.exists("/leeward/placement/app")
    assert cluster.redis.keys("leeward:app-1-1:*") == []
    assert cluster.zoo.exists(f"/leeward/topologies/{RUNS}") and len(cluster.redis.keys(f"leeward:{RUNS}:*")) == 5


def test_a_service_goes_on_with_the_topology_that_was_submitted_again(cluster, tmp_path):
    file = tmp_path / "events.jsonl"
    with cluster.nimbus():
        service = cluster.run("serve", "app", "-o", "policy=none", "--events", file)
        wait_for(lambda: "leading" in actions(file))
        cluster.state.running["app"] = "app-2-1600000000"
        wait_for(lambda: actions(file).count("service_started") == 2)
        started = [event["topology_id"] for event in events(file) if event["action"] == "service_started"]
        assert started == ["app-1-1", "app-2-1600000000"]
        assert not cluster.zoo.exists("/leeward/topologies/app-1-1")
        service.send_signal(signal.SIGTERM)
        assert finish(service)[0] == 0


def test_tidy_lists_first_and_then_deletes_what_does_not_run(cluster):
    young = f"young-3-{int(time.time())}"
    for topology_id in (GONE, RUNS, young):
        populate(cluster.zoo, cluster.redis, topology_id)
    cluster.redis.set("leeward:foreign-1-1600000000:fence", 1)
    cluster.state.running["runs"] = RUNS
    with cluster.nimbus():
        code, out, err = finish(cluster.run("tidy", "--dry-run", "--json"))
        assert code == 0, err
        said = json.loads(out)
        assert [entry["topology_id"] for entry in said["deleted"]] == [GONE] and said["dry_run"]
        whys = {entry["topology_id"]: entry["why"] for entry in said["left"]}
        assert whys.keys() == {young, "foreign-1-1600000000"} and "another cluster" in whys["foreign-1-1600000000"]
        assert cluster.zoo.exists(f"/leeward/topologies/{GONE}")
        code, out, err = finish(cluster.run("tidy", env={"COLUMNS": "200"}))
        assert code == 0 and f"{GONE}" in out and "deleted" in out and RUNS not in out, err
        code, out, _ = finish(cluster.run("tidy", "--json", "--orphans"))
        assert [entry["topology_id"] for entry in json.loads(out)["deleted"]] == ["foreign-1-1600000000"]
    assert not cluster.zoo.exists(f"/leeward/topologies/{GONE}") and cluster.redis.keys(f"leeward:{GONE}:*") == []
    for topology_id in (RUNS, young):
        assert cluster.zoo.exists(f"/leeward/topologies/{topology_id}")
        assert len(cluster.redis.keys(f"leeward:{topology_id}:*")) == 5


def test_tidy_deletes_znodes_that_belong_to_the_secret_and_says_so_where_it_lacks_it(cluster, zoo, tmp_path):
    secrets = Secrets(redis_password=PASSWORD, zookeeper_secret="known to us: all")
    write_secrets(tmp_path / "secrets.json", secrets)
    owner = connect(zoo.hosts, secrets=secrets, timeout_s=60)
    try:
        populate(owner, cluster.redis, GONE)
        cluster.state.running.clear()
        with cluster.nimbus():
            code, _, err = finish(cluster.run("tidy"))
            assert code == 1 and "belongs to clients that know the cluster's secret" in err
            assert owner.exists(f"/leeward/topologies/{GONE}")
            code, out, err = finish(cluster.run("tidy", "--json", secrets=tmp_path / "secrets.json"))
            assert code == 0 and [entry["topology_id"] for entry in json.loads(out)["deleted"]] == [GONE], err
        assert not owner.exists(f"/leeward/topologies/{GONE}") and not owner.exists("/leeward/placement/gone")
        assert cluster.redis.keys(f"leeward:{GONE}:*") == []
    finally:
        owner.delete("/leeward", recursive=True)
        owner.stop()
        owner.close()


def test_tidy_deletes_nothing_while_nimbus_is_away(cluster):
    populate(cluster.zoo, cluster.redis, GONE)
    code, _, err = finish(cluster.run("tidy"))
    assert code == 1 and "has not served" in err
    assert cluster.zoo.exists(f"/leeward/topologies/{GONE}")


def test_tidy_says_when_it_knows_no_redis(cluster, zoo):
    cluster.state.running.clear()
    with cluster.nimbus():
        port = cluster.state.leader
        arguments = ("tidy", "--nimbus", f"127.0.0.1:{port}", "--zookeeper", zoo.hosts)
        code, _, err = finish(leeward(*arguments, nimbus=False))
    assert code == 2 and "Give --redis redis://" in err
