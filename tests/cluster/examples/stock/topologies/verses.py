"""The most frequent words."""

from ends import Record
from streamparse import Grouping, Topology
from verse_bolts import Count, Fold, Reader, Split, Top


class Verses(Topology):
    reader = Reader.spec()
    split = Split.spec(inputs={reader: Grouping.fields("line")})
    fold = Fold.spec(inputs={split: Grouping.fields("word")})
    count = Count.spec(inputs={fold: Grouping.fields("word")}, par=2)
    top = Top.spec(inputs={count: Grouping.fields("word")}, config={"topology.tick.tuple.freq.secs": 1})
    record = Record.spec(inputs=[top])
