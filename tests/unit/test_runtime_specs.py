"""Specs of components, as Storm and streamparse are told them, and refusals of bad ones."""

from __future__ import annotations

import json

import pytest
from streamparse import JavaBolt, JavaSpout, Spout, Stream
from streamparse.thrift import Bolt, SpoutSpec
from thriftpy2.utils import deserialize, serialize

from leeward.core.errors import ConfigError
from leeward.runtime import StatefulSpout, balanced, keyed
from tests.helpers.task_worker import Count, Pass


class Source(StatefulSpout):
    outputs = ["key"]


def test_specs_carry_the_marker_stream():
    source, passing = Source.spec(name="source"), None
    passing = Pass.spec(name="passing", inputs={source: balanced()}, par=2)
    count = Count.spec(name="count", inputs={passing: keyed("key")}, par=3)
    assert {stream.streamId for stream in count.inputs} == {"default", "marker"}
    assert sorted(count.common.streams) == ["default", "marker"]
    assert json.loads(count.common.json_conf)["leeward.kind"] == "stateful"


JAVA = r"JavaSpout com\.example\.Words, which sends no markers, .* cannot move\. Write it in Python, derived from"
STOCK = r"takes stock, which sends no markers.* cannot move\. Derive Stock from"
MARKERS = Stream(["kind", "epoch", "tables", "counts", "body"], name="marker")


class Stock(Spout):
    outputs = ["key"]


def java_spout(outputs):
    return JavaSpout.spec(full_class_name="com.example.Words", args_list=[], outputs=outputs)


def java_bolt():
    more = {"outputs": ["key"], "inputs": [Stock.spec(name="stock")]}
    return JavaBolt.spec(full_class_name="com.example.Words", args_list=[], **more)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Pass.spec(inputs=None), "Pass has no input"),
        (lambda: Pass.spec(inputs={Source.spec(name="s"): Source}), "Pass takes s by a type"),
        (lambda: keyed(), "names 0 fields"),
        (lambda: Count.spec(inputs={java_spout(["key"]): keyed("key")}), JAVA),
        (lambda: Count.spec(inputs={java_spout(["key"])["default"]: keyed("key")}), JAVA),
        (lambda: Count.spec(inputs={java_spout([Stream(["key"]), MARKERS]): keyed("key")}), JAVA),
        (lambda: Count.spec(inputs={java_bolt(): keyed("key")}), JAVA.replace("JavaSpout", "JavaBolt")),
        (lambda: Count.spec(inputs={Stock.spec(name="stock"): keyed("key")}), STOCK),
    ],
)
def test_bad_specs_are_refused(build, message):
    with pytest.raises(ConfigError, match=message):
        build()


def assert_started_by(told, java_class, cls):
    """Storm is told of our Java class, which starts a process of the Python class."""
    assert told.shell is None
    assert told.java_object.full_class_name == java_class
    arguments = [argument.string_arg for argument in told.java_object.args_list]
    assert arguments == ["/venv/bin/streamparse_run", f"{cls.__module__}.{cls.__name__}"]


def test_storm_is_told_of_our_bolt_and_streamparse_of_a_shell_component():
    passing = Pass.spec(name="passing", inputs={Source.spec(name="source"): balanced()})
    passing.component_object.shell.execution_command = "/venv/bin/streamparse_run"  # as `sparse submit` does
    told = deserialize(Bolt(), serialize(Bolt(bolt_object=passing.component_object, common=passing.common)))
    assert_started_by(told.bolt_object, "leeward.multilang.PipeBolt", Pass)


def test_storm_receives_our_spout_and_streamparse_a_shell_component():
    source = Source.spec(name="source", config={"a": 1})
    source.component_object.shell.execution_command = "/venv/bin/streamparse_run"  # as `sparse submit` does
    spout = deserialize(SpoutSpec(), serialize(SpoutSpec(spout_object=source.component_object, common=source.common)))
    assert_started_by(spout.spout_object, "leeward.multilang.PipeSpout", Source)
    conf = json.loads(spout.common.json_conf)
    assert (conf["a"], conf["leeward.kind"]) == (1, "source")
