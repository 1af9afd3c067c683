"""Domains and providers in one process and in virtual time: messages take a while, executions too, members come and go.

The same objects as live.  A message is lost, and an execution fails or never ends, with a given probability.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from leeward.core.members import Member, To, ToAll
from leeward.policies.dssp.agents.domain import Domain, Start

#: Between two ticks of a member, s.
TICK_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """Faults, as probabilities; times in s."""

    delay_s: float = 0.003  #: of a message, exponential
    lost: float = 0.0
    doubled: float = 0.0
    failed: float = 0.0  #: executions without a reading
    stuck: float = 0.0  #: executions that never end


class Play:
    """See the module. `on_effect`: called with a member's name and each effect but the start of a subtask."""

    def __init__(self, rng: Random, weather: Weather, on_effect: Callable[[str, Any], None]) -> None:
        self.now, self.members, self.messages = 0.0, dict[str, Member](), 0
        self.executed: dict[tuple[str, tuple[str, str], int], int] = {}  #: domain, task, node -> times
        self._rng, self._weather, self._on_effect = rng, weather, on_effect
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0

    def add(self, member: Member) -> None:
        """It is there from now on; another one of its name is replaced, as after a restart."""
        self.members[member.name] = member
        self.at(self.now + self._rng.uniform(0, TICK_S), lambda: self._tick(member))

    def remove(self, name: str) -> None:
        """It dies: messages on their way to it are lost, and its executions."""
        del self.members[name]

    def at(self, when: float, event: Callable[[], None]) -> None:
        """Have something happen."""
        self._number += 1
        heapq.heappush(self._events, (when, self._number, event))

    def take(self, name: str, outputs: Sequence[Any]) -> None:
        """Carry out what a member has returned."""
        for output in outputs:
            if isinstance(output, ToAll):
                for to in output.names:
                    self._send(name, To(to, output.message))
            elif isinstance(output, To):
                self._send(name, output)
            elif isinstance(output, Start):
                self._start(name, output)
            else:
                self._on_effect(name, output)

    def run(self, until: float) -> None:
        """Up to a time."""
        while self._events and self._events[0][0] <= until:
            self.now, _, event = heapq.heappop(self._events)
            event()
        self.now = until

    def _tick(self, member: Member) -> None:
        if self.members.get(member.name) is member:
            self.take(member.name, member.tick(self.now, self._rng))
            self.at(self.now + TICK_S, lambda: self._tick(member))

    def _send(self, sender: str, output: To) -> None:
        self.messages += 1
        copies = 0 if self._rng.random() < self._weather.lost else 1 + (self._rng.random() < self._weather.doubled)
        for _ in range(copies):
            self.at(self.now + self._rng.expovariate(1 / self._weather.delay_s), lambda: self._deliver(sender, output))

    def _deliver(self, sender: str, output: To) -> None:
        member = self.members.get(output.name)
        if member is not None:
            self.take(output.name, member.receive(sender, output.message, self.now, self._rng))

    def _start(self, name: str, start: Start) -> None:
        subtask, domain = start.subtask, self.members[name]
        assert isinstance(domain, Domain)
        where = name, subtask.task, subtask.node
        self.executed[where] = self.executed.get(where, 0) + 1
        if self._rng.random() < self._weather.stuck:
            return
        seconds = self._rng.expovariate(1 / domain.nodes[subtask.node].execution_s)
        value = None if self._rng.random() < self._weather.failed else self._rng.gauss(20.0, 5.0)

        def over() -> None:
            if self.members.get(name) is domain:
                self.take(name, domain.executed(subtask.node, subtask.task, seconds, value, self.now))

        self.at(self.now + seconds, over)
