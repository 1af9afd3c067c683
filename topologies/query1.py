"""DEBS 2015 query 1 as a streamparse topology; `par` is a component's tasks: those that work, and warm ones."""

from typing import ClassVar

from bolts.query1.compute_route_id import ComputeRouteId
from bolts.query1.count_by_window import CountByWindow
from bolts.query1.data_source import DataSource
from bolts.query1.filter_by_coordinates import CLOCK, FilterByCoordinates
from bolts.query1.global_rank import GlobalRankSink
from bolts.query1.metronome import Metronome
from bolts.query1.parser import Parser
from bolts.query1.partial_rank import PartialRank
from bolts.query1.service_times import TABLE2_RATE
from leeward.runtime import Topology, balanced, keyed

MAX_REPLICAS = {
    "data_source": 1,
    "parser": 3,
    "filter_by_coordinates": 3,
    "compute_route_id": 3,
    "metronome": 1,
    "count_by_window": 3,
    "partial_rank": 3,
    "global_rank": 1,
}
#: These must see every tuple. A second, warm task lets the only replica move without a stop; a spout has none.
SPARE = {"metronome": 1, "global_rank": 1}


def component(name):
    """Tasks and configuration of a component."""
    config = {"leeward.service_rate": TABLE2_RATE[name], "leeward.max_replicas": MAX_REPLICAS[name]}
    return {"par": MAX_REPLICAS[name] + SPARE.get(name, 0), "config": config}


class Query1(Topology):
    config: ClassVar = {
        # Leeward detects loss by counts; ackers and event loggers would shift task ids, and cost
        "topology.acker.executors": 0,
        "topology.eventlogger.executors": 0,
        # a paused or restoring task answers, but may take long
        "topology.subprocess.timeout.secs": 120,
        "topology.message.timeout.secs": 60,
    }
    data_source = DataSource.spec(**component("data_source"))
    parser = Parser.spec(inputs={data_source: balanced()}, **component("parser"))
    filter_by_coordinates = FilterByCoordinates.spec(inputs={parser: balanced()}, **component("filter_by_coordinates"))
    compute_route_id = ComputeRouteId.spec(inputs={filter_by_coordinates: balanced()}, **component("compute_route_id"))
    metronome = Metronome.spec(inputs={filter_by_coordinates[CLOCK]: balanced()}, **component("metronome"))
    count_by_window = CountByWindow.spec(
        inputs={compute_route_id: keyed("route"), metronome: keyed("t")}, **component("count_by_window")
    )
    partial_rank = PartialRank.spec(inputs={count_by_window: keyed("route")}, **component("partial_rank"))
    global_rank = GlobalRankSink.spec(inputs={partial_rank: balanced()}, **component("global_rank"))
