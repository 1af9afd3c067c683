"""A domain: it promises latencies, splits tasks into subtasks with deadlines, and answers with what its nodes read.

Executors are not here: `Start` asks the shell for an execution, `executed` tells what came of it.  A subtask starts
once, however often its provider repeats the task.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, NamedTuple

from leeward.core.members import To
from leeward.core.policy import Discipline
from leeward.policies.dssp.agents.messages import (
    Answer,
    Apart,
    Ask,
    Leaves,
    Negotiate,
    Offer,
    Provision,
    Refuse,
    Release,
    Tally,
    Terms,
    reading,
)
from leeward.policies.dssp.agents.queues import NodeQueue, Subtask
from leeward.policies.dssp.agents.scaling import NodeScaling, ScalingSettings
from leeward.policies.dssp.latency.windows import SAMPLES, Slowest, Windows
from leeward.policies.dssp.model.admission import Load, promise
from leeward.policies.dssp.model.area import Area

Key = tuple[str, str]  #: provider, and query or service


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An edge node as its domain knows it."""

    areas: tuple[Area, ...]
    execution_s: float  #: mean execution time, until enough are measured
    pods: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainSettings:
    """How a domain works."""

    discipline: Discipline
    scaling: ScalingSettings | None = None  #: None: pods stay as they are
    #: A subtask that runs for so long has failed, s, and a task is answered so long after its objective at the latest.
    patience_s: float = 10.0
    #: For so long after its answer, or longer if its objective is, a task that is sent again gets the same answer, s.
    remembered_s: float = 60.0
    lease_s: float = 180.0  #: terms that their provider has not renewed for so long are over
    #: Measured latencies of each node.
    samples: int = SAMPLES
    busy: float | None = None  #: as of `promise` (model/admission.py)


class Start(NamedTuple):
    """Effect: execute this subtask on a pod of its node, then call `Domain.executed`."""

    subtask: Subtask


class Scale(NamedTuple):
    """Effect: this node has so many pods from now on."""

    node: int
    pods: int


@dataclass(frozen=True, slots=True)
class _Booking:
    """A service that the domain keeps the terms of."""

    terms: Terms
    until: float
    pods: dict[int, int]  #: that the promise rests on, of each of its nodes


@dataclass(slots=True)
class _Task:
    """A task in work."""

    query: str
    objective_s: float
    arrived: float
    left: set[int]  #: nodes
    tally: Tally = field(default_factory=Tally)
    late: bool = False
    failed: int = 0


@dataclass(slots=True, kw_only=True)
class Counts:
    """Since the start; `late` are subtasks that started after their queueing deadlines."""

    tasks: int = 0
    repeated: int = 0
    refused: int = 0
    started: int = 0
    late: int = 0
    failed: int = 0
    given_up: int = 0


