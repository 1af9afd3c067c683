"""Numbers, counted by key at no more than 250 tuples/s in a replica, once that is emulated (src/counting_bolts.py)."""

from counting_bolts import Count, Numbers, Sink

from leeward.runtime import Topology, keyed


def rate(tuples_per_s):
    return {"leeward.service_rate": tuples_per_s}


class Slow(Topology):
    numbers = Numbers.spec(config=rate(2000))
    count = Count.spec(inputs={numbers: keyed("key")}, par=3, config=rate(250))
    sink = Sink.spec(inputs={count: keyed("key")}, config=rate(2000))
