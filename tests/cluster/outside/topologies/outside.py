"""Words, counted outside of self.state, and the top of them on each tick (see src/outside_bolts.py)."""

from outside_bolts import Sink, Top, WordCount, Words

from leeward.runtime import Topology, keyed


class Outside(Topology):
    words = Words.spec()
    count = WordCount.spec(inputs={words: keyed("word")}, par=2)
    top = Top.spec(inputs={count: keyed("word")}, par=3, config={"topology.tick.tuple.freq.secs": 1})
    sink = Sink.spec(inputs={top: keyed("task")})
