"""The topology of the fault run (see src/faulty_bolts.py)."""

from faulty_bolts import Count, Join, Left, Pass, Right, Sink

from leeward.runtime import Topology, balanced, keyed


class Faulty(Topology):
    left = Left.spec(par=2)
    right = Right.spec(par=2)
    passing = Pass.spec(inputs={left: balanced(), right: balanced()}, par=3)
    count = Count.spec(inputs={passing: keyed("key")}, par=3)
    join = Join.spec(inputs={left: keyed("key"), right: keyed("key")}, par=3)
    sink = Sink.spec(inputs={count: keyed("id"), join: keyed("id")}, par=2, config={"leeward.max_replicas": 1})
