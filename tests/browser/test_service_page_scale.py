"""The page of a large cluster: 50 topologies of 40 components on 1,000 nodes, all measured each second."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from leeward.adapters.clock import SystemClock
from leeward.adapters.events import Fan
from leeward.adapters.http.server import Where, answering
from leeward.cli._beside import EXPLAIN
from leeward.control.report.knowledge import Knowledge
from leeward.dashboard.service.page import routes
from leeward.local import places
from leeward.sim.memory import ListSink
from tests.browser.driver import Browser

TOPOLOGIES, COMPONENTS, NODES, REPLICAS = 50, 40, 1000, 3
NAMES = [f"c{number:02}" for number in range(COMPONENTS)]
POINTS = 120  # seconds of which the rings have points at the beginning


def structure() -> dict[str, object]:
    return {
        "components": [{"id": name, "tasks": 4, "max_replicas": 4, "source": name == "c00"} for name in NAMES],
        "streams": [[one, other] for one, other in pairwise(NAMES)],
        "nodes": [{"id": f"n{number:04}", "slots": 4, "capacity": 16} for number in range(NODES)],
    }


def measured(topology: int, round_: int) -> dict[str, object]:
    """Each round another component of the topology moves a replica."""

    def host(at: int, replica: int) -> str:
        moved = round_ // COMPONENTS + (round_ % COMPONENTS > at)
        return f"n{(20 * topology + REPLICAS * at + replica + (moved if replica == 0 else 0)) % NODES:04}"

    placed: dict[str, dict[str, int]] = {}
    for at, name in enumerate(NAMES):
        for replica in range(REPLICAS):
            counts = placed.setdefault(name, {})
            counts[host(at, replica)] = counts.get(host(at, replica), 0) + 1
    return {
        "topology": f"t{topology:02}", "state": "idle", "phase": "run", "epoch": 1 + round_, "response_s": 0.2,
        "rates": {name: 100.0 + at + round_ % 7 for at, name in enumerate(NAMES)},
        "service_rates": dict.fromkeys(NAMES, 80.0), "queued": dict.fromkeys(NAMES, 1), "cost_per_h": 120.0,
        "backlog": 3, "state_bytes": 1000, "deployment": placed,
    }  # fmt: skip


@contextmanager
def measuring(knowledge: Knowledge) -> Iterator[None]:
    """Every topology is measured once a second, as the fleet does it."""
    stop = threading.Event()

    def run() -> None:
        round_ = 0
        while not stop.wait(1.0):
            round_ += 1
            for topology in range(TOPOLOGIES):
                knowledge.emit("measured", measured(topology, round_))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.fixture
def url() -> Iterator[str]:
    assert (places.web() / "uPlot.iife.min.js").exists(), "run make setup, which fetches uPlot"
    knowledge, sink = Knowledge(SystemClock()), ListSink()
    for topology in range(TOPOLOGIES):
        name = f"t{topology:02}"
        knowledge.emit("service_started", {"topology": name, "topology_id": f"{name}-1", "policy": "edrp"})
        knowledge.emit("leading", {"topology": name})
        knowledge.emit("cluster_seen", {"topology": name, **structure()})
        for _ in range(POINTS):
            knowledge.emit("measured", measured(topology, 0))
    where = Where(host="127.0.0.1", port=0)
    with (
        answering(where, "", knowledge, Fan(sink, knowledge), explain=EXPLAIN, pages=lambda: routes(places.web())),
        measuring(knowledge),
    ):
        yield sink.of("http_listens")[0]["url"]


def longest_task_s(browser: Browser, seconds: float) -> float:
    """The longest time in which the page could not have answered to a click."""
    script = """new Promise((done) => {
      let [last, longest, end] = [performance.now(), 0, performance.now() + 1000 * SECONDS];
      const look = () => {
        const now = performance.now();
        longest = Math.max(longest, now - last);
        last = now;
        if (now < end) setTimeout(look, 5); else done(longest / 1000);
      };
      look();
    })"""
    return browser.ask(script.replace("SECONDS", str(seconds)))


def test_fifty_topologies_are_listed_and_one_of_a_thousand_nodes_is_shown_live(url, browser):
    began = time.perf_counter()
    browser.open(url)
    browser.wait(f"document.querySelectorAll('#topologies tbody tr').length === {TOPOLOGIES}")
    listed_s = time.perf_counter() - began
    assert "t49" in browser.text("#topologies")
    idle_s = longest_task_s(browser, 3)
    began = time.perf_counter()
    browser.click("#topologies tbody tr:nth-child(8) a")
    browser.wait(f"document.querySelectorAll('#components tbody tr').length === {COMPONENTS}")
    browser.wait(f"document.querySelectorAll('.replica').length === {REPLICAS * COMPONENTS}")
    browser.wait("document.querySelectorAll('#charts canvas').length === 4")
    opened_s = time.perf_counter() - began
    assert browser.ask("document.title") == "t07, Leeward"
    assert "nodes without replicas are not shown" in browser.text("#left-out")
    busy_s = longest_task_s(browser, 3)
    before = browser.text("#facts")
    browser.wait(f"document.getElementById('facts').innerText.replace(/\\s+/g, ' ').trim() !== {before!r}")
    rows = browser.ask("document.querySelectorAll('#nodes tbody tr').length")
    assert rows > COMPONENTS, "nodes with replicas have rows"
    print(f"\nlist {listed_s:.2f} s, a topology {opened_s:.2f} s; longest task {idle_s:.3f} s and {busy_s:.3f} s")
    assert browser.faults == []
