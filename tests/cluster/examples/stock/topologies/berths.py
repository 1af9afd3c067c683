"""The tally in Redis."""

from berth_bolts import Arrivals, Harbour
from ends import Record
from streamparse import Topology


class Berths(Topology):
    arrivals = Arrivals.spec()
    harbour = Harbour.spec(inputs=[arrivals], par=4)
    record = Record.spec(inputs=[harbour])
