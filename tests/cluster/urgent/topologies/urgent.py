"""Bursts for a bolt that orders what waits by deadlines (see src/urgent_bolts.py); needs emulated service times."""

from urgent_bolts import Bursts, Evaluate, Sink

from leeward.runtime import Topology, keyed

#: A burst of 40 takes two thirds of a second, and one comes each second.
SLOW, FAST = {"leeward.service_rate": 60}, {"leeward.service_rate": 100_000}


class Urgent(Topology):
    bursts = Bursts.spec(config=FAST)
    evaluate = Evaluate.spec(inputs={bursts: keyed("key")}, par=2, config=SLOW)
    sink = Sink.spec(inputs={evaluate: keyed("key")}, config=FAST)
