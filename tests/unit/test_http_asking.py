"""Questions that compute: they answer as the commands do, change nothing, and cannot starve the service."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from leeward.adapters import nimbus, wiring
from leeward.cli import _build, _once, top
from leeward.control.learning.record import LearntRecord
from leeward.core.errors import NotReadyError
from leeward.core.settings import settings_from
from leeward.core.standing import Proposal, Standing
from tests.helpers.http_api import ACTING, Working

pytestmark = pytest.mark.timeout(600)  # the first plan on a machine compiles the solver
AT = "/api/topologies/taxi"
#: They differ from run to run: times, and bounds that are made sharper while there is time.
TIMES = {"seconds", "seconds_in_all", "solve_s", "bound", "gap", "learnt", "learnt_age_s"}


@pytest.fixture
def stage():
    return Working()


@pytest.fixture
def client(stage):
    with stage.client() as client:
        yield client


@pytest.fixture
def command(stage, monkeypatch):
    """Runs a command on the stage: its exit code, and its document."""

    @contextmanager
    def open_ports(topology, *_, **__):
        stage.ports.nimbus.structure(topology)
        yield stage.ports

    @contextmanager
    def signals():
        yield SimpleNamespace(wait=stage.sleep, is_set=lambda: False), threading.Event()

    monkeypatch.setattr(wiring, "open_ports", open_ports)
    monkeypatch.setattr(nimbus, "NimbusClient", lambda _: stage.ports.nimbus)
    monkeypatch.setattr(_once, "time", SimpleNamespace(sleep=stage.sleep))
    monkeypatch.setattr(top, "signals", signals)

    def run(*words: str):
        done = CliRunner().invoke(_build(), [*words, "--output", "json"])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, json.loads(done.stdout) if done.stdout.startswith("{") else done.output

    return run


def timeless(document):
    """Without figures that differ from run to run."""
    if isinstance(document, dict):
        return {name: timeless(value) for name, value in document.items() if name not in TIMES}
    return [timeless(value) for value in document] if isinstance(document, list) else document


def asked(answer, status: int = 200):
    assert answer.status_code == status, answer.text
    return answer.json()


# --- as the commands


@pytest.mark.parametrize(
    "options", [[], ["policy=even"], ["edrp.r_max_s=0.05", "edrp.w_r=0.6", "edrp.w_c=0.3"], ["eps_max=1"]]
)
def test_a_dry_run_is_that_of_the_command(client, command, options):
    told = asked(client.post(f"{AT}/plan", json={"options": options}))
    code, document = command("plan", "taxi", *(word for option in options for word in ("-o", option)))
    assert timeless(told) == timeless(document) and code == (2 if told["change"] else 0)
    assert told["policy"] == ("even" if options == ["policy=even"] else "edrp") and told["rates"]["source"] == 100.0


def test_both_go_by_what_the_service_has_learnt_and_say_so(stage, client, command):
    nothing = asked(client.post(f"{AT}/plan", json={"options": ["policy=even"]}))
    assert nothing["learnt"].startswith("nothing is learnt") and nothing["learnt_values"] == []
    record = LearntRecord(
        topology_id="taxi-1", at=stage.clock.time - 60.0, handovers=((1000.0, 2.0),), restarts=((1, 9.0),)
    )
    stage.world.learnt = record.to_json()
    told = asked(client.post(f"{AT}/plan", json={"options": ["policy=even"]}))
    assert timeless(told) == timeless(command("plan", "taxi", "-o", "policy=even")[1])
    assert told["learnt_age_s"] > 60.0
    assert {one["what"]: one["value"] for one in told["learnt_values"]}["restart_pause_s"] == 9.0
    assert asked(client.get(f"{AT}/explain", params={"limit_s": 60}))["learnt"].startswith("learnt by the service")
    words = client.get(f"{AT}/explain", params={"output": "text", "width": 160, "limit_s": 60}).text
    assert "learnt by the service, as of" in words
    wanted = {"replicas": {"work": {"n2": 2}}, "dry_run": True}
    preview = asked(client.post(f"{AT}/reconfigure", json=wanted, headers=ACTING))
    assert preview["learnt"].startswith("learnt by the service")
    assert asked(client.get(f"{AT}/diff"))["learnt"] == command("diff", "taxi")[1]["learnt"] != ""


def test_the_settings_of_the_service_are_those_of_a_dry_run(stage, client, command):
    stage.desk.choose(settings_from({"policy": "even", "topologies": {"taxi": {"policy": "edrp", "window_s": 5}}}))
    told = asked(client.post(f"{AT}/plan", json={"options": ["edrp.headroom=0.2"]}))
    assert told["policy"] == "edrp"
    assert timeless(told) == timeless(command("plan", "taxi", "-o", "edrp.headroom=0.2")[1])


def test_a_frozen_topology_is_told_as_frozen(stage, client, command):
    stage.world.standing = Standing(frozen=True)
    told = asked(client.post(f"{AT}/plan", json={"options": ["policy=even"]}))
    assert told["refused"] == "the topology is frozen" or not told["change"]
    assert timeless(told) == timeless(command("plan", "taxi", "-o", "policy=even")[1])


def test_an_explanation_is_that_of_the_command_as_values_and_in_words(client, command):
    told = asked(client.get(f"{AT}/explain", params={"option": "edrp.r_max_s=0.2", "limit_s": 60}))
    code, document = command("explain", "taxi", "-o", "edrp.r_max_s=0.2", "--time-limit", "60")
    assert code == 0 and timeless(told) == timeless(document) and told["alternatives"]
    words = client.get(f"{AT}/explain", params={"output": "text", "width": 160, "limit_s": 60})
    assert words.status_code == 200 and words.headers["content-type"].startswith("text/plain")
    for part in ("Critical path", "Alternatives", "$/h", "more replicas"):
        assert part in words.text


def test_a_difference_is_that_of_the_command(stage, client, command, tmp_path):
    assert asked(client.get(f"{AT}/diff")) == command("diff", "taxi")[1]
    wanted = {"topology": "taxi", "deployment": {"work": {"n2": 2}}}
    file = tmp_path / "taxi.json"
    file.write_text(json.dumps(wanted))
    told = asked(client.post(f"{AT}/diff", json=wanted))
    code, document = command("diff", "taxi", "--file", str(file))
    assert told == document and code == 2 and told["changes"][0]["component"] == "work"
    assert asked(client.post(f"{AT}/diff", json={"deployment": wanted["deployment"]})) == told
    stage.world.standing = Standing(
        proposal=Proposal(
            number=3, epoch=0, made_at=1.0, reason="load", before={}, after={"work": {"n1": 1, "n2": 2}}, tables={},
            slots={}, gain=0.1, cost_per_h=5.0, downtime_s=0.0,
        ),
        proposals=3,
    )  # fmt: skip
    told = asked(client.get(f"{AT}/diff"))
    assert told == command("diff", "taxi")[1] and told["plan"] == 3


@pytest.mark.parametrize(("path", "key"), [("apply", "deployment"), ("reconfigure", "replicas")])
def test_a_dry_run_of_an_act_is_that_of_the_command(stage, client, command, tmp_path, path, key):
    wanted = {"work": {"n2": 2}}
    file = tmp_path / "taxi.json"
    file.write_text(json.dumps({"topology": "taxi", "deployment": wanted}))
    words = {"apply": [str(file)], "reconfigure": ["taxi", "--replicas", "work=n2:2"]}[path]
    told = asked(client.post(f"{AT}/{path}", json={key: wanted, "dry_run": True}, headers=ACTING))
    assert told == command(path, *words, "--dry-run")[1] and told["changes"]
    assert stage.world.requests == {}


def test_top_is_that_of_the_command(stage, client, command):
    told = asked(client.get("/api/top"))
    assert told == command("top")[1]
    (line,) = told["topologies"]
    assert (line["topology"], line["rate"], line["replicas"]) == ("taxi", 100.0, 3)


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({"policy": "even", "topologies": {"taxi": {"policy": "none"}}}, []),
        ({"period_s": 5, "edrp": {"r_max_s": 0.2}}, ["edrp.w_r=0.9"]),
        ({"period": 5}, []),
        ({"policy": "evn"}, []),
        ({"edrp": {"w_r": -1}, "agiledart": {"drain": 1}}, []),
    ],
)
def test_a_check_of_settings_is_that_of_the_command(client, command, tmp_path, settings, options):
    file = tmp_path / "s.json"
    file.write_text(json.dumps(settings))
    told = asked(client.post("/api/validate", json={"settings": settings, "options": options}))
    words = (word for option in options for word in ("-o", option))
    code, document = command("validate", str(file), *words)
    assert told == document and code == (2 if told["wrong"] else 0)


def test_every_wrong_setting_is_found_with_its_name(client):
    settings = {"edrp": {"w_r": -1}, "agiledart": {"drain": 1}, "topologies": {"taxi": {"policy": "evn"}}}
    told = asked(client.post("/api/validate", json={"settings": settings}))
    assert [one["setting"] for one in told["wrong"]] == ["agiledart.drain", "edrp.w_r", "evn"]
    assert all(one["error"] and one["remedy"] for one in told["wrong"])


def test_the_form_of_settings_is_that_of_the_command(client):
    told = asked(client.get("/api/settings/schema"))
    assert told == json.loads(CliRunner().invoke(_build(), ["validate", "--schema"]).stdout)


# --- nothing of the machine is reached


@pytest.mark.parametrize(
    "option", ["policy=os:abort", "network=/etc/passwd", "bimodal.agents=/etc/passwd", "os:abort.x=1", "no equals"]
)
def test_options_that_reach_outside_are_refused(client, option):
    for answer in (
        client.post(f"{AT}/plan", json={"options": [option]}),
        client.get(f"{AT}/explain", params={"option": option}),
    ):
        assert answer.status_code == 400 and answer.json()["remedy"], answer.text


def test_a_check_opens_no_file_and_loads_no_class_that_is_not_installed(client):
    settings = {"policy": "os:abort", "network": "/etc/passwd", "bimodal": {"agents": "/etc/passwd", "retry_s": 0}}
    told = asked(client.post("/api/validate", json={"settings": settings}))
    assert [one["setting"] for one in told["not_checked"]] == ["os:abort", "network"]
    assert "bimodal.retry_s" in told["wrong"][0]["error"] and "root:" not in json.dumps(told)


def test_a_dry_run_writes_to_no_peer(stage, client):
    """The service's own settings name the policy; over HTTP nobody may make it write to its agents."""
    stage.desk.choose(settings_from({"policy": "tests.helpers.http_api:AsksPeers"}))
    answer = client.post(f"{AT}/plan", json={})
    assert answer.status_code == 400 and "may not write to them" in answer.json()["error"]


