"""Health of daemons, asked of stand-ins; and the artifacts that are gathered."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from leeward.core.errors import ConfigError
from leeward.core.secrets import NO_SECRETS
from leeward.deploy import health as health_module
from leeward.deploy.artifacts import flag, gather, load_inventory, secrets_of
from leeward.deploy.errors import HostError
from leeward.deploy.health import Health
from leeward.deploy.inventory import Host, Inventory, Role
from leeward.deploy.steps import Check
from leeward.local.nimbus import Summary

HOST = Host(name="h", address="h", roles=frozenset(Role), storm_home="/opt/storm", folder="/opt/leeward")
INVENTORY = Inventory(hosts=(HOST,), redis="redis://redis-name:6379/0", health_s=0.2)


class Way:
    """Leads to ports of this machine; `status` is what the service's status command does."""

    def __init__(self, ports: dict[tuple[int, str], int] | None = None, status: bool = True) -> None:
        self.ports, self.status = ports or {}, status

    def run(self, host: Host, script: str, *, patience_s: float = 60.0) -> str:
        if not self.status:
            raise HostError("host h: does not run")
        return ""

    @contextmanager
    def forward(self, host: Host, port: int, to: str = "localhost") -> Iterator[tuple[str, int]]:
        yield "127.0.0.1", self.ports.get((port, to), 1)


def wait(way: Way, role: Role, *, status: str = "") -> None:
    health = Health(INVENTORY, way, steady_s=0.1)
    health.wait(Check(host="h", role=role, status=status), HOST)


def test_a_service_has_to_run_for_a_while():
    wait(Way(), Role.SERVICE, status="service.sh status")
    with pytest.raises(HostError, match=r"host h: service is not healthy: `service.sh status` says: does not run"):
        wait(Way(status=False), Role.SERVICE, status="service.sh status")


def summary(supervisors: str, *, leader: bool = True, topologies: str = "") -> Summary:
    found = tuple((name, "ACTIVE", 1, 1, 1) for name in topologies.split())
    return Summary(leader=leader, version="2.8.3", supervisors=frozenset(supervisors.split()), topologies=found)


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (None, "it does not answer on port 6627"),
        (summary("a b", leader=False), "no Nimbus leads"),
        (summary("a", topologies="t"), "it does not know the supervisors b"),
        (summary("a b"), "it does not know the topologies t"),
        (summary("a b c", topologies="t u"), ""),
    ],
)
def test_nimbus_has_to_know_what_it_knew_before(monkeypatch, after: Summary | None, said: str):
    answers = [summary("a b", topologies="t")]
    monkeypatch.setattr(health_module, "fetch_summary", lambda host, port: answers[-1])
    health = Health(INVENTORY, Way(), steady_s=0.0)
    health.remember(HOST)
    answers.append(after)
    step = Check(host="h", role=Role.NIMBUS)
    if not said:
        health.wait(step, HOST)
        return
    with pytest.raises(HostError, match=f"host h: nimbus is not healthy: {said}"):
        health.wait(step, HOST)


# --- artifacts


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "plugin.jar").write_bytes(b"jar")
    (tmp_path / "secrets.json").write_text('{"redis_password": "pw"}')
    (tmp_path / "requirements.txt").write_text("redis[hiredis]==5.0 \\\n    --hash=sha256:00\nMy_Lib==1\n")
    for name in (
        "leeward-0.1.0-py3-none-any",
        "redis-5.0-py3-none-any",
        "my.lib-1-py3-none-any",
        "redis-4.0-py3-none-any",
    ):
        (tmp_path / f"{name}.whl").write_bytes(name.encode())
    return tmp_path


