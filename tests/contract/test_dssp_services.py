"""Registry, domains and a provider of DSSP as real processes: queries over HTTP, and what may go wrong with them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import ssl
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import httpx
import numpy as np
import pytest
from typer.testing import CliRunner

from leeward.cli import _build
from leeward.cli._background import forked, leeward_command
from leeward.cli._dssp_universe import _domain, open_services, universe
from leeward.policies.dssp.experiments.live_setup import area_of, everywhere
from leeward.policies.dssp.simulation.setup import QueryClass, Setting
from tests.helpers.servers import port_block

SMALL = Setting(
    name="small", means=np.full((2, 2), 0.01), shape="uniform",
    classes=(QueryClass(name="all", share=1.0, objective_s=1.0, rank=0, domains=2, nodes=2),),
)  # fmt: skip
EVERYWHERE = everywhere(SMALL).to_json()
SERVICE = {"capability": "air", "areas": [EVERYWHERE], "rate": 1.0, "percent": 99, "objective_s": 1.0}


class Parts:
    """A client of the processes, with their tokens."""

    def __init__(self, made, out: Path) -> None:
        self.made, self.out = made, out
        verify = str(made.authority) if made.authority else True
        self.client = httpx.Client(
            base_url=made.provider, headers={"Authorization": f"Bearer {made.tokens['load']}"}, timeout=30,
            verify=ssl.create_default_context(cafile=verify) if made.authority else True,
        )  # fmt: skip

    def ask(self, **body) -> httpx.Response:
        return self.client.post("/queries", json={"service": "all"} | body)

    def open(self, name: str, **changes) -> httpx.Response:
        return self.client.put(f"/services/{name}", json=SERVICE | changes)

    def state(self, domain: str, token: str = "") -> httpx.Response:
        headers = {"Authorization": f"Bearer {token or self.made.tokens[domain]}"}
        return httpx.get(f"{self.made.domains[domain]}/state", headers=headers)


@contextmanager
def running(
    out: Path, *, tls: bool = False, discipline: str = "dssp-edfq", setting: Setting = SMALL, rate: float = 1.0
):
    with universe(setting, discipline=discipline, seed=1, port=port_block(), tls=tls, out=out) as made:

        async def begin():
            async with made.client("load", made.provider) as client:
                await open_services(client, setting, rate)

        asyncio.run(begin())
        yield Parts(made, out)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    with running(tmp_path_factory.mktemp("dssp")) as found:
        yield found


def group_of(out: Path, name: str) -> list[int]:
    """Processes whose log this is."""
    log, found = str(out / f"{name}.log"), []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and os.readlink(entry / "fd/1") == log:
                found.append(int(entry.name))
    return found


def test_a_query_is_answered_by_the_domains_of_its_areas(parts):
    told = parts.ask().json()
    assert told["answered"] == ["domain-1", "domain-2"] and told["missing"] == {} and told["count"] == 4
    assert 15 <= told["least"] <= told["mean"] <= told["most"] <= 25 and 0 < told["seconds"] < 1 and not told["late"]
    one = parts.ask(areas=[area_of(1, 0).to_json()]).json()
    assert one["answered"] == ["domain-2"] and one["count"] == 1


def test_over_tls_the_same(tmp_path):
    with running(tmp_path, tls=True, discipline="dssp-salvage") as found:
        assert found.ask().json()["count"] == 4
        with pytest.raises(httpx.ConnectError):
            httpx.get(found.made.provider + "/state")  # an authority that this machine does not trust
        processes = [pid for name in ("registry", "city", "domain-1", "domain-2") for pid in group_of(tmp_path, name)]
        assert len(processes) == 4 + 4  # and the workers
    assert not [pid for pid in processes if os.path.exists(f"/proc/{pid}")]


@pytest.mark.parametrize(
    "changes, status, words",
    [
        ({"capability": "noise"}, 400, "no domain offers it"),
        ({"areas": [[-50, -50, -40, -40]]}, 400, "outside every domain"),
        ({"rate": -1}, 400, "rate"),
        ({"percent": 100}, 400, "percent"),
        ({"objective_s": 0}, 400, "objective_s"),
        ({"areas": [[0, 0, 1]]}, 400, "has 3 numbers"),
        ({"budget": 3}, 400, "unknown key"),
    ],
)
def test_a_bad_service_is_refused_with_a_remedy(parts, changes, status, words):
    answer = parts.open("bad", **changes)
    assert answer.status_code == status, answer.text
    assert words in answer.json()["error"] and answer.json()["remedy"]


def test_an_objective_below_the_unloaded_time_is_refused_with_the_least(parts):
    told = parts.open("fast", objective_s=0.001).json()
    assert told["ready"] == []
    for member in told["members"].values():
        assert "idle nodes already take" in member["why"] and member["least_s"] > 0.001
    least = max(member["least_s"] for member in told["members"].values())
    assert parts.open("fast", objective_s=2 * least).json()["ready"] == ["domain-1", "domain-2"]


@pytest.mark.parametrize(
    "body, words",
    [({"service": "none"}, "is not open"), ({"areas": [[-50, -50, -40, -40]]}, "outside every domain"),
     ({"areas": "all"}, "must be a list"), ({"deadline": 1}, "unknown key")],
)  # fmt: skip
def test_a_bad_query_is_refused(parts, body, words):
    answer = parts.ask(**body)
    assert answer.status_code == 400 and words in answer.json()["error"]


def test_tokens_and_sizes_are_checked(parts):
    assert httpx.post(parts.made.provider + "/queries", json={"service": "all"}).status_code == 401
    wrong = {"Authorization": "Bearer " + "x" * 32}
    assert httpx.post(parts.made.provider + "/queries", json={"service": "all"}, headers=wrong).status_code == 401
    assert parts.client.post("/queries", content=b"[" * (2 << 20)).status_code == 413
    assert parts.client.post("/queries", content=b"{").status_code == 400
    callers = json.loads((parts.out / "domain-1.callers.json").read_text())
    assert parts.state("domain-1", callers["city"]).status_code == 403  # no provider sees the inside of a domain
    assert parts.state("domain-1", "y" * 32).status_code == 401


def test_rounds_come_until_the_last_one_and_only_if_the_trigger_holds(parts):
    body = {"service": "all", "period_s": 0.2, "rounds": 3}
    rounds = parts.client.post("/rounds", json=body).text.splitlines()
    assert [json.loads(line)["round"] for line in rounds] == [0, 1, 2]
    never = parts.client.post("/rounds", json=body | {"trigger": {"figure": "mean", "above": 1000}})
    assert never.status_code == 200 and never.text == ""
    wrong = parts.client.post("/rounds", json=body | {"trigger": {"figure": "median", "above": 1}})
    assert wrong.status_code == 400 and "trigger.figure" in wrong.json()["error"]


def test_the_command_prints_the_answer_and_its_exit_code_says_whether_it_is_whole(parts, tmp_path):
    (token := tmp_path / "token").write_text(parts.made.tokens["load"])
    runner = CliRunner()
    ask = ["dssp", "query", parts.made.provider, "all", "--token", str(token)]
    done = runner.invoke(_build(), ask)
    assert done.exit_code == 0 and json.loads(done.stdout)["count"] == 4
    wrong = runner.invoke(_build(), [*ask, "--area", "1,2,3"])
    assert wrong.exit_code == 2 and "Write W,S,E,N" in wrong.stderr
    away = runner.invoke(_build(), ["dssp", "query", "http://127.0.0.1:9", "all", "--token", str(token)])
    assert away.exit_code == 2 and "Start the provider" in away.stderr


def test_a_domain_that_stalls_and_then_dies_is_missing_and_said_so(tmp_path):
    with running(tmp_path) as found:
        stalled = group_of(tmp_path, "domain-2")
        agent = min(stalled)
        os.kill(agent, signal.SIGSTOP)
        told = found.ask().json()
        assert told["answered"] == ["domain-1"] and told["count"] == 2 and told["late"]
        assert told["missing"] == {"domain-2": "it did not answer in time"}
        os.kill(agent, signal.SIGCONT)  # its answers come now, and are discarded; the retry is not executed again
        until = time.monotonic() + 10
        while found.ask().json()["missing"] and time.monotonic() < until:
            pass
        counts = found.state("domain-2").json()["counts"]
        assert counts["repeated"] >= 1 and counts["started"] == 2 * counts["tasks"]
        os.kill(agent, signal.SIGKILL)
        told = found.ask().json()
        assert set(told["missing"]) == {"domain-2"} and told["answered"] == ["domain-1"]


def test_a_worker_that_dies_is_replaced(tmp_path):
    with running(tmp_path) as found:
        agent, *workers = sorted(group_of(tmp_path, "domain-1"))
        os.kill(workers[0], signal.SIGKILL)
        until = time.monotonic() + 10
        while (told := found.ask().json())["failed"] and time.monotonic() < until:
            pass
        assert told["count"] == 4 and agent in group_of(tmp_path, "domain-1")


def test_a_domain_leaves_and_joins_while_queries_run(tmp_path):
    with running(tmp_path) as found:
        agent = min(group_of(tmp_path, "domain-2"))
        os.kill(agent, signal.SIGTERM)  # it says good-bye to its providers and to the registry
        assert until(lambda: found.client.get("/services/all").json()["ready"] == ["domain-1"])
        assert found.ask().json()["answered"] == ["domain-1"] and found.ask().json()["missing"] == {}
        with forked(partial(_domain, tmp_path / "domain-2.json"), tmp_path / "domain-2.log"):
            assert until(lambda: found.ask().json()["answered"] == ["domain-1", "domain-2"])
            assert found.client.get("/state").json()["counts"]["partial"] == 0


def until(true) -> bool:
    """Within some seconds."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.1)
    return False


