"""Source, up to four replicas of a worker with state by key, sink."""

from load_ours import Sink, Source
from load_scale import Keyed

from leeward.runtime import Topology, keyed

FAST = {"leeward.service_rate": 100_000}


class ScaleKeyed(Topology):
    source = Source.spec(config=FAST)
    work = Keyed.spec(inputs={source: keyed("key")}, par=4, config={"leeward.service_rate": 200})
    sink = Sink.spec(inputs={work: keyed("key")}, config=FAST)
