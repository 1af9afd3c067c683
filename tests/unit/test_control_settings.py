"""Settings: defaults, overrides, and a clear error for each way to get them wrong."""

from __future__ import annotations

import pytest

from leeward.core.errors import ConfigError
from leeward.core.settings import Settings, describe, settings_from


def test_defaults_and_overrides():
    assert settings_from({}) == Settings()
    chosen = settings_from({"period_s": 5, "policy": "even"}, ["period_s=2.5", "restore_from_start=false", "eps_max=2"])
    assert (chosen.period_s, chosen.policy, chosen.restore_from_start, chosen.eps_max) == (2.5, "even", False, 2)
    assert chosen.limits.restore_from_start is False


@pytest.mark.parametrize(
    ("document", "options", "message"),
    [
        ({"peroid_s": 1}, [], r"unknown setting 'peroid_s' \(value 1\)\. Did you mean period_s"),
        ({}, ["zzz=1"], r"unknown setting 'zzz' .*Known settings: policy"),
        ({"period_s": "10"}, [], r"'period_s' is '10', of type str\. Give a number, such as 10\.0"),
        ({"eps_max": 1.5}, [], r"'eps_max' is 1\.5, of type float\. Give a whole number"),
        ({"restore_from_start": 1}, [], r"Give true or false"),
        ({"eps_max": True}, [], r"of type bool"),
        ({}, ["period_s=fast"], r"'period_s' is 'fast'\. Give a number"),
        ({}, ["restore_from_start=1"], r"Give true or false"),
        ({}, ["period_s"], r"has no '='"),
        ({"period_s": 0.0}, [], r"at least 0\.1"),
        ({"period_s": float("nan")}, [], r"at least 0\.1"),
        ({"policy": "best"}, [], r"Choose one of edrp, even, none"),
        ({"w_r": 0.9}, [], r"their sum is 1\.45\. Make the sum 1"),
    ],
)
def test_errors_name_key_value_and_remedy(document, options, message):
    with pytest.raises(ConfigError, match=message):
        settings_from(document, options)


def test_every_setting_is_described():
    assert "eps_max = 4 replicas: replicas that a worker slot may hold (EPS_max)" in describe()