# --- bounded


def test_one_question_computes_at_a_time_and_acts_go_on(stage, client):
    computing, go_on = threading.Event(), threading.Event()

    def long(*_, **__):
        computing.set()
        assert go_on.wait(20)
        return {}

    stage.studies._run = long
    first = []
    thread = threading.Thread(target=lambda: first.append(client.post(f"{AT}/plan", json={})))
    thread.start()
    assert computing.wait(20)
    second = client.get(f"{AT}/explain")
    assert second.status_code == 503 and int(second.headers["retry-after"]) > 0 and "in progress" in second.text
    assert client.post(f"{AT}/freeze", json={}, headers=ACTING).status_code == 200
    assert asked(client.get(f"{AT}/diff"))["topology"] == "taxi"
    go_on.set()
    thread.join(20)
    assert first[0].status_code == 200
    stage.studies._run = lambda *_, **__: {}
    assert client.post(f"{AT}/plan", json={}).status_code == 200


def test_a_question_that_fails_lets_the_next_one_in(stage, client):
    def fails(*_, **__):
        raise NotReadyError("no answer after 60 s of computing.", remedy="Allow it more time.")

    whole, stage.studies._run = stage.studies._run, fails
    assert client.post(f"{AT}/plan", json={}).status_code == 409
    stage.studies._run = whole
    assert client.post(f"{AT}/plan", json={}).status_code == 200


