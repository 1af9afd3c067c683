"""The clicks."""

from click_bolts import Clicks as Source
from click_bolts import Decode, PageCount
from ends import Record
from streamparse import Grouping, Topology


class Clicks(Topology):
    source = Source.spec()
    decode = Decode.spec(inputs=[source], par=2)
    pages = PageCount.spec(inputs={decode: Grouping.fields("page")}, par=2, config={"topology.tick.tuple.freq.secs": 1})
    record = Record.spec(inputs=[pages])
