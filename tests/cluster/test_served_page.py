"""The page of a real service on a real Storm: a migration by click is seen live, measured, stored and scraped."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.browser.conftest import PROGRAMS
from tests.browser.driver import Browser
from tests.cluster.harness import LONG_S, Running, Stage, await_, leeward

NAME = "seen"


@contextmanager
def served(running: Running, events: Path) -> Iterator[str]:
    """`leeward serve --http` as a process; its address."""
    command = [Path(sys.executable).with_name("leeward"), "serve", running.name, "--events", events]
    options = ["-o", "policy=none", "--http", "127.0.0.1:0", "--cluster", running.cluster.dir]
    process = subprocess.Popen([*command, *options], stderr=subprocess.DEVNULL, start_new_session=True)

    def told() -> str | None:
        lines = events.read_text().splitlines() if events.exists() else []
        return next((event["url"] for event in map(json.loads, lines) if event["action"] == "http_listens"), None)

    try:
        yield await_(told, "the API")
        process.terminate()
        assert process.wait(LONG_S) == 0
    finally:
        process.kill()


def fill(browser: Browser, name: str, value: str) -> None:
    browser.ask(f"document.getElementById('{name}').value = {json.dumps(value)}")


def check_questions(url: str, cluster: Path) -> None:
    """A dry run and its reasons, of what runs now; `leeward plan` makes a plan of as many replicas.

    It measures again, so they may be on other nodes. `tests/contract` compares whole answers, by the same figures.
    """
    at, options = f"{url}api/topologies/{NAME}", ["policy=edrp", "window_s=3"]
    planned = httpx.post(f"{at}/plan", json={"options": options, "limit_s": 120}, timeout=LONG_S + 200)
    assert planned.status_code == 200, planned.text
    words = [word for option in options for word in ("-o", option)]
    told = subprocess.run(
        [Path(sys.executable).with_name("leeward"), "plan", NAME, *words, "--output", "json", "--cluster", cluster],
        capture_output=True, text=True, timeout=LONG_S + 200,
    )  # fmt: skip
    by_command = json.loads(told.stdout)
    for key in ("topology", "policy", "epoch"):
        assert planned.json()[key] == by_command[key], key
    assert {"change", "changes"} <= planned.json().keys() & by_command.keys()
    counts = [
        {name: sum(nodes.values()) for name, nodes in one["deployment"].items()} for one in (planned.json(), by_command)
    ]
    assert counts[0] == counts[1] != {}
    assert any(rate > 0 for rate in planned.json()["rates"].values())
    asked = {"option": "window_s=3", "limit_s": 60}
    explained = httpx.get(f"{at}/explain", params=asked, timeout=LONG_S + 200)
    assert explained.status_code == 200, explained.text
    assert explained.json()["name"] == NAME and explained.json()["alternatives"]
    in_words = httpx.get(f"{at}/explain", params=asked | {"output": "text"}, timeout=LONG_S + 200)
    assert "Critical path" in in_words.text and "$/h" in in_words.text


@pytest.mark.timeout(900)
def test_a_migration_by_click_is_seen_live_and_kept(stage_: Stage, tmp_path: Path):
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("no Chromium; make test-browser installs it")
    browser = Browser(program, tmp_path / "chromium")
    try:
        with stage_.counting(NAME) as running, served(running, tmp_path / "events.jsonl") as url:
            report = f"{url}api/topologies/{NAME}"
            await_(lambda: httpx.get(report).json().get("report", {}).get("rate"), "a measured rate")
            browser.open(f"{url}#/t/{NAME}")
            browser.wait("document.querySelectorAll('.replica').length > 0")
            seen = httpx.get(report).json()["report"]
            component = next(one for one in seen["components"] if not one["source"] and one["stateful"])
            (before,) = component["places"]
            nodes = [node["id"] for node in httpx.get(f"{report}/nodes").json()["nodes"]]
            target = next(node for node in nodes if node != before)
            fill(browser, "scale-component", component["id"])
            fill(browser, "scale-places", f"{target}:1")
            browser.click("#scale-form button")
            fill(browser, "token", running.cluster.secrets().service_token)
            browser.click("#ask-form button[type=submit]")
            browser.wait("document.getElementById('told').textContent.includes('done')")
            key = f"{component['id']}#0"
            browser.wait(f"document.querySelector('[data-key=\"{key}\"]').dataset.node === '{target}'")
            browser.wait("document.querySelectorAll('#timeline tbody tr').length === 1")
            assert component["id"] in browser.text("#timeline") and "done" in browser.text("#timeline")
            assert browser.faults == []
            metrics = httpx.get(f"{url}metrics").text
            assert 'leeward_reconfigurations_total{ending="done"' in metrics.replace(f'topology="{NAME}",', "")
            check_questions(url, stage_.cluster.dir)
            running.stream.flow(100)
            told = leeward("history", NAME, "--output", "json", "--cluster", str(stage_.cluster.dir))
            (entry,) = json.loads(told.stdout)["reconfigurations"]
            assert entry["changes"][0]["after"] == {target: 1} and entry["ending"] == "done"
            line = leeward("top", "--output", "json", "--cluster", str(stage_.cluster.dir))
            (top,) = [one for one in json.loads(line.stdout)["topologies"] if one["topology"] == NAME]
            assert top["rate"] > 0 and top["phase"] == "run" and component["id"] in top["last"]
    finally:
        browser.close()
