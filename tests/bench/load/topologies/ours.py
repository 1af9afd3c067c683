"""Source, bolt, bolt: one task each."""

from load_ours import Pass, Sink, Source

from leeward.runtime import Topology, keyed


class Ours(Topology):
    source = Source.spec()
    passing = Pass.spec(inputs={source: keyed("key")})
    sink = Sink.spec(inputs={passing: keyed("key")})
