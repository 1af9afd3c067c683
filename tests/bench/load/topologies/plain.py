"""Source, bolt, bolt: one task each."""

from load_stock import Pass, Sink, Source
from streamparse import Grouping, Topology


class Plain(Topology):
    source = Source.spec()
    passing = Pass.spec(inputs={source: Grouping.fields("key")})
    sink = Sink.spec(inputs={passing: Grouping.fields("key")})
