"""The base class of topologies, as streamparse's command line finds what derives from it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from streamparse.util import get_topology_from_file

from leeward.runtime import DEFAULTS

BOLTS = """
from leeward.runtime import StatefulBolt, StatefulSpout

class Lines(StatefulSpout):
    outputs = ["line"]

class Count(StatefulBolt):
    outputs = []
"""
TOPOLOGY = """
from {name}_bolts import Count, Lines
from leeward.runtime import Topology, keyed

class Words(Topology):
    config = {{"a": 1, "topology.spout.wait.strategy": "own"}}
    lines = Lines.spec()
    count = Count.spec(inputs={{lines: keyed("line")}})
"""


@pytest.fixture
def words(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    name = f"words_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}_bolts.py").write_text(BOLTS)
    (tmp_path / f"{name}.py").write_text(TOPOLOGY.format(name=name))
    return get_topology_from_file(str(tmp_path / f"{name}.py"))


def test_streamparse_submits_what_derives_from_it_and_not_itself(words):
    assert words.__name__ == "Words" and set(words.thrift_bolts) == {"count"}


def test_it_has_the_defaults_where_it_says_nothing_else(words):
    assert words.config == DEFAULTS | {"a": 1, "topology.spout.wait.strategy": "own"}


PRINTING = """
import streamparse
from leeward.runtime import ElasticBolt

print("printed while it is imported")

class Ours(ElasticBolt):
    outputs = []

class Stock(streamparse.Bolt):
    outputs = []
"""
HANDSHAKE = {"conf": {"pystorm.log.level": "error"}, "context": {}}


@pytest.mark.parametrize("component", ["Ours", "Stock"])
def test_what_a_module_prints_does_not_reach_storm(tmp_path, component):
    (tmp_path / "printing.py").write_text(PRINTING)
    (tmp_path / "workers/w/pids").mkdir(parents=True)
    hello = json.dumps(HANDSHAKE | {"pidDir": str(tmp_path / "workers/w/pids")}) + "\nend\n"
    run = subprocess.run(
        [Path(sys.executable).with_name("streamparse_run"), "printing." + component],
        cwd=tmp_path, input=hello, capture_output=True, text=True, timeout=60,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    first, _, _ = run.stdout.partition("\nend\n")
    assert json.loads(first).keys() == {"pid"}, run.stdout + run.stderr
    assert "printed while it is imported" in run.stderr
