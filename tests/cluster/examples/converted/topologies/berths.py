"""The tally in Redis."""

from berth_bolts import Arrivals, Harbour
from ends import Record

from leeward.runtime import Topology, keyed


class Berths(Topology):
    arrivals = Arrivals.spec()
    harbour = Harbour.spec(inputs={arrivals: keyed("berth")}, par=4)
    record = Record.spec(inputs=[harbour])
