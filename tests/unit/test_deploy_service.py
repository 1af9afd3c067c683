"""The service on a host: the unit for systemd, and the script where there is none."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from leeward.deploy.inventory import Host, Inventory, Role
from leeward.deploy.service import script, unit


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """Its `leeward` writes its arguments and the name of its secrets file, then sleeps."""
    program = tmp_path / "venv/bin/leeward"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$LEEWARD_SECRETS $@"\nexec sleep 600\n')
    program.chmod(0o755)
    return Host(name="n", address="n", roles=frozenset(Role), storm_home="/opt/storm", folder=str(tmp_path))


def inventory(host: Host, **more) -> Inventory:
    return Inventory(hosts=(host,), redis="redis://d:6379/0", **more)


def test_the_unit_is_hardened(host: Host):
    text = unit(host, inventory(host, user="storm"), secrets=True)
    for line in (
        "User=storm",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "CapabilityBoundingSet=",
        "PrivateTmp=yes",
    ):
        assert f"\n{line}\n" in text
    assert "MemoryDenyWriteExecute" not in text  # numba compiles


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs hardware with systemd's programs")
def test_systemd_takes_the_unit(host: Host, tmp_path: Path):
    path = tmp_path / "leeward.service"
    path.write_text(unit(host, inventory(host), secrets=True))
    done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def control(host: Host, action: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([f"{host.folder}/service.sh", action], capture_output=True, text=True, timeout=60)


def test_the_script_starts_one_process_and_ends_it(host: Host):
    path = Path(host.folder, "service.sh")
    path.write_text(script(host, inventory(host, serve=("--http", "127.0.0.1:8600")), secrets=True))
    path.chmod(0o755)
    pid = Path(host.folder, "service.pid")
    assert control(host, "status").returncode == 3
    try:
        assert control(host, "start").returncode == 0
        first = pid.read_text()
        assert control(host, "start").returncode == 0 and pid.read_text() == first
        assert f"pid {first.split()[0]}" in control(host, "status").stdout
        assert control(host, "restart").returncode == 0 and pid.read_text() != first
    finally:
        control(host, "stop")
    assert control(host, "status").returncode == 3 and not pid.exists()
    log = Path(host.folder, "service.log")
    line = (
        f"{host.folder}/secrets.json serve --nimbus n:6627 --config {host.folder}/leeward.toml --http 127.0.0.1:8600\n"
    )
    assert log.read_text() == line * 2


def test_a_pid_that_is_another_process_by_now_is_left_alone(host: Host):
    path = Path(host.folder, "service.sh")
    path.write_text(script(host, inventory(host), secrets=False))
    path.chmod(0o755)
    with subprocess.Popen(["sleep", "600"]) as other:
        Path(host.folder, "service.pid").write_text(f"{other.pid} 1\n")
        assert control(host, "status").returncode == 3 and control(host, "stop").returncode == 0
        time.sleep(0.1)
        assert other.poll() is None
        other.kill()
