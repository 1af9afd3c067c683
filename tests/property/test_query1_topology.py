"""The topology as it is declared, run in one process: any replicas, any interleaving, moves; equal to the
reference.

The network below keeps what Storm and the runtime promise (order per pair of tasks; a pulse is delivered once
it is in from every upstream task, and channels that have it wait) and leaves everything else to chance.
"""

from __future__ import annotations

import gzip
import json
import os
import random
from collections import Counter, deque
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bolts.query1.data_source as data_source
import bolts.query1.global_rank as global_rank
from bolts.query1.grid import Grid
from bolts.query1.reference import Line, read_rides, rows_per_pulse
from bolts.query1.stores import Row
from bolts.query1.trips import Reject, parse_trip
from leeward.core.keys import GROUPS, key_group
from leeward.runtime import Pulse
from leeward.runtime.dsl.specs import MARKER_STREAM
from leeward.runtime.state.keyed import KeyedState
from topologies.query1 import MAX_REPLICAS, Query1

TAXI = Path(os.environ.get("LEEWARD_SHARED", Path(__file__).parents[3] / "shared")) / "data" / "taxi"
REAL = TAXI / "debs2015_20130101_0000-0045.csv.gz"


class FakeStream:
    """Stands in for the Redis stream: rows in a list."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows, self.ended, self.progress = rows, False, 0

    def fetch(self, after: int, *, wait_ms: int) -> list[Row]:
        return self.rows[after : after + 3]

    def publish_end(self) -> None:
        self.ended = True

    def publish_progress(self, seq: int) -> None:
        self.progress = seq


class FakeSink:
    def __init__(self) -> None:
        self.results: list[tuple[int, str]] = []

    def publish(self, result, token) -> bool:
        self.results.append((result.number, result.row))
        return True


class LocalTask:
    """Mixed in before the runtime's base class: the component's own code on the network below."""

    def __init__(self, network: Network, name: str, task: int) -> None:
        self.network, self.name, self.task = network, name, task
        self.counters = Counter()

    @property
    def state(self) -> KeyedState:
        if self.kind == "stateless":
            raise AssertionError(f"{self.name} is stateless and used self.state")
        return self.network.states[self.task]

    def emit(self, values, stream=None) -> None:
        assert all(type(value) in (str, int, float) for value in values), values
        self.network.send(self, stream or "default", list(values))

    def emit_pulse(self, number: int, data: dict) -> None:
        self.network.send_pulse(self, Pulse(number, json.loads(json.dumps(data))))


class Network:
    """All tasks of the declared topology, their channels, tables and states."""

    def __init__(self, rng: random.Random, conf: dict, stream: FakeStream, sink: FakeSink) -> None:
        self.rng, self.conf, self.stream, self.sink = rng, conf, stream, sink
        self.specs = {spec.name: spec for spec in Query1.specs}
        ids = iter(range(1, 100))
        self.tasks_of = {name: [next(ids) for _ in range(spec.par)] for name, spec in self.specs.items()}
        self.component = {task: name for name, tasks in self.tasks_of.items() for task in tasks}
        self.edges = self._edges()  # source -> [(stream, target, fields)]
        self.channels = {
            (source, target): deque()
            for name, edges in self.edges.items()
            for to in sorted({to for _, to, _ in edges})
            for source in self.tasks_of[name]
            for target in self.tasks_of[to]
        }
        self.upstream = {task: [s for s, t in self.channels if t == task] for task in self.component}
        self.states = {task: KeyedState(f"task {task}", ()) for task in self.component}
        for tasks in self.tasks_of.values():
            self.states[tasks[0]].replace({group: {} for group in range(GROUPS)})
        self.sent: Counter[str] = Counter()
        self.counters = {name: Counter() for name in self.specs}  # of tasks that have ended
        self.tables: dict[str, list[int]] = {}
        self.instances: dict[int, LocalTask] = {}
        self.move()

    def _edges(self) -> dict[str, list[tuple[str, str, list[int] | None]]]:
        edges = {name: [] for name in self.specs}
        for target, bolt in Query1.thrift_bolts.items():
            for stream, grouping in bolt.common.inputs.items():
                if stream.streamId == MARKER_STREAM:
                    continue
                fields = self.specs[stream.componentId].common.streams[stream.streamId].output_fields
                java = grouping.custom_object
                by = [fields.index(arg.string_arg) for arg in java.args_list]
                assert java.full_class_name.endswith("KeyedGrouping" if by else "BalancedGrouping")
                edges[stream.componentId].append((stream.streamId, target, by or None))
        return edges

    def move(self) -> None:
        """New tables with chance replicas, new processes, state by key group as text; only while drained."""
        assert not any(self.channels.values())
        for task, instance in self.instances.items():
            self.counters[self.component[task]].update(instance.counters)
        for name, tasks in self.tasks_of.items():
            replicas = self.rng.sample(tasks, self.rng.randint(1, MAX_REPLICAS[name]))
            table = [self.rng.choice(replicas) for _ in range(GROUPS)]
            text = {g: json.dumps(self.states[t].group(g)) for t in tasks for g in self.states[t].groups}
            assert sorted(text) == list(range(GROUPS))
            for task in tasks:
                mine = [g for g in range(GROUPS) if table[g] == task]
                self.states[task].replace({g: json.loads(text[g]) for g in mine})
            self.tables[name] = table
        self.instances = {task: self._start(task, name) for task, name in self.component.items()}

    def _start(self, task: int, name: str) -> LocalTask:
        instance = type("Local", (LocalTask, self.specs[name].component_cls), {})(self, name, task)
        instance.initialize(self.conf, {})
        instance.resumed()
        return instance

    def send(self, task: LocalTask, stream: str, values: list) -> None:
        self.sent[task.name] += stream == "default"
        for name, target, by in self.edges[task.name]:
            if name == stream:
                group = self.rng.randrange(GROUPS) if by is None else key_group(tuple(values[i] for i in by))
                self.channels[task.task, self.tables[target][group]].append(values)

    def send_pulse(self, task: LocalTask, pulse: Pulse) -> None:
        for (source, _), channel in self.channels.items():
            if source == task.task:
                channel.append(pulse)

    def step(self, channel: tuple[int, int]) -> None:
        """Takes the next item of a channel that is ready; a pulse from all channels of the task at once."""
        target = channel[1]
        instance = self.instances[target]
        item = self.channels[channel].popleft()
        if not isinstance(item, Pulse):
            instance.process(SimpleNamespace(values=item))
            return
        others = [self.channels[source, target] for source in self.upstream[target] if source != channel[0]]
        pulses = [item, *(other.popleft() for other in others)]
        assert len({pulse.number for pulse in pulses}) == 1
        pulse = Pulse(item.number, {key: value for each in pulses for key, value in each.data.items()})
        warm = instance.kind == "stateful" and not instance.state.groups
        added = {} if warm else instance.pulse(pulse) or {}
        self.send_pulse(instance, Pulse(pulse.number, pulse.data | added))

    def ready(self) -> list[tuple[int, int]]:
        """The channels whose next item may be taken now."""
        return [channel for channel in self.channels if self._is_ready(channel)]

    def _is_ready(self, channel: tuple[int, int]) -> bool:
        """It has an item, and if that is a pulse, then all other channels of the task have it too."""
        queue = self.channels[channel]
        if not queue or not isinstance(queue[0], Pulse):
            return bool(queue)
        heads = [self.channels[source, channel[1]] for source in self.upstream[channel[1]]]
        return all(head and isinstance(head[0], Pulse) for head in heads)

    def work(self, slow: set[tuple[int, int]]) -> None:
        """A few items of most channels that are not slow."""
        for channel in self.ready():
            if channel not in slow and self.rng.random() < 0.7:
                for _ in range(self.rng.randint(1, 5)):
                    if self._is_ready(channel):
                        self.step(channel)

    def run(self, *, burst: int, move: float) -> None:
        """All rows, in bursts of about `burst`; after one, with probability `move`, everything moves."""
        (source,) = self.tasks_of["data_source"]
        while not self.stream.ended:
            slow = {channel for channel in self.channels if self.rng.random() < 0.4}  # others overtake
            for _ in range(self.rng.randint(1, burst)):
                self.instances[source].next_tuple()
                if self.rng.random() < 0.5:
                    self.work(slow)
            if self.rng.random() < move or self.stream.ended:
                while self.ready():
                    self.work(set())
                self.instances[source].committed(dict(self.states[source]))
                self.move()


def run_topology(lines, *, seed, pulse_s, window_s=1800, burst=20, move=0.2, replayed=None) -> Network:
    """The network after the end of the stream. `replayed`: which lines the replay sends (default: all)."""
    rows, t = [], 0
    for line in lines:
        trip = parse_trip(line)
        t = t if isinstance(trip, Reject) else trip.dropoff_s
        if replayed is None or replayed(trip):
            rows.append(Row(len(rows) + 1, line, t))
    rows.append(Row(len(rows) + 1, None, 0))
    stream, sink = FakeStream(rows), FakeSink()
    conf = {"query1.pulse_s": pulse_s, "query1.window_s": window_s}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_source, "open_redis", lambda *_: None)
        patch.setattr(data_source, "TaxiStream", lambda client, settings: stream)
        patch.setattr(global_rank, "open_sink", lambda settings, topology_id: sink)
        network = Network(random.Random(seed), conf, stream, sink)
        network.run(burst=burst, move=move)
    assert stream.progress == len(rows)
    return network


def expected(lines, *, pulse_s, window_s=1800):
    rejects: Counter[str] = Counter()
    rides = read_rides((Line("-", 0, line) for line in lines), grid=Grid(), rejects=rejects)
    return list(rows_per_pulse(rides, pulse_s=pulse_s, window_s=window_s)), rejects


def csv_line(t: int, start: tuple[int, int], end: tuple[int, int]) -> str:
    grid = Grid()
    when = f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d %H:%M:%S}"
    degrees = [
        f"{degree:.6f}"
        for east, south in (start, end)
        for degree in (grid.lon + (east - 1) * grid.cell_lon, grid.lat - (south - 1) * grid.cell_lat)
    ]
    return ",".join(["m", "h", when, when, "0", "0", *degrees, "CSH", "0", "0", "0", "0", "0", "0"])


#: Few routes, so that they meet often, or enough for an eleventh; (0, 1) lies outside.
FEW = st.sampled_from([(1, 1), (300, 300), (0, 1)])
MANY = st.sampled_from([(1, 1), (1, 2), (2, 1), (300, 300), (150, 160), (0, 1)])
#: Seconds between rows: sparse, around pulses and window; dense, for many ties.
DENSE = st.sampled_from([0, 0, 0, 1, 20])
SPARSE = st.sampled_from([0, 0, 0, 1, 7, 30, 59, 60, 61, 119, 300, 539, 540, 541, 599, 600, 601, 2000])
BAD = st.sampled_from(["", "a,b", "x," * 16, csv_line(0, (1, 1), (1, 1)).replace("CSH", "CSH,CSH")])


@st.composite
def inputs(draw):
    t, lines, cells = 1_356_998_400, [], draw(st.sampled_from([FEW, MANY]))
    gaps = draw(st.sampled_from([DENSE, SPARSE]))
    for _ in range(draw(st.integers(0, 60))):
        t += draw(gaps)
        lines.append(draw(BAD) if draw(st.integers(0, 9)) == 0 else csv_line(t, draw(cells), draw(cells)))
    return lines


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(lines=inputs(), seed=st.integers(0, 2**32), pulse_s=st.sampled_from([1, 60, 61, 600]))
def test_any_replicas_interleaving_and_moves_give_the_reference(lines, seed, pulse_s):
    network = run_topology(lines, seed=seed, pulse_s=pulse_s, window_s=600)
    results, rejects = expected(lines, pulse_s=pulse_s, window_s=600)
    assert network.sink.results == results
    assert network.counters["parser"] + network.counters["filter_by_coordinates"] == rejects


@settings(max_examples=20, deadline=None)
@given(lines=inputs(), seed=st.integers(0, 2**32))
def test_it_does_not_matter_whether_the_replay_sends_rejected_rows(lines, seed):
    def parses(trip):
        return not isinstance(trip, Reject)

    network = run_topology(lines, seed=seed, pulse_s=60, window_s=600, replayed=parses)
    assert network.sink.results == expected(lines, pulse_s=60, window_s=600)[0]


@pytest.mark.skipif(not REAL.exists(), reason=f"needs ../shared: {REAL.name}")
def test_the_real_rows_give_the_reference():
    with gzip.open(REAL, "rt") as file:
        lines = [line.rstrip("\n") for line in file]
    network = run_topology(lines, seed=7, pulse_s=60, burst=400, move=0.3)
    results, rejects = expected(lines, pulse_s=60)
    assert len(results) == 44
    assert network.sink.results == results
    assert network.counters["filter_by_coordinates"] == rejects == {"outside": 128}
    print("sent", network.sent)