def test_a_question_measures_for_a_bounded_time(stage, client):
    before = stage.clock.time
    told = client.post(f"{AT}/plan", json={"options": ["window_s=1e9"]})
    assert told.status_code == 400 and "window_s" in told.json()["error"] and stage.clock.time == before


def test_looks_at_all_topologies_are_shared_by_those_who_ask_at_once(stage, client):
    asked(client.get("/api/top"))
    before = stage.clock.time
    asked(client.get("/api/top"))
    assert stage.clock.time == before, "the lines of a moment ago"
    stage.sleep(2)
    (line,) = asked(client.get("/api/top"))["topologies"]
    assert stage.clock.time == before + 2 and line["rate"] == 100.0, "looked at again, without a wait"
    stage.sleep(3600)
    asked(client.get("/api/top"))
    assert stage.clock.time == before + 3603, "after an hour rates begin anew"


def test_a_topology_that_is_not_placed_is_said(stage, client):
    stage.world.snapshot = None
    for answer in (client.post(f"{AT}/plan", json={}), client.get(f"{AT}/explain")):
        assert answer.status_code == 409 and answer.json()["error"]


def test_a_snapshot_that_cannot_be_read_is_no_fault_of_the_asker(stage, client):
    stage.world.snapshot = "{"
    for answer in (client.post(f"{AT}/plan", json={}), client.get(f"{AT}/explain")):
        assert answer.status_code == 503 and "not a snapshot" in answer.json()["error"]
    (line,) = asked(client.get("/api/top"))["topologies"]
    assert line["topology"] == "taxi" and "not a snapshot" in line["missing"]


