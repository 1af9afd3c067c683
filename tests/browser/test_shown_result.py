"""The newest result of a topology in a real browser: arrows over its grid, whatever the application is."""

from __future__ import annotations

from dataclasses import replace

from leeward.core.metrics import TaskMetrics
from leeward.core.view import Arrow, View
from tests.browser.driver import Browser
from tests.helpers.http_api import Stage
from tests.helpers.service_shown import SHOTS, serious, serve

ROUTES = ((155, 162, 156, 161), (157, 163, 155, 160), (156, 161, 156, 161))
VIEW = View(
    title="Most frequent <routes>", note="08:15", width=300, height=300,
    arrows=tuple(
        Arrow(start=(x1 - 0.5, y1 - 0.5), end=(x2 - 0.5, y2 - 0.5), label=f"{rank}. {x1}.{y1} to {x2}.{y2}")
        for rank, (x1, y1, x2, y2) in enumerate(ROUTES, 1)
    ),
)  # fmt: skip


def publish(stage: Stage, t: float, view: View | None) -> None:
    line = TaskMetrics(component="work", pid=1, t=t, mode="running", view=view).to_line()
    stage.world.metrics["taxi-1"] = {1: line}


def page(stage: Stage, browser: Browser, url: str) -> None:
    browser.open(f"{url}#/t/taxi")
    browser.wait("document.body?.dataset.state === 'live' && !document.getElementById('one').hidden")


def test_arrows_are_drawn_named_and_follow_the_topology(browser):
    stage = Stage()
    publish(stage, 1.0, VIEW)
    for shown in serve(stage, browser):
        page(stage, browser, shown.url)
        browser.wait("document.querySelectorAll('#shown .arrow').length === 3")
        assert browser.ask("document.getElementById('shown-about').textContent") == "Most frequent <routes>, 08:15"
        entries = "[...document.querySelectorAll('#shown-list li')].map((one) => one.textContent)"
        assert browser.ask(entries) == [arrow.label for arrow in VIEW.arrows]
        assert browser.ask("document.querySelectorAll('#shown circle').length") == 1, "a route within one cell"
        left, top, side, _ = map(
            float, browser.ask("document.querySelector('#shown svg').getAttribute('viewBox')").split()
        )
        assert left < 154.5 and top < 159.5 and left + side > 156.5 and top + side > 162.5 and side < 20
        assert serious(browser) == []
        browser.ask("document.getElementById('shown').scrollIntoView()")
        browser.screenshot(SHOTS / "shown-result.png")
        publish(stage, 2.0, replace(VIEW, arrows=VIEW.arrows[:1]))
        browser.wait("document.querySelectorAll('#shown .arrow').length === 1")


def test_a_topology_that_shows_nothing_has_no_such_part(browser):
    stage = Stage()
    publish(stage, 1.0, None)
    for shown in serve(stage, browser):
        page(stage, browser, shown.url)
        browser.wait("document.querySelectorAll('.replica').length === 4")
        assert browser.ask("document.getElementById('shown').hidden")
