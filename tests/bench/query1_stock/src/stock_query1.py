"""Query 1 as one would write it on plain streamparse: the same logic in the same operators, one task of each.

Without markers pulses are tuples of their own stream. With one task of each operator they keep their place in a
channel; count_by_window, which has two, holds back what follows a pulse until the other channel's is in. State is a
dict, and nothing survives a restart.
"""

import time
from collections import deque

from streamparse import Bolt, Spout, Stream

from bolts.query1.grid import route_id
from bolts.query1.logic import DataClock, GlobalRank, Intervals, LocalRank, Ranked, RouteWindow, result_row
from bolts.query1.settings import read_settings
from bolts.query1.stores import Result, TaxiStream, open_sink
from bolts.query1.trips import Reject, parse_trip
from leeward.runtime import open_redis

PULSE = Stream(fields=["number", "data"], name="pulse")


class DataSource(Spout):
    outputs = [Stream(fields=["line", "seq"]), PULSE]

    def initialize(self, conf, context):
        settings = read_settings(conf)
        self.state, self.fetched = {}, deque()
        self.intervals = Intervals(self.state, settings.pulse_s)
        self.stream = TaxiStream(open_redis(conf, patient=True), settings)

    def next_tuple(self):
        if not self.fetched:
            if not self.state.get("ended"):
                self.fetched.extend(self.stream.fetch(self.state.get("seq", 0), wait_ms=20))
            if not self.fetched:
                return
        row = self.fetched.popleft()
        self.state["seq"] = row.seq
        if row.line is None:
            self.state["ended"] = 1
            due = self.intervals.last()
        else:
            due = self.intervals.due(row.dropoff_s)
        if due is not None:
            self.emit([due[0], {"t": due[1], "w0": f"{time.time():.3f}"}], stream="pulse")
        if row.line is not None:
            self.emit([row.line, row.seq])


class Pulsed(Bolt):
    def process(self, tup):
        if tup.stream == "pulse":
            number, data = tup.values
            more = self.pulse(number, data)
            if more is not False:
                self.emit([number, data | (more or {})], stream="pulse")
        else:
            self.data(tup)

    def pulse(self, number, data):
        pass


class Parser(Pulsed):
    fields = ["seq", "dropoff", "pickup_text", "dropoff_text", "from_lon", "from_lat", "to_lon", "to_lat"]
    outputs = [Stream(fields=fields), PULSE]

    def data(self, tup):
        line, seq = tup.values
        trip = parse_trip(line)
        if not isinstance(trip, Reject):
            self.emit([seq, *trip])


class FilterByCoordinates(Pulsed):
    outputs = [
        Stream(fields=["seq", "dropoff", "from_east", "from_south", "to_east", "to_south"]),
        Stream(fields=["seq", "pickup_text", "dropoff_text"], name="clock"),
        PULSE,
    ]

    def initialize(self, conf, context):
        self.grid = read_settings(conf).grid

    def data(self, tup):
        seq, dropoff, pickup_text, dropoff_text, from_lon, from_lat, to_lon, to_lat = tup.values
        route = self.grid.route(from_lon, from_lat, to_lon, to_lat)
        if route is not None:
            self.emit([seq, pickup_text, dropoff_text], stream="clock")
            self.emit([seq, dropoff, *route])


class ComputeRouteId(Pulsed):
    outputs = [Stream(fields=["route", "dropoff", "seq"]), PULSE]

    def data(self, tup):
        seq, dropoff, from_east, from_south, to_east, to_south = tup.values
        self.emit([route_id(from_east, from_south, to_east, to_south), dropoff, seq])


class Metronome(Pulsed):
    outputs = [PULSE]

    def initialize(self, conf, context):
        self.clock = DataClock({})

    def data(self, tup):
        self.clock.row(*tup.values)

    def pulse(self, number, data):
        return self.clock.tell()


class CountByWindow(Pulsed):
    outputs = [Stream(fields=["route", "count", "last"]), PULSE]

    def initialize(self, conf, context):
        self.window = RouteWindow({}, window_s=read_settings(conf).window_s)
        self.waiting = {"compute_route_id": deque(), "metronome": deque()}

    def process(self, tup):
        self.waiting[tup.component].append(tup)
        rows, pulses = self.waiting["compute_route_id"], self.waiting["metronome"]
        while rows and (rows[0].stream != "pulse" or pulses):
            tup = rows.popleft()
            if tup.stream != "pulse":
                self.window.add(*tup.values)
                continue
            number, data = pulses.popleft().values
            if data["advanced"]:
                for ranked in self.window.changes(data["t"]):
                    self.emit(list(ranked))
            self.emit([number, data], stream="pulse")


class PartialRank(Pulsed):
    outputs = [Stream(fields=["route", "count", "last"]), PULSE]

    def initialize(self, conf, context):
        self.rank = LocalRank({})

    def data(self, tup):
        self.rank.update(*tup.values)

    def pulse(self, number, data):
        if data["advanced"]:
            for ranked in self.rank.top():
                self.emit(list(ranked))


class GlobalRankSink(Pulsed):
    outputs = []

    def initialize(self, conf, context):
        self.rank, self.sink = GlobalRank({}), open_sink(read_settings(conf), conf)

    def data(self, tup):
        self.rank.candidate(Ranked(*tup.values))

    def pulse(self, number, data):
        if data["advanced"]:
            routes = self.rank.merge()
            if routes is not None:
                row = result_row(data["pickup"], data["dropoff"], routes)
                self.sink.publish(Result(number=number, row=row, w=f"{time.time():.3f}", w0=data["w0"]))
        return False
