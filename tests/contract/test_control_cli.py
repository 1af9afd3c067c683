"""`leeward serve` and its companions as processes, on real ZooKeeper and Redis, with a Nimbus and tasks made here."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
import redis
from control_twins import NODES, SLOTS, TASKS
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from servers import RedisServer, ZooKeeperServer, free_port
from test_control_nimbus import Cluster as NimbusState
from test_control_nimbus import FakeNimbus, serving
from test_otlp import Receiver, attributes, received

from leeward.core.control import (
    ControlRecord,
    Paths,
    Phase,
    Report,
    ahead_barrier,
    cut_barrier,
    handover_barrier,
    ready_barrier,
)
from leeward.core.metrics import TaskMetrics
from leeward.core.plan import Placement
from leeward.core.secrets import Secrets
from leeward.sim.memory import snapshot_text
from leeward.wire.secrets import write_secrets

NIMBUS = free_port()
TOKEN = "a-token-of-the-tests-0123456789"
STARTED: list[subprocess.Popen] = []
PATHS = Paths("/leeward", "app-1-1")


class Bots:
    """All tasks and the plugin in one thread: they do what the record says, and place what is wanted."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.client = KazooClient(hosts)
        self.client.start()
        self.slots = dict(SLOTS)
        self.pausing = True  # else no report of a pause: its barrier is missed
        self.done: set[str] = set()
        self.phases: list[tuple[int, str]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._live)
        self.publish(None)
        self._thread.start()

    def publish(self, placement: Placement | None) -> None:
        text = snapshot_text(
            nodes=NODES, topology_id="app-1-1", name="app", tasks=TASKS, slots=self.slots,
            managed=placement is not None, epoch=placement.epoch if placement else None,
        ).encode()  # fmt: skip
        self.client.ensure_path("/leeward/snapshot")
        if self.client.get("/leeward/snapshot")[0] != text:
            self.client.set("/leeward/snapshot", text)

    def fill(self, *, others: str) -> None:
        """Another topology has every slot, and this one none."""
        document = json.loads(snapshot_text(nodes=NODES, topology_id="app-1-1", name="app", tasks=TASKS, slots={}))
        slots = [(node, port) for node, ports in NODES.items() for port in ports]
        executors = [
            {"component": "c", "tasks": [task, task], "node": node, "port": port}
            for task, (node, port) in enumerate(slots, 1)
        ]
        other = document["topologies"][0] | {"id": f"{others}-2-17", "name": others, "executors": executors}
        document["topologies"].append(other)
        self.client.set("/leeward/snapshot", json.dumps(document).encode())

    def record(self) -> ControlRecord | None:
        if not self.client.exists(PATHS.control):
            return None
        text = self.client.get(PATHS.control)[0]
        return ControlRecord.from_json(text) if text else None

    def _live(self) -> None:
        while not self._stop.wait(0.02):
            with contextlib.suppress(NoNodeError):  # a service has deleted what the killed topology left
                self._act()

    def _act(self) -> None:
        if self.client.exists("/leeward/placement/app"):
            placement = Placement.from_json(self.client.get("/leeward/placement/app")[0])
            self.slots = dict(placement.slots)
            self.publish(placement)
        record = self.record()
        if record is None:
            return
        if not self.phases or self.phases[-1] != (record.epoch, str(record.phase)):
            self.phases.append((record.epoch, str(record.phase)))
        if record.phase is Phase.PAUSE:
            if self.pausing:
                self._report(cut_barrier(record.cut))
        elif record.phase is Phase.RESTORE:
            self._report(ready_barrier(record.epoch))
        else:
            if record.ahead:
                self._report(ahead_barrier(record.ahead))
            if record.handover:
                self._report(handover_barrier(record.handover))
            if record.restarts:
                self._report(ready_barrier(record.epoch))
            if record.checkpoint:
                self._report(cut_barrier(record.checkpoint))

    def _report(self, barrier: str) -> None:
        if barrier in self.done:
            return
        self.done.add(barrier)
        for task, component in TASKS.items():
            report = Report(task=task, component=component, bytes=100)
            self.client.create(f"{PATHS.barrier(barrier)}/{task}", report.to_json().encode(), makepath=True)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        self.client.stop()
        self.client.close()

    def close(self) -> None:
        self.client.delete("/leeward", recursive=True)
        self.stop()


