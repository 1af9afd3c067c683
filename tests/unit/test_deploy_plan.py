"""From facts to steps: order, restarts, refusals."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leeward.core.errors import ConfigError
from leeward.deploy.errors import RolloutRefusedError
from leeward.deploy.facts import Facts, Manifest, kept_path, manifest_path, question, read_answer
from leeward.deploy.inventory import Host, Inventory, Role, read_inventory
from leeward.deploy.plan import plan_rollback, plan_rollout
from leeward.deploy.steps import Check, Prune, Restart, Restore, Stage, StageVenv, Switch, SwitchLink
from leeward.deploy.wanted import managed_paths, wanted_of
from tests.helpers.deploy_hosts import OWN_YAML, artifacts_of

HOSTS = tuple(
    Host(name=name, address=name, roles=frozenset(roles), storm_home="/opt/storm", folder="/opt/leeward")
    for name, roles in {
        "n1": {Role.NIMBUS},
        "w1": {Role.SUPERVISOR},
        "w2": {Role.SUPERVISOR},
        "d1": {Role.DATASTORE, Role.SERVICE},
    }.items()
)
INVENTORY = Inventory(hosts=HOSTS, redis="redis://d1:6379/0")
JAR = "/opt/storm/extlib-daemon/leeward-plugin.jar"


def bare(host: Host, **more) -> Facts:
    """A host that no rollout has seen."""
    yaml = {"storm_yaml": OWN_YAML} if host.roles & {Role.NIMBUS, Role.SUPERVISOR} else {}
    storm = "2.8.3" if yaml else ""
    free = dict.fromkeys(managed_paths(host), ("/", 1 << 40))
    return replace(Facts(host=host.name, storm_version=storm, python="3.11.2", free=free, **yaml), **more)


def done(host: Host, artifacts, facts: Facts) -> Facts:
    """The same host after a complete rollout."""
    wanted = wanted_of(host, INVENTORY, artifacts, facts)
    manifest = Manifest(number=1, rollout="r", complete=True, present=wanted.fingerprints, previous={})
    venvs = frozenset({wanted.venv.digest} if wanted.venv else ())
    yaml = next((file.content.decode() for file in wanted.files if file.path.endswith("storm.yaml")), "")
    return replace(
        facts, installed=wanted.fingerprints, manifest=manifest, venvs=venvs, storm_yaml=yaml, service_runs=True
    )


BARE = {host.name: bare(host) for host in HOSTS}


def plan(artifacts=None, facts=BARE, **options):
    return plan_rollout(INVENTORY, HOSTS, artifacts or artifacts_of(1), facts, **options)


def test_nothing_is_put_in_place_before_all_is_staged_and_nimbus_restarts_before_the_service():
    steps = plan().steps
    kinds = [type(step) for step in steps]
    assert kinds[0] is Check and steps[0].role is Role.DATASTORE
    last_staged = max(at for at, kind in enumerate(kinds) if kind in (Stage, StageVenv))
    first_switched = min(at for at, kind in enumerate(kinds) if kind in (Switch, SwitchLink))
    assert last_staged < first_switched
    assert [step.role for step in steps if isinstance(step, Restart)] == [Role.NIMBUS, Role.SERVICE]
    assert not any(isinstance(step, Restart) and step.host.startswith("w") for step in steps)
    assert all(step.path.endswith("rollout.json") for step in steps[-4:])


def test_a_second_rollout_of_the_same_has_no_step():
    facts = {host.name: done(host, artifacts_of(1), BARE[host.name]) for host in HOSTS}
    assert plan(facts=facts).steps == ()


@pytest.mark.parametrize(
    ("artifacts", "roles"),
    [
        (artifacts_of(1, plugin=2), [Role.NIMBUS]),
        (artifacts_of(2, plugin=1), [Role.SERVICE]),
        (artifacts_of(1, secrets=2), [Role.NIMBUS, Role.SERVICE]),
        (artifacts_of(1, runtime=2), []),
        (replace(artifacts_of(1), storm_conf={"task.refresh.poll.secs": 1}), [Role.NIMBUS]),
    ],
)
def test_only_what_changed_is_restarted(artifacts, roles):
    facts = {host.name: done(host, artifacts_of(1), BARE[host.name]) for host in HOSTS}
    steps = plan(artifacts, facts).steps
    assert [step.role for step in steps if isinstance(step, Restart)] == roles
    assert any(isinstance(step, Switch | SwitchLink) for step in steps)


def test_a_service_that_does_not_run_is_started():
    facts = {host.name: done(host, artifacts_of(1), BARE[host.name]) for host in HOSTS}
    facts["d1"] = replace(facts["d1"], service_runs=False)
    assert [type(step) for step in plan(facts=facts).steps] == [Check, Restart, Check]


def test_a_supervisor_that_keeps_old_settings_is_told():
    assert [note[:2] for note in plan().notes] == ["w1", "w2"]


def test_a_rollout_that_broke_off_before_the_restart_still_restarts():
    facts = {host.name: done(host, artifacts_of(2), BARE[host.name]) for host in HOSTS}
    found = facts["n1"]
    begun = replace(found.manifest, complete=False, previous={**found.installed, JAR: "old"})
    facts["n1"] = replace(found, manifest=begun)
    steps = plan(artifacts_of(2), facts).steps
    assert [step.role for step in steps if isinstance(step, Restart)] == [Role.NIMBUS]
    staged = next(step for step in steps if isinstance(step, Stage) and step.host == "n1")
    assert Manifest.from_json(staged.file.content.decode(), "").previous[JAR] == "old"


def test_versions_that_no_way_back_leads_to_are_removed():
    facts = {host.name: done(host, artifacts_of(1), BARE[host.name]) for host in HOSTS}
    facts["n1"] = replace(facts["n1"], kept=frozenset({kept_path(JAR, "older")}))
    facts["d1"] = replace(facts["d1"], venvs=frozenset({"service0", "service1"}))
    steps = plan(artifacts_of(2), facts).steps
    assert [step.paths for step in steps if isinstance(step, Prune)] == [
        (kept_path(JAR, "older"),), ("/opt/leeward/venvs/service0",),
    ]  # fmt: skip


def refused(**facts: Facts) -> str:
    with pytest.raises(RolloutRefusedError) as caught:
        plan(facts={**BARE, **facts})
    return str(caught.value)


@pytest.mark.parametrize(
    ("host", "change", "said"),
    [
        ("w2", {"storm_version": "1.2.4"}, "host w2: Storm is 1.2.4, and the plugin needs 2.4 or newer"),
        ("n1", {"storm_version": "3.1.0"}, "host n1: Storm is 3.1.0"),
        ("w1", {"storm_version": ""}, "host w1: storm_home is /opt/storm"),
        ("n1", {"plugin_jars": frozenset({"/opt/storm/extlib/lw.jar"})}, "host n1: plugin: /opt/storm/extlib/lw.jar"),
        ("n1", {"installed": {JAR: "abcd"}}, f"host n1: plugin: {JAR} is of another version (sha256 abcd)"),
        ("d1", {"python": "3.9.2"}, "host d1: python is 3.9.2"),
        ("w1", {"python": ""}, "host w1: python is not there"),
        ("n1", {"free": {JAR: ("/opt", 1000)}}, "host n1: disk: /opt has 0 MiB free, and the rollout needs 16 MiB"),
        ("n1", {"storm_yaml": "storm.scheduler: other\n"}, "storm.yaml: storm.scheduler is 'other', and Leeward needs"),
        ("w1", {"storm_yaml": "- a\n"}, "host w1: /opt/storm/conf/storm.yaml: is no map"),
    ],
)  # fmt: skip
def test_a_refusal_names_host_field_value_and_remedy(host: str, change: dict, said: str):
    text = refused(**{host: bare(next(each for each in HOSTS if each.name == host), **change)})
    assert text.startswith("nothing was changed:") and said in text and text.rstrip().endswith(".")


def test_all_refusals_are_told_at_once():
    text = refused(w1=bare(HOSTS[1], storm_version="1.0.0"), n1=bare(HOSTS[0], storm_version="1.0.1"))
    assert "1.0.0" in text and "1.0.1" in text


def test_a_foreign_plugin_is_replaced_if_that_is_asked_for_and_kept():
    facts = {**BARE, "n1": bare(HOSTS[0], installed={JAR: "abcd"})}
    switch = next(
        step for step in plan(facts=facts, replace=True).steps if isinstance(step, Switch) and step.path == JAR
    )
    assert "leeward-plugin.jar.kept-abcd" in switch.script


def test_a_rollback_without_a_rollout_is_refused():
    with pytest.raises(RolloutRefusedError, match="no rollout is known on n1, w1, w2, d1"):
        plan_rollback(INVENTORY, HOSTS, BARE)


def with_manifests(**numbers: tuple[int, str]) -> dict[str, Facts]:
    found = {}
    for host in HOSTS:
        number, rollout = numbers.get(host.name, (1, "r"))
        manifest = Manifest(number=number, rollout=rollout, complete=True, present={JAR: "new"}, previous={JAR: "old"})
        kept = frozenset({kept_path(JAR, "old")})
        found[host.name] = bare(host, manifest=manifest, installed={JAR: "new"}, kept=kept)
    return found


def test_a_rollback_takes_back_the_last_rollout_where_it_was():
    steps = plan_rollback(INVENTORY, HOSTS, with_manifests(n1=(2, "s"), w2=(2, "s"))).steps
    assert {step.host for step in steps} == {"n1", "w2"}
    assert [step.role for step in steps if isinstance(step, Restart)] == [Role.NIMBUS]
    with pytest.raises(RolloutRefusedError, match=r"their last rollouts differ \(w2 t, n1 s\)"):
        plan_rollback(INVENTORY, HOSTS[::-1], with_manifests(n1=(2, "s"), w2=(2, "t")))


def test_a_rollback_that_would_lose_what_people_have_changed_since_is_refused():
    facts = with_manifests(n1=(2, "s"))
    facts["n1"] = replace(facts["n1"], installed={JAR: "edited"})
    with pytest.raises(RolloutRefusedError, match=f"host n1: {JAR} was changed after the rollout, and that would be"):
        plan_rollback(INVENTORY, HOSTS, facts)


def test_a_rollback_leaves_alone_what_the_rollout_has_not_changed():
    facts = with_manifests(n1=(2, "s"))
    yaml = "/opt/storm/conf/storm.yaml"
    manifest = replace(
        facts["n1"].manifest, present={JAR: "new", yaml: "same"}, previous={JAR: "old", yaml: "same"}
    )  # fmt: skip
    facts["n1"] = replace(facts["n1"], manifest=manifest, installed={JAR: "new", yaml: "edited since"})
    steps = plan_rollback(INVENTORY, HOSTS, facts).steps
    assert [step.path for step in steps if isinstance(step, Restore)] == [JAR, manifest_path(HOSTS[0])]


def test_a_rollback_takes_no_complete_rollout_back_with_one_that_broke_off():
    facts = with_manifests(n1=(2, "s"), w1=(2, "t"))
    facts["w1"] = replace(facts["w1"], manifest=replace(facts["w1"].manifest, complete=False))
    with pytest.raises(RolloutRefusedError, match=r"their last rollouts differ \(n1 s, w1 t\)"):
        plan_rollback(INVENTORY, HOSTS, facts)
    steps = plan_rollback(INVENTORY, HOSTS[1:], facts).steps
    assert {step.host for step in steps} == {"w1"}


def test_a_rollback_whose_kept_version_is_gone_is_refused():
    manifest = Manifest(number=1, rollout="r", complete=True, present={JAR: "new"}, previous={JAR: "old"})  # fmt: skip
    facts = {host.name: bare(host, manifest=manifest, installed={JAR: "new"}) for host in HOSTS}
    with pytest.raises(RolloutRefusedError, match=r"kept-old is gone\. Only one rollout can be taken back"):
        plan_rollback(INVENTORY, HOSTS, facts)


def test_no_line_shows_a_secret():
    planned = plan(artifacts_of(1, secrets=123))
    assert not any("p123" in line for line in planned.lines) and "p123" not in repr(planned)


def test_an_answer_that_is_not_whole_is_refused():
    with pytest.raises(ConfigError, match="host n1: its answer is not whole: 'oops'"):
        read_answer(HOSTS[0], "oops")
    assert "sha256sum" in question(HOSTS[0], managed_paths(HOSTS[0]), "python3")


GOOD = {"redis": "redis://d:6379/0", "host": [{"name": "a", "roles": ["nimbus"]}]}


def test_an_inventory_is_read():
    found = read_inventory({**GOOD, "storm_home": "/srv/storm", "user": "storm"})
    assert found.hosts[0].storm_home == "/srv/storm" and found.nimbus_addresses == ("a:6627",)
    assert found.select(["nimbus"]) == found.hosts and found.select(["supervisor"]) == ()
    assert found.select(["supervisor"], ["a"]) == found.select([], ["a"]) == found.hosts
    with pytest.raises(ConfigError, match=r"-H: 'b' is not in the inventory\. Use of a"):
        found.select([], ["b"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"redis": "redis://:pw@d"}, "redis"),
        ({"redis": "http://d"}, "redis: 'http://d' is no URL of Redis"),
        ({"colour": 1}, "unknown field of the inventory 'colour'"),
        ({"host": []}, "host: there is none"),
        ({"host": [{"name": "a", "roles": ["drpc"]}]}, "host 'a': role 'drpc' is not known. Use of nimbus, supervisor"),
        ({"host": [{"name": "a", "roles": []}]}, "host 'a': roles is []"),
        ({"host": [{"name": "a", "roles": ["nimbus"], "folder": "opt"}]}, "host 'a': folder is 'opt'"),
        ({"host": GOOD["host"] * 2}, "host: 'a' is there twice"),
        ({"user": "a b"}, "user: 'a b' has a blank"),
        ({"host": [{"name": "a", "address": "a;b", "roles": ["nimbus"]}]}, "host 'a': address: 'a;b' has a blank, or"),
        ({"sudo": "yes"}, "sudo: 'yes' has a wrong type"),
        ({"sudo": True}, "user: is missing beside sudo"),
        ({"serve": "--http"}, "serve: '--http' has a wrong type"),
        ({"serve": ["--http", "$HOST:1"]}, "serve: '$HOST:1' has a blank, or a sign that a shell takes for its own"),
        ({"nimbus_port": True}, "nimbus_port: True has a wrong type"),
    ],
)
def test_a_wrong_inventory_is_refused_with_field_and_value(change: dict, said: str):
    with pytest.raises(ConfigError) as caught:
        read_inventory({**GOOD, **change})
    assert said in str(caught.value) and ":pw@" not in str(caught.value)
