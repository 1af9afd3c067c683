"""`leeward dssp up`: the whole testbed with its page, and its end by Ctrl-C."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import httpx
import pytest

from leeward.cli._background import leeward_command
from tests.helpers.servers import port_block


def run(tmp_path: Path, port: int, *options: str) -> subprocess.Popen:
    command = ["dssp", "up", "--port", str(port), "--out", str(tmp_path / "out"), "--rate", "8", *options]
    return subprocess.Popen(leeward_command(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def processes_in(folder: Path) -> list[int]:
    """Those that log there."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.readlink(entry / "fd/1").startswith(str(folder)):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@pytest.mark.timeout(240)
def test_the_testbed_shows_its_figures_and_ends_by_ctrl_c(tmp_path):
    """Its 38 processes took 43 s to start beside other tests on two processors."""
    port = port_block()
    running = run(tmp_path, port)
    try:
        until, data = time.monotonic() + 120, {}
        while time.monotonic() < until and not (
            data.get("done", 0) > 20 and len(data["domains"]) == len(data["classes"]) == 4
        ):
            time.sleep(0.5)
            try:
                data = httpx.get(f"http://127.0.0.1:{port}/data").json()
            except httpx.HTTPError:
                continue
        assert [one["name"] for one in data["classes"]] == ["1.1", "1.2", "2", "3"], data
        assert all(one["answers"] and len(one["pods"]) == 8 for one in data["domains"])
        assert sum(one["queries"] for one in data["classes"]) > 5 and data["partial"] == 0  # asked once a second
        assert len(processes_in(tmp_path)) == 1 + 1 + 4 * (1 + 8)
    finally:
        running.send_signal(signal.SIGINT)
        told, wrong = running.communicate(timeout=60)
    assert running.returncode == 0, wrong
    assert "queries answered" in told and "class 3: p99" in told
    assert processes_in(tmp_path) == []


def test_a_port_that_is_taken_and_an_unknown_profile_are_refused(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for options, words in ((["--profile", "planet"], "Choose one of testbed"), ([], "Name an address")):
            refused = run(tmp_path, taken.getsockname()[1], *options)
            _, wrong = refused.communicate(timeout=60)
            assert refused.returncode == 2 and words in wrong
    assert processes_in(tmp_path) == []