class App(FakeNimbus):
    """One Nimbus with the topology of the twins."""

    redis_url, zookeeper_port = "", 0

    def getUserTopology(self, topology):
        found = super().getUserTopology(topology)
        sink = found.bolts.pop("foreign")
        sink.common.json_conf = '{"leeward.kind":"stateful"}'
        found.bolts["sink"] = sink
        return found

    def getTopologyConf(self, topology):
        return json.dumps({
            "storm.id": topology, "leeward.redis.url": self.redis_url,
            "storm.zookeeper.servers": ["127.0.0.1"], "storm.zookeeper.port": self.zookeeper_port,
        })  # fmt: skip


def end_started():
    """The commands that a test that failed has left."""
    for process in STARTED:
        process.kill()
        process.communicate()
    STARTED.clear()


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    state = NimbusState()
    state.leader, state.both = NIMBUS, False
    with (
        ZooKeeperServer(tmp_path_factory.mktemp("zoo")) as zoo,
        RedisServer(tmp_path_factory.mktemp("redis")) as server,
        serving(state, NIMBUS, App),
    ):
        App.redis_url, App.zookeeper_port = server.url, zoo.port
        yield zoo


def beat():
    """Every task has left a beat."""
    with redis.Redis.from_url(App.redis_url) as client:
        client.hset("leeward:app-1-1:alive", mapping=dict.fromkeys(map(str, TASKS), "1"))


@pytest.fixture
def bots(servers):
    beat()
    bots = Bots(servers.hosts)
    yield bots
    end_started()
    bots.close()


def leeward(*arguments, nimbus=True, **options):
    command = [sys.executable, "-c", "from leeward.cli import app; app()", *map(str, arguments)]
    if nimbus and (arguments[0] != "drain" or "--zookeeper" not in arguments):
        command += ["--nimbus", f"127.0.0.1:{NIMBUS}"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=options.pop("cwd", None), **options
    )
    STARTED.append(process)
    return process


def finish(process, timeout=60):
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out.strip(), err.strip()


def events(file: Path):
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def wait_for(condition, timeout_s=45.0):
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, "in time"
        time.sleep(0.05)


def actions(file):
    return [event["action"] for event in events(file)]


def test_reconfigure_by_itself_when_nobody_leads(bots, tmp_path):
    file = tmp_path / "events.jsonl"
    code, out, err = finish(leeward("reconfigure", "app", "--replicas", "work=n2:1,n3:1", "--events", file))
    assert (code, out) == (0, "done"), err
    (end,) = [event for event in events(file) if event["action"] == "reconfiguration_ended"]
    assert end["changes"] == [
        {"component": "work", "kind": "scale-out", "before": {"n1": 1}, "after": {"n2": 1, "n3": 1}}
    ]
    assert bots.slots[4].node == "n3", "a warm task was fetched"
    code, out, _ = finish(leeward("status", "app", "--output", "json"))
    assert code == 0
    status = json.loads(out)
    assert status["deployment"]["work"] == {"n2": 1, "n3": 1} and status["phase"] == "run"


def test_a_dry_run_tells_what_would_move_and_changes_nothing(bots):
    wanted = ("reconfigure", "app", "--replicas", "work=n2:1,n3:1", "-o", "window_s=1", "--dry-run")
    before = bots.record()
    code, out, err = finish(leeward(*wanted, "--output", "json"))
    assert code == 0, err
    told = json.loads(out)
    assert told["way"] == "handover" and told["wait_s"] >= 0.05
    assert told["changes"] == [
        {"component": "work", "kind": "scale-out", "before": {"n1": 1}, "after": {"n2": 1, "n3": 1}}
    ]
    assert "measuring for 1 s" in err
    assert bots.record() == before
    code, out, _ = finish(leeward(*wanted))
    assert code == 0 and "handover" in out and "scale-out" in out


