"""tests/cluster/counting without Leeward. Two tasks of the count in one executor, so that Storm can scale it out."""

from stock_bolts import Count, Numbers, Pass, Sink
from streamparse import Grouping, Topology


class Stock(Topology):
    numbers = Numbers.spec()
    passing = Pass.spec(inputs={numbers: Grouping.SHUFFLE}, par=2)
    count = Count.spec(inputs={passing: Grouping.fields("key")}, par=1, config={"topology.tasks": 2})
    sink = Sink.spec(inputs={count: Grouping.fields("key")})
