"""Keys of a topology: unknown ones are refused, and every key of the code is in the table."""

from __future__ import annotations

import re

import pytest

from leeward.core.errors import ConfigError
from leeward.core.topology_conf import KEYS, check_conf
from tests.doc_blocks import ROOT


def test_an_unknown_key_is_refused_with_the_nearest_one():
    with pytest.raises(ConfigError, match=r"unknown topology key 'leeward\.max_replica' \(value 3\)\. Did you mean"):
        check_conf({"topology.workers": 2, "query1.out": "x", "leeward.max_replica": 3})
    check_conf({key.name: "x" for key in KEYS} | {"topology.debug": True})


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
