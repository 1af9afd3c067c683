"""A declared topology, run in one process: any replicas, any interleaving, moves.

The network below keeps what Storm and the runtime promise (order per pair of tasks; a pulse is delivered once
it is in from every upstream task, and channels that have it wait) and leaves everything else to chance.
"""

from __future__ import annotations

import json
import random
from collections import Counter, deque
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from bolts.query1.stores import Row
from leeward.core.keys import GROUPS, key_group
from leeward.runtime import Pulse
from leeward.runtime.dsl.specs import MARKER_STREAM
from leeward.runtime.state.keyed import KeyedState
from leeward.runtime.state.outside import Outside


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
        self.component_name = name
        self.counters = Counter()
        self.ours = (*vars(self), "ours", "outside")

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
    """All tasks of a declared topology, their channels, tables and states; `most`: replicas of each component."""

    def __init__(self, rng: random.Random, conf: dict, topology: Any, most: Mapping[str, int]) -> None:
        self.rng, self.conf, self.topology, self.most = rng, conf, topology, most
        self.specs = {spec.name: spec for spec in topology.specs}
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
        for target, bolt in self.topology.thrift_bolts.items():
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
            assert instance.kind == "stateless" or instance.outside.look() == (), "the service would refuse to move it"
        for name, tasks in self.tasks_of.items():
            replicas = self.rng.sample(tasks, self.rng.randint(1, self.most[name]))
            table = [self.rng.choice(replicas) for _ in range(GROUPS)]
            text = {g: json.dumps(self.states[t].group(g)) for t in tasks for g in self.states[t].groups}
            assert sorted(text) == list(range(GROUPS))
            for task in tasks:
                mine = [g for g in range(GROUPS) if table[g] == task]
                self.states[task].replace({g: json.loads(text[g]) for g in mine})
            self.tables[name] = table
        self.instances = {task: self._start(task, name) for task, name in self.component.items()}

    def _start(self, task: int, name: str) -> LocalTask:
        component = self.specs[name].component_cls
        instance = type("Local", (LocalTask, component), {"__module__": component.__module__})(self, name, task)
        instance.initialize(self.conf, {})
        instance.resumed()
        instance.outside = Outside(instance, instance.ours)
        instance.outside.begin()
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

    def run(self, source_name: str, ended: Callable[[], bool], *, burst: int, move: float) -> None:
        """All rows, in bursts of about `burst`; after one, with probability `move`, everything moves."""
        (source,) = self.tasks_of[source_name]
        over = False
        while not over:
            slow = {channel for channel in self.channels if self.rng.random() < 0.4}  # others overtake
            for _ in range(self.rng.randint(1, burst)):
                self.instances[source].next_tuple()
                if self.rng.random() < 0.5:
                    self.work(slow)
            over = ended()
            if self.rng.random() < move or over:
                while self.ready():
                    self.work(set())
                self.instances[source].committed(dict(self.states[source]))
                self.move()
