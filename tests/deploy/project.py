"""The operator's project: inventory, config.json, and the commands `fab` and `sparse` as the operator gives them."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from pathlib import Path

from leeward.local import build_jar
from tests.deploy.network import MACHINES, OPERATOR, Machines
from tests.deploy.storm import WORKERS, Storm
from tests.deploy.wheels import ROOT, make_wheels

COUNTING = ROOT / "tests" / "cluster" / "counting"
INVENTORY = """storm_home = "/opt/storm"
folder = "/opt/leeward"
redis = "redis://datastore:6379/0"
restart_nimbus = "/opt/bin/restart nimbus"
user = "root"
serve = ["--http", "127.0.0.1:8600"]
health_s = 60

[[host]]
name = "nimbus"
roles = ["nimbus"]

[[host]]
name = "worker1"
roles = ["supervisor"]

[[host]]
name = "worker2"
roles = ["supervisor"]

[[host]]
name = "worker3"
roles = ["supervisor"]

[[host]]
name = "datastore"
roles = ["datastore", "service"]
"""


class Site:
    """All of it: machines, Storm, project."""

    def __init__(self, machines: Machines, storm: Storm) -> None:
        self.machines, self.storm = machines, storm
        self.project = machines.folder / "project"
        self.wheels = ROOT / "build" / "deploy-wheels"
        self.wheel = make_wheels(self.wheels)
        self.settings = self.project / "leeward.toml"
        self.plugin = ROOT / "build" / "jars" / "leeward-plugin.jar"

    def lay_out(self) -> None:
        """The project's files."""
        shutil.copytree(COUNTING, self.project)
        (self.project / "deploy.toml").write_text(INVENTORY)
        self.settings.write_text('policy = "none"\n')
        prod = {
            "user": "root", "nimbus": "nimbus", "use_ssh_for_nimbus": True, "workers": list(WORKERS),
            "log": {"path": "/opt/logs"}, "virtualenv_root": "/opt/leeward", "virtualenv_name": "venv",
            "use_virtualenv": True, "install_virtualenv": False,
            "options": {"topology.acker.executors": 0, "topology.eventlogger.executors": 0},
        }  # fmt: skip
        document = {"serializer": "json", "topology_specs": "topologies/", "virtualenv_specs": "virtualenvs/"}
        (self.project / "config.json").write_text(json.dumps({**document, "envs": {"prod": prod}}))

    def fab(self, task: str, *more: str, **arguments: object) -> subprocess.CompletedProcess[str]:
        """A task, to its end."""
        words = ",".join(f"{name}={value}" for name, value in arguments.items())
        command = ["fab", "-f", ROOT / "fabfile.py", f"{task}:{words}" if words else task, *more]
        return self._operator(*command)

    def deploy(self, *more: str, **arguments: object) -> subprocess.CompletedProcess[str]:
        """A rollout of everything, with other arguments where they are given."""
        usual: dict[str, object] = {
            "wheel": self.wheel, "settings": self.settings, "plugin": self.plugin,
            "secrets": self.machines.folder / "secrets.json",
        }  # fmt: skip
        return self.fab("deploy", *more, **(usual | arguments))

    def submit(self, name: str, out: Path, rate: int) -> subprocess.CompletedProcess[str]:
        """The counting topology, by `sparse submit` through ssh."""
        src = self.machines.folder / "src"
        jar = self.machines.folder / "counting.jar"
        if not jar.exists():
            src.mkdir()
            (src / "leeward").symlink_to(ROOT / "scheduler" / "leeward")
            for file in (COUNTING / "src").glob("*.py"):
                shutil.copy(file, src)
            build_jar(jar, src=src, worker_jar=ROOT / "build" / "jars" / "leeward-worker.jar")
        options = [f"counting.rate={rate}", "counting.keys=128", f"counting.out={out}", "topology.workers=3"]
        words = [word for option in options for word in ("-o", option)]
        return self._operator("sparse", "submit", "-e", "prod", "-n", "counting", "-N", name, "-j", jar, *words)

    def _operator(self, *command: object) -> subprocess.CompletedProcess[str]:
        more = {"PYTHONPATH": str(ROOT / "scheduler"), "PYTHONWARNINGS": "ignore", "LEIN_ROOT": "1"}
        return self.machines.run(OPERATOR, *command, cwd=self.project, more=more)

    def files(self) -> dict[str, str]:
        """All that a rollout may write on the machines -> what it holds, and its mode."""
        found = {}
        for name in MACHINES:
            opt = self.machines.opt(name)
            for folder in ("leeward", "storm/conf", "storm/extlib", "storm/extlib-daemon"):
                for path in sorted((opt / folder).rglob("*")):
                    key = str(path.relative_to(self.machines.folder))
                    if "/venvs/" in key or path.name in ("service.pid", "service.log"):
                        continue
                    if path.is_symlink():
                        found[key] = f"-> {path.readlink()}"
                    elif path.is_file():
                        mode = path.stat().st_mode & 0o777
                        found[key] = f"{hashlib.sha256(path.read_bytes()).hexdigest()} {mode:o}"
        return found

    def left_over(self) -> list[str]:
        """Staged versions that nobody put in place."""
        return [path for path in self.files() if re.search(r"leeward-new|\.begun|\.complete", path)]


def steps_in(output: str) -> list[str]:
    """The numbered lines of a dry run, or of what was announced before a real one."""
    return re.findall(r"^ {6} *\d+\. (.*)$", output, re.MULTILINE)


def done_in(output: str) -> list[str]:
    """The numbered lines of the steps that were taken."""
    return re.findall(r"^done +\d+\. (.*)$", output, re.MULTILINE)
