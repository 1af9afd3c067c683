"""Keys of a topology: unknown ones are refused, and every key of the code is in the table."""

from __future__ import annotations

import re

import pytest

from leeward.core.errors import ConfigError
from leeward.core.topology_conf import FIRST_PLAN, KEYS, SERVICE_SPEED, check_conf, declared_rate
from leeward.local.submit import check_option
from tests.helpers.doc_blocks import ROOT


def test_an_unknown_key_is_refused_with_the_nearest_one():
    with pytest.raises(ConfigError, match=r"unknown topology key 'leeward\.max_replica' \(value 3\)\. Did you mean"):
        check_conf({"topology.workers": 2, "query1.out": "x", "leeward.max_replica": 3})
    check_conf({key.name: "x" for key in KEYS if key not in (SERVICE_SPEED, FIRST_PLAN)} | {"topology.debug": True})


@pytest.mark.parametrize("speed", [0, -1, "0.5", None, True, float("nan"), float("inf")])
def test_a_speed_that_is_none_is_refused(speed):
    with pytest.raises(ConfigError, match=r"leeward\.service_speed is .*above 0"):
        check_conf({"leeward.service_speed": speed})


@pytest.mark.parametrize("wait", [-1, "30", None, True, float("nan"), float("inf")])
def test_a_wait_for_the_first_plan_that_is_no_time_is_refused(wait):
    with pytest.raises(ConfigError, match=r"leeward\.first_plan\.secs is .*seconds"):
        check_conf({"leeward.first_plan.secs": wait})
    check_conf({"leeward.first_plan.secs": 0.5})


def test_a_declared_rate_follows_from_rate_and_speed():
    assert declared_rate({"leeward.service_rate": 200}, {"leeward.service_speed": 0.5}) == 100
    assert declared_rate({"leeward.service_rate": 200}, {}) == 200
    for without in ({}, {"leeward.service_rate": {"edge": 3}}, {"leeward.service_rate": 0}):
        assert declared_rate(without, {"leeward.service_speed": 0.5}) is None


def test_every_key_in_the_code_is_in_the_table():
    known = {key.name for key in KEYS} | {"leeward.pipe"}  # of the handshake between worker and task
    rooms = "core|control|adapters|policies|runtime|sim|cli|local|dashboard|replay|wire|routers|disciplines|grouping"
    rooms += "|toml|service"  # names of files
    rooms += "|workloads|experiments|stores"  # entry points, as policies, routers and disciplines are
    found = set()
    for folder in ("scheduler/leeward", "bolts", "topologies", "storm/plugin/src/main", "storm/worker/src/main"):
        for path in [p for p in (ROOT / folder).rglob("*") if p.suffix in (".py", ".java")]:
            found |= set(re.findall(rf"[\"'](leeward\.(?!{rooms})[a-z_.]+)[\"']", path.read_text()))
    assert found <= known, found - known


def test_a_wrong_speed_is_refused_before_it_is_submitted():
    check_option("leeward.service_speed=0.5")
    with pytest.raises(ConfigError, match=r"leeward\.service_speed is 0\.\s*.*above 0"):
        check_option("leeward.service_speed=0")