def test_once_says_what_it_waits_for_and_ends_in_time(bots):
    code, out, err = finish(leeward("serve", "app", "--once", "-o", "window_s=1", "--output", "yaml"))
    assert code == 0 and "deployment:" in out, err
    assert err.startswith("app: a plan by edrp, or why there is none, within 300 s")
    bots.fill(others="big")
    code, out, err = finish(leeward("serve", "app", "--once", "--timeout", "6"))
    assert code == 1 and out == ""
    assert "waiting: no free slot: 6 of 6 are taken by big (6)" in err and "no answer after 6 s" in err


def test_once_asks_a_joint_policy_too(bots):
    """Its nodes have no class, which edge and cloud needs: the policy is asked, and says so."""
    code, out, err = finish(leeward("serve", "app", "--once", "-o", "window_s=1", "-o", "policy=edge-cloud"))
    assert code == 2 and out == "" and "meta.class" in err and "Traceback" not in err


def test_a_full_cluster_is_called_full(bots):
    bots.fill(others="big")
    with redis.Redis.from_url(App.redis_url) as client:
        client.delete("leeward:app-1-1:alive")  # no worker of it was ever started
    code, out, _ = finish(leeward("status", "app"))
    assert code == 0 and "no free slot: 6 of 6 are taken by big (6)" in out
    code, _, err = finish(leeward("reconfigure", "app", "--replicas", "work=n2:1"))
    assert code == 2 and "error: no free slot: 6 of 6 are taken by big (6). End a topology" in err


def test_status_waits_until_all_tasks_run(bots):
    code, out, err = finish(leeward("status", "app", "--wait", "1"))
    assert code == 1 and out == ""
    assert f"error: app: after 1 s 0 of {len(TASKS)} tasks run. Look into the workers' logs" in err
    client = redis.Redis.from_url(App.redis_url)
    waiting = leeward("status", "app", "--wait", "30", "--output", "json")
    for task, component in TASKS.items():
        line = TaskMetrics(component=component, pid=1, t=0.0, mode="running").to_line()
        client.hset("leeward:app-1-1:metrics", str(task), line)
    code, out, err = finish(waiting)
    assert code == 0, err
    status = json.loads(out)
    assert status["running"] == sum(status["tasks"].values()) == len(TASKS)
    client.delete("leeward:app-1-1:metrics")


def test_serve_stops_in_order_and_leads_alone(bots, tmp_path):
    first_file, second_file = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    first = leeward("serve", "app", "-o", "policy=none", "--events", first_file)
    wait_for(lambda: "leading" in actions(first_file))
    second = leeward("serve", "app", "-o", "policy=none", "--events", second_file)
    wait_for(lambda: "standby" in actions(second_file))
    code, out, err = finish(leeward("reconfigure", "app", "--replicas", "work=n1:1,n2:1"))
    assert (code, out) == (0, "done"), err
    assert "reconfiguration_ended" in actions(first_file)
    first.send_signal(signal.SIGTERM)
    assert finish(first)[0] == 0
    wait_for(lambda: "leading" in actions(second_file))
    second.send_signal(signal.SIGINT)
    assert finish(second)[0] == 130


def test_what_ended_is_told_by_history_and_top_when_no_service_runs(bots):
    code, out, err = finish(leeward("history", "app", "--output", "json"))
    assert (code, json.loads(out)["reconfigurations"]) == (0, []), err
    for places in ("work=n2:1,n3:1", "work=n1:1"):
        code, out, err = finish(leeward("reconfigure", "app", "--replicas", places))
        assert (code, out) == (0, "done"), err
    code, out, err = finish(leeward("history", "app", "--output", "json"))
    first, second = json.loads(out)["reconfigurations"]
    assert code == 0 and first["changes"][0]["after"] == {"n2": 1, "n3": 1} and first["ending"] == "done"
    assert first["ended"] < second["ended"] and second["begun"] and second["phases"]
    code, out, err = finish(leeward("history", "app", "--last", "1", env={**os.environ, "COLUMNS": "240"}))
    assert code == 0 and "scale-in work n2+n3 -> n1" in out and "scale-out" not in out
    code, out, err = finish(leeward("top", "--interval", "0.2", "--output", "json"))
    (line,) = json.loads(out)["topologies"]
    assert (line["topology"], line["phase"], line["replicas"], line["cost_per_h"]) == ("app", "run", 3, 3.0), err
    assert line["last"].startswith("handover scale-in work") or line["last"].startswith("restart scale-in work")
    code, out, err = finish(leeward("top", "--once", "--interval", "0.2"))
    assert code == 0 and "app" in out and "tuples/s" in out


