"""What the daemons of a local cluster are told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest
import yaml

from leeward.core.network import Network, NetworkNode, Site
from leeward.local import render
from leeward.local.install import Install
from leeward.local.layout import ClusterSpec, layout_of

ROOT = Path(__file__).resolve().parents[2]
HOME = Path("/opt/storm")


def make(*, plugin: bool = True, **settings: object) -> tuple[ClusterSpec, Install]:
    spec = ClusterSpec(dir=Path("/run/my cluster, 1"), base_port=16000, plugin=plugin, settings=settings)
    install = Install(
        storm_conf=ROOT / "storm_conf",
        kept=ROOT / ".storm",
        storm_home=HOME,
        storm_version="2.8.3",
        java=Path("/jdk/bin/java"),
        redis_server=Path("/usr/bin/redis-server"),
        python_bin=Path("/venv/bin"),
        plugin_jar=HOME / "extlib-daemon" / "leeward-plugin.jar" if plugin else None,
    )
    return spec, install


def settings_of(spec: ClusterSpec) -> dict[str, object]:
    shipped = yaml.safe_load((ROOT / "storm_conf" / "storm.yaml").read_text())
    return render.storm_settings(shipped, spec, layout_of(spec))


def test_the_shipped_settings_get_the_addresses_of_this_cluster():
    settings = settings_of(make()[0])
    assert settings["nimbus.thrift.port"] == 16027
    assert settings["storm.zookeeper.port"] == 16021
    assert settings["leeward.redis.url"] == "redis://127.0.0.1:16022/0"
    assert settings["leeward.secrets.file"] == "/run/my cluster, 1/secrets.json"
    assert settings["leeward.zookeeper.root"] == "/leeward"
    assert settings["storm.scheduler"] == "leeward.plugin.PlanScheduler"


def test_without_the_plugin_storm_keeps_its_own_scheduler():
    assert "storm.scheduler" not in settings_of(make(plugin=False)[0])


def test_own_settings_win():
    spec, _ = make(**{"nimbus.task.timeout.secs": 7})
    assert settings_of(spec)["nimbus.task.timeout.secs"] == 7


def test_a_session_outlives_a_zookeeper_outage_of_ten_seconds_and_the_server_grants_it():
    settings = settings_of(make()[0])
    spec = make()[0]
    ticks = dict(line.split("=") for line in render.zoo_cfg(spec, layout_of(spec)).splitlines())
    assert 10_000 < settings["storm.zookeeper.session.timeout"] <= 20 * int(ticks["tickTime"])


def test_a_supervisor_gets_its_name_ports_and_folder_even_with_commas_and_blanks():
    spec, install = make()
    command = render.command_of("supervisor-2", spec, layout_of(spec), install)
    encoded = next(a for a in command if a.startswith("-Dstorm.options=")).removeprefix("-Dstorm.options=")
    options = {k: unquote(v) for k, v in (pair.split("=") for pair in encoded.split(","))}
    assert options == {
        "storm.local.dir": "/run/my cluster, 1/supervisor-2",
        "storm.local.hostname": "127.0.0.12",
        "supervisor.thrift.port": "16032",
        "supervisor.slots.ports": "[16102,16103]",
        "storm.workers.artifacts.dir": "/run/my cluster, 1/workers/127.0.0.12",
    }
    assert command[-1] == "org.apache.storm.daemon.supervisor.Supervisor"


@pytest.mark.parametrize(("sync", "flag"), [(False, "no"), (True, "yes")])
def test_zookeeper_waits_for_its_disk_if_it_is_told_to(sync, flag):
    spec, install = make()
    spec = replace(spec, zookeeper_sync=sync)
    assert f"-Dzookeeper.forceSync={flag}" in render.command_of("zookeeper", spec, layout_of(spec), install)


def test_a_plugin_outside_the_home_is_put_on_the_classpath():
    spec, install = make()
    outside = Path("/build/jars/leeward-plugin.jar")
    moved = Install(**{f: getattr(install, f) for f in Install.__slots__} | {"plugin_jar": outside})
    command = render.command_of("nimbus", spec, layout_of(spec), moved)
    assert command[command.index("-cp") + 1].split(":")[0] == str(outside)


def test_workers_find_our_python_first_and_carry_the_mark():
    spec, install = make()
    environment = render.environment_of({"PATH": "/bin", "STORM_HOME": "/other"}, spec, install, "MARK")
    assert environment == {
        "PATH": "/venv/bin:/jdk/bin:/bin",
        "STORM_CONF_DIR": "/run/my cluster, 1/conf",
        "MARK": "/run/my cluster, 1",
    }


#: SHA-256 of "password", as `sha256sum` computes it.
HASH = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8"


@pytest.mark.parametrize(
    "line", [f"user default on #{HASH} ~* &* +@all", "appendonly yes", "maxmemory-policy noeviction"]
)
def test_redis_keeps_what_it_is_given(line: str):
    spec, _ = make()
    text = render.redis_conf(spec, layout_of(spec), "password")
    assert line in text.splitlines()
    assert "password" not in text


@pytest.mark.parametrize("emulated", [True, False])
def test_facts_of_a_node_are_its_supervisors_meta(emulated: bool):
    facts = {"class": "edge", "speed": "0.05", "odd": "a,b=c d"}
    nodes = (
        NetworkNode(id="cloud", site="a", role="nimbus"),
        NetworkNode(id="near", site="a", meta=facts),
        NetworkNode(id="far", site="a"),
    )
    spec, install = make()
    spec = replace(spec, network=Network(sites=(Site(id="a"),), nodes=nodes), emulated=emulated)
    told = [render.command_of(f"supervisor-{i}", spec, layout_of(spec), install) for i in (1, 2)]
    options = [next(word for word in command if word.startswith("-Dstorm.options=")) for command in told]
    entries = dict(entry.split("=", 1) for entry in options[0].removeprefix("-Dstorm.options=").split(","))
    assert json.loads(unquote(entries["supervisor.scheduler.meta"])) == facts
    assert "supervisor.scheduler.meta" not in options[1]
