"""The page of `leeward demo` in a real browser while taxi data flow; the README's picture of the page is made here."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.browser.conftest import PROGRAMS
from tests.browser.driver import Browser
from tests.cluster.harness import LONG_S, await_
from tests.helpers.servers import port_block

#: There is something to see: all figures of now, replicas, routes on the grid, charts and some reconfigurations.
SEEN = """
    document.body?.dataset.state === 'live'
    && document.querySelectorAll('#shown .arrow').length === 10
    && document.querySelectorAll('#timeline tbody tr').length >= 4
    && document.querySelectorAll('.replica').length > 9
    && document.querySelectorAll('#charts canvas').length === 4
    && !document.getElementById('facts').innerText.includes('–')
    && document.getAnimations().length === 0
"""


def photograph(browser: Browser) -> None:
    """The page as a large screen shows it, from its top."""
    browser.size(1280, 1830)
    time.sleep(1.0)  # the dots begin to move to their new places a frame after the page has its size
    browser.screenshot(Path("out/screenshots/served.png"))


@pytest.mark.slow  # the demo takes minutes; tests/cluster/test_served_page.py is the same page on a real Storm
@pytest.mark.timeout(900)
def test_the_demo_is_seen_in_a_browser(tmp_path: Path):
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("no Chromium; make test-browser installs it")
    said = tmp_path / "said"
    command = [Path(sys.executable).with_name("leeward"), "demo", "--hours", "1.5", "--base-port", str(port_block())]
    command += ["--cluster", tmp_path / "cluster", "--out", tmp_path / "demo"]
    with said.open("w") as file:
        demo = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
    browser = Browser(program, tmp_path / "chromium")
    try:

        def page() -> str:
            assert demo.poll() is None, said.read_text()
            return next((line[6:] for line in said.read_text().splitlines() if line.startswith("page: ")), "")

        browser.open(await_(page, "the address of the page"))
        await_(lambda: demo.poll() is not None or browser.ask(SEEN), "scale-outs, results and charts")
        assert demo.poll() is None, said.read_text()
        photograph(browser)
        assert browser.faults == []
        assert demo.wait(LONG_S) == 0, said.read_text()
    finally:
        browser.close()
        if demo.poll() is None:
            os.killpg(demo.pid, signal.SIGINT)
            demo.wait(LONG_S)