class Domain:
    """See the module; a `Member` (core/members.py)."""

    def __init__(
        self, name: str, capabilities: Sequence[str], nodes: Sequence[Node], settings: DomainSettings, now: float = 0.0
    ) -> None:
        self.name, self.capabilities, self.nodes, self.settings = name, tuple(capabilities), tuple(nodes), settings
        self.counts = Counts()
        self.queues = [
            NodeQueue(number, settings.discipline, execution_s=node.execution_s, pods=node.pods)
            for number, node in enumerate(nodes)
        ]
        self.windows = Windows(len(nodes), settings.samples)
        self._scaling = [NodeScaling(settings.scaling or ScalingSettings(), now) for _ in nodes]
        self._bookings: dict[Key, _Booking] = {}
        self._tasks: dict[Key, _Task] = {}
        self._answered: OrderedDict[Key, tuple[Answer, float]] = OrderedDict()
        self._running: dict[tuple[Key, int], float] = {}  # since when
        self._sets: dict[tuple[int, ...], int] = {}  # nodes -> number of the kept sum
        self._apart: dict[str, float] = {}  # provider -> s
        self._matched: dict[tuple[Area, ...], tuple[int, ...]] = {}

    # --- a member

    def receive(self, sender: str, message: Any, now: float, rng: Random) -> list[Any]:
        """Take one message of a provider in; answers, and subtasks to start."""
        handler = _HANDLERS.get(type(message))
        return list(handler(self, sender, message, now)) if handler else []

    def tick(self, now: float, rng: Random) -> list[Any]:
        """Give up what is overdue, forget old answers, scale."""
        found: list[Any] = []
        patience = self.settings.patience_s
        for (key, number), since in [*self._running.items()]:
            if now - since > patience:
                found += self.executed(number, key, 0.0, None, now)
        for key, task in [*self._tasks.items()]:
            if now > task.arrived + max(0.0, task.objective_s) + patience:
                self.counts.given_up += 1
                found += self._give_up(key, task, now)
        while self._answered and now > next(iter(self._answered.values()))[1]:
            self._answered.popitem(last=False)
        for booked in [key for key, booking in self._bookings.items() if now > booking.until]:
            del self._bookings[booked]
        if self.settings.scaling is not None:
            for queue, scaling in zip(self.queues, self._scaling, strict=True):
                least = max((one.pods.get(queue.number, 1) for one in self._bookings.values()), default=1)
                own = self.nodes[queue.number].pods
                pods = scaling.decide(queue.pods, now, least=max(own, least), most=self._most_pods(queue.number))
                if pods != queue.pods:
                    found += [Scale(queue.number, pods), *self._resized(queue, pods, now)]
        return found

    def _most_pods(self, number: int) -> int:
        """That a node may have: its own, or more if it scales."""
        own = self.nodes[number].pods
        return own if self.settings.scaling is None else max(own, self.settings.scaling.most_pods)

    # --- terms

    def _negotiate(self, sender: str, message: Negotiate, now: float) -> Iterator[Any]:
        yield To(sender, self._offer(sender, message.terms)[0])

    def _provision(self, sender: str, message: Provision, now: float) -> Iterator[Any]:
        terms = message.terms
        offer, pods = self._offer(sender, terms)
        if offer.accepted:
            self._bookings[sender, terms.service] = _Booking(terms, now + self.settings.lease_s, pods)
            for number, count in pods.items():
                if self.settings.scaling is not None and count > self.queues[number].pods:
                    yield Scale(number, count)
                    yield from self._resized(self.queues[number], count, now)
        yield To(sender, replace(offer, provisioned=offer.accepted))

    def _release(self, sender: str, message: Release, now: float) -> Iterator[Any]:
        self._bookings.pop((sender, message.service), None)
        yield from ()

    def leave(self) -> list[Any]:
        """Tell all providers that this domain leaves. Tasks in work are still answered, if the shell waits for them."""
        found = [To(provider, Leaves(service=service)) for provider, service in sorted(self._bookings)]
        self._bookings.clear()
        return found

    def _offer(self, sender: str, terms: Terms) -> tuple[Offer, dict[int, int]]:
        """The answer to these terms, and the pods of each node that an acceptance rests on."""
        nodes = self._matching(terms.areas)
        if terms.capability not in self.capabilities:
            return Offer(service=terms.service, accepted=False, why=f"it does not offer {terms.capability!r}"), {}
        if not nodes:
            return Offer(service=terms.service, accepted=False, why=_OUTSIDE), {}
        unloaded = self._slowest(nodes, terms.percent)
        loads = self._loads(nodes, terms, (sender, terms.service))
        apart_s = self._apart.get(sender, 0.0)  # on the way to its provider and back
        found = promise(loads, terms.percent, terms.objective_s - apart_s, unloaded.seconds, self.settings.busy)
        offer = Offer(
            service=terms.service, accepted=found.accepted, why=found.why,
            least_s=found.least_s + apart_s if found.least_s else found.least_s,
            extrapolated=unloaded.extrapolated,
        )  # fmt: skip
        return offer, dict(zip(nodes, found.pods, strict=True)) if found.accepted else {}

    def _loads(self, nodes: Sequence[int], terms: Terms, key: Key) -> list[Load]:
        """Of these nodes with the new service: every node of a service's areas gets every task of it."""
        rates = dict.fromkeys(nodes, terms.rate)
        for other, booking in self._bookings.items():
            if other != key:
                for number in self._matching(booking.terms.areas):
                    if number in rates:
                        rates[number] += booking.terms.rate
        return [
            Load(rate=rate, mean_s=self.queues[number].paced.mean, most_pods=self._most_pods(number))
            for number, rate in rates.items()
        ]

    # --- tasks

    def _ask(self, sender: str, message: Ask, now: float) -> Iterator[Any]:
        key = sender, message.query
        if key in self._tasks or key in self._answered:
            self.counts.repeated += 1
            if key in self._answered:
                yield To(sender, self._answered[key][0])
            return
        booking = self._bookings.get((sender, message.service))
        allowed = self._matching(booking.terms.areas) if booking else ()
        nodes = tuple(number for number in self._matching(message.areas) if number in allowed)
        if booking is None or not nodes:
            self.counts.refused += 1
            why = f"the service {message.service!r} is not provisioned" if booking is None else _OUTSIDE
            yield To(sender, Refuse(query=message.query, service=message.service, why=why, provisioned=bool(booking)))
            return
        yield from self._take_in(key, message, booking.terms, nodes, now)

    def _take_in(self, key: Key, ask: Ask, terms: Terms, nodes: tuple[int, ...], now: float) -> Iterator[Any]:
        """A task within its service's terms: its provider may ask for less, not for more."""
        objective_s = max(-terms.objective_s, min(ask.objective_s, terms.objective_s))
        due = now + objective_s - self._apart.get(key[0], 0.0)
        # not known: the order of plain deadlines
        unloaded = self._slowest(nodes, min(ask.percent, terms.percent)).seconds or 0.0
        self.counts.tasks += 1
        self._tasks[key] = _Task(ask.query, objective_s, now, set(nodes))
        for number in nodes:
            queue = self.queues[number]
            queue.waiting.append(
                Subtask(
                    task=key, node=number, arrived=now, rank=terms.rank, due=due, unloaded=unloaded,
                    execution=queue.paced.mean, stages=queue.paced.stages, weight=ask.weight,
                )
            )  # fmt: skip
            yield from self._begin(queue, now)

    def _set_apart(self, sender: str, message: Apart, now: float) -> Iterator[Any]:
        if 0 <= message.seconds < math.inf:
            self._apart[sender] = message.seconds
        yield from ()

    def _begin(self, queue: NodeQueue, now: float) -> Iterator[Start]:
        for subtask in queue.start(now):
            late = now > subtask.deadline
            self._running[subtask.task, subtask.node] = now
            self._tasks[subtask.task].late |= late
            self.counts.started += 1
            self.counts.late += late
            self._scaling[queue.number].record(late=late)
            yield Start(subtask)

    def measured(self, node: int, seconds: float) -> None:
        """A node took so long for a subtask, once it had begun."""
        self.windows.add(node, seconds)
        self.queues[node].paced.add(seconds)

    def executed(self, node: int, task: Key, seconds: float, value: float | None, now: float) -> list[Any]:
        """A subtask is over: after `seconds`, with what it read, or None if it failed. Unknown ones are discarded."""
        if self._running.pop((task, node), None) is None:
            return []
        queue = self.queues[node]
        queue.busy -= 1
        failed = value is None or not math.isfinite(value)
        if not failed:
            self.measured(node, seconds)
            self._scaling[node].busy_s += seconds
        found: list[Any] = []
        if (known := self._tasks.get(task)) is not None:
            known.left.discard(node)
            if value is None or failed:
                known.failed += 1
                self.counts.failed += 1
            else:
                known.tally += reading(value)
            if not known.left:
                found.append(self._answer(task, known, now))
        found += self._begin(queue, now)
        return found

    def _give_up(self, key: Key, task: _Task, now: float) -> Iterator[Any]:
        """Answer with what is there; its waiting subtasks are not executed any more."""
        task.failed += len(task.left)
        for number in task.left:
            self.queues[number].drop(key)
        yield self._answer(key, task, now)

    def _answer(self, key: Key, task: _Task, now: float) -> To:
        answer = Answer(
            query=task.query, tally=task.tally, inside_s=now - task.arrived, late=task.late, failed=task.failed
        )
        del self._tasks[key]
        self._answered[key] = answer, now + max(self.settings.remembered_s, task.objective_s + self.settings.patience_s)
        return To(key[0], answer)

    # --- nodes

    def _resized(self, queue: NodeQueue, pods: int, now: float) -> Iterator[Start]:
        queue.pods = pods
        yield from self._begin(queue, now)

    def _matching(self, areas: tuple[Area, ...]) -> tuple[int, ...]:
        """Numbers of the nodes in these areas; those of the latest areas are remembered."""
        if areas not in self._matched:
            if len(self._matched) >= MOST_SETS:
                self._matched.pop(next(iter(self._matched)))
            self._matched[areas] = tuple(
                number
                for number, node in enumerate(self.nodes)
                if any(here.intersects(wanted) for here in node.areas for wanted in areas)
            )
        return self._matched[areas]

    def _slowest(self, nodes: tuple[int, ...], percent: float) -> Slowest:
        """Of a set of nodes; sums of the sets that come first are kept."""
        number = self._sets.get(nodes)
        if number is None:
            if len(self._sets) >= MOST_SETS:
                return self.windows.slowest(nodes, percent)
            number = self._sets[nodes] = self.windows.keep(nodes)
        return self.windows.slowest_kept(number, percent)

    @property
    def open_tasks(self) -> int:
        """Of all providers."""
        return len(self._tasks)


#: Sets of nodes whose sums are kept, as each makes every measurement a little slower; and areas that are remembered.
MOST_SETS = 64
_OUTSIDE = "it covers none of these areas"
_HANDLERS: dict[type, Callable[[Any, str, Any, float], Iterator[Any]]] = {
    Negotiate: Domain._negotiate, Provision: Domain._provision, Release: Domain._release, Ask: Domain._ask,
    Apart: Domain._set_apart,
}  # fmt: skip