def test_a_virtual_environment_has_the_wheels_that_are_named_and_leewards_own(files: Path):
    wheel, listed = files / "leeward-0.1.0-py3-none-any.whl", files / "requirements.txt"
    found = gather(INVENTORY, wheel=wheel, requirements=listed, plugin=files / "plugin.jar")
    venv = found.service_venv
    assert [Path(path).name.split("-")[0:2] for path in venv.wheels] == [
        ["leeward", "0.1.0"],
        ["my.lib", "1"],
        ["redis", "5.0"],
    ]
    assert b"leeward==0.1.0 --hash=sha256:" in venv.requirements and found.runtime_venv is None
    wheel.write_bytes(b"other")
    again = gather(
        INVENTORY, wheel=wheel, requirements=listed, runtime_requirements=listed, plugin=files / "plugin.jar"
    )
    assert again.service_venv.digest != venv.digest and again.runtime_venv.digest == again.service_venv.digest


def test_lists_beside_the_wheels_are_taken_by_their_names(files: Path):
    wheel, plugin = files / "leeward-0.1.0-py3-none-any.whl", files / "plugin.jar"
    with pytest.raises(ConfigError, match=r"requirements: .*service\.txt cannot be read"):
        gather(INVENTORY, wheel=wheel, plugin=plugin)
    (files / "service.txt").write_text("redis==5.0\nMy_Lib==1\n")
    found = gather(INVENTORY, wheel=wheel, plugin=plugin)
    assert len(found.service_venv.wheels) == 3 and found.runtime_venv is None
    (files / "tasks.txt").write_text("redis==4.0\n")
    assert len(gather(INVENTORY, wheel=wheel, plugin=plugin).runtime_venv.wheels) == 2


def test_a_requirement_without_a_wheel_is_refused_unless_it_has_a_condition(files: Path):
    wheel, listed = files / "leeward-0.1.0-py3-none-any.whl", files / "service.txt"
    listed.write_text("redis==5.0\ncolorama==1 ; sys_platform == 'win32'\npyspark==4.3.0 \\\n    --hash=sha256:00\n")
    with pytest.raises(ConfigError, match=r"service\.txt pins pyspark==4\.3\.0, of which .* has no wheel"):
        gather(INVENTORY, wheel=wheel, plugin=files / "plugin.jar")
    listed.write_text("redis==5.0\ncolorama==1 ; sys_platform == 'win32'\n")
    assert len(gather(INVENTORY, wheel=wheel, plugin=files / "plugin.jar").service_venv.wheels) == 2


def test_settings_that_are_not_toml_are_refused(files: Path):
    settings = files / "leeward.yaml"
    settings.write_text("policy: edrp\n")
    with pytest.raises(ConfigError, match=r"settings: .*leeward\.yaml is not TOML"):
        gather(INVENTORY, plugin=files / "plugin.jar", settings=settings)
    settings.write_text('policy = "edrp"\n')
    assert gather(INVENTORY, plugin=files / "plugin.jar", settings=settings).service_conf == b'policy = "edrp"\n'


def test_secrets_are_read_and_a_missing_file_is_named_with_its_argument(files: Path):
    path = files / "secrets.json"
    found = gather(INVENTORY, plugin=files / "plugin.jar", secrets=path)
    assert secrets_of(found, path).redis_password == "pw" and "pw" not in repr(found)
    assert secrets_of(gather(INVENTORY, plugin=files / "plugin.jar"), None) == NO_SECRETS
    with pytest.raises(ConfigError, match=r"plugin: .*nope\.jar cannot be read: No such file.*Give plugin=FILE"):
        gather(INVENTORY, plugin=files / "nope.jar")


def test_an_inventory_that_cannot_be_read_is_named(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"inventory: .*deploy\.toml cannot be read"):
        load_inventory(tmp_path / "deploy.toml")
    (tmp_path / "deploy.toml").write_text("redis = ")
    with pytest.raises(ConfigError, match="is no TOML"):
        load_inventory(tmp_path / "deploy.toml")
    (tmp_path / "deploy.toml").write_text('redis = "redis://d"\n[[host]]\nname = "a"\nroles = ["service"]\n')
    assert load_inventory(tmp_path / "deploy.toml").redis_port == 6379


def test_a_flag_is_on_or_off():
    assert flag("dry_run", "1") and flag("dry_run", True) and not flag("dry_run", "") and not flag("dry_run", "No")
    with pytest.raises(ConfigError, match="dry_run: 'maybe' is neither yes nor no"):
        flag("dry_run", "maybe")
