"""A page that stays open: a day of points, tabs that nobody sees, acts on what was shown."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from leeward.adapters.http import acts
from tests.browser.driver import Browser
from tests.helpers.http_api import DEPLOYMENT, TOKEN, Stage
from tests.helpers.service_shown import Shown, fill, serve
from tests.helpers.waiting import wait_for

pytestmark = pytest.mark.timeout(300)
APPROVE = [act.name for act in acts.ACTS if act.plain].index("approve")  # place of its button
SERIES = "api/topologies/taxi/series?figure=rate"


@pytest.fixture
def shown(browser) -> Iterator[Shown]:
    yield from serve(Stage(), browser)


def measured(stage: Stage, count: int, step_s: float) -> None:
    for number in range(count):
        stage.clock.time += step_s
        stage.knowledge.emit("measured", stage.measured(float(number), {**DEPLOYMENT, "work": {"n1": 1, "n2": 1}}))


def first_and_newest(browser: Browser) -> list[str]:
    """Times of the oldest and the newest point of the table."""
    times = browser.ask("[...document.querySelectorAll('#points tbody th')].map((cell) => cell.textContent)")
    return [times[-1], times[0]]


def told(shown: Shown) -> list[str]:
    """The same of the API, as the page writes times."""
    t = httpx.get(shown.url + SERIES).json()["t"]
    return shown.browser.ask(f"import('/files/figures.js').then((f) => [f.timeOf({t[0]}), f.timeOf({t[-1]})])")


def test_a_page_that_stays_open_keeps_the_day(shown):
    """More points come than the service keeps: those behind them become means of a minute."""
    measured(shown.stage, 2880, 30.0)
    browser = shown.topology()
    for _ in range(5):
        measured(shown.stage, 200, 1.0)
        newest = told(shown)[1]
        browser.wait(f"document.querySelector('#points tbody th').textContent === '{newest}'")
    assert first_and_newest(browser) == told(shown)


def hide(browser: Browser, hidden: bool) -> None:
    """As when another tab is looked at."""
    browser.ask(f"Object.defineProperty(document, 'hidden', {{value: {str(hidden).lower()}, configurable: true}})")
    browser.ask("document.dispatchEvent(new Event('visibilitychange')) && 0")


def test_a_tab_that_nobody_sees_holds_no_connection_and_is_up_to_date_when_it_is_seen(shown):
    browser, knowledge = shown.topology(), shown.stage.knowledge
    hide(browser, True)
    wait_for(lambda: len(knowledge._listeners) == 0)
    measured(shown.stage, 1, 1.0)
    shown.stage.knowledge.emit("frozen", {"topology": "taxi", "why": "release"})
    hide(browser, False)
    browser.wait("document.getElementById('one').textContent.includes('release')")
    assert len(knowledge._listeners) == 1 and browser.faults == []


def test_a_tab_that_is_opened_where_nobody_sees_it_listens_when_it_is_seen(shown):
    browser, knowledge = shown.topology(), shown.stage.knowledge
    hide(browser, True)
    wait_for(lambda: len(knowledge._listeners) == 0)
    browser.ask("location.hash = '#/t/other'")
    browser.wait("document.getElementById('title').textContent.includes('other')")
    assert len(knowledge._listeners) == 0
    hide(browser, False)
    wait_for(lambda: len(knowledge._listeners) == 1)


def test_no_plan_is_approved_where_none_is_shown(shown):
    browser = shown.topology()
    browser.ask(f"document.querySelectorAll('#plain button')[{APPROVE}].click()")
    assert browser.text("#told") == "No plan waits for approval here."
    assert not browser.ask("document.getElementById('ask').open")


def test_the_plan_that_was_shown_is_approved_whatever_waits_by_then(shown):
    browser, emit = shown.topology(), shown.stage.knowledge.emit
    emit("plan_proposed", {"topology": "taxi", "plan": 3})
    browser.wait("document.getElementById('one').textContent.includes('plan 3')")
    browser.ask(f"document.querySelectorAll('#plain button')[{APPROVE}].click()")
    browser.wait("document.getElementById('ask').open")
    assert browser.text("#ask-what") == "You are about to: approve plan 3, topology taxi."
    emit("proposal_expired", {"topology": "taxi", "plan": 3, "why": "the policy proposes plan 4 by now"})
    emit("plan_proposed", {"topology": "taxi", "plan": 4})
    browser.wait("document.getElementById('one').textContent.includes('plan 4')")
    fill(browser, token=TOKEN)
    browser.click("#ask-form button[type=submit]")
    browser.wait("document.getElementById('told').textContent === 'approve plan 3: done.'")
    assert list(shown.stage.world.requests.values()) == [{"approve": 3}]


def test_an_answer_stays_with_its_topology(shown):
    browser = shown.topology()
    fill(browser, drain_node="n2")
    browser.click("#drain-do")
    fill(browser, token=TOKEN)
    browser.click("#ask-form button[type=submit]")
    browser.wait("document.getElementById('told').textContent === 'drain n2: done.'")
    browser.ask("location.hash = '#/t/other'")
    browser.wait("document.getElementById('title').textContent.includes('other')")
    assert browser.text("#told") == ""


def test_the_seconds_of_a_reconfiguration_are_not_read_out(shown):
    browser, emit = shown.topology(), shown.stage.knowledge.emit
    emit("reconfiguration_started", {"topology": "taxi", "epoch": 3, "changes": [], "reason": "n2 is full"})
    browser.wait("document.getElementById('current').textContent === 'In progress: n2 is full'")
    browser.wait("document.getElementById('current-since').textContent.startsWith('For ')")
    assert browser.ask("document.getElementById('current-since').closest('[aria-live], [role=status]')") is None
