"""The parts of `containers/`, each started by its entrypoint on a machine of its own: images cannot be built here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from leeward.core.secrets import Secrets
from leeward.local.install import find_storm_home
from tests.deploy.network import Machines
from tests.deploy.storm import WORKERS
from tests.deploy.wheels import ROOT

pytestmark = pytest.mark.timeout(300)
CONTAINERS = ROOT / "containers"


class Parts:
    """Starts parts as containers would."""

    def __init__(self, machines: Machines) -> None:
        self.machines = machines
        self.secrets = machines.folder / "secrets"
        self.secrets.mkdir()
        self.environment = {
            "STORM_HOME": str(find_storm_home(None)), "DATA": "/opt/data", "SECRETS": str(self.secrets),
            "REDIS_HOST": "datastore", "ZOOKEEPER_HOST": "datastore", "REDIS_MAXMEMORY": "64mb",
            "PYTHONPATH": str(ROOT / "scheduler"), "PATH": machines.path, "LANG": "C.UTF-8",
        }  # fmt: skip
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, machine: str, part: str) -> None:
        """A part that goes on."""
        (self.machines.opt(machine) / "data").mkdir(exist_ok=True)
        log = (self.machines.folder / f"{part}-{machine}.log").open("ab")
        command = self.machines.command(machine, [CONTAINERS / "entrypoint.sh", part])
        self.running[f"{machine} {part}"] = subprocess.Popen(
            command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )

    def ended(self) -> list[str]:
        """Parts that do not run."""
        return [name for name, process in self.running.items() if process.poll() is not None]

    def ask(self, *command: object) -> str:
        """A command on the operator's machine; its output."""
        return self.machines.run("operator", *command, more=self.environment).stdout


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    path = f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    if java := os.environ.get("JAVA_HOME"):
        path = f"{java}/bin:{path}"
    with Machines(tmp_path_factory.mktemp("parts"), path, prefix="lwc") as machines:
        found = Parts(machines)
        yield found
        # as their starter has to
    for process in found.running.values():
        process.wait()


def await_(done: Callable[[], object], what: str, parts: Parts, timeout_s: float = 90) -> None:
    until = time.monotonic() + timeout_s
    while not done():
        assert parts.ended() == [], what
        assert time.monotonic() < until, f"waited {timeout_s:g} s for {what}"
        time.sleep(0.5)


def test_secrets_are_drawn_once_and_are_private(parts: Parts):
    made = parts.machines.run("datastore", CONTAINERS / "entrypoint.sh", "secrets", more=parts.environment)
    assert made.returncode == 0, made.stdout
    file = parts.secrets / "secrets.json"
    text = file.read_text()
    assert Secrets.from_json(text, where="it").redis_password and file.stat().st_mode & 0o777 == 0o600
    parts.machines.run("datastore", CONTAINERS / "entrypoint.sh", "secrets", more=parts.environment)
    assert (
        file.read_text() == text
        and Secrets.from_json(text, where="it").redis_password not in (parts.secrets / "redis.conf").read_text()
    )


SUMMARY = (
    "from leeward.local.nimbus import fetch_summary as f; s = f('nimbus', 6627); print(s and sorted(s.supervisors))"
)


@pytest.mark.slow
def test_all_parts_come_up_and_know_each_other(parts: Parts):
    for machine, part in (("datastore", "zookeeper"), ("datastore", "redis"), ("nimbus", "nimbus")):
        parts.start(machine, part)
    for worker in WORKERS:
        parts.start(worker, "supervisor")
    await_(lambda: parts.ask("python", "-c", SUMMARY).strip() == repr(sorted(WORKERS)), "the supervisors", parts)
    parts.start("datastore", "service")
    log = parts.machines.folder / "service-datastore.log"
    time.sleep(8)
    assert parts.ended() == [], log.read_text()
    yaml_ = (parts.machines.opt("nimbus") / "data/conf/storm.yaml").read_text()
    assert yaml.safe_load(yaml_)["storm.scheduler"] == "leeward.plugin.PlanScheduler"


def test_the_compose_file_starts_each_part_by_a_word_of_the_entrypoint():
    services = yaml.safe_load((CONTAINERS / "compose.yaml").read_text())["services"]
    known = set(re.findall(r"^  (\w+)\)", (CONTAINERS / "entrypoint.sh").read_text(), re.MULTILINE))
    assert {service["command"] for service in services.values()} == known
    assert all("secrets:/secrets" in service["volumes"] for name, service in services.items() if name != "zookeeper")
    assert "entrypoint.sh" in (CONTAINERS / "Containerfile").read_text()
