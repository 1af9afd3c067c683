"""Configuration files and command lines of a local cluster's daemons. Pure: values in, text out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from leeward.core.secrets import FILE_KEY, FILE_VARIABLE
from leeward.core.topology_conf import REDIS_URL
from leeward.local.install import Install
from leeward.local.layout import ClusterSpec, Layout

PLUGIN_CLASS = "leeward.plugin.PlanScheduler"

#: main class of each kind of daemon, and its largest heap in MB. ZooKeeper is the server inside Storm's jars:
#: unlike Storm's DevZookeeper it keeps its data over a restart.
ZOOKEEPER_MAIN = "org.apache.storm.shade.org.apache.zookeeper.server.quorum.QuorumPeerMain"
NIMBUS_MAIN = "org.apache.storm.daemon.nimbus.Nimbus"
SUPERVISOR_MAIN = "org.apache.storm.daemon.supervisor.Supervisor"
HEAP_MB = {"zookeeper": 128, "nimbus": 256, "supervisor": 128}

#: the processors are for the workers: one collector thread, one compiler tier
JVM_FLAGS = (
    "-server",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xss512k",
    "-XX:ReservedCodeCacheSize=64m",
    "-Djava.net.preferIPv4Stack=true",
)


def storm_settings(shipped: Mapping[str, object], spec: ClusterSpec, layout: Layout) -> dict[str, object]:
    """storm.yaml of the run folder: the shipped settings, the cluster's addresses, then the spec's own."""
    settings = dict(shipped)
    settings |= {
        "storm.zookeeper.servers": [layout.host],
        "storm.zookeeper.port": layout.zookeeper,
        "nimbus.seeds": [layout.host],
        "nimbus.thrift.port": layout.nimbus,
        "storm.log4j2.conf.dir": str(spec.dir / "conf" / "log4j2"),
        REDIS_URL.name: redis_url(layout),
        FILE_KEY: str(secrets_path(spec.dir)),
    }
    if spec.plugin:
        settings["storm.scheduler"] = PLUGIN_CLASS
    return settings | dict(spec.settings)


def redis_url(layout: Layout) -> str:
    """Redis' address. The password is in the secrets file."""
    return f"redis://{layout.host}:{layout.redis}/0"


def secrets_path(folder: Path) -> Path:
    """The secrets file of a run folder."""
    return folder / "secrets.json"


def zoo_cfg(spec: ClusterSpec, layout: Layout) -> str:
    """zoo.cfg of a single server. Sessions may last from 2 to 20 ticks of 2 s."""
    return f"""tickTime=2000
dataDir={spec.dir / "zookeeper"}
clientPort={layout.zookeeper}
clientPortAddress={layout.host}
maxClientCnxns=0
admin.enableServer=false
autopurge.purgeInterval=1
autopurge.snapRetainCount=3
4lw.commands.whitelist=ruok,srvr,mntr
"""


def redis_conf(spec: ClusterSpec, layout: Layout, password: str) -> str:
    """redis.conf: own port, a hash of the password, append-only file; when memory is full an error, no eviction.

    A process title of Redis' own would overwrite the environment by which its cluster is known.
    """
    hashed = hashlib.sha256(password.encode()).hexdigest()
    return f"""bind {layout.host}
port {layout.redis}
user default on #{hashed} ~* &* +@all
dir "{spec.dir / "redis"}"
logfile "{spec.dir / "logs" / "redis.log"}"
daemonize no
set-proc-title no
appendonly yes
appendfsync everysec
save ""
auto-aof-rewrite-min-size {spec.redis_mb}mb
maxmemory {spec.redis_mb}mb
maxmemory-policy noeviction
"""


def command_of(daemon: str, spec: ClusterSpec, layout: Layout, install: Install) -> list[str]:
    """Command line of a daemon. Raises ConfigError for an unknown name."""
    layout.port_of(daemon)
    if daemon == "redis":
        return [str(install.redis_server), str(spec.dir / "conf" / "redis.conf")]
    if daemon == "zookeeper":
        sync = "yes" if spec.zookeeper_sync else "no"
        flags = ["-Dzookeeper.jmx.log4j.disable=true", f"-Dzookeeper.forceSync={sync}"]
        arguments = [*flags, ZOOKEEPER_MAIN, str(spec.dir / "conf" / "zoo.cfg")]
        return java(daemon, "zookeeper", spec, install, {}, arguments)
    options: dict[str, object] = {"storm.local.dir": spec.dir / daemon}
    if daemon == "nimbus":
        options["storm.local.hostname"] = layout.host
        return java(daemon, "nimbus", spec, install, options, [NIMBUS_MAIN])
    node = next(node for node in layout.nodes if node.daemon == daemon)
    options |= {
        "storm.local.hostname": node.name,
        "supervisor.thrift.port": node.thrift_port,
        "supervisor.slots.ports": list(node.ports),
        "storm.workers.artifacts.dir": spec.dir / "workers" / node.name,
    }
    if node.meta:
        options["supervisor.scheduler.meta"] = node.meta
    return java(daemon, "supervisor", spec, install, options, [SUPERVISOR_MAIN])


def java(
    daemon: str,
    kind: str,
    spec: ClusterSpec,
    install: Install,
    options: Mapping[str, object],
    arguments: list[str],
) -> list[str]:
    """Command line of a JVM on Storm's daemon classpath. Values of `storm.options` are URL-encoded."""
    conf, home = spec.dir / "conf", install.storm_home
    classpath = [f"{home}/*", f"{home}/lib/*", f"{home}/extlib/*", f"{home}/extlib-daemon/*", str(conf)]
    if install.plugin_jar and install.plugin_jar.parent != home / "extlib-daemon":
        classpath.insert(0, str(install.plugin_jar))
    encoded = ",".join(f"{key}={quote(text_of(value))}" for key, value in options.items())
    return [
        str(install.java),
        *JVM_FLAGS,
        f"-Xmx{HEAP_MB[kind]}m",
        f"-Ddaemon.name={daemon}",
        f"-Dstorm.options={encoded}",
        f"-Dstorm.home={home}",
        f"-Dstorm.log.dir={spec.dir / 'logs'}",
        "-Dstorm.conf.file=",
        f"-Dlogfile.name={daemon}.log",
        f"-Dlog4j.configurationFile={conf / 'log4j2' / 'cluster.xml'}",
        "-cp",
        ":".join(classpath),
        *arguments,
    ]


def text_of(value: object) -> str:
    """A setting as Storm parses it: JSON for lists and maps, else the plain text."""
    if isinstance(value, Mapping):
        return json.dumps(dict(value), separators=(",", ":"))
    return json.dumps(value, separators=(",", ":")) if isinstance(value, list) else str(value)


def environment_of(inherited: Mapping[str, str], spec: ClusterSpec, install: Install, mark: str) -> dict[str, str]:
    """Environment of a daemon. Workers and their Python children inherit the supervisors': PATH decides which
    Python runs the bolts, and the mark names the cluster that a process belongs to."""
    kept = {key: value for key, value in inherited.items() if not key.startswith("STORM_") and key != FILE_VARIABLE}
    path = f"{install.python_bin}:{install.java.parent}:{inherited.get('PATH', '/usr/bin:/bin')}"
    return kept | {"PATH": path, "STORM_CONF_DIR": str(spec.dir / "conf"), mark: str(spec.dir)}
