"""Virtual time from the launch of applications until their operators are placed: by dataflows, and by one centre.

Each node handles messages one at a time, in the order in which they arrive.  A message needs a hop's latency and then
the receiver's processor; a decision about an operator, or about an application, needs the decider's.

Dataflow: an application's owner reads it (one decision) and registers it with the scheduler of its zone, which starts
its sources, and the pinned operators between the ends.  At each hop of a JOIN the present node asks the node
that Pastry names for its leaf set and their loads, decides on the forwarder, and sends the JOIN on; the sink sends the
way back.  Each node of the way then decides on its share of the operators, one after another, and sends each to its
host.

Centre: owners send to one node, which reads the application and decides on all of its operators, first come, first
served, and sends each to its host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count

from leeward.policies.agiledart.dataflow.application import Application, Pair
from leeward.policies.agiledart.dataflow.placement import Placed

#: Called with the time, s, at which a node has handled a message.
Then = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Times of a processor, s, and of a hop."""

    decision_s: float  #: on the host of one operator, on a forwarder, or to read an application
    message_s: float  #: to handle a message
    hop_s: float  #: latency of a hop between neighbours
    across_s: float  #: and more for each unit of proximity


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """An application whose owner asks at time 0 for its deployment."""

    application: Application
    placed: Placed
    owner: int
    scheduler: int  #: of its zone


@dataclass(slots=True)
class Machines:
    """All nodes, and the messages under way."""

    costs: Costs
    proximity: Callable[[int, int], float]
    _events: list[tuple[float, int, int, float, Then]] = field(default_factory=list)
    _free: dict[int, float] = field(default_factory=dict)  #: node -> when it has handled all that have arrived
    _numbers: count[int] = field(default_factory=count)

    def send(self, now: float, sender: int, receiver: int, work: float, then: Then) -> None:
        """A message; `work` in s of the receiver."""
        hop = 0.0
        if sender != receiver:
            hop = self.costs.hop_s + self.costs.across_s * self.proximity(sender, receiver)
        heappush(self._events, (now + hop, next(self._numbers), receiver, work, then))

    def run(self) -> None:
        """Until no message is under way."""
        while self._events:
            arrived, _, node, work, then = heappop(self._events)
            self._free[node] = max(arrived, self._free.get(node, 0.0)) + work
            then(self._free[node])


def by_dataflow(machines: Machines, launched: Sequence[Launched]) -> list[float]:
    """Of each application the time at which its last operator is placed, s."""
    running = [_Dataflow(machines, one) for one in launched]
    for one in running:
        one.launch()
    machines.run()
    return [one.placed_at() for one in running]


def by_centre(machines: Machines, launched: Sequence[Launched], centre: int) -> list[float]:
    """The same where one node decides."""
    ends = [0.0] * len(launched)

    def decided(number: int, now: float) -> None:
        def placed(at: float) -> None:
            ends[number] = max(ends[number], at)

        for host in launched[number].placed.hosts.values():
            machines.send(now, centre, host, machines.costs.message_s, placed)

    for number, one in enumerate(launched):
        work = machines.costs.decision_s * (1 + len(one.application.operators))
        machines.send(0.0, one.owner, centre, work, partial(decided, number))
    machines.run()
    return ends


class _Dataflow:
    """One application on its way."""

    def __init__(self, machines: Machines, launched: Launched) -> None:
        self._machines, self._costs, self._one = machines, machines.costs, launched
        self._at: dict[str, float] = {}  # operator -> when it was placed

    def launch(self) -> None:
        one = self._one

        def read(now: float) -> None:
            self._machines.send(now, one.owner, one.scheduler, self._costs.message_s, self._start)

        # Applications of a zone would wait for one another if their one scheduler read them.
        self._machines.send(0.0, one.owner, one.owner, self._costs.decision_s, read)

    def placed_at(self) -> float:
        return max(self._at[operator.name] for operator in self._one.application.operators)

    def _start(self, now: float) -> None:
        ends = {end for pair in self._one.placed.joins for end in pair}
        for operator in self._one.application.operators:
            if operator.at is not None and operator.name not in ends:
                self._place(operator.name, self._one.scheduler, now)
        for source in dict.fromkeys(source for source, _ in self._one.placed.joins):
            node = self._one.application.node_of(source)
            self._machines.send(now, self._one.scheduler, node, self._costs.message_s, partial(self._join, source))

    def _join(self, source: str, now: float) -> None:
        self._at[source] = now
        for pair in self._one.placed.joins:
            if pair[0] == source:
                self._onward(pair, 0, now)

    def _onward(self, pair: Pair, position: int, now: float) -> None:
        """The node at a position of the way has handled the JOIN."""
        join = self._one.placed.joins[pair]
        if position == join.hops:
            self._at.setdefault(pair[1], now)
            self._back(pair, position, now)
            return
        here, asked, after = join.path[position], join.asked[position], join.path[position + 1]

        def send(at: float) -> None:
            work = self._costs.message_s
            self._machines.send(at, here, after, work, partial(self._onward, pair, position + 1))

        def answer(at: float) -> None:
            self._machines.send(at, asked, here, self._costs.message_s + self._costs.decision_s, send)

        if asked == join.path[-1]:  # the sink itself: nothing to choose
            send(now)
        else:
            self._machines.send(now, here, asked, self._costs.message_s, answer)

    def _back(self, pair: Pair, position: int, now: float) -> None:
        """The node at a position knows the way to the sink: it decides on its share, and tells the node before it."""
        path, placed = self._one.placed.joins[pair].path, self._one.placed
        here = path[position]
        if position:
            self._machines.send(
                now, here, path[position - 1], self._costs.message_s, partial(self._back, pair, position - 1)
            )
        for operator in self._one.application.operators:
            name = operator.name
            first = self._one.application.pairs[name][0]
            if operator.at is None and first == pair and placed.deciders[name] == here:
                self._machines.send(now, here, here, self._costs.decision_s, partial(self._place, name, here))

    def _place(self, name: str, here: int, now: float) -> None:
        host = self._one.placed.hosts[name]

        def placed(at: float) -> None:
            self._at[name] = at

        if host == here:
            placed(now)
        else:
            self._machines.send(now, here, host, self._costs.message_s, placed)
