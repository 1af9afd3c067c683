"""A Storm cluster on the six machines, as someone else would have set it up: nothing of Leeward is in it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote

import yaml

from leeward.core.secrets import Secrets
from leeward.local import processes
from leeward.local.install import find_install
from leeward.local.render import HEAP_MB, JVM_FLAGS, NIMBUS_MAIN, SUPERVISOR_MAIN, ZOOKEEPER_MAIN
from leeward.wire.secrets import write_secrets
from tests.deploy.network import MACHINES, Machines
from tests.deploy.wheels import ROOT

WORKERS = tuple(name for name in MACHINES if name.startswith("worker"))
SECRETS = Secrets(redis_password="for-tests-of-rollouts", zookeeper_secret="for-tests-too")
#: Settings that an operator's cluster has of its own; short times, as the machine is small.
OWN = {
    "storm.zookeeper.servers": ["datastore"],
    "nimbus.seeds": ["nimbus"],
    "storm.local.dir": "/opt/data",
    "storm.log.dir": "/opt/logs",
    "storm.log4j2.conf.dir": "/opt/storm/log4j2",
    "supervisor.slots.ports": [6700, 6701],
}
#: Restarts a daemon of this name; its start script is beside it.
RESTART = r"""#!/bin/sh
alive() { s=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -c1); [ -n "$s" ] && [ "$s" != Z ]; }
cd /opt || exit 1
if [ -f "$1.pid" ]; then
  pid=$(cat "$1.pid")
  kill "$pid" 2>/dev/null
  while alive "$pid"; do sleep 0.1; done
fi
echo >> "/opt/$1.starts"
nohup "/opt/bin/$1" >> "/opt/logs/$1.out" 2>&1 < /dev/null &
echo $! > "$1.pid"
"""
REDIS = f"""bind 0.0.0.0
protected-mode no
port 6379
requirepass {SECRETS.redis_password}
dir /opt/data
appendonly yes
save ""
maxmemory 256mb
maxmemory-policy noeviction
"""


class Storm:
    """The daemons, which the test starts at the machines themselves, not through ssh."""

    def __init__(self, machines: Machines) -> None:
        self.machines, self.install = machines, find_install(plugin=False)

    def lay_out(self) -> None:
        """Write all files; start nothing."""
        for name in MACHINES:
            opt = self.machines.opt(name)
            for folder in ("bin", "data", "logs"):
                (opt / folder).mkdir()
            self._write(opt / "bin" / "restart", RESTART)
        for name in ("nimbus", *WORKERS):
            self._lay_home(name)
        datastore = self.machines.opt("datastore")
        (datastore / "redis.conf").write_text(REDIS)
        (datastore / "zoo.cfg").write_text(
            "tickTime=2000\ndataDir=/opt/data\nclientPort=2181\nmaxClientCnxns=0\nadmin.enableServer=false\n"
        )
        self._write(datastore / "bin" / "redis", f"#!/bin/sh\nexec {self.install.redis_server} /opt/redis.conf\n")
        home = self.install.storm_home
        zookeeper = self._java(
            "zookeeper", f"{home}/lib/*", ["-Dzookeeper.forceSync=no", ZOOKEEPER_MAIN, "/opt/zoo.cfg"]
        )
        self._write(datastore / "bin" / "zookeeper", zookeeper)
        write_secrets(self.machines.folder / "secrets.json", SECRETS)

    def _lay_home(self, name: str) -> None:
        home = self.machines.opt(name) / "storm"
        for folder in ("conf", "extlib", "extlib-daemon"):
            (home / folder).mkdir(parents=True)
        for folder in ("lib", "lib-worker"):
            # files of its own name, so that a test can give a machine another version
            (home / folder).mkdir()
            for jar in (self.install.storm_home / folder).glob("*.jar"):
                (home / folder / jar.name).symlink_to(jar)
        shutil.copytree(ROOT / "storm_conf" / "log4j2", home / "log4j2")
        (home / "conf" / "storm.yaml").write_text("# of the cluster's operator\n" + yaml.safe_dump(OWN))
        daemon, main = ("nimbus", NIMBUS_MAIN) if name == "nimbus" else ("supervisor", SUPERVISOR_MAIN)
        classpath = ":".join(f"/opt/storm/{part}" for part in ("*", "lib/*", "extlib/*", "extlib-daemon/*", "conf"))
        options = quote(json.dumps(name).strip('"'))
        arguments = [
            f"-Dstorm.options=storm.local.hostname={options}", "-Dstorm.home=/opt/storm", "-Dstorm.log.dir=/opt/logs",
            "-Dstorm.conf.file=", f"-Dlogfile.name={daemon}.log",
            "-Dlog4j.configurationFile=/opt/storm/log4j2/cluster.xml", main,
        ]  # fmt: skip
        self._write(self.machines.opt(name) / "bin" / daemon, self._java(daemon, classpath, arguments))

    def _java(self, daemon: str, classpath: str, arguments: list[str]) -> str:
        flags = " ".join((*JVM_FLAGS, f"-Xmx{HEAP_MB[daemon]}m", f"-Ddaemon.name={daemon}"))
        conf = "export STORM_CONF_DIR=/opt/storm/conf\n"
        return f"#!/bin/sh\n{conf}exec {self.install.java} {flags} -cp '{classpath}' {' '.join(arguments)}\n"

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.write_text(text)
        path.chmod(0o755)

    def start(self) -> None:
        """Everything, ZooKeeper first."""
        for name, daemon in (("datastore", "zookeeper"), ("datastore", "redis"), ("nimbus", "nimbus")):
            self.restart(name, daemon)
        for name in WORKERS:
            self.restart(name, "supervisor")

    def restart(self, name: str, daemon: str) -> None:
        """A daemon on its machine."""
        done = self.machines.run(name, "/opt/bin/restart", daemon)
        assert done.returncode == 0, done.stdout

    def starts(self, name: str, daemon: str) -> int:
        """How often a daemon was started."""
        return len((self.machines.opt(name) / f"{daemon}.starts").read_text())

    def pids(self) -> dict[str, str]:
        """The processes that no rollout may restart, and those that it may, by machine and daemon."""
        found = {}
        for name in MACHINES:
            for file in [*self.machines.opt(name).glob("*.pid"), *self.machines.opt(name).glob("leeward/*.pid")]:
                found[f"{name} {file.stem}"] = file.read_text().split()[0]
        return found

    def worker_processes(self) -> set[str]:
        """pids of Storm's workers."""
        found = set()
        for name in WORKERS:
            listed = subprocess.run(
                ["ip", "netns", "pids", self.machines.namespace(name)], capture_output=True, text=True
            ).stdout
            for pid in listed.split():
                words = processes.command_line(int(pid))
                if "org.apache.storm.daemon.worker.Worker" in words and "org.apache.storm.LogWriter" not in words:
                    found.add(pid)
        return found