def test_top_ends_in_order_and_says_that_a_server_is_away(bots):
    live = leeward("top", "--interval", "0.2")
    shown = live.stdout.read(40)
    live.send_signal(signal.SIGINT)
    assert finish(live)[0] == 130 and "topology" in shown
    code, _, err = finish(leeward("top", "--once", "--nimbus", "127.0.0.1:1", nimbus=False))
    assert code == 1 and "Nimbus" in err
    code, _, err = finish(leeward("history", "nope"))
    assert code == 2 and "'nope' does not run" in err


def test_a_running_topology_without_tuples_cannot_be_explained(bots):
    code, _, err = finish(leeward("explain", "app", "-o", "window_s=1"))
    assert code == 2 and "app: no tuple was received for 1 s" in err, "these tasks send none"
    code, _, err = finish(leeward("explain", "nope"))
    assert code == 2 and "'nope' does not run" in err


def test_a_settings_file_that_changes_comes_into_force_if_it_is_good(bots, tmp_path):
    config, file = tmp_path / "leeward.yaml", tmp_path / "events.jsonl"
    config.write_text("policy: none\n")
    service = leeward("serve", "app", "--config", config, "--events", file)
    wait_for(lambda: "leading" in actions(file))
    config.write_text("policy: none\nperiod_s: fast\n")
    wait_for(lambda: "settings_refused" in actions(file))
    assert "period_s" in next(event["why"] for event in events(file) if event["action"] == "settings_refused")
    config.write_text("policy: none\ncool_down_s: 1\n")
    wait_for(lambda: actions(file).count("leading") == 2)
    assert "settings_reloaded" in actions(file) and "leadership_lost" not in actions(file)
    service.send_signal(signal.SIGINT)
    assert finish(service)[0] == 130


