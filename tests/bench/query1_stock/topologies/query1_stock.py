"""DEBS 2015 query 1 on plain streamparse."""

from stock_query1 import (
    ComputeRouteId,
    CountByWindow,
    DataSource,
    FilterByCoordinates,
    GlobalRankSink,
    Metronome,
    Parser,
    PartialRank,
)
from streamparse import Grouping, Topology

ONE = Grouping.GLOBAL


class Query1Stock(Topology):
    data_source = DataSource.spec()
    parser = Parser.spec(inputs={data_source: ONE, data_source["pulse"]: ONE})
    filter_by_coordinates = FilterByCoordinates.spec(inputs={parser: ONE, parser["pulse"]: ONE})
    compute_route_id = ComputeRouteId.spec(inputs={filter_by_coordinates: ONE, filter_by_coordinates["pulse"]: ONE})
    metronome = Metronome.spec(inputs={filter_by_coordinates["clock"]: ONE, filter_by_coordinates["pulse"]: ONE})
    count_by_window = CountByWindow.spec(
        inputs={
            compute_route_id: Grouping.fields("route"),
            compute_route_id["pulse"]: ONE,
            metronome["pulse"]: ONE,
        }
    )
    partial_rank = PartialRank.spec(inputs={count_by_window: Grouping.fields("route"), count_by_window["pulse"]: ONE})
    global_rank = GlobalRankSink.spec(inputs={partial_rank: ONE, partial_rank["pulse"]: ONE})
