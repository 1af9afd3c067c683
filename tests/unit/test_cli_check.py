"""`leeward check TOPOLOGY`: refusals of the class, and attributes beside self.state that tuples change."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from leeward.cli import _build
from leeward.core.errors import ConfigError
from leeward.runtime import StatefulBolt
from leeward.runtime.state.written import written_outside
from tests.helpers.doc_blocks import ROOT

BOLTS = """
from collections import Counter, defaultdict
from heapq import heappush
import redis
from leeward.runtime import ElasticBolt, StatefulBolt, StatefulSpout

class Words(StatefulSpout):
    outputs = ["word"]
    def next_tuple(self):
        self.state["n"] = self.state.get("n", 0) + 1

class WordCount(StatefulBolt):
    outputs = ["word", "count"]

    def initialize(self, conf, ctx):
        self.counter = Counter()
        self.total, self.heap = 0, []
        self.client = redis.Redis()
        self.limit = conf.get("limit")

    def _count(self, word):
        counter = self.counter
        counter[word] += 1
        self.total = counter.total()

    def process(self, tup):
        self._count(tup.values[0])
        heappush(self.heap, tup.values[0])
        self.client.append("a", "b")
        self.counters["words"] += self.limit

class Kept(StatefulBolt):
    outputs = ["word"]
    transient = ("cache",)

    def initialize(self, conf, ctx):
        self.cache, self.buffer = {}, []

    def resumed(self):
        self.index = defaultdict(list)

    def before_checkpoint(self, cut):
        self.buffer.clear()

    def process(self, tup):
        self.state["a"] = 1
        self.cache["a"] = self.index["b"].append(1)
        self.buffer.append(tup)

class Sink(StatefulBolt):
    outputs = []
    def process(self, tup):
        print(tup)
"""
TOPOLOGY = """
from {name}_bolts import Kept, Sink, WordCount, Words
from leeward.runtime import Topology, keyed

class Checked(Topology):
    words = Words.spec()
    count = WordCount.spec(inputs={{words: keyed("word")}}, par=2)
    kept = Kept.spec(inputs={{count: keyed("{field}")}}, par=2)
    sink = Sink.spec(inputs={{kept: keyed("word")}})
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A streamparse project whose modules have names of their own in this process."""
    name = f"check_{tmp_path.name.replace('-', '_')}"
    monkeypatch.setattr(sys, "path", sys.path[:])
    for folder in ("src", "topologies"):
        (tmp_path / folder).mkdir()
    (tmp_path / "config.json").write_text('{"topology_specs": "topologies/", "envs": {}}')
    (tmp_path / f"src/{name}_bolts.py").write_text(BOLTS)

    def write(field="word", text=TOPOLOGY):
        (tmp_path / f"topologies/{name}.py").write_text(text.format(name=name, field=field))
        return name

    monkeypatch.chdir(tmp_path)
    return write


def run(*arguments):
    result = CliRunner().invoke(_build(), ["check", *arguments])
    return result.exit_code, result.output


def test_attributes_beside_the_state_are_found_with_their_line(project):
    name = project()
    code, out = run(name, "--output", "json")
    assert code == 1
    document = json.loads(out)
    rows = {(row["level"], row["component"], row["problem"].split(" outside")[0]) for row in document["problems"]}
    assert rows == {
        ("error", "count", "count keeps counter"),
        ("error", "count", "count keeps heap"),
        ("error", "count", "count keeps total"),
        ("error", "sink", "sink keeps state by its class, but no method of it uses self.state."),
    }
    where = next(row["where"] for row in document["problems"] if "counter" in row["problem"])
    line = BOLTS.splitlines().index("        counter[word] += 1") + 1
    assert where.endswith(f"{name}_bolts.py:{line}")


def test_the_table_names_component_and_remedy_and_the_only_topology_needs_no_name(project):
    project()
    code, out = run()
    assert code == 1 and "error: count keeps counter outside of self.state" in out and "resumed()" in out
    assert "error: sink keeps state" in out and out.endswith(": 4 problems\n")


def test_an_iterator_that_a_spout_goes_on_with_is_state(tmp_path, monkeypatch):
    """streamparse's own examples keep their place in the input so, as `next(self.words)`."""
    file = tmp_path / "iterators_of_check.py"
    file.write_text("""
from itertools import cycle
from leeward.runtime import StatefulSpout

class Words(StatefulSpout):
    outputs = ["word"]
    def initialize(self, conf, ctx):
        self.words, self.places = cycle(["dog", "cat"]), ["here"]
    def next_tuple(self):
        place = next(iter(self.places))
        self.emit([next(self.words) + place])
""")
    monkeypatch.syspath_prepend(tmp_path)
    written = written_outside(importlib.import_module("iterators_of_check").Words)
    assert [(entry.attribute, entry.where) for entry in written] == [("words", f"{file}:11")]


def test_an_elastic_bolt_that_keeps_something_is_told_of(project):
    """Each replica would keep a part of it, and none would take it along."""
    name = project()
    file = Path("src") / f"{name}_bolts.py"
    file.write_text(file.read_text().replace("class WordCount(StatefulBolt)", "class WordCount(ElasticBolt)"))
    code, out = run(name, "--output", "json")
    refuses = any(row["level"] == "error" for row in json.loads(out)["problems"])
    assert json.loads(out)["ok"] == (code == 0) == (not refuses), "a warning refuses nothing"
    rows = {(row["level"], row["problem"]) for row in json.loads(out)["problems"] if row["component"] == "count"}
    assert rows == {
        (
            "warning",
            f"count is stateless by its class, but keeps {attribute}, which its tuples change: each replica has its "
            "own, and no key group takes it along.",
        )
        for attribute in ("counter", "heap", "total")
    }
    assert "Derive it from StatefulBolt" in out


def test_a_refusal_of_the_class_is_a_problem(project):
    code, out = run(project(field="nope"), "--output", "yaml")
    assert code == 1 and "Kept takes WordCount by keyed('nope'), but WordCount declares" in out


def test_a_module_that_cannot_be_loaded_is_a_problem(project):
    code, out = run(project(text="import not_there_{name}"), "--output", "json")
    (row,) = json.loads(out)["problems"]
    assert code == 1 and row["problem"].startswith("ModuleNotFoundError: No module named 'not_there_")


def test_nothing_wrong_and_a_file_by_its_path():
    code, out = run(str(ROOT / "topologies/query1.py"), "--output", "json")
    assert (code, json.loads(out)["problems"]) == (0, [])


def test_warnings_of_other_libraries_are_not_printed():
    command = [sys.executable, "-m", "leeward", "check", ROOT / "topologies/query1.py"]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONWARNINGS"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "query1: no problems\n", "")


def test_bad_input(project):
    project()
    result = CliRunner().invoke(_build(), ["check", "nope"])
    assert isinstance(result.exception, ConfigError), "the application's entry prints it, with exit code 2"


class Ways(StatefulBolt):
    outputs = ()

    def process(self, tup):
        self.a = self.b = 1
        (self.c, [self.d]), *self.e = tup
        self.f.g.h = 2
        del self.i["j"]
        for self.k in range(3):
            self.read = self.read_only
        with open(self.path) as file:
            file.read(self.only_read["x"])
        found = self.l
        found.m.append(1)
        found = None
        self.helped(self)

    def helped(self, other):
        self.n |= {1}
        other.o = 2


def test_ways_to_change_an_attribute():
    assert [entry.attribute for entry in written_outside(Ways)] == [*"abcdefiklnr".replace("r", ""), "read"]
