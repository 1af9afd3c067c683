"""See src/pipe_bolts.py."""

from pipe_bolts import Echo, Last, Source, Stock
from streamparse import Grouping

from leeward.runtime import Topology, keyed


class Pipe(Topology):
    source = Source.spec()
    echo = Echo.spec(inputs={source: keyed("i")})
    last = Last.spec(inputs={echo: keyed("i")})
    stock = Stock.spec(inputs={echo["plain"]: Grouping.SHUFFLE, echo["direct"]: Grouping.DIRECT})
