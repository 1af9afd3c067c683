"""Numbers, counted by key (see src/counting_bolts.py)."""

from counting_bolts import Count, Numbers, Pass, Sink

from leeward.runtime import Topology, balanced, keyed


class Counting(Topology):
    numbers = Numbers.spec()
    passing = Pass.spec(inputs={numbers: balanced()}, par=2)
    count = Count.spec(inputs={passing: keyed("key")}, par=3)
    sink = Sink.spec(inputs={count: keyed("key")})