def test_the_served_api_reports_acts_and_ends(bots, tmp_path):
    secrets, file = tmp_path / "secrets.json", tmp_path / "events.jsonl"
    write_secrets(secrets, Secrets(service_token=TOKEN))
    options = ("-o", "policy=none", "--events", file, "--http", "127.0.0.1:0")
    service = leeward("serve", "app", *options, env={**os.environ, "LEEWARD_SECRETS": str(secrets)})
    wait_for(lambda: "measured" in actions(file))
    (told,) = [event for event in events(file) if event["action"] == "http_listens"]
    assert told["acting"] is True
    with httpx.Client(base_url=told["url"], headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
        report = client.get("/api/topologies/app").json()["report"]
        assert (report["role"], report["phase"], report["deployment"]["work"]) == ("leader", "run", {"n1": 1})
        assert client.post("/api/nodes/n2/drain").json() == {"node": "n2", "draining": True}
        assert bots.client.get_children("/leeward/draining") == ["n2"]
        assert client.post("/api/nodes/n2/undrain").status_code == 200
        done = client.post("/api/topologies/app/reconfigure", json={"replicas": {"work": {"n1": 1, "n2": 1}}})
        assert (done.status_code, done.json()["ending"]) == (200, "done")
        assert client.get(done.json()["path"]).json()["ending"] == "done"
        refused = client.post("/api/topologies/app/reconfigure", json={"replicas": {"work": {"n9": 1}}})
        assert refused.status_code == 409 and "unknown node 'n9'" in refused.json()["error"]
        history = client.get("/api/topologies/app/history").json()
        assert history["complete"] and history["reconfigurations"][-1]["changes"][0]["component"] == "work"
    service.send_signal(signal.SIGTERM)
    assert finish(service)[0] == 0


def ageless(answer):
    """Without the sentence on the learnt record and its age: two answers are seconds apart."""
    if not isinstance(answer, dict):
        return answer
    return {key: value for key, value in answer.items() if key not in ("learnt", "learnt_age_s")}


@pytest.mark.timeout(300)
def test_questions_over_http_are_answered_as_by_the_commands(bots, tmp_path):
    """Each by a process of its own below the service; the plan of the policy waits for approval all the while."""
    file, document = tmp_path / "events.jsonl", tmp_path / "app.json"
    settings = [word for one in ("policy=even", "window_s=1", "approval=true") for word in ("-o", one)]
    service = leeward("serve", "app", *settings, "--events", file, "--http", "127.0.0.1:0")
    wait_for(lambda: "plan_proposed" in actions(file))
    (url,) = [event["url"] for event in events(file) if event["action"] == "http_listens"]
    document.write_text(json.dumps({"topology": "app", "deployment": {"work": {"n2": 1}}}))

    def told(*words: str):
        code, out, err = finish(leeward(*words, "--output", "json"))
        assert code in (0, 2), err
        return ageless(json.loads(out))

    with httpx.Client(base_url=url, timeout=120) as client:
        planned = client.post("/api/topologies/app/plan", json={})
        assert planned.status_code == 200, planned.text
        assert ageless(planned.json()) == told("plan", "app", *settings) and planned.json()["change"]
        assert ageless(client.get("/api/topologies/app/diff").json()) == told("diff", "app")
        compared = client.post("/api/topologies/app/diff", json=json.loads(document.read_text()))
        assert ageless(compared.json()) == told("diff", "app", "--file", str(document))
        assert client.get("/api/top").json() == told("top")
        wrong = {"policy": "evn", "period": 3}
        (tmp_path / "s.json").write_text(json.dumps(wrong))
        found = finish(leeward("validate", str(tmp_path / "s.json"), "--output", "json", nimbus=False))
        assert client.post("/api/validate", json={"settings": wrong}).json() == json.loads(found[1]) and found[0] == 2
        silent = client.get("/api/topologies/app/explain")
        assert silent.status_code == 409 and "no tuple was received for 1 s" in silent.json()["error"]
        assert client.post("/api/topologies/app/apply", json={"deployment": {"work": {"n2": 1}}}).status_code == 403
    service.send_signal(signal.SIGTERM)
    assert finish(service)[0] == 0
    assert "reconfiguration_started" not in actions(file)


def test_a_reconfiguration_of_a_service_is_sent_as_a_trace(bots, tmp_path):
    file, receiver = tmp_path / "events.jsonl", Receiver()
    try:
        service = leeward("serve", "app", "-o", "policy=none", "--events", file, "--otlp", receiver.url)
        wait_for(lambda: "leading" in actions(file))
        assert finish(leeward("reconfigure", "app", "--replicas", "work=n1:1,n2:1"))[:2] == (0, "done")
        (end,) = [event for event in events(file) if event["action"] == "reconfiguration_ended"]
        whole, *phases = received(receiver, 1 + len(end["phases"]))
        told = attributes(whole)
        assert (told["leeward.topology"], told["leeward.kind"], told["leeward.result"]) == ("app", end["kind"], "done")
        assert told["leeward.epoch"] == end["epoch"]
        for phase in phases:
            took = (phase.end_time_unix_nano - phase.start_time_unix_nano) / 1e9
            assert phase.parent_span_id == whole.span_id
            assert took == pytest.approx(end["phases"][f"{phase.name}_s"], abs=1e-6)
        service.send_signal(signal.SIGTERM)
        assert finish(service)[0] == 0
    finally:
        receiver.close()


def test_a_killed_leaders_pause_is_finished_by_the_standby(bots, tmp_path):
    first_file, second_file = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    options = ("-o", "policy=none", "-o", "pause_s=60", "-o", "session_s=3", "-o", "mode=restart")
    first = leeward("serve", "app", *options, "--events", first_file)
    wait_for(lambda: "leading" in actions(first_file))
    bots.pausing = False
    asking = leeward("reconfigure", "app", "--replicas", "work=n2:1", "--timeout", "5")
    wait_for(lambda: bots.record() is not None and bots.record().phase is Phase.PAUSE)
    first.kill()
    first.wait()
    second = leeward("serve", "app", *options, "--events", second_file)
    wait_for(lambda: "taken_over" in actions(second_file))
    bots.pausing = True
    wait_for(lambda: "reconfiguration_ended" in actions(second_file))
    (end, *_) = [event for event in events(second_file) if event["action"] == "reconfiguration_ended"]
    assert end["result"] == "done"
    second.send_signal(signal.SIGTERM)
    assert finish(second)[0] == 0
    finish(asking)


def test_drain_and_undo(bots):
    zoo = ("--zookeeper", bots.hosts)
    code, _, err = finish(leeward("drain", "n9", *zoo))
    assert code == 2 and "node 'n9' has no supervisor. Name one of ['n1', 'n2', 'n3']" in err
    assert finish(leeward("drain", "n2", *zoo))[:2] == (0, "n2 drains")
    assert bots.client.get_children("/leeward/draining") == ["n2"]
    assert finish(leeward("drain", "n2", "--undo", *zoo))[:2] == (0, "n2 may be used again")
    assert bots.client.get_children("/leeward/draining") == []


def test_what_a_request_came_to_is_told_in_each_form(bots):
    code, told = answer("reconfigure", "app", "--replicas", "work=n2:1")
    assert (code, told["topology"], told["ending"]) == (0, "app", "done")
    code, told = answer("reconfigure", "app", "--replicas", "work=n9:1")
    assert (code, told["ending"]) == (2, "refused") and "n9" in told["why"]


def answer(*arguments):
    code, out, _ = finish(leeward(*arguments, "--output", "json"))
    return code, json.loads(out)


def test_freeze_and_rollback_without_a_leader(bots):
    assert finish(leeward("reconfigure", "app", "--replicas", "work=n2:1"))[0] == 0
    assert answer("freeze", "app", "--why", "a release")[1]["ending"] == "done"
    code, _, err = finish(leeward("rollback", "app"))
    assert code == 2 and "error: the topology is frozen: a release (leeward freeze app --undo)" in err
    assert answer("status", "app")[1]["frozen"] == "a release"
    assert finish(leeward("freeze", "app", "--undo"))[:2] == (0, "done: plans are carried out again")
    assert answer("rollback", "app", "--freeze", "slower")[0] == 0
    status = answer("status", "app")[1]
    assert status["deployment"]["work"] == {"n1": 1} and status["frozen"] == "slower"
    code, told = answer("approve", "app")
    assert code == 2 and told["ending"] == "refused" and "frozen" in told["why"]


SPREAD = """
from leeward.core.placing import carry, present_deployment

class Spread:
    def __init__(self, settings):
        pass

    def decide(self, view, *, now, rng):
        wanted = {**present_deployment(view), "work": {"n1": 1, "n2": 1}}
        return carry(view, wanted, reason="spread")
"""


def test_a_proposal_is_shown_approved_and_carried_out(bots, tmp_path):
    (tmp_path / "spread.py").write_text(SPREAD)
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    file, found = tmp_path / "events.jsonl", os.environ | {"PYTHONPATH": paths}
    options = ("-o", "policy=spread:Spread", "-o", "window_s=1", "-o", "period_s=0.5")
    code, told, _ = finish(leeward("plan", "app", *options, "--output", "json", env=found))
    told = json.loads(told)
    assert code == 2 and told["change"] and told["way"] == "handover" and told["reason"] == "spread"
    code, told, _ = finish(leeward("plan", "app", *options, "-o", "cost_cap=3.5", "--output", "json", env=found))
    assert code == 0 and json.loads(told)["refused"] == "the cost of 4 $/h is over cost_cap 3.5"
    assert answer("diff", "app")[0] == 0
    serving = leeward("serve", "app", *options, "-o", "approval=true", "--events", file, env=found)
    wait_for(lambda: "plan_proposed" in actions(file))
    code, told = answer("diff", "app")
    assert code == 2 and told["plan"] == 1
    assert told["changes"] == [
        {"component": "work", "kind": "scale-out", "before": {"n1": 1}, "after": {"n1": 1, "n2": 1}}
    ]
    assert "reconfiguration_started" not in actions(file)
    assert answer("approve", "app", "--plan", "7")[0] == 2
    assert finish(leeward("approve", "app", "--plan", "1"))[:2] == (0, "done")
    assert answer("status", "app")[1]["deployment"]["work"] == {"n1": 1, "n2": 1}
    assert finish(leeward("plan", "app", *options, env=found))[0] == 0, "it is as the policy wants it"
    serving.send_signal(signal.SIGTERM)
    assert finish(serving)[0] == 0


def test_a_deployment_document_is_compared_and_applied(bots, tmp_path):
    file = tmp_path / "app.yaml"
    file.write_text("topology: app\ndeployment:\n  work: {n2: 1, n3: 1}\n")
    assert answer("diff", "app", "--file", file)[0] == 2
    assert answer("apply", file)[1]["ending"] == "done"
    assert answer("diff", "app", "--file", file)[0] == 0
    status = answer("status", "app")[1]
    file.write_text(json.dumps({"topology": "app", "deployment": status["deployment"]}))
    assert finish(leeward("apply", file))[:2] == (0, "done: nothing to change")
    file.write_text("topology: app\ndeployment: [")
    code, _, err = finish(leeward("apply", file))
    assert code == 2 and "is neither YAML nor JSON" in err and "Traceback" not in err
    code, _, err = finish(leeward("diff", "app", "--file", file))
    assert code == 1, "2 would mean that they differ"


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("serve", "nope"), 2, "topology 'nope' does not run; running: ['app']"),
        (("serve", "app", "-o", "peroid_s=1"), 2, "unknown setting 'peroid_s' (value '1'). Did you mean period_s"),
        (("serve", "app", "--config", "/missing.toml"), 2, "--config /missing.toml does not exist"),
        (("serve", "app", "--cluster", "/missing"), 2, "leeward cluster up --dir /missing"),
        (("reconfigure", "app", "--replicas", "work"), 2, "Write component=node:count"),
        (("reconfigure", "app", "--replicas", "work=n1:1", "--replicas", "work=n2:1"), 2, "'work' twice"),
        (("reconfigure", "app", "--replicas", "work=n9:1"), 2, "error: replicas of 'work' name unknown node 'n9'"),
        (("reconfigure", "app", "--replicas", "work=n1:9"), 2, "shall have 9 replicas"),
        (("status", "nope"), 2, "does not run"),
        (("approve", "nope"), 2, "does not run"),
        (("approve", "app"), 2, "no plan waits for approval"),
        (("rollback", "app"), 2, "no reconfiguration is known to go back behind"),
        (("apply", "/missing.yaml"), 2, "/missing.yaml cannot be read"),
        (("plan", "nope"), 1, "does not run"),
        (("plan", "app", "-o", "policy=none"), 1, "setting 'policy' is 'none'"),
        (("diff", "nope"), 1, "does not run"),
    ],
)
def test_bad_input(bots, arguments, code, text):
    got, out, err = finish(leeward(*arguments))
    assert got == code and text in out + err
    assert "Traceback" not in err


def test_redis_away_is_said_and_nothing_happens(bots, tmp_path):
    code, out, _ = finish(
        leeward("reconfigure", "app", "--replicas", "work=n2:1", "--redis", "redis://127.0.0.1:20298/0", env=os.environ)
    )
    assert code == 1 and out.startswith("aborted: the fence could not be set: Redis at redis://127.0.0.1:20298/0")
    assert bots.record().phase is Phase.RUN
