"""Hosts for tests of rollouts: folders of this machine, the steps' own scripts run by sh, daemons that are stubs."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from leeward.deploy.errors import HostError
from leeward.deploy.facts import Facts
from leeward.deploy.inventory import Host, Inventory, Role
from leeward.deploy.shell import Shell
from leeward.deploy.steps import Check
from leeward.deploy.wanted import Artifacts, Venv

OWN_YAML = "# ours\nstorm.zookeeper.servers: [data]\nnimbus.seeds: [nimbus]\nworker.childopts: -Xmx64m\n"
ROLES = {
    "nimbus": {Role.NIMBUS},
    "worker": {Role.SUPERVISOR},
    "data": {Role.DATASTORE, Role.SERVICE},
}
#: Makes "virtual environments" whose `leeward` does nothing for ten minutes.
PYTHON = """#!/bin/sh
[ "$1" = -c ] && { echo 3.11.2; exit 0; }
[ "$2" = pip ] && exit 0
mkdir -p "$3/bin" && cp "$0" "$3/bin/python"
printf '#!/bin/sh\\nexec sleep 600\\n' > "$3/bin/leeward" && chmod +x "$3/bin/leeward"
"""


def artifacts_of(version: int, *, plugin: int | None = None, secrets: int = 0, runtime: int = 0) -> Artifacts:
    """Artifacts that differ with the numbers."""
    return Artifacts(
        plugin_jar=f"plugin {version if plugin is None else plugin}".encode(),
        storm_conf={"nimbus.monitor.freq.secs": 1, "worker.childopts": "-Xmx128m"},
        secrets=b'{"redis_password": "p%d"}\n' % secrets,
        service_conf=f"# {version}\n".encode(),
        service_venv=Venv(digest=f"service{version}", wheels=(), requirements=b"", size=1000),
        runtime_venv=Venv(digest=f"runtime{runtime}", wheels=(), requirements=b"", size=1000),
    )


class Folders:
    """A transport to hosts that are folders. `fail` is the number of a call of `run` or `put` that fails."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.unreachable: set[str] = set()

    def run(self, host: Host, script: str, *, patience_s: float = 60.0) -> str:
        """As `sh` prints it."""
        if host.name in self.unreachable:
            raise HostError(f"host {host.name}: cannot be reached.")
        done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False)
        if done.returncode:
            raise HostError(f"host {host.name}: {done.stderr.strip() or done.returncode}")
        return done.stdout

    def put(self, host: Host, content: bytes | Path, path: str) -> None:
        """Write the content."""
        Path(path).write_bytes(content if isinstance(content, bytes) else content.read_bytes())

    @contextmanager
    def forward(self, host: Host, port: int, to: str = "localhost") -> Iterator[tuple[str, int]]:
        """Nobody is there."""
        yield "127.0.0.1", port


class Stubs:
    """Daemons' health as a test wants it: `sick` are the roles that are not healthy."""

    def __init__(self) -> None:
        self.sick: set[Role] = set()
        self.asked: list[Role] = []

    def remember(self, host: Host) -> None:
        """Nothing to note."""

    def wait(self, step: Check, host: Host) -> None:
        """At once."""
        self.asked.append(step.role)
        if step.role in self.sick:
            raise HostError(f"host {host.name}: {step.role} is not healthy: the test says so.")


class Cluster:
    """Three hosts in a folder: nimbus, worker, and data with the service."""

    def __init__(self, root: Path, roles: Mapping[str, set[Role]] = ROLES) -> None:
        self.root = root
        self.way, self.health = Folders(root), Stubs()
        self.lines: list[str] = []
        root.mkdir(parents=True, exist_ok=True)
        python = root / "python"
        python.write_text(PYTHON)
        python.chmod(0o755)
        hosts = tuple(
            Host(
                name=name,
                address=name,
                roles=frozenset(found),
                storm_home=f"{root}/{name}/storm",
                folder=f"{root}/{name}/leeward",
            )
            for name, found in roles.items()
        )
        for host in hosts:
            self._lay_storm(host)
        self.inventory = Inventory(
            hosts=hosts, redis="redis://data:6379/0", python=str(python), restart_nimbus=f"echo >> {root}/restarts"
        )

    def _lay_storm(self, host: Host, version: str = "2.8.3") -> None:
        home = Path(host.storm_home)
        for folder in ("lib", "extlib", "extlib-daemon", "conf"):
            (home / folder).mkdir(parents=True, exist_ok=True)
        (home / "lib" / f"storm-server-{version}.jar").touch()
        (home / "conf" / "storm.yaml").write_text(OWN_YAML)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        for script in self.root.glob("*/leeward/service.sh"):
            subprocess.run([script, "stop"], check=False)

    @property
    def shell(self) -> Shell:
        """A shell on these hosts."""
        return Shell(self.inventory, self.way, self.health, self.lines.append)

    def host(self, name: str) -> Host:
        """A host by its name."""
        return next(host for host in self.inventory.hosts if host.name == name)

    def deploy(self, artifacts: Artifacts, **options: bool):
        """A real rollout to all hosts."""
        return self.shell.deploy(self.inventory.hosts, artifacts, **{"dry_run": False, **options})

    def facts(self) -> dict[str, Facts]:
        """Of all hosts."""
        return self.shell.facts(self.inventory.hosts)

    @property
    def restarts(self) -> int:
        """Of Nimbus."""
        file = self.root / "restarts"
        return len(file.read_text()) if file.exists() else 0

    def service_pid(self) -> int | None:
        """Of the service that runs."""
        with contextlib.suppress(OSError):
            pid = int((self.root / "data/leeward/service.pid").read_text().split()[0])
            os.kill(pid, 0)
            return pid
        return None

    def files(self) -> dict[str, str]:
        """Every file and link below the hosts -> what it holds; but for those of running processes."""
        found = {}
        for path in sorted(self.root.glob("*/**/*")):
            if path.name in ("service.pid", "service.log"):
                continue
            if path.is_symlink():
                found[str(path)] = f"-> {path.readlink()}"
            elif path.is_file():
                found[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest() + f" {path.stat().st_mode & 0o777:o}"
        return found

    def managed(self) -> dict[str, str]:
        """The files in use: without kept versions and without virtual environments that no link leads to."""
        return {path: what for path, what in self.files().items() if ".kept-" not in path and "/venvs/" not in path}


def changed(host: Host, **values: object) -> Host:
    """The host with other fields."""
    return replace(host, **values)
