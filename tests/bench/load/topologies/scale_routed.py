"""Source, up to four replicas of a stateless worker behind a router, sink."""

from load_ours import Sink, Source
from load_scale import Rotated

from leeward.runtime import Topology, balanced, keyed, routed_by

FAST = {"leeward.service_rate": 100_000}
ROUTER = routed_by("agiledart-replicas")


class ScaleRouted(Topology):
    source = Source.spec(config=FAST)
    work = Rotated.spec(inputs={source: balanced()}, par=4, router=ROUTER, config={"leeward.service_rate": 200})
    sink = Sink.spec(inputs={work: keyed("key")}, config=FAST)
