"""The operators as Storm sees them, their settings, and the declared topology."""

from __future__ import annotations

import json
from collections import Counter
from types import SimpleNamespace

import pytest

from bolts.query1 import result_sink
from bolts.query1.compute_route_id import ComputeRouteId
from bolts.query1.filter_by_coordinates import FilterByCoordinates
from bolts.query1.global_rank import GlobalRankSink
from bolts.query1.grid import Grid
from bolts.query1.parser import Parser
from bolts.query1.service_times import TABLE2_RATE
from bolts.query1.settings import Settings, read_settings
from leeward.core.errors import ConfigError
from leeward.core.view import View
from leeward.runtime import Pulse
from topologies.query1 import MAX_REPLICAS, Query1

LINE = "m,h,2013-01-01 00:00:00,2013-01-01 00:02:00,120,0.44,-73.956528f,40.716976,-73.962440,40.715008,CSH,0,0,0,0,0,0"


def local(component, conf: dict | None = None):
    """The component's own code without Storm; what it emits is kept in `out` as (stream, values)."""

    class Local(component):
        def __init__(self) -> None:
            self.state, self.out, self.counters = {}, [], Counter()
            self.initialize(conf or {}, {})
            self.resumed()

        def emit(self, values, stream=None) -> None:
            self.out.append((stream, values))

    return Local()


def feed(task, *values):
    task.process(SimpleNamespace(values=list(values)))
    return task


def test_the_parser_sends_dates_as_texts_and_numbers():
    task = feed(local(Parser), LINE, 7)
    times = "2013-01-01 00:00:00", "2013-01-01 00:02:00"
    assert task.out == [(None, [7, 1356998520, *times, -73.956528, 40.716976, -73.96244, 40.715008])]


def test_the_parser_counts_what_it_rejects():
    task = local(Parser)
    for line in ["", "", LINE.replace("2013-01-01 00:00", "2013-01-32 00:00"), LINE.replace("40.7", "x")]:
        feed(task, line, 1)
    assert task.out == [] and task.counters == {"columns": 2, "impossible date": 1, "number": 1}


def test_the_filter_sends_valid_rows_two_ways_and_counts_the_others():
    task = local(FilterByCoordinates)
    inside, outside = [-73.956528, 40.716976], [0.0, 0.0]
    feed(task, 1, 60, "p", "d", *inside, *inside)
    feed(task, 2, 61, "p", "d", *inside, *outside)
    assert task.out == [("clock", [1, "p", "d"]), (None, [1, 60, 161, 170, 161, 170])]
    assert task.counters == {"outside": 1}


def test_own_cell_sizes_reach_the_filter_and_its_cells_become_the_route_id():
    own = Grid.of_metres(lon_m_per_degree=84_380, lat_m_per_degree=110_540)
    conf = {"query1.cell_lon": own.cell_lon, "query1.cell_lat": own.cell_lat}
    row = [1, 60, "p", "d", -74.913585, 41.474937, -73.993973, 40.751266]
    assert _route_id(conf, row) == ["1.1>156.161", 60, 1]
    assert _route_id({}, row) == ["1.1>155.162", 60, 1]


def _route_id(conf, row):
    _, (_, cells) = feed(local(FilterByCoordinates, conf), *row).out
    ((_, values),) = feed(local(ComputeRouteId), *cells).out
    return values


def test_the_sink_publishes_changes_once_and_counts_repeats(monkeypatch):
    published = []

    def publish(result, token) -> bool:
        published.append(result)
        return result.number != 5

    monkeypatch.setattr(result_sink, "open_sink", lambda settings, conf: SimpleNamespace(publish=publish))
    task = local(GlobalRankSink)
    data = {"t": 240, "w0": "1.5", "pickup": "p", "dropoff": "d", "seq": 9, "advanced": True}
    feed(task, "1.1>2.2", 3, 9).pulse(Pulse(3, data))
    feed(task, "1.1>2.2", 4, 11).pulse(Pulse(4, data))
    task.pulse(Pulse(4, {**data, "advanced": False}))
    feed(task, "3.3>4.4", 4, 12).pulse(Pulse(5, data))
    assert [(r.number, r.row, r.w0) for r in published] == [
        (3, "p,d,1.1,2.2" + ",NULL" * 9, "1.5"),
        (5, "p,d,3.3,4.4" + ",NULL" * 9, "1.5"),
    ]
    assert task.counters == {"results": 1, "repeats": 1}
    (arrow,) = task.shown.arrows
    assert (arrow.start, arrow.end, arrow.label) == ((2.5, 2.5), (3.5, 3.5), "1. 3.3 to 4.4")
    assert task.shown.note == "d" and View.of(task.shown.document()) == task.shown


def test_a_sink_that_was_moved_shows_what_its_predecessor_did(monkeypatch):
    """From the next pulse on: while key groups are on their way, the state may not be read."""
    monkeypatch.setattr(result_sink, "open_sink", lambda settings, conf: SimpleNamespace(publish=lambda *_: True))
    task = local(GlobalRankSink)
    task.state |= {"shown": ["1.1>300.300"], "candidates": [["1.1>300.300", 5, 9]]}
    task.pulse(Pulse(3, {"w0": "1.5", "pickup": "p", "dropoff": "d", "advanced": True}))
    assert [arrow.end for arrow in task.shown.arrows] == [(299.5, 299.5)]


def test_settings_have_the_documented_defaults():
    settings = read_settings({"leeward.redis.url": "redis://x", "topology.name": "query1"})
    assert settings == Settings()
    assert (settings.taxi_in, settings.out, settings.pulse_s) == ("taxi:in", "query1:out", 60)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("query1.pulse_s", 0),
        ("query1.pulse_s", "60"),
        ("query1.pulse_s", True),
        ("query1.window_s", -1),
        ("query1.batch", 1.5),
        ("query1.trim", "no"),
        ("query1.sink", "kafka"),
        ("query1.cell_lon", "wide"),
    ],
)
def test_a_wrong_setting_is_named_with_its_value(key, value):
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")) as error:
        read_settings({key: value})
    assert repr(value) in str(error.value) and error.value.remedy


def test_the_topology_has_the_papers_operators_and_edges():
    components = {**Query1.thrift_spouts, **Query1.thrift_bolts}
    assert list(components) and set(components) == set(TABLE2_RATE) == set(MAX_REPLICAS)
    edges = {
        (stream.componentId, name, stream.streamId)
        for name, bolt in Query1.thrift_bolts.items()
        for stream in bolt.common.inputs
        if stream.streamId != "marker"
    }
    assert edges == {
        ("data_source", "parser", "default"),
        ("parser", "filter_by_coordinates", "default"),
        ("filter_by_coordinates", "compute_route_id", "default"),
        ("filter_by_coordinates", "metronome", "clock"),
        ("compute_route_id", "count_by_window", "default"),
        ("metronome", "count_by_window", "default"),
        ("count_by_window", "partial_rank", "default"),
        ("partial_rank", "global_rank", "default"),
    }


def test_every_component_carries_its_table_2_rate_its_replicas_and_its_tasks():
    for spec in Query1.specs:
        conf = json.loads(spec.common.json_conf)
        assert conf["leeward.service_rate"] == TABLE2_RATE[spec.name]
        assert conf["leeward.max_replicas"] == MAX_REPLICAS[spec.name]
        assert spec.par == max(MAX_REPLICAS[spec.name], 1 if spec.name == "data_source" else 2)
    assert Query1.config["topology.acker.executors"] == Query1.config["topology.eventlogger.executors"] == 0