def test_a_domain_that_ends_still_answers_what_it_has_begun(tmp_path):
    slow = replace(SMALL, means=np.full((2, 2), 0.6), shape="constant")
    with running(tmp_path, setting=slow, rate=0.1) as found, ThreadPoolExecutor() as pool:
        asked = pool.submit(found.ask)
        time.sleep(0.3)
        os.kill(min(group_of(tmp_path, "domain-2")), signal.SIGTERM)
        assert asked.result().json()["count"] == 4


@pytest.mark.parametrize("kind", ["domain", "provider"])
def test_an_address_that_is_taken_ends_the_command(tmp_path, kind):
    with running(tmp_path) as found:
        name = {"domain": "domain-1", "provider": "city"}[kind]
        done = subprocess.run(
            leeward_command(["dssp", kind, str(found.out / f"{name}.json")]), capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 2 and "Name an address" in done.stderr


def test_sigterm_ends_a_domain_whose_registry_is_away(tmp_path):
    with running(tmp_path) as found:
        file = json.loads((found.out / "domain-1.json").read_text())
        file |= {"registry": "http://127.0.0.1:9", "listen": {"port": 0}}
        (away := found.out / "away.json").write_text(json.dumps(file))
        process = subprocess.Popen(leeward_command(["dssp", "domain", str(away)]))
        time.sleep(5)
        process.terminate()
        assert process.wait(5) == 0


def test_plain_tokens_do_not_leave_the_machine(tmp_path):
    (token := tmp_path / "token").write_text("x" * 20)
    for url in ("http://192.0.2.1:8099", "http://[::1", "ftp://127.0.0.1"):
        done = CliRunner().invoke(_build(), ["dssp", "query", url, "all", "--token", str(token)])
        assert done.exit_code == 2 and "https://" in done.stderr
