"""`leeward serve` as a process, on real ZooKeeper and Redis, with a Nimbus and tasks made here."""

from __future__ import annotations

import json
import os
import signal

import httpx
import pytest

from leeward.core.control import Phase
from leeward.core.secrets import Secrets
from leeward.wire.secrets import write_secrets
from tests.helpers.control_commands import actions, events, finish, leeward
from tests.helpers.otlp_receiver import Receiver, attributes, received
from tests.helpers.waiting import wait_for

TOKEN = "a-token-of-the-tests-0123456789"


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


def test_a_request_without_an_answer_stays_and_the_command_says_so(bots, tmp_path):
    file = tmp_path / "events.jsonl"
    service = leeward("serve", "app", "-o", "policy=none", "--events", file)
    wait_for(lambda: "leading" in actions(file))
    service.send_signal(signal.SIGSTOP)  # a leader that is busy
    code, _, err = finish(leeward("freeze", "app", "--timeout", "1"))
    service.send_signal(signal.SIGCONT)
    assert code == 1 and "no answer after 1 s. The request stays" in err
    wait_for(lambda: "frozen" in actions(file))
    service.send_signal(signal.SIGTERM)
    assert finish(service)[0] == 0


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
