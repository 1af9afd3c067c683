"""The tally in memory."""

from ends import Record
from ship_bolts import Lookout, Tally
from streamparse import Grouping

from leeward.runtime import Topology


class Ships(Topology):
    lookout = Lookout.spec()
    tally = Tally.spec(inputs={lookout: Grouping.fields("ship")}, par=2)
    record = Record.spec(inputs=[tally])
