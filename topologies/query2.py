"""DEBS 2015 query 2, the most profitable areas: leeward submit query2 -o query2.in=STREAM.

Rows come from the Redis stream that `leeward replay` fills, or are made: -o latency.rate=200 -o latency.out=FILE
(`bolts.latency`). Results are in the Redis stream query2:out, or FILE.
"""

from typing import ClassVar

from bolts.query1.metronome import Metronome
from bolts.query2.data_source import FareSource
from bolts.query2.empty_taxis import EmptyTaxis
from bolts.query2.locate import CLOCK, PROFITS, TAXIS, Locate
from bolts.query2.parser import FareParser
from bolts.query2.profit_by_area import ProfitByArea
from bolts.query2.rank_areas import RankAreas
from bolts.query2.service_times import RATES
from bolts.query2.top_areas import TopAreasSink
from leeward.runtime import Topology, balanced, keyed

MAX_REPLICAS = {
    "data_source": 1,
    "parser": 2,
    "locate": 2,
    "metronome": 1,
    "profit_by_area": 3,
    "empty_taxis": 3,
    "rank_areas": 3,
    "top_areas": 1,
}
#: These must see every tuple. A second, warm task lets the only replica move without a stop; a spout has none.
SPARE = {"metronome": 1, "top_areas": 1}


def component(name):
    """Tasks and configuration of a component."""
    config = {"leeward.service_rate": RATES[name], "leeward.max_replicas": MAX_REPLICAS[name]}
    return {"par": MAX_REPLICAS[name] + SPARE.get(name, 0), "config": config}


class Query2(Topology):
    config: ClassVar = {
        # Leeward detects loss by counts; ackers and event loggers would shift task ids, and cost
        "topology.acker.executors": 0,
        "topology.eventlogger.executors": 0,
        # a paused or restoring task answers, but may take long
        "topology.subprocess.timeout.secs": 120,
        "topology.message.timeout.secs": 60,
    }
    data_source = FareSource.spec(**component("data_source"))
    parser = FareParser.spec(inputs={data_source: balanced()}, **component("parser"))
    locate = Locate.spec(inputs={parser: balanced()}, **component("locate"))
    metronome = Metronome.spec(inputs={locate[CLOCK]: balanced()}, **component("metronome"))
    profit_by_area = ProfitByArea.spec(
        inputs={locate[PROFITS]: keyed("area"), metronome: keyed("t")}, **component("profit_by_area")
    )
    empty_taxis = EmptyTaxis.spec(
        inputs={locate[TAXIS]: keyed("taxi"), metronome: keyed("t")}, **component("empty_taxis")
    )
    rank_areas = RankAreas.spec(
        inputs={profit_by_area: keyed("area"), empty_taxis: keyed("area")}, **component("rank_areas")
    )
    top_areas = TopAreasSink.spec(inputs={rank_areas: balanced()}, **component("top_areas"))
