"""Counts the words of a text, by a source, two steps and a sink."""

from word_bolts import Count, Lines, Split, Table

from leeward.runtime import Topology, balanced, keyed


class Words(Topology):
    lines = Lines.spec()
    split = Split.spec(inputs={lines: balanced()}, par=2)
    count = Count.spec(inputs={split: keyed("word")}, par=3)
    table = Table.spec(inputs={count: keyed("word")})