def test_before_the_settings_are_known_it_says_so(stage, client):
    stage.desk._settings = None
    assert client.post(f"{AT}/plan", json={}).status_code == 409
    assert client.get("/api/top").status_code == 409


# --- access


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}])
def test_a_page_of_another_site_makes_nothing_compute(client, headers):
    for answer in (
        client.post(f"{AT}/plan", json={}, headers=headers), client.get(f"{AT}/explain", headers=headers),
        client.post("/api/validate", json={}, headers=headers), client.get("/api/settings/schema", headers=headers),
    ):  # fmt: skip
        assert answer.status_code == 403 and answer.json()["field"] == next(iter(headers))
    own = {"Origin": "http://127.0.0.1:8600", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/validate", json={}, headers=own).status_code == 200


def test_apply_leaves_the_request_of_the_command_and_needs_the_token(stage, client):
    body = {"topology": "taxi", "deployment": {"work": {"n1": 2}}, "force": True}
    for more in ({}, {"dry_run": True}):
        assert client.post(f"{AT}/apply", json=body | more).status_code == 401
    assert stage.world.requests == {}
    assert asked(client.post(f"{AT}/apply", json=body, headers=ACTING))["ending"] == "done"
    assert list(stage.world.requests.values()) == [{"replicas": {"work": {"n1": 2}}, "force": True}]


def test_a_document_about_another_topology_is_refused(stage, client):
    body = {"topology": "query1", "deployment": {"work": {"n1": 2}}}
    for path in ("apply", "diff"):
        told = client.post(f"{AT}/{path}", json=body, headers=ACTING)
        assert told.status_code == 422 and (told.json()["field"], told.json()["value"]) == ("topology", "query1")
    assert stage.world.requests == {}


def test_half_of_a_surrogate_pair_is_refused(client):
    body = b'{"settings": {"topologies": {"\\ud800": {}}}}'
    told = client.post("/api/validate", content=body, headers={"Content-Type": "application/json"})
    assert told.status_code == 422 and told.json()["remedy"]


def test_ports_that_close_are_forgotten_by_top(stage, client):
    asked(client.get("/api/top"))
    stage.stack.close()
    stage.sleep(2)
    assert asked(client.get("/api/top")) == {"topologies": []}
    with stage.desk.serving("taxi", replace(stage.ports)):
        stage.sleep(2)
        assert [line["topology"] for line in asked(client.get("/api/top"))["topologies"]] == ["taxi"]
