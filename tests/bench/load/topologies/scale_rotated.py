"""Source, up to four replicas of a stateless worker, sink."""

from load_ours import Sink, Source
from load_scale import Rotated

from leeward.runtime import Topology, balanced, keyed

FAST = {"leeward.service_rate": 100_000}


class ScaleRotated(Topology):
    source = Source.spec(config=FAST)
    work = Rotated.spec(inputs={source: balanced()}, par=4, config={"leeward.service_rate": 200})
    sink = Sink.spec(inputs={work: keyed("key")}, config=FAST)
