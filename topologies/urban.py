"""Urban sensing in seven cities: leeward submit urban -o urban.sensors=90000 -o latency.rate=350.

The source makes the reports of all sensors (`bolts.urban`), 70 a second unless latency.rate is set. Results, a row for
each city and pulse, are in the Redis stream urban:out, or, if latency.rate is set, in the file latency.out.
"""

from typing import ClassVar

from bolts.urban.city_board import CityBoard
from bolts.urban.city_index import CityIndexes
from bolts.urban.parser import ReportParser
from bolts.urban.sensors import Sensors
from bolts.urban.service_times import RATES
from bolts.urban.smooth import Smooth
from bolts.urban.stats import Stats
from leeward.runtime import Topology, balanced, keyed

MAX_REPLICAS = {"sensors": 1, "parser": 3, "smooth": 3, "stats": 3, "city_index": 2, "city_board": 1}
#: The sink must see every tuple. A second, warm task lets the only replica move without a stop; a spout has none.
SPARE = {"city_board": 1}


def component(name):
    """Tasks and configuration of a component."""
    config = {"leeward.service_rate": RATES[name], "leeward.max_replicas": MAX_REPLICAS[name]}
    return {"par": MAX_REPLICAS[name] + SPARE.get(name, 0), "config": config}


class Urban(Topology):
    config: ClassVar = {
        # Leeward detects loss by counts; ackers and event loggers would shift task ids, and cost
        "topology.acker.executors": 0,
        "topology.eventlogger.executors": 0,
        # a paused or restoring task answers, but may take long
        "topology.subprocess.timeout.secs": 120,
        "topology.message.timeout.secs": 60,
    }
    sensors = Sensors.spec(**component("sensors"))
    parser = ReportParser.spec(inputs={sensors: keyed("sensor")}, **component("parser"))
    smooth = Smooth.spec(inputs={parser: keyed("sensor")}, **component("smooth"))
    stats = Stats.spec(inputs={smooth: keyed("place")}, **component("stats"))
    city_index = CityIndexes.spec(inputs={stats: keyed("city")}, **component("city_index"))
    city_board = CityBoard.spec(inputs={city_index: balanced()}, **component("city_board"))
