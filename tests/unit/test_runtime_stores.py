"""`leeward.state.store`: a name becomes `module:Class` at submission, and its modules are in the jar."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint, entry_points

import pytest

from leeward.control import registry
from leeward.core.errors import ConfigError
from leeward.local import submit, topology_jar
from leeward.runtime import StatefulSpout, Topology, named
from leeward.runtime.state import schemes

SCHEME = "leeward.policies.agiledart.recovery.scheme:Fragments"


class Lines(StatefulSpout):
    outputs = ["line"]


@pytest.fixture
def installed(monkeypatch):
    """A store of the name `ours`, as an installed package would have it."""

    def points(group, **which):
        if group != "leeward.stores":
            return entry_points(group=group, **which)
        return [EntryPoint("ours", SCHEME, group)] if which.get("name", "ours") == "ours" else []

    for module in (registry, named, topology_jar):
        monkeypatch.setattr(module, "entry_points", points)
    topology_jar.room_files.cache_clear()
    yield
    topology_jar.room_files.cache_clear()


def test_a_name_becomes_module_and_class(installed):
    assert schemes.located("ours") == SCHEME
    assert schemes.located("redis") == "redis" and schemes.located("a.b:C") == "a.b:C"
    with pytest.raises(ConfigError, match=r"unknown value of leeward.state.store 'our'.*Did you mean ours"):
        schemes.located("our")


def test_a_name_that_two_packages_claim_is_refused(monkeypatch):
    two = [EntryPoint("ours", where, schemes.GROUP) for where in ("a:B", "c:D")]
    monkeypatch.setattr(named, "entry_points", lambda group: two)
    with pytest.raises(ConfigError, match=r"'ours' is a:B and c:D.*Uninstall one"):
        schemes.located("ours")


def test_ours_is_installed_by_its_name():
    assert schemes.located("agiledart") == SCHEME


def test_options_of_a_submission_are_resolved(installed):
    assert submit._located("leeward.state.store=ours") == f"leeward.state.store={SCHEME}"
    assert submit._located("leeward.state.store=redis") == "leeward.state.store=redis"
    assert submit._located("leeward.away.secs=2") == "leeward.away.secs=2"
    with pytest.raises(ConfigError, match="unknown store 'our'"):
        submit._located("leeward.state.store=our")


def test_the_configuration_of_a_topology_class_is_resolved(installed):
    class Scattering(Topology):
        lines = Lines.spec()
        config = {"leeward.state.store": "ours"}

    assert Scattering.config["leeward.state.store"] == SCHEME


def test_workers_get_the_modules_of_a_store_and_no_more_of_its_room(installed):
    room = "leeward/policies/agiledart"
    assert topology_jar.room_files("leeward.stores") == {
        "leeward/policies/__init__.py", f"{room}/__init__.py", f"{room}/recovery/__init__.py",
        *(f"{room}/recovery/{name}.py" for name in ("scheme", "settings", "coding", "fetch", "tuning")),
    }  # fmt: skip
    assert topology_jar.room_files("leeward.stores") <= {name for name, _ in topology_jar.package_tree()}


def test_a_task_whose_bytes_are_in_redis_loads_nothing_of_it():
    code = (
        "import sys, leeward.runtime.task.elastic\n"
        "from leeward.core.secrets import NO_SECRETS\n"
        "from leeward.runtime.state.schemes import scattered_of\n"
        "assert scattered_of({}, 'n1', NO_SECRETS) is None\n"
        "names = ('leeward.runtime.state.scattered', 'leeward.wire.fragments', 'zfec', 'leeward.core.fragments')\n"
        "assert not set(names) & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
