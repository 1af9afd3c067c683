"""Source, one replica and eleven warm tasks of a worker with state, sink."""

from load_idle import Sink, Source, Work

from leeward.runtime import Topology, keyed


class Idle(Topology):
    source = Source.spec()
    work = Work.spec(inputs={source: keyed("key")}, par=12)
    sink = Sink.spec(inputs={work: keyed("key")})
