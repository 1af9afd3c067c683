"""A real Prometheus scrapes the service: all metrics arrive, dashboard and rules are answered, an alert fires."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import httpx
import pytest
import yaml

from leeward.adapters.http.server import Where, answering
from leeward.cli._beside import EXPLAIN
from leeward.sim.memory import ListSink
from tests.helpers.http_api import TOKEN, Stage
from tests.helpers.servers import free_port

ROOT = Path(__file__).parents[2]
LONG_S = 60.0
DASHBOARD = json.loads((ROOT / "storm_conf/grafana/leeward.json").read_text())
RULES = ROOT / "storm_conf/prometheus/alerts.yml"


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name}; make test-browser installs it")
    return found


def test_promtool_accepts_rules_and_example():
    for what, file in (("rules", RULES), ("config", RULES.with_name("prometheus.yml"))):
        done = subprocess.run([program("promtool"), "check", what, file], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_promtool_accepts_the_exposition():
    with Stage().client() as client:
        text = client.get("/metrics").text
    done = subprocess.run([program("promtool"), "check", "metrics"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def prometheus(tmp_path):
    """Call it with the address of a service; the address of a Prometheus that scrapes it each second."""
    started: list[subprocess.Popen] = []

    def start(url: str) -> str:
        config = yaml.safe_load(RULES.with_name("prometheus.yml").read_text())
        config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
        config["rule_files"] = [str(RULES)]
        config["scrape_configs"][0]["static_configs"][0]["targets"] = [url.removeprefix("http://").rstrip("/")]
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
        address = f"127.0.0.1:{free_port()}"
        command = [
            program("prometheus"), f"--config.file={tmp_path / 'prometheus.yml'}", f"--web.listen-address={address}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
        ]  # fmt: skip
        with (tmp_path / "log").open("w") as log:
            started.append(subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True))
        server = f"http://{address}"
        wait_for(lambda: httpx.get(f"{server}/-/ready").is_success)  # it listens earlier, and refuses queries
        return server

    yield start
    for process in started:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def wait_for(condition):
    until = time.monotonic() + LONG_S
    while True:
        try:
            if found := condition():
                return found
        except httpx.HTTPError:
            pass  # it starts
        assert time.monotonic() < until, "in time"
        time.sleep(0.1)


def asked(server: str, expression: str) -> list[dict]:
    """The result of an instant query; the test fails if Prometheus refuses the expression."""
    answer = httpx.get(f"{server}/api/v1/query", params={"query": expression})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]["result"]


def test_prometheus_scrapes_answers_the_dashboard_and_fires(prometheus):
    stage = Stage()
    where = Where(host="127.0.0.1", port=0)
    with answering(where, TOKEN, stage.knowledge, sink := ListSink(), explain=EXPLAIN):
        server = prometheus(sink.of("http_listens")[0]["url"])
        wait_for(lambda: asked(server, 'up{job="leeward"} == 1'))
        (rate,) = wait_for(lambda: asked(server, "leeward_rate_tuples_per_second"))
        assert (rate["metric"]["topology"], rate["value"][1]) == ("taxi", "189")
        for panel in DASHBOARD["panels"]:
            for target in panel["targets"]:
                expression = target["expr"].replace("$topology", ".*")
                wait_for(lambda e=expression: asked(server, e) or "increase(" in e)  # that needs two scrapes
        rules = httpx.get(f"{server}/api/v1/rules").json()["data"]["groups"][0]["rules"]
        assert [rule["health"] for rule in rules if rule["health"] == "err"] == [] and len(rules) == 13
        stage.knowledge.emit("held", {"topology": "taxi", "why": "no cut can be read", "remedy": "leeward recover"})

        def firing():
            alerts = httpx.get(f"{server}/api/v1/alerts").json()["data"]["alerts"]
            return [
                alert
                for alert in alerts
                if alert["labels"]["alertname"] == "LeewardHeld" and alert["state"] == "firing"
            ]

        (alert,) = wait_for(firing)
        assert alert["annotations"]["summary"] == "taxi is held, as no cut can be read."
