"""The bolts by themselves, and the topology as Storm gets it."""

from io import BytesIO

from pystorm import Tuple
from word_bolts import Count, Split

from topologies.words import Words


def run(bolt_class, *rows):
    """Rows that a bolt sends for these rows."""
    bolt = bolt_class(input_stream=BytesIO(), output_stream=BytesIO())
    bolt.initialize({}, {})
    sent = []
    bolt.emit = lambda values, **_options: sent.append(values)
    for number, row in enumerate(rows):
        bolt.process(Tuple(id=str(number), component="test", stream="default", task=1, values=row))
    return sent


def test_a_line_becomes_its_words():
    assert run(Split, ["the wind"]) == [["the"], ["wind"]]


def test_a_word_is_counted():
    assert run(Count, ["sea"], ["wind"], ["sea"]) == [["sea", 1], ["wind", 1], ["sea", 2]]


def test_the_topology_has_its_components():
    assert [spec.name for spec in Words.specs] == ["lines", "split", "count", "table"]
