"""Leeward's block in a cluster's own storm.yaml."""

from __future__ import annotations

import pytest
import yaml

from leeward.core.errors import ConfigError
from leeward.deploy.storm_yaml import BEGIN, merged, own_part

OWN = "# a comment\nnimbus.seeds: [a]   # kept\nworker.childopts: -Xmx64m"


def test_own_lines_stay_and_own_values_win():
    text = merged(OWN, {"worker.childopts": "x", "b": 2}, demanded={"c": "d"}, where="w")
    assert text.startswith(OWN + "\n" + BEGIN)
    assert yaml.safe_load(text) == {"nimbus.seeds": ["a"], "worker.childopts": "-Xmx64m", "b": 2, "c": "d"}


@pytest.mark.parametrize("own", ["", OWN, OWN + "\n"])
def test_a_second_time_changes_nothing_and_a_new_block_replaces_the_old(own: str):
    once = merged(own, {"b": 2}, demanded={}, where="w")
    assert merged(once, {"b": 2}, demanded={}, where="w") == once
    other = merged(once, {"e": 5}, demanded={}, where="w")
    assert "b" not in yaml.safe_load(other) and other.count(BEGIN) == 1
    assert own_part(other).rstrip("\n") == own.rstrip("\n")


def test_lines_behind_the_block_stay():
    once = merged(OWN, {"b": 2}, demanded={}, where="w") + "late: 1\n"
    assert yaml.safe_load(merged(once, {"b": 3}, demanded={}, where="w"))["late"] == 1


def test_an_own_value_that_leeward_cannot_live_with_is_refused():
    with pytest.raises(ConfigError, match=r"w: nimbus.seeds is \['a'\], and Leeward needs \['b'\]\. Remove the line"):
        merged(OWN, {}, demanded={"nimbus.seeds": ["b"]}, where="w")
    with pytest.raises(ConfigError, match="w: is no YAML"):
        merged("a: [", {}, demanded={}, where="w")
