"""Numbers, counted by key, for two sinks that have a second task each (see src/sink_bolts.py)."""

from counting_bolts import Count, Numbers
from sink_bolts import Buffered, Fenced

from leeward.runtime import Topology, keyed

ONE = {"leeward.max_replicas": 1}


class Sinks(Topology):
    numbers = Numbers.spec()
    count = Count.spec(inputs={numbers: keyed("key")}, par=2)
    fenced = Fenced.spec(inputs={count: keyed("key")}, par=2, config=ONE)
    buffered = Buffered.spec(inputs={count: keyed("key")}, par=2, config=ONE)
