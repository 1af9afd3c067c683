"""The API in memory: reading, acting with and without the token, errors that name field, value and remedy."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from dataclasses import replace

import pytest

from leeward.adapters.http import application
from leeward.adapters.http.access import check_reach, host_of, hosts_of, tokens_of
from leeward.adapters.http.acts import ACTS, Act, Body
from leeward.adapters.http.desk import Desk
from leeward.adapters.http.server import Where, address
from leeward.core.errors import ConfigError
from leeward.core.outcome import refused
from tests.helpers.http_api import ACTING, CHANGE, Stage

PLACES = {"replicas": {"work": {"n1": 1}}, "wait_s": 0}


@pytest.fixture
def stage():
    return Stage()


@pytest.fixture
def client(stage):
    with stage.client() as client:
        yield client


def test_the_list_has_a_line_for_each_topology(client):
    told = client.get("/api/topologies").json()
    (line,) = told["topologies"]
    assert (line["topology"], line["policy"], line["role"], line["replicas"]) == ("taxi", "edrp", "leader", 4)
    assert line["rate"] == 189.0 and line["response_s"] == 0.25 and line["modelled_response_s"] == 0.2
    assert told["acting"] is True and told["missing"] == []
    plain = {act["name"]: act["plain"] for act in told["acts"]}
    assert {name for name, clicked in plain.items() if clicked} == {"approve", "freeze", "thaw", "rollback"}
    assert {name for name, clicked in plain.items() if not clicked} == {"apply", "reconfigure", "recover"}


def test_the_report_plan_nodes_and_history_agree(client):
    report = client.get("/api/topologies/taxi").json()["report"]
    assert {c["id"]: c["replicas"] for c in report["components"]} == {"sink": 1, "source": 1, "work": 2}
    assert report["last"]["phases"] == {"ahead": 1.5, "handover": 0.5} and report["downtime_s"] == 0.05
    plan = client.get("/api/topologies/taxi/plan").json()
    assert plan["before"]["work"] == {"n1": 1} and plan["now"]["work"] == {"n1": 1, "n2": 1}
    assert plan["difference"] == [CHANGE] and plan["why"] == "work is slow"
    assert "minimum_gain" in plan["refusals"][0]["why"]
    nodes = client.get("/api/topologies/taxi/nodes").json()["nodes"]
    assert [(node["id"], node["replicas"], node["draining"]) for node in nodes] == [
        ("n1", {"source": 1, "work": 1}, False), ("n2", {"sink": 1, "work": 1}, False), ("n3", {}, True),
    ]  # fmt: skip
    history = client.get("/api/topologies/taxi/history").json()
    assert history["complete"] and [entry["epoch"] for entry in history["reconfigurations"]] == [2]


def test_history_without_zookeeper_says_that_it_is_not_complete(stage, client):
    stage.world.refuse.add("zookeeper")
    history = client.get("/api/topologies/taxi/history").json()
    assert not history["complete"] and "zookeeper" in history["why"] and len(history["reconfigurations"]) == 1


def test_series_are_cut_by_time_and_figure(client):
    told = client.get(
        "/api/topologies/taxi/series", params={"figure": ["rate", "work.replicas"], "since": 1_000_088}
    ).json()
    assert told["t"] == [1_000_089.0, 1_000_090.0] and told["values"]["rate"] == [188.0, 189.0]
    assert told["values"]["work.replicas"] == [2.0, 2.0] and "response_s" in told["figures"]
    everything = client.get("/api/topologies/taxi/series").json()
    assert set(everything["values"]) == set(told["figures"]) and len(everything["t"]) == 90


def test_series_are_read_beside_the_event_loop(stage, client, monkeypatch):
    """All points of forty components take long, and the live events of all listeners come from the loop."""
    read, asked, loops = stage.knowledge.series, [], []

    def series(*question):
        asked.append(question)
        with contextlib.suppress(RuntimeError):  # none runs on this thread
            loops.append(asyncio.get_running_loop())
        return read(*question)

    monkeypatch.setattr(stage.knowledge, "series", series)
    assert client.get("/api/topologies/taxi/series", params={"figure": "rate"}).status_code == 200
    assert asked == [("taxi", ("rate",), 0.0)] and loops == []


def test_openapi_has_every_path_and_every_act(client):
    document = client.get("/openapi.json").json()
    for act in ACTS:
        assert "post" in document["paths"][f"/api/topologies/{{name}}/{act.name}"]
    assert document["paths"]["/api/nodes/{node}/drain"]["post"]["security"] == [{"token": []}]
    assert "Report" in document["components"]["schemas"]


def test_status_is_that_of_the_command(stage, client):
    told = client.get("/api/topologies/taxi/status").json()
    assert (told["topology"], told["topology_id"], told["draining"]) == ("taxi", "taxi-1", [])
    assert told["nodes"] == {"n1": [6700], "n2": [6700]} and told["tasks"] == {"work": 1}
    stage.world.refuse.add("nimbus")
    assert client.get("/api/topologies/taxi/status").status_code == 503


def test_however_often_it_is_asked_ports_are_opened_once(stage):
    """Each lock that is opened leaves a listener at the session with ZooKeeper."""
    opened = []
    desk = Desk(stage.knowledge)
    ports = replace(
        stage.ports, open_topology=lambda structure: opened.append(1) or stage.ports.open_topology(structure)
    )
    with desk.serving("taxi", ports):
        for _ in range(3):
            desk.status("taxi")
            desk.history("taxi")
    assert opened == [1]


def test_a_service_that_ends_leaves_the_ports_of_its_successor_open(stage):
    desk, first, second = Desk(stage.knowledge), replace(stage.ports), replace(stage.ports)
    with desk.serving("taxi", first):
        other = desk.serving("taxi", second)
        other.__enter__()
    assert desk.served()["taxi"] is second
    other.__exit__(None, None, None)
    assert desk.served() == {}


def test_the_head_of_the_live_events_ends(client):
    told = client.head("/api/events")
    assert told.status_code == 200 and told.headers["content-type"].startswith("text/event-stream")


# --- acting


class Sleep(Body):
    """Let nothing be measured."""


def test_a_further_act_is_one_line(stage, monkeypatch):
    monkeypatch.setattr(application, "ACTS", (*ACTS, Act("sleep", Sleep, lambda body: {"sleep": True})))
    with stage.client() as client:
        seen = client.get("/api/topologies").json()["acts"][-1]
        assert seen == {"name": "sleep", "about": "Let nothing be measured.", "plain": True}
        assert client.post("/api/topologies/taxi/sleep", json={}).status_code == 401
        assert client.post("/api/topologies/taxi/sleep", json={}, headers=ACTING).json()["ending"] == "done"
        assert client.get("/openapi.json").json()["paths"]["/api/topologies/{name}/sleep"]["post"]
    assert stage.world.requests == {"r-0000000000": {"sleep": True}}


def test_an_act_leaves_the_request_that_the_command_leaves(stage, client):
    done = client.post("/api/topologies/taxi/reconfigure", json=PLACES | {"force": True}, headers=ACTING)
    assert done.status_code == 200 and done.json()["ending"] == "done"
    assert stage.world.requests == {"r-0000000000": {"replicas": {"work": {"n1": 1}}, "force": True}}
    (asked,) = [event for event in stage.knowledge.events(0) if event.action == "asked"]
    assert asked.fields == {"act": "reconfigure", "request": "r-0000000000"}
    client.post("/api/topologies/taxi/recover", json={"cut": 7}, headers=ACTING)
    assert {"recover": 7} in stage.world.requests.values()


@pytest.mark.parametrize(
    ("act", "body", "request_"),
    [
        ("approve", {}, {"approve": 0}),
        ("approve", {"plan": 3}, {"approve": 3}),
        ("freeze", {"why": "release"}, {"freeze": True, "why": "release"}),
        ("thaw", {}, {"freeze": False, "why": ""}),
        ("rollback", {"freeze": "slower"}, {"rollback": True, "freeze": "slower"}),
    ],
)
def test_decisions_leave_the_requests_that_the_commands_leave(stage, client, act, body, request_):
    assert client.post(f"/api/topologies/taxi/{act}", json=body, headers=ACTING).status_code == 200
    assert list(stage.world.requests.values()) == [request_]


def test_an_act_that_lasts_is_told_of_later(stage, client):
    stage.reply = None
    waits = client.post("/api/topologies/taxi/reconfigure", json=PLACES, headers=ACTING)
    assert waits.status_code == 202 and waits.json()["ending"] is None
    path = waits.json()["path"]
    assert client.get(path).status_code == 202
    stage.world.answers["r-0000000000"] = refused("no room on n1")
    told = client.get(path)
    assert told.status_code == 409 and "no room on n1" in told.json()["error"]


def test_drain_sets_the_flag_and_is_seen_at_once(stage, client):
    assert client.post("/api/nodes/n1/drain", headers=ACTING).json() == {"node": "n1", "draining": True}
    assert stage.world.draining == {"n1"}
    assert client.get("/api/topologies/taxi/nodes").json()["nodes"][0]["draining"] is True
    assert client.post("/api/nodes/n1/undrain", headers=ACTING).json() == {"node": "n1", "draining": False}
    unknown = client.post("/api/nodes/n9/drain", headers=ACTING)
    assert unknown.status_code == 400 and "'n9' has no supervisor" in unknown.json()["error"]
    assert "n1" in unknown.json()["remedy"]


@pytest.mark.parametrize("token", [{}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic YTpi"}])
@pytest.mark.parametrize(
    ("path", "body"),
    [("/api/topologies/taxi/reconfigure", PLACES), ("/api/topologies/taxi/recover", {"cut": 1}),
     ("/api/nodes/n1/drain", None), ("/api/nodes/n1/undrain", None)],
)  # fmt: skip
def test_nobody_acts_without_the_token(stage, client, token, path, body):
    refused_ = client.post(path, json=body, headers=token)
    assert refused_.status_code == 401 and "service_token" in refused_.json()["remedy"]
    assert stage.world.requests == {} and stage.world.draining == set()


def test_nobody_acts_where_there_is_no_token(stage):
    with stage.client(token="") as client:
        assert client.post("/api/nodes/n1/drain", headers=ACTING).status_code == 403
        assert client.get("/api/topologies").json()["acting"] is False


def test_a_page_of_another_site_does_not_act(stage, client):
    for origin in (
        "http://evil.example",
        "null",
        "http://127.0.0.1:8601",
        "http://[",
        "https://127.0.0.1.evil.example",
    ):
        assert client.post("/api/nodes/n1/drain", headers=ACTING | {"Origin": origin}).status_code == 403
    assert stage.world.draining == set()
    assert client.post("/api/nodes/n1/drain", headers=ACTING | {"Origin": "http://127.0.0.1:8600"}).status_code == 200


# --- access


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8600", "", "[", "10.0.0.1", "a@127.0.0.2"])
def test_a_name_that_it_was_not_told_of_is_refused(client, host):
    told = client.get("/api/topologies", headers={"Host": host})
    assert told.status_code == 421 and told.json()["field"] == "Host" and "--http-name" in told.json()["remedy"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8600", "LOCALHOST", "[::1]:8600"])
def test_its_own_names_are_answered(client, host):
    assert client.get("/api/topologies", headers={"Host": host}).status_code == 200


def test_names_are_those_bound_and_told():
    assert hosts_of("10.0.0.7", ["Leeward.example"]) == {"10.0.0.7", "leeward.example"}
    assert "localhost" in hosts_of("127.0.0.1") and host_of("user@127.0.0.1:80") == "127.0.0.1"


def test_every_answer_has_the_headers_that_keep_other_sites_out(client):
    for path in ("/api/topologies", "/nowhere", "/api/topologies/none", "/openapi.json"):
        headers = client.get(path).headers
        assert (
            "default-src 'self'" in headers["content-security-policy"]
            and headers["x-content-type-options"] == "nosniff"
        )
        assert "access-control-allow-origin" not in headers


def test_a_plain_connection_stays_within_the_machine(tmp_path):
    check_reach("127.0.0.1", encrypted=False, insecure=False)
    check_reach("10.0.0.7", encrypted=True, insecure=False)
    check_reach("10.0.0.7", encrypted=False, insecure=True)
    with pytest.raises(ConfigError, match="--tls-cert and --tls-key, or --insecure"):
        check_reach("0.0.0.0", encrypted=False, insecure=False)
    with pytest.raises(ConfigError, match="one of --tls-cert and --tls-key"):
        Where(host="127.0.0.1", port=0, certificate=tmp_path / "cert").tls()
    with pytest.raises(ConfigError, match="cannot be used"):
        Where(host="127.0.0.1", port=0, certificate=tmp_path / "cert", key=tmp_path / "key").tls()


@pytest.mark.parametrize("text", ["", "8600", "a:b", "a:99999", ":80", "a:-1", "a:٣"])
def test_an_address_that_cannot_be_read_is_refused(text):
    with pytest.raises(ConfigError, match="Write HOST:PORT"):
        address(text)


def test_addresses_are_read():
    assert address("127.0.0.1:8600") == ("127.0.0.1", 8600) and address("[::1]:0") == ("::1", 0)


@pytest.mark.parametrize("token", ["short", "with a space in it 123", "ü" * 20])
def test_a_token_that_is_weak_is_refused(token):
    with pytest.raises(ConfigError, match="service_token"):
        tokens_of(token)


# --- errors


WRONG = [
    ("/api/topologies/none", 404, "name", "none"),
    ("/api/topologies/taxi/series?since=-1", 422, "since", "-1"),
    ("/api/topologies/taxi/series?since=nan", 422, "since", "nan"),
    ("/api/topologies/taxi/series?sinse=1", 422, "sinse", "1"),
    ("/api/topologies?x=1", 422, "x", "1"),
    ("/api/topologies/taxi/requests/r-1%00", 404, "request", "r-1\0"),
    ("/api/topologies/taxi/requests/r-1", 404, "request", "r-1"),
    ("/api/events?after=x", 422, "after", "x"),
]


@pytest.mark.parametrize(("path", "status", "field", "value"), WRONG)
def test_a_wrong_question_names_field_value_and_remedy(client, path, status, field, value):
    told = client.get(path)
    assert told.status_code == status
    problem = told.json()
    assert (problem["field"], problem["value"]) == (field, value) and problem["error"] and problem["remedy"]


BODIES = [
    (b"", 400, ""), (b"{", 400, ""), (b"[" * 100_000, 400, ""), (b"null", 422, "body"), (b"{}", 422, "replicas"),
    (b'{"replicas": {}}', 422, "replicas"), (b'{"replicas": {"work": {"n1": 0}}}', 422, "replicas.work.n1"),
    (b'{"replicas": {"work": {"n1": true}}}', 422, "replicas.work.n1"),
    (b'{"replicas": {"work": {"n1": 1}}, "forse": true}', 422, "forse"),
    (b'{"replicas": {"\\ud800": {"n1": 1}}}', 422, None), (b"x" * (1 << 21), 413, ""), (b"\xff\xfe", 400, ""),
]  # fmt: skip


@pytest.mark.parametrize(("body", "status", "field"), BODIES, ids=[str(n) for n in range(len(BODIES))])
def test_a_wrong_body_names_its_field(stage, client, body, status, field):
    headers = ACTING | {"Content-Type": "application/json"}
    told = client.post("/api/topologies/taxi/reconfigure", content=body, headers=headers)
    assert told.status_code == status and told.json()["error"]
    assert field is None or told.json().get("field", "") == field
    assert stage.world.requests == {}


def test_a_body_that_is_not_said_to_be_json_is_not_read(client):
    told = client.post("/api/topologies/taxi/reconfigure", content=b"{}", headers=ACTING)
    assert told.status_code == 415 and told.json()["field"] == "Content-Type"


def test_other_methods_are_told_which_ones_there_are(client):
    told = client.delete("/api/topologies/taxi")
    assert told.status_code == 405 and "GET" in told.headers["allow"]


@pytest.mark.parametrize("who", ["zookeeper", "nimbus"])
def test_a_server_that_is_away_is_a_503(stage, who):
    stage.world.refuse.add(who)
    with stage.client() as client:
        asked = "/api/topologies/taxi/requests/r-0000000001"
        told = client.get(asked)
        assert told.status_code == 503 and who in told.json()["error"]


def test_a_topology_that_is_not_served_here_now_cannot_be_asked(stage, client):
    stage.stack.close()
    told = client.post("/api/topologies/taxi/reconfigure", json=PLACES, headers=ACTING)
    assert told.status_code == 409 and "not served here" in told.json()["error"]
    assert client.get("/api/topologies/taxi").status_code == 200


def test_a_fault_of_ours_shows_no_traceback(stage, client, monkeypatch):
    monkeypatch.setattr(stage.knowledge, "report", lambda name: 1 / 0)
    told = client.get("/api/topologies/taxi")
    assert told.status_code == 500 and told.json()["error"] == "the service failed to answer."


ASKED_FOR = """
import sys, leeward.adapters.serving as serving
from leeward.cli import app
late = {"starlette", "prometheus_client", "uvicorn"}
serving.serve_all = lambda *_, **__: print(sorted(late & sys.modules.keys()))
sys.argv = ["leeward", "serve", "--nimbus", "127.0.0.1:1", "-o", "policy=none", *sys.argv[1:]]
app()
"""


@pytest.mark.parametrize(("arguments", "loaded"), [([], False), (["--http", "127.0.0.1:0"], True)])
def test_without_http_nothing_of_it_is_imported(arguments, loaded, tmp_path):
    command = [sys.executable, "-c", ASKED_FOR, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert ("starlette" in done.stdout) == loaded
    if not loaded:
        assert done.stdout.strip() == "[]"


def test_options_of_http_without_it_are_refused():
    done = subprocess.run(
        [sys.executable, "-m", "leeward", "serve", "--insecure", "-o", "policy=none"], capture_output=True, text=True,
        timeout=100,
    )  # fmt: skip
    assert done.returncode == 2 and "--insecure is given without --http" in done.stderr
