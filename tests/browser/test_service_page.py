"""The page of the service in a real browser: live during a migration, acts by click and key, axe finds no fault."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial

import httpx
import pytest

from leeward.adapters.http import application, server
from leeward.adapters.http.acts import Act, Body
from leeward.adapters.http.studies import Studies
from leeward.core.outcome import refused
from leeward.local import places
from leeward.policies.edrp.exact.search import warm_up
from tests.browser.driver import Browser
from tests.helpers.http_api import CHANGE, DEPLOYMENT, TOKEN, Stage, Working
from tests.helpers.service_shown import SHOTS, Shown, fill, serious, serve


@pytest.fixture
def shown(browser) -> Iterator[Shown]:
    assert (places.web() / "uPlot.iife.min.js").exists(), "run make setup, which fetches uPlot"
    yield from serve(Stage(), browser)


def places_of(browser: Browser) -> dict[str, str]:
    """Key of a dot -> the node that it is drawn on, by its place in the picture."""
    return browser.ask("""Object.fromEntries([...document.querySelectorAll(".replica")].map((dot) => {
      const at = dot.getBoundingClientRect();
      const box = [...document.querySelectorAll(".node")].find((node) => {
        const edge = node.querySelector("rect").getBoundingClientRect();
        const [x, y] = [at.x + at.width / 2, at.y + at.height / 2];
        return edge.left <= x && x <= edge.right && edge.top <= y && y <= edge.bottom;
      });
      return [dot.dataset.key, box?.textContent ?? "nowhere"];
    }))""")


def test_the_list_shows_every_topology_and_leads_to_it(shown):
    shown.stage.knowledge.emit("leading", {"topology": "a <b>&'\"% name"})
    browser = shown.browser
    browser.open(shown.url)
    browser.wait("document.querySelectorAll('#topologies tbody tr').length === 2")
    assert "taxi run 4 189 0.250 0.200 4.00" in browser.text("#topologies")
    browser.ask(
        """[...document.querySelectorAll("#topologies a")].find((one) => one.textContent.includes("<b>")).click()"""
    )
    browser.wait('document.title.startsWith("a <b>&\'")')
    browser.wait("!document.getElementById('one').hidden")
    browser.ask("history.back()")
    browser.wait("!document.getElementById('list').hidden")
    assert browser.faults == []


def test_a_topology_shows_figures_plan_reasons_and_timeline(shown):
    browser = shown.topology()
    facts = browser.text("#facts")
    for part in ("Rate 189 tuples/s", "measured 0.250 s", "modelled 0.200 s", "4.00 $/h", "Downtime 0.056 % (0.050 s)"):
        assert part in facts
    assert "work is slow" in browser.text("#why") and "done" in browser.text("#why")
    assert "work n1 n1, n2 n1, n2 scale-out" in browser.text("#plan")
    assert "below minimum_gain" in browser.text("#refusals")
    assert "scale-out work: n1 → n1, n2 done 0.050 ahead 1.50, handover 0.50" in browser.text("#timeline")
    widths = browser.ask("[...document.querySelectorAll('.phase')].map((one) => one.getBoundingClientRect().width)")
    assert widths[0] == pytest.approx(3 * widths[1], rel=0.05), "1.5 s beside 0.5 s"
    browser.wait("document.querySelectorAll('#charts canvas').length === 4")
    assert browser.faults == []


def test_models_stand_beside_measurements(shown):
    browser = shown.topology()
    browser.ask("document.getElementById('models').closest('details').open = true")
    assert "work 60 % 20.00 21.00 ± 1.00 31.00 40 20 % to 70 %" in browser.text("#models tbody")
    learnt = browser.text("#learnt")
    assert "n1: up 40.0 MB/s, down 60.0 MB/s, round trip 0.40 ms; n2: up 40.0 MB/s, down –" in learnt
    assert "handover: 20.00 ms and 50.000 ms a MB, 3.00 ms off in the median of 4." in learnt
    assert "Pause of a restart: 9.500 s, median of 1." in learnt and "source to work 1.000 ± 0.010" in learnt
    assert browser.faults == []


def test_dots_move_live_when_groups_move_and_at_once_if_motion_is_unwanted(shown):
    browser = shown.topology()
    before = browser.wait("document.querySelectorAll('.replica').length === 4") and places_of(browser)
    assert sorted(before.values()) == ["n1", "n1", "n2", "n2"]
    emit = shown.stage.knowledge.emit
    change = {**CHANGE, "kind": "move", "before": {"n1": 1, "n2": 1}, "after": {"n1": 1, "n3": 1}}
    emit("reconfiguration_started", {"topology": "taxi", "epoch": 3, "changes": [change], "reason": "n2 is full"})
    emit("phase", {"topology": "taxi", "phase": "move"})
    browser.wait("document.getElementById('current').textContent.includes('In progress, move')")
    assert "move work: n1, n2 → n1, n3" in browser.text("#current")
    ended = {"kind": "handover", "epoch": 3, "ending": "done", "result": "done", "phases": {"handover_s": 0.3}}
    emit("reconfiguration_ended", {"topology": "taxi", **ended, "changes": [change], "pause_s": 0.02})
    shown.stage.clock.time += 1
    emit("measured", shown.stage.measured(200.0, {**DEPLOYMENT, "work": {"n1": 1, "n3": 1}}))
    browser.wait("[...document.querySelectorAll('.replica')].some((dot) => dot.dataset.node === 'n3')")
    moving = browser.ask("document.getAnimations().length")
    browser.wait("document.getAnimations().length === 0")
    after = places_of(browser)
    assert moving == 1 and after.keys() == before.keys(), "the same dots"
    (moved,) = [key for key in after if after[key] != before[key]]
    assert moved.startswith("work#") and after[moved] == "n3 (drains)"
    assert browser.text("#current") == "" and "move work" in browser.text("#timeline")
    browser.prefer(prefers_reduced_motion="reduce")
    emit("measured", shown.stage.measured(200.0, {**DEPLOYMENT, "work": {"n1": 1, "n2": 1}}))
    browser.wait("[...document.querySelectorAll('.replica')].every((dot) => dot.dataset.node !== 'n3')")
    assert browser.ask("document.getAnimations().length") == 0 and places_of(browser)[moved] == "n2"
    assert browser.faults == []


def test_it_says_what_is_missing_and_since_when_it_hears_nothing(shown):
    browser = shown.topology()
    shown.stage.knowledge.emit("measure_failed", {"topology": "taxi", "why": "Redis does not answer"})
    browser.wait("document.getElementById('missing').textContent.includes('measurements')")
    assert "Redis does not answer" in browser.text("#missing")
    shown.stage.knowledge.emit("waiting", {"why": "Nimbus is away"})
    browser.wait("document.getElementById('status').textContent.includes('Nimbus is away')")
    shown.end()
    browser.wait("document.body.dataset.state === 'silent'")
    assert "has not answered since" in browser.text("#status") and "189 tuples/s" in browser.text("#facts")


# --- acting


def test_acting_asks_for_the_token_once_and_says_how_it_ended(shown):
    browser = shown.topology()
    fill(browser, scale_component="work", scale_places="n1:2 n2:1")
    browser.click("#scale-form button")
    browser.wait("document.getElementById('ask').open")
    assert "reconfigure work" in browser.text("#ask-what") and shown.stage.world.requests == {}
    fill(browser, token="not-the-token-at-all")
    browser.click("#ask-form button[type=submit]")
    browser.wait("document.getElementById('told').textContent.includes('token is missing or wrong')")
    assert shown.stage.world.requests == {}
    browser.click("#scale-form button")
    fill(browser, token=TOKEN)
    browser.click("#ask-form button[type=submit]")
    browser.wait("document.getElementById('told').textContent === 'reconfigure work: done.'")
    assert shown.stage.world.requests == {"r-0000000000": {"replicas": {"work": {"n1": 2, "n2": 1}}, "force": False}}
    shown.stage.reply = refused("no room on n1")
    browser.click("#scale-form button")
    browser.wait("document.getElementById('told').textContent.includes('no room on n1')")
    assert browser.ask("document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)") == "{}{}"


def test_a_node_is_drained_by_click_and_the_page_shows_it(shown):
    browser = shown.topology()
    browser.wait("document.getElementById('drain-node').options.length === 3")
    fill(browser, drain_node="n2")
    browser.click("#drain-do")
    fill(browser, token=TOKEN)
    browser.click("#ask-form button[type=submit]")
    browser.wait("document.getElementById('picture').textContent.includes('n2 (drains)')")
    assert shown.stage.world.draining == {"n2"}
    browser.wait("document.getElementById('drain-do').textContent === 'Undrain'")


class Freeze(Body):
    """Let nothing be moved."""


def test_an_act_that_needs_no_field_is_a_button(browser, monkeypatch):
    monkeypatch.setattr(application, "ACTS", (Act("freeze", Freeze, lambda body: {"freeze": True}),))
    for shown in serve(Stage(), browser):
        shown.topology()
        browser.click("#plain button")
        browser.wait("document.getElementById('ask').open")
        fill(browser, token=TOKEN)
        browser.click("#ask-form button[type=submit]")
        browser.wait("document.getElementById('told').textContent === 'freeze: done.'")
        assert list(shown.stage.world.requests.values()) == [{"freeze": True}]


# --- asking


@pytest.fixture
def working(browser, monkeypatch) -> Iterator[Shown]:
    """A topology for which plans can be made; the time of a measurement passes at once."""
    warm_up()  # as make setup does
    stage = Working()
    monkeypatch.setattr(server, "Studies", partial(Studies, sleep=stage.sleep))
    yield from serve(stage, browser, settings={"edrp": {"headroom": 1.2}})  # one replica is not enough


def answered(browser: Browser) -> None:
    browser.wait("document.getElementById('asked').textContent === 'Answered, below. Nothing was changed.'")


@pytest.mark.timeout(600)
def test_a_dry_run_shows_the_difference_and_acts_on_nothing(working):
    browser = working.topology()
    assert not browser.ask("document.getElementById('dry').checkVisibility()")
    browser.click("#dry-do")
    browser.wait("document.getElementById('asked').textContent.startsWith('Measuring and planning')")
    answered(browser)
    told = httpx.post(f"{working.url}api/topologies/taxi/plan", json={}, timeout=100).json()
    assert told["change"] and f"edrp: would be carried out. {told['reason']}" in browser.text("#dry-why")
    rows = browser.ask("[...document.querySelectorAll('#dry-plan tbody tr')].map((row) => row.cells[0].textContent)")
    assert rows == [one["component"] for one in told["changes"]]
    assert told["way"] in browser.text("#dry-why")
    assert working.stage.world.requests == {} and working.stage.world.rebalances == []
    browser.ask("location.hash = '#/'")
    browser.wait("!document.getElementById('list').hidden")
    assert browser.text("#asked") == "" and browser.faults == []


@pytest.mark.timeout(600)
def test_the_reasons_are_those_of_the_command_in_words_by_keyboard(working):
    browser = working.topology()
    browser.ask("document.querySelector('#explain-do').focus()")
    browser.key("Enter")
    answered(browser)
    words = browser.ask("document.getElementById('words').textContent")
    for part in ("Critical path", "Limits", "Alternatives", "Operators", "Streams", "$/h", "proven optimal"):
        assert part in words
    browser.key("Tab")
    assert browser.ask("document.activeElement.id") == "words", "it can be scrolled by keyboard"
    assert browser.faults == []


def test_a_question_that_cannot_be_answered_says_why(working):
    browser = working.topology()
    working.stage.world.snapshot = None
    browser.click("#dry-do")
    browser.wait("document.getElementById('asked').classList.contains('bad')")
    assert "has not published" in browser.text("#asked")
    assert not browser.ask("document.getElementById('dry').checkVisibility()")


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_answers_fit_the_window_and_axe_finds_no_serious_fault(working, width, scheme):
    browser = working.browser
    browser.size(width, 900, phone=width < 500)
    browser.prefer(prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
    working.topology()
    for button in ("#dry-do", "#explain-do"):
        browser.click(button)
        answered(browser)
    assert browser.ask("document.getElementById('words').checkVisibility()")
    assert browser.ask("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    assert serious(browser) == []
    browser.ask("document.getElementById('asks-title').scrollIntoView()")
    browser.screenshot(SHOTS / f"service-asked-{width}.png")


def test_what_cannot_be_read_is_said_and_nothing_is_asked(shown):
    browser = shown.topology()
    fill(browser, scale_places="n1")
    browser.click("#scale-form button")
    assert "Write node:count" in browser.text("#told") and not browser.ask("document.getElementById('ask').open")


def test_by_keyboard_alone_a_topology_is_chosen_and_a_question_left(shown):
    browser = shown.browser
    browser.open(shown.url)
    browser.wait("document.querySelectorAll('#topologies a').length === 1")
    for _ in range(12):
        browser.key("Tab")
        if browser.ask("document.activeElement.closest('#topologies') && document.activeElement.textContent") == "taxi":
            break
    browser.key("Enter")
    browser.wait("!document.getElementById('one').hidden && document.querySelectorAll('.replica').length === 4")
    browser.ask("document.querySelector('#drain-do').focus()")
    browser.wait("document.getElementById('drain-node').options.length === 3")
    browser.key("Enter")
    browser.wait("document.getElementById('ask').open && document.activeElement.id === 'token'")
    browser.key("Escape")
    browser.wait("!document.getElementById('ask').open")
    assert shown.stage.world.draining == set()


def test_without_a_token_of_the_service_the_page_says_that_one_cannot_act(browser):
    for shown in serve(Stage(), browser, token=""):
        shown.topology()
        assert "no service_token" in browser.text("#no-acts")
        assert browser.ask("document.getElementById('acts').hidden")


def test_without_uplot_the_points_are_in_the_table(browser, tmp_path):
    for shown in serve(Stage(), browser, uplot=tmp_path):
        shown.topology()
        browser.wait("!document.getElementById('no-charts').hidden")
        browser.ask("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert "189 0.250 0.200 4.00" in browser.text("#points")


# --- for everybody


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_serious_fault(shown, scheme):
    browser = shown.browser
    browser.prefer(prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
    browser.open(shown.url)
    browser.wait("document.querySelectorAll('#topologies a').length === 1")
    assert serious(browser) == []
    shown.topology()
    shown.stage.knowledge.emit("held", {"topology": "taxi", "why": "no cut can be read"})
    browser.wait("document.getElementById('missing').textContent !== ''")
    browser.wait("document.querySelectorAll('#charts canvas').length === 4")
    assert serious(browser) == []
    browser.click("#drain-do")
    assert serious(browser) == []


@pytest.mark.parametrize(
    ("width", "height", "phone"), [(390, 844, True), (768, 1024, True), (1280, 900, False), (2560, 1440, False)]
)
def test_nothing_is_wider_than_the_window(shown, width, height, phone):
    shown.browser.size(width, height, phone=phone)
    browser = shown.topology()
    browser.wait("document.querySelectorAll('#charts canvas').length === 4")
    time.sleep(0.2)  # the observers of sizes answer in the next frame
    beyond = browser.ask("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert beyond == 0
    shown.browser.screenshot(SHOTS / f"service-{width}.png")


def test_many_nodes_are_drawn_in_part_and_counted(shown):
    browser = shown.topology()
    shown.stage.knowledge.emit("cluster_seen", {"topology": "taxi", **shown.stage.structure(nodes=1000)})
    browser.wait("document.querySelectorAll('.node').length === 120")
    assert "nodes without replicas are not shown" in browser.text("#left-out")
    assert len(places_of(browser)) == 4 and "nowhere" not in places_of(browser).values()


#: Calls of the page's functions, and their results.
WRITTEN = {
    "figures.percent(0.00056)": "0.056 %",
    "figures.percent(0)": "0 %",
    "figures.percent(null)": "–",
    "figures.withUnit(figures.seconds(null), 's')": "–",
    "figures.withUnit(figures.seconds(0.5), 's')": "0.500 s",
    "figures.rate(99.95)": "100.0",
    "figures.count(12345.6)": "12,346",
    "figures.placesText({n2: 3, n1: 1})": "n1, n2 × 3",
    "figures.readPlaces('n1:2, host.example:1')": {"n1": 2, "host.example": 1},
    "figures.readPlaces('[::1]:2')": {"[::1]": 2},
    "figures.readPlaces('n1:0')": None,
    "figures.readPlaces('n1:1 n1:2')": None,
    "figures.readPlaces('')": None,
    "figures.topologyOf('#/t/a%2Fb')": "a/b",
    "figures.topologyOf('#/t/%')": None,
    "figures.topologyOf('')": None,
    "figures.linkTo('a/b')": "#/t/a%2Fb",
    "figures.placed([], {w: {n1: 2}}).map((dot) => dot.key)": ["w#0", "w#1"],
    "figures.placed(figures.placed([], {w: {n1: 2}}), {w: {n1: 1, n2: 1}}).map((dot) => [dot.key, dot.node])": [
        ["w#0", "n1"], ["w#1", "n2"],
    ],
    "figures.placed(figures.placed([], {w: {n1: 2}}), {w: {n2: 1}}).map((dot) => [dot.key, dot.node])": [["w#0", "n2"]],
    "figures.joined({t: [1, 2], values: {a: [1, 2]}}, {t: [2, 3], values: {a: [9, 3], b: [9, 4]}})": {
        "t": [1, 2, 3], "values": {"a": [1, 2, 3], "b": [None, None, 4]},
    },
    "figures.spread([0, 60, 120, 180, 181, 182, 183], 4)": [0, 2, 3, 6],
    "figures.spread([0, 1], 4)": [0, 1],
    "figures.spread([], 4)": [],
    "figures.currentText({begun: 3, marks: [{name: 'move'}], changes: [], reason: 'slow'})": "In progress, move: slow",
    "figures.sinceText({begun: 3}, 15.2)": "For 12 s.",
    "figures.sinceText(null, 15.2)": "",
    "figures.dryText({policy: 'even', change: false, refused: '', reason: 'as it is', way: 'nothing', why: ''})":
        "even: no change. as it is.",
    "figures.dryText({policy: 'p', change: false, refused: 'it is frozen', reason: 'r', way: 'restart', why: 'w'})":
        "p: would be refused: it is frozen. r. By restart: w, the stream stops.",
    "figures.dryText({policy: 'p', change: true, approval: true, reason: 'r', way: 'handover', why: 'w', wait_s: 0.05, "
    "key_groups: {a: 2, b: 1}})":
        "p: would be carried out. r. By handover: w, 3 key groups move, a tuple waits for 0.050 s at most. It would "
        "wait for approval.",
    "figures.drawnNodes([{id: 'a'}], [{node: 'z'}]).names": ["a", "z"],
    "figures.layout([], [], 300).height": 0,
}  # fmt: skip


def test_figures_are_written_as_people_read_them(shown):
    shown.browser.open(shown.url)
    shown.browser.wait("document.body?.dataset.state === 'live'")
    calls = ", ".join(WRITTEN)
    found = shown.browser.ask(f"import('/files/figures.js').then((figures) => [{calls}])")
    assert dict(zip(WRITTEN, found, strict=True)) == WRITTEN


def test_dots_follow_any_deployments_with_the_fewest_moves(shown):
    """Random deployments after each other: as many dots as replicas, each key once, and no dot moves without need."""
    rng = random.Random(7)
    sequence = [
        {
            name: {node: rng.randint(1, 3) for node in rng.sample(["n1", "n2", "n3", "n4"], rng.randint(1, 3))}
            for name in rng.sample(["a", "b", "c"], rng.randint(1, 3))
        }
        for _ in range(150)
    ]
    shown.browser.open(shown.url)
    shown.browser.wait("document.body?.dataset.state === 'live'")
    found = shown.browser.ask(f"""import('/files/figures.js').then((figures) => {{
      let dots = [];
      return {json.dumps(sequence)}.map((deployment) => (dots = figures.placed(dots, deployment)));
    }})""")
    before = []
    for deployment, dots in zip(sequence, found, strict=True):
        wanted = Counter({(name, node): n for name, nodes in deployment.items() for node, n in nodes.items()})
        assert Counter((dot["component"], dot["node"]) for dot in dots) == wanted
        assert len({dot["key"] for dot in dots}) == len(dots)
        old = {dot["key"]: (dot["component"], dot["node"]) for dot in before}
        stayed = sum(old.get(dot["key"]) == (dot["component"], dot["node"]) for dot in dots)
        assert stayed == (Counter(old.values()) & wanted).total(), "all that could stay did"
        before = dots
