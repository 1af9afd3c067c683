"""One of two bolts is reached by a router (see src/routed_bolts.py)."""

from routed_bolts import Numbers, Sink, Work

from leeward.runtime import Topology, balanced, keyed, routed_by


class Routed(Topology):
    config = {"leeward.replicas": {"routed": 3, "plain": 3}}
    numbers = Numbers.spec()
    routed = Work.spec(
        inputs={numbers: balanced()},
        par=4,
        router=routed_by("agiledart-thompson", slot_s=0.01, fade=0.6, age=0.998, doubt=1.0),
    )
    plain = Work.spec(inputs={numbers: balanced()}, par=4)
    # a sink for each, as a slow replica keeps markers back, and these everything behind them
    routed_sink = Sink.spec(inputs={routed: keyed("n")})
    plain_sink = Sink.spec(inputs={plain: keyed("n")})
