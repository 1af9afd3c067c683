"""Settings: defaults, overrides, and a clear error for each way to get them wrong."""

from __future__ import annotations

import pytest

from leeward.control.registry import describe_all, policy_of, setting_names
from leeward.control.settings_check import names_files
from leeward.core.errors import ConfigError
from leeward.core.options import read
from leeward.core.settings import Settings, settings_from
from leeward.policies.baselines.settings import EvenSettings


def test_defaults_and_overrides():
    assert settings_from({}).service == Settings()
    document = {"period_s": 5, "policy": "even", "even": {"target": 0.5, "headroom": 0}}
    chosen = settings_from(document, ["period_s=2.5", "restore_from_start=false", "eps_max=2", "even.headroom=0.3"])
    mine = chosen.service
    assert (mine.period_s, mine.policy, mine.restore_from_start, mine.eps_max) == (2.5, "even", False, 2)
    assert mine.limits.restore_from_start is False
    assert read(EvenSettings, chosen.policies["even"], where="even.") == EvenSettings(target=0.5, headroom=0.3)


@pytest.mark.parametrize(
    ("document", "options", "message"),
    [
        ({"peroid_s": 1}, [], r"unknown setting 'peroid_s' \(value 1\)\. Did you mean period_s"),
        ({}, ["zzz=1"], r"unknown setting 'zzz' .*Known: policy"),
        ({"period_s": "10"}, [], r"'period_s' is '10', of type str\. Give a number, such as 10\.0"),
        ({"eps_max": 1.5}, [], r"'eps_max' is 1\.5, of type float\. Give a whole number"),
        ({"restore_from_start": 1}, [], r"Give true or false"),
        ({"eps_max": True}, [], r"of type bool"),
        ({}, ["period_s=fast"], r"'period_s' is 'fast'\. Give a number"),
        ({}, ["restore_from_start=1"], r"Give true or false"),
        ({}, ["period_s"], r"has no '='"),
        ({"period_s": 0.0}, [], r"at least 0\.1"),
        ({"period_s": float("nan")}, [], r"at least 0\.1"),
        ({"policy": "edpr"}, [], r"unknown policy 'edpr' .*Did you mean edrp"),
        ({"edrp": {"w_r": 0.9}}, [], r"edrp\.w_r, .*their sum is 1\.45\. Make the sum 1"),
        ({"edrp": {"w_rr": 0.9}}, [], r"unknown setting 'edrp\.w_rr' \(value 0\.9\)\. Did you mean edrp\.w_r"),
        ({}, ["edrp.method=guess"], r"'edrp\.method' is 'guess'\. Choose one of"),
        ({}, ["method=exact"], r"unknown setting 'method' .*Did you mean edge-cloud\.method or edrp\.method\?"),
        ({"edpr": {"w_r": 0.4}}, [], r"unknown policy 'edpr' .*Did you mean edrp"),
        ({"topologies": {"q1": {"at_once": 1}}}, [], r"'topologies\.q1\.at_once' is given, .*service as a whole"),
        ({}, ["policy=no_such:Policy"], r"cannot be loaded .*Make no_such importable, with Policy in it"),
    ],
)
def test_errors_name_key_value_and_remedy(document, options, message):
    with pytest.raises(ConfigError, match=message):
        policy_of(settings_from(document, options, more=setting_names))


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"policy": "edrp", "edrp": {"w_r": 0.5}}, False),
        ({"network": "sites.toml"}, True),
        ({"topologies": {"q1": {"network": "sites.toml"}}}, True),
        ({"bimodal": {"agents": "agents.json"}}, True),
        ({"topologies": {"q1": {"policy": "mine:Policy"}}}, True),
    ],
)
def test_settings_that_name_a_file_may_mean_something_else_the_next_time(document, named):
    assert names_files(settings_from(document)) is named


def test_every_setting_is_described():
    lines = describe_all().splitlines()
    assert "eps_max = 4 replicas: replicas that a worker slot may hold (EPS_max)" in lines
    assert "edrp.w_r = 0.45: weight of response time" in lines
    assert {line.split(" ")[0] for line in lines if "." in line.split(" ")[0]} == set(setting_names())


def test_a_policy_of_a_module_of_the_users_own(monkeypatch, tmp_path):
    (tmp_path / "my_policies.py").write_text("class Stay:\n    def __init__(self, settings):\n        pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert type(policy_of(settings_from({}, ["policy=my_policies:Stay"]))).__name__ == "Stay"
    with pytest.raises(ConfigError, match=r"unknown setting 'my_policies:Stay\.x'"):
        policy_of(settings_from({"policy": "my_policies:Stay", "my_policies:Stay": {"x": 1}}))


def test_none_decides_nothing():
    assert policy_of(settings_from({}, ["policy=none"])) is None
