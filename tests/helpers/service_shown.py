"""The page of the service over a stage, in a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import axe_core_python

from leeward.adapters.events import Fan
from leeward.adapters.http.server import Where, answering
from leeward.cli._beside import EXPLAIN
from leeward.core.settings import settings_from
from leeward.dashboard.service.page import routes
from leeward.local import places
from leeward.sim.memory import ListSink
from tests.browser.driver import Browser
from tests.helpers.http_api import TOKEN, Stage

AXE = (resources.files(axe_core_python) / "axe.min.js").read_text()
SHOTS = Path("out/screenshots")


class Shown:
    """A stage, its page and a browser that shows it."""

    def __init__(self, stage: Stage, browser: Browser, url: str, end) -> None:
        self.stage, self.browser, self.url, self.end = stage, browser, url, end

    def topology(self) -> Browser:
        """The page of the one topology, with its figures."""
        self.browser.open(f"{self.url}#/t/taxi")
        self.browser.wait("document.body?.dataset.state === 'live' && !document.getElementById('one').hidden")
        self.browser.wait("document.querySelectorAll('.replica').length === 4")
        return self.browser


def serve(
    stage: Stage, browser: Browser, *, token: str = TOKEN, uplot: Path | None = None, settings: dict | None = None
) -> Iterator[Shown]:
    sink, where = ListSink(), Where(host="127.0.0.1", port=0)
    both = Fan(sink, stage.knowledge)
    pages = answering(where, token, stage.knowledge, both, explain=EXPLAIN, pages=lambda: routes(uplot or places.web()))
    desk, ended = pages.__enter__(), []
    desk.choose(settings_from(settings or {}))

    def end() -> None:
        if not ended:
            ended.append(True)
            pages.__exit__(None, None, None)

    try:
        with desk.serving("taxi", stage.ports):
            yield Shown(stage, browser, sink.of("http_listens")[0]["url"], end)
    finally:
        end()


def fill(browser: Browser, **values: str) -> None:
    """Values of fields, by their ids."""
    for name, value in values.items():
        browser.ask(f"document.getElementById({name.replace('_', '-')!r}).value = {json.dumps(value)}")


def serious(browser: Browser) -> list[str]:
    """Faults that axe calls serious or critical."""
    browser.ask("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    browser.ask(AXE + "; 0")
    found = browser.ask("axe.run(document, {resultTypes: ['violations']}).then((told) => told.violations)")
    return [
        f"{one['id']}: {node['html'][:120]}"
        for one in found if one["impact"] in ("serious", "critical") for node in one["nodes"]
    ]  # fmt: skip
