"""Query 1 as one would write it on plain streamparse: the same logic in the same operators, one task of each.

Without markers pulses are tuples of their own stream. With one task of each operator they keep their place in a
channel; count_by_window, which has two, holds back what follows a pulse until the other channel's is in. State is a
dict, and nothing survives a restart.
"""

import time
from collections import deque

from streamparse import Bolt, Spout, Stream

from bolts.query1.logic import DataClock, GlobalRank, LocalRank, Ranked, RouteWindow, due_pulse, result_row
from bolts.query1.settings import read_settings
from bolts.query1.stores import Result, TaxiStream, open_redis, open_sink
from bolts.query1.trips import Reject, parse_trip

PULSE = Stream(fields=["number", "data"], name="pulse")


class DataSource(Spout):
    outputs = [Stream(fields=["line", "seq"]), PULSE]

    def initialize(self, conf, context):
        settings = read_settings(conf)
        self.pulse_s, self.state, self.fetched = settings.pulse_s, {}, deque()
        self.stream = TaxiStream(open_redis(settings.redis_url), settings)

    def next_tuple(self):
        if self.state.get("ended"):
            return
        if not self.fetched:
            self.fetched.extend(self.stream.fetch(self.state.get("seq", 0), wait_ms=20))
        if not self.fetched:
            return
        row = self.fetched.popleft()
        self.state["seq"] = row.seq
        if row.line is None:
            self.state["ended"] = 1
            due = self.state["interval"], (self.state["interval"] + 1) * self.pulse_s
        else:
            due = due_pulse(self.state, row.dropoff_s, self.pulse_s)
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
    fields = ["dropoff", "seq", "pickup_text", "dropoff_text", "from_lon", "from_lat", "to_lon", "to_lat"]
    outputs = [Stream(fields=fields), PULSE]

    def data(self, tup):
        line, seq = tup.values
        trip = parse_trip(line)
        if not isinstance(trip, Reject):
            degrees = (trip.from_lon, trip.from_lat, trip.to_lon, trip.to_lat)
            self.emit([trip.dropoff_s, seq, trip.pickup, trip.dropoff, *map(str, degrees)])


class FilterByCoordinates(Pulsed):
    outputs = [
        Stream(fields=["dropoff", "seq", "from_lon", "from_lat", "to_lon", "to_lat"]),
        Stream(fields=["dropoff", "seq", "pickup_text", "dropoff_text"], name="clock"),
        PULSE,
    ]

    def initialize(self, conf, context):
        self.grid = read_settings(conf).grid

    def data(self, tup):
        dropoff, seq, pickup_text, dropoff_text, *degrees = tup.values
        if self.grid.route(*map(float, degrees)) is not None:
            self.emit([dropoff, seq, pickup_text, dropoff_text], stream="clock")
            self.emit([dropoff, seq, *degrees])


class ComputeRouteId(Pulsed):
    outputs = [Stream(fields=["route", "dropoff", "seq"]), PULSE]

    def initialize(self, conf, context):
        self.grid = read_settings(conf).grid

    def data(self, tup):
        dropoff, seq, *degrees = tup.values
        self.emit([self.grid.route(*map(float, degrees)), dropoff, seq])


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
        self.rank.update(Ranked(*tup.values))

    def pulse(self, number, data):
        if data["advanced"]:
            for ranked in self.rank.top():
                self.emit(list(ranked))


class GlobalRankSink(Pulsed):
    outputs = []

    def initialize(self, conf, context):
        self.rank, self.sink = GlobalRank({}), open_sink(read_settings(conf))

    def data(self, tup):
        self.rank.candidate(Ranked(*tup.values))

    def pulse(self, number, data):
        if data["advanced"]:
            routes = self.rank.merge()
            if routes is not None:
                row = result_row(data["pickup"], data["dropoff"], routes)
                self.sink.publish(Result(number=number, row=row, w=f"{time.time():.3f}", w0=data["w0"]))
        return False
