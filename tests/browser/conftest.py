"""A site in a thread, and a headless Chromium that shows it, on a clock that runs ahead of ours."""

from __future__ import annotations

import asyncio
import html
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.routing import BaseRoute

from leeward.adapters.organisations.serving import application, listen, serve
from tests.browser.driver import Browser

#: Names of the program on Debian, Ubuntu, and the machines of GitHub; scripts/packages.sh looks for the same.
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
#: Of real time, s: it starts within two.
PATIENCE_S = 60


class Site:
    """Routes under an address of its own, until it is stopped."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        listener = listen("127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        self._loop, self._stop = asyncio.new_event_loop(), asyncio.Event()
        self._serving = serve(application(routes), listener, self._stop)
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serving,))
        self._thread.start()

    def stop(self) -> None:
        """From any thread; connections end soon after."""
        self._loop.call_soon_threadsafe(self._stop.set)

    def close(self) -> None:
        """Stop, and wait until it has."""
        self.stop()
        self._thread.join()
        self._loop.close()


@dataclass(frozen=True)
class Shown:
    """A page as it was at the end."""

    dom: str
    console: tuple[str, ...]  #: that the page or the browser wrote there: faults, refusals of the policy

    def element(self, name: str) -> str:
        """The text of the element with this id, white space joined."""
        tag, inside = re.search(rf'<(\w+)[^>]* id="{name}"[^>]*>(.*)', self.dom, re.DOTALL).groups()
        return text_of(inside.partition(f"</{tag}>")[0])

    def text_between(self, first: str, last: str) -> str:
        """The text from the element with the first id to that with the last."""
        return text_of(self.dom.partition(f' id="{first}"')[2].partition(f'id="{last}"')[0])

    def attribute(self, name: str) -> str:
        """Of the body."""
        return html.unescape(re.search(rf'<body[^>]* {name}="([^"]*)"', self.dom)[1])

    def rows(self, name: str) -> list[tuple[str, list[str]]]:
        """Of a table's body: the class of each row, and the texts of its cells."""
        body = re.search(rf'id="{name}".*?<tbody[^>]*>(.*?)</tbody>', self.dom, re.DOTALL)[1]
        found = re.findall(r"<tr([^>]*)>(.*?)</tr>", body, re.DOTALL)
        cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for _, row in found]
        return [(head, [text_of(cell) for cell in row]) for (head, _), row in zip(found, cells, strict=True)]


def text_of(markup: str) -> str:
    """Without that of hidden elements."""
    shown = re.sub(r'<(\w+)[^>]* hidden="[^>]*>.*?</\1>', "", markup, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", shown)).split())


@pytest.fixture
def site() -> Iterator[Callable[[Sequence[BaseRoute]], Site]]:
    """Call it for a site, which ends with the test."""
    sites: list[Site] = []

    def start(routes: Sequence[BaseRoute]) -> Site:
        sites.append(Site(routes))
        return sites[-1]

    yield start
    for one in sites:
        one.close()


@pytest.fixture
def show(tmp_path: Path) -> Callable[..., Shown]:
    """Call it with an address, and the seconds that pass on the page."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("no Chromium; make test-browser installs it")

    def show(url: str, *, seconds: float = 3) -> Shown:
        command = [
            program, "--headless", "--disable-gpu", f"--user-data-dir={tmp_path / 'chromium'}",
            "--window-size=1280,900", "--enable-logging=stderr", "--dump-dom",
            f"--virtual-time-budget={round(1000 * seconds)}", url,
        ]  # fmt: skip
        if os.getuid() == 0:
            command.insert(1, "--no-sandbox")  # it refuses to start as root with one
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0 and "<body" in done.stdout, done.stderr
        return Shown(done.stdout, tuple(line for line in done.stderr.splitlines() if ":CONSOLE:" in line))

    return show


@pytest.fixture
def browser(tmp_path) -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("no Chromium; make test-browser installs it")
    browser = Browser(program, tmp_path / "chromium")
    browser.size(1280, 900)
    yield browser
    browser.close()
