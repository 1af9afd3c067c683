"""`leeward serve` and its companions as processes, on real ZooKeeper and Redis, with a Nimbus and tasks made here."""

from __future__ import annotations

import json
import os
import signal

import pytest
import redis

from leeward.core.control import Phase
from leeward.core.metrics import TaskMetrics
from tests.helpers.control_commands import App, actions, events, finish, leeward
from tests.helpers.control_twins import TASKS
from tests.helpers.waiting import wait_for


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


def test_a_dry_run_tells_what_would_move_and_changes_nothing(bots, tmp_path):
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
    config, document = tmp_path / "leeward.yaml", tmp_path / "app.json"
    config.write_text("window_s: 1\ntopologies: {app: {cost_cap: 1}}\n")
    document.write_text(json.dumps({"topology": "app", "deployment": {"work": {"n2": 1, "n3": 1}}}))
    for asked in (wanted, ("apply", document, "--dry-run")):
        code, _, err = finish(leeward(*asked, "--config", config))
        assert code == 2 and "is over cost_cap 1" in err


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


def test_drain_and_undo(bots):
    zoo = ("--zookeeper", bots.hosts)
    code, _, err = finish(leeward("drain", "n9", *zoo))
    assert code == 2 and "node 'n9' has no supervisor. Name one of ['n1', 'n2', 'n3']" in err
    assert finish(leeward("drain", "n2", *zoo))[:2] == (0, "n2 drains")
    assert bots.client.get_children("/leeward/draining") == ["n2"]
    assert finish(leeward("drain", "n2", "--undo", *zoo))[:2] == (0, "n2 may be used again")
    assert bots.client.get_children("/leeward/draining") == []
    assert answer("drain", "n2", *zoo) == (0, {"node": "n2", "draining": True}), "as the API answers"
    assert answer("drain", "n2", "--undo", *zoo) == (0, {"node": "n2", "draining": False})


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
