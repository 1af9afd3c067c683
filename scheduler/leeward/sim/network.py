"""Channels between tasks as Storm has them: ordered for each pair of tasks, lossy where a connection is down.

The sending side counts and routes as the Java groupings do (`leeward.grouping.Channel`): counts and tables belong to
the worker process, and survive the Python process of a task.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from leeward.core.instructions import COUNTED, Kind, Marker, Send
from leeward.core.keys import GROUPS, key_group
from leeward.core.table import Table

#: The step of the rotation through a table, as in the grouping.
STRIDE = 53


@dataclass(slots=True)
class Outbox:
    """A worker process' memory of one of its tasks as a sender."""

    task: int
    component: str
    sent: dict[int, int] = field(default_factory=dict)  #: receiving task -> tuples and counted markers
    tables: dict[str, tuple[int, Table]] = field(default_factory=dict)  #: component -> epoch, table
    turn: int = 0


@dataclass(slots=True)
class Network:
    """All channels of a topology."""

    tasks: Mapping[int, str]  #: task -> component
    targets: Mapping[str, tuple[str, ...]]  #: component -> components that read from it
    keyed: frozenset[tuple[str, str]]  #: (from, to) routed by key; others rotate
    queues: dict[tuple[int, int], deque[Any]] = field(default_factory=dict)
    down: set[tuple[int, int]] = field(default_factory=set)  #: channels whose connection is not up
    busy: dict[tuple[int, int], None] = field(default_factory=dict)  #: channels with something in them, oldest first
    slow: set[tuple[int, int]] = field(default_factory=set)  #: channels that deliver nothing for a while
    order: tuple[tuple[int, int], ...] = ()  #: all channels, sorted
    holes: set[int] = field(default_factory=set)  #: senders of counted items lost since the base in force began
    members: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for task, name in sorted(self.tasks.items()):
            self.members.setdefault(name, []).append(task)
        for source, name in self.tasks.items():
            for target in self.targets[name]:
                for task in self.members[target]:
                    self.queues[source, task] = deque()
        self.order = tuple(sorted(self.queues))

    def upstream(self, task: int) -> list[int]:
        """Tasks that have a channel to this one."""
        return sorted(source for source, target in self.queues if target == task)

    def emit(self, outbox: Outbox, component: str, item: Any, key: object = None) -> None:
        """A data tuple to the owner of its key, or (without a key, or to a component without state) to the next."""
        _, table = outbox.tables[component]
        if key is not None and (outbox.component, component) in self.keyed:
            target = table[key_group(key)]
        else:
            target = table[outbox.turn * STRIDE % GROUPS]
            outbox.turn = (outbox.turn + 1) % GROUPS
        outbox.sent[target] = outbox.sent.get(target, 0) + 1
        self._put(outbox.task, target, item)

    def send(self, outbox: Outbox, instruction: Send) -> None:
        """A marker to every downstream task; a pulse to the replicas."""
        marker = instruction.marker
        for name in self.targets[outbox.component]:
            epoch, table = outbox.tables.get(name, (-1, ()))
            if instruction.tables is not None and marker.number >= epoch:
                epoch, table = outbox.tables[name] = marker.number, instruction.tables[name]
            for target in self.members[name] if marker.kind is not Kind.PULSE else sorted(set(table)):
                sent = outbox.sent.get(target, 0)
                outbox.sent[target] = sent + (marker.kind in COUNTED)
                counted = Marker(kind=marker.kind, number=marker.number, sent=sent, body=marker.body)
                self._put(outbox.task, target, counted)

    def take(self, channel: tuple[int, int]) -> Any:
        """The next item of a channel that has one."""
        queue = self.queues[channel]
        item = queue.popleft()
        if not queue:
            self.busy.pop(channel, None)
        return item

    def clear(self, channels: Iterable[tuple[int, int]]) -> None:
        """All that is on its way there is lost."""
        for channel in channels:
            self.drop(channel, 0, len(self.queues[channel]))

    def drop(self, channel: tuple[int, int], first: int, last: int) -> None:
        """Lose a batch: items `first` to `last`."""
        queue = self.queues[channel]
        items = list(queue)
        lost = items[first:last]
        queue.clear()
        queue.extend(items[:first] + items[last:])
        if not queue:
            self.busy.pop(channel, None)
        self._lose(channel[0], lost)

    def _put(self, source: int, target: int, item: Any) -> None:
        if (source, target) not in self.down:
            self.queues[source, target].append(item)
            self.busy[source, target] = None
        else:
            self._lose(source, (item,))

    def _lose(self, sender: int, items: Iterable[Any]) -> None:
        if any(not isinstance(item, Marker) or item.kind in COUNTED for item in items):
            self.holes.add(sender)
