"""Inputs of elastic components as streamparse writes them, and refusals that name component, input and remedy."""

from __future__ import annotations

import re

import pytest
import streamparse
from streamparse import Grouping, JavaSpout, Stream
from streamparse.thrift import GlobalStreamId

from leeward.core.errors import ConfigError
from leeward.runtime import ElasticBolt, StatefulBolt, StatefulSpout, Topology, balanced, keyed


class Words(StatefulSpout):
    outputs = (Stream(["word", "at"]), Stream(["letter"], name="letters"), Stream(["n"], name="told", direct=True))


class Split(ElasticBolt):
    outputs = ("part",)


class Count(StatefulBolt):
    outputs = ("word", "count")


class Stock(streamparse.Spout):
    outputs = ("word",)


class Printer(streamparse.Bolt):
    outputs = ()


ONE = {"leeward.max_replicas": 1}


def routes(spec):
    """Stream -> grouping and its fields."""
    found = {}
    for stream, grouping in spec.inputs.items():
        java = grouping.custom_object
        found[stream.streamId] = (java.full_class_name.rpartition(".")[2], [arg.string_arg for arg in java.args_list])
    return found


KEYED, BALANCED, MARKER = ("KeyedGrouping", ["word"]), ("BalancedGrouping", []), ("MarkerGrouping", [])


def test_inputs_may_be_written_as_in_streamparse():
    words = Words.spec()
    plain = {"default": BALANCED, "marker": MARKER}
    assert routes(Split.spec(inputs=[words])) == plain
    assert routes(Split.spec(inputs=words)) == plain
    assert routes(Split.spec(inputs=(words["default"],))) == plain
    for grouping in (Grouping.SHUFFLE, Grouping.LOCAL_OR_SHUFFLE, Grouping.NONE):
        assert routes(Split.spec(inputs={words: grouping})) == plain
    assert routes(Count.spec(inputs={words: Grouping.fields("word")})) == {"default": KEYED, "marker": MARKER}


def test_several_streams_of_one_source_and_of_several():
    words, named = Words.spec(), Words.spec(name="named")
    both = routes(Split.spec(inputs=[words, words["letters"]]))
    assert both == {"default": BALANCED, "letters": BALANCED, "marker": MARKER}
    spec = Count.spec(inputs={words: keyed("word"), named["letters"]: Grouping.fields("letter")})
    assert [stream.streamId for stream in spec.inputs].count("marker") == 2
    assert routes(spec)["letters"] == ("KeyedGrouping", ["letter"])


def test_a_topology_of_them_is_built_and_can_be_written(tmp_path):
    class Known(Topology):
        words = Words.spec(name="the_words")
        split = Split.spec(inputs=[words["letters"]], par=2)
        count = Count.spec(inputs={words: Grouping.fields("word")}, par=2)
        printer = Printer.spec(inputs={count["default"]: Grouping.fields("word")})

    Known.write(str(tmp_path / "topology"))
    inputs = Known.thrift_bolts["split"].common.inputs
    assert sorted((stream.componentId, stream.streamId) for stream in inputs) == [
        ("the_words", "letters"),
        ("the_words", "marker"),
    ]


@pytest.mark.parametrize("options", [{"par": 1}, {"par": 2, "config": ONE}])
def test_one_replica_may_keep_state_of_all_keys(options):
    assert routes(Count.spec(inputs={Words.spec(): balanced()}, **options))["default"] == BALANCED


def java():
    return JavaSpout.spec(full_class_name="com.example.Words", args_list=[], outputs=["word"])


CUSTOM = Grouping.custom_object("com.example.Mine", [1])
REFUSED = [
    (lambda: Split.spec(), "Split has no input. Give it inputs"),
    (lambda: Split.spec(inputs=[]), "Split has no input."),
    (lambda: Split.spec(inputs="words"), "Split takes a str as input. Give components or their streams"),
    (lambda: Split.spec(inputs={Words.spec(): "word"}), "Split takes Words by a str. Use balanced() or keyed("),
    (lambda: Split.spec(inputs={Words.spec(): Grouping.GLOBAL}), "Split takes Words by Grouping.GLOBAL, .* balanced()"),
    (lambda: Split.spec(inputs={Words.spec(): Grouping.ALL}), "Split takes Words by Grouping.ALL, .* pulse"),
    (lambda: Split.spec(inputs={Words.spec(): Grouping.DIRECT}), "Split takes Words by Grouping.DIRECT, .* keyed("),
    (lambda: Split.spec(inputs=[Words.spec()["told"]]), "Split takes Words['told'] by Grouping.DIRECT, .* keyed("),
    (lambda: Split.spec(inputs={Words.spec(): CUSTOM}), "Split takes Words by com.example.Mine, .* keyed("),
    (
        lambda: Split.spec(inputs={Words.spec(): Grouping.custom_serialized(b"..")}),
        "Split takes Words by a serialized grouping, ",
    ),
    (lambda: Split.spec(inputs=[Stock.spec()]), "Split takes Stock, which sends no markers, .* Derive Stock from"),
    (lambda: Split.spec(inputs=[java()]), "Split takes JavaSpout com.example.Words, which sends no markers, .* Python"),
    (
        lambda: Split.spec(inputs=[GlobalStreamId(componentId="stock", streamId="default")]),
        "Split takes the stream 'default' of 'stock' by name, .* stock['default']",
    ),
    (lambda: Split.spec(inputs=[Words.spec()["marker"]]), "Split takes Words['marker'], .* balanced()"),
    (
        lambda: Split.spec(name="halves", inputs={Words.spec(name="w"): keyed("nope")}),
        "halves takes w by keyed('nope'), but w declares 'word', 'at'. Name one of these",
    ),
    (
        lambda: Count.spec(inputs={Words.spec()["letters"]: Grouping.fields("letter", "word")}),
        "Count takes Words['letters'] by keyed('letter', 'word'), but Words['letters'] declares 'letter'.",
    ),
    (
        lambda: Count.spec(inputs={Words.spec(): Grouping.fields(*"abcd")}),
        "Count takes Words by 4 fields. Name one to three",
    ),
    (
        lambda: Count.spec(inputs=[Words.spec()], par=2),
        "Count keeps state and takes Words by balanced(), .* keyed('word')",
    ),
    (
        lambda: Count.spec(inputs={Words.spec(): Grouping.SHUFFLE}, par=2),
        "Count keeps state .* 'leeward.max_replicas': 1",
    ),
    (
        lambda: type("Silent", (StatefulSpout,), {"outputs": [Stream(["n"], name="marker")]}).spec(),
        "Silent declares a stream 'marker', .* another name",
    ),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=[message[:60] for _, message in REFUSED])
def test_inputs_without_a_meaning_are_refused(build, message):
    with pytest.raises(ConfigError) as refusal:
        build()
    text = str(refusal.value)
    assert re.match(re.escape(message).replace(r"\ \.\*\ ", " .*"), text), text
    assert len(text) < 330 and "(component" not in text and "<" not in text, "objects were printed"


def test_a_stock_bolt_has_no_table_to_route_by():
    refusal = r"printer is not elastic, but takes count by keyed\('word'\).* Grouping\.fields\('word'\)"
    with pytest.raises(ConfigError, match=refusal):

        class Wrong(Topology):
            words = Words.spec()
            count = Count.spec(inputs={words: keyed("word")})
            printer = Printer.spec(inputs={count: keyed("word")})
