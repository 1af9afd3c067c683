"""A run of the platform: tasks come, are mapped by the agents' own code, run, and go.  Fluid between two events.

A task runs at the mean rate that its public hops allow (`public.share`).  Its way, and so its rate, changes when a
server re-allocates.  Nothing else changes it: dedicated links and CPU are reserved.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import count

from leeward.policies.bimodal.mapping.agent import Agent
from leeward.policies.bimodal.mapping.flows import Flow, Ways, amounts, flows_of, reallocate
from leeward.policies.bimodal.mapping.play import agents_of, deliver, gossip_round, map_task
from leeward.policies.bimodal.mapping.rules import Method
from leeward.policies.bimodal.model.resources import Account, Resource, total
from leeward.policies.bimodal.model.values import Network, Task
from leeward.policies.bimodal.model.walk import Walk
from leeward.policies.bimodal.platform.public import MEAN_OVER_MEDIAN, SIGMA, Allocated, factor, share
from leeward.policies.bimodal.platform.setup import RATE_MBPS, Platform, arrivals, network

#: Between two rounds of gossip, s, and rounds after which news of one server is everywhere.
GOSSIP_S, GOSSIP_MOST = 10.0, 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The points that the paper leaves open, and our own."""

    method: Method
    allocated: Allocated = "median"
    reallocation: bool = True
    period_s: float = 10.0  #: of re-allocation
    hop_limit: int | None = None
    whole_uplink: bool = False  #: ours: the flows of an uplink share all of it
    buffers: bool = False  #: ours: elastic buffers at each hop, so that a hop's mean rate counts


@dataclass(slots=True)
class _Running:
    task: Task
    began: float
    mbit: float
    left: float  #: of them
    flows: list[Flow]
    cpu: dict[Resource, float]
    rate: float = 0.0  #: Mbit/s
    since: float = 0.0
    version: int = 0


@dataclass(slots=True, kw_only=True)
class Outcome:
    """Counts and means of a run."""

    offered: int = 0
    accepted: int = 0
    seconds: float = 0.0
    mbit: float = 0.0  #: processed
    cpu: float = 0.0  #: mean part of it that is used
    links: float = 0.0  #: the same of dedicated bandwidth
    public_hops: float = 0.0  #: mean over tasks when they begin
    deviations: list[float] = field(default_factory=list)  #: of each task from the wanted rate, as a part of it
    messages: Counter[str] = field(default_factory=Counter)

    @property
    def acceptance(self) -> float:
        """Part of the tasks that were accepted."""
        return self.accepted / self.offered if self.offered else 0.0

    @property
    def throughput(self) -> float:
        """Mbit/s that accepted tasks have processed, over the time in which tasks come."""
        return self.mbit / self.seconds if self.seconds else 0.0

    @property
    def deviation(self) -> float:
        """Mean over accepted tasks."""
        return sum(self.deviations) / len(self.deviations) if self.deviations else 0.0

    @property
    def elongation(self) -> float:
        """Mean additional part of the execution time."""
        times = [1 / (1 - one) - 1 for one in self.deviations]
        return sum(times) / len(times) if times else 0.0


def play(platform: Platform, reading: Reading, seed: int) -> Outcome:
    """One run; the same seed gives the same network and tasks to every reading."""
    rng = random.Random(seed)
    return _Run(network(platform, rng), arrivals(platform, rng), reading, seed, platform.uneven).play()


class _Run:
    def __init__(
        self, net: Network, tasks: list[tuple[float, Task, float]], reading: Reading, seed: int, uneven: float
    ) -> None:  # fmt: skip
        self.seed, self.uneven = seed, uneven
        self.network, self.tasks, self.reading, self.rng = net, tasks, reading, random.Random(seed + 1)
        self.account = Account(net)
        self.agents: dict[int, Agent] = agents_of(net, reading.method, account=self.account)
        self.running: dict[str, _Running] = {}
        self.sending: dict[int, list[Flow]] = {}  #: server -> the flows that it sends
        self.order, self.ends = count(), list[tuple[float, int, str, int]]()
        self.now, self.outcome = 0.0, Outcome()
        self.changed, self.gossiped, self.tick = False, 0.0, reading.period_s
        self.total_cpu = sum(server.cpu for server in net.servers.values())
        self.total_links = sum(link.bandwidth for link in net.links.values()) * (2 if net.direction == "each" else 1)

    def play(self) -> Outcome:
        last = self.tasks[-1][0]
        for at, task, mbit in self.tasks:
            self._go_on(at)
            self._advance(at)
            self._arrive(task, mbit)
        outcome = self.outcome
        outcome.seconds, outcome.cpu, outcome.links = last, outcome.cpu / last, outcome.links / last
        use = outcome.cpu, outcome.links
        while self.running:  # those that run are run to their end; figures of use are of the time in which tasks come
            self._go_on(min(self._next_end(), self.tick))
        outcome.cpu, outcome.links = use
        outcome.public_hops /= outcome.accepted or 1
        return outcome

    def _go_on(self, until: float) -> None:
        """Ends of tasks and re-allocations up to a time, itself included."""
        while (due := min(self._next_end(), self.tick)) <= until:
            self._advance(due)
            if due == self.tick:
                self.tick += self.reading.period_s
                self._learn()
                self._reallocate()
            else:
                self._end()

    # --- events

    def _arrive(self, task: Task, mbit: float) -> None:
        self.outcome.offered += 1
        self._gossip()
        mapped = map_task(self.agents, task, now=self.now, rng=self.rng)
        self.outcome.messages += mapped.messages
        walk = mapped.portal.walk
        if walk is not None:
            root = self.agents[task.delivery]
            deliver(self.agents, [(root.me, send) for send in root.end(task.name)], now=self.now, rng=self.rng)
            self._begin(task, mbit, flows_of(walk, task), _cpu_of(task, walk, self.network))
        for agent in self.agents.values():
            agent.forget(task.name)

    def _gossip(self) -> None:
        """Rounds since the last arrival; at the beginning enough that every server knows of all."""
        if not self.reading.method.surveys:
            return
        since = self.now - self.gossiped if self.outcome.offered > 1 else float("inf")
        self.gossiped = self.now
        for _ in range(int(min(GOSSIP_MOST, since / GOSSIP_S))):
            self.outcome.messages["Gossip"] += gossip_round(self.agents, now=self.now, rng=self.rng)

    def _begin(self, task: Task, mbit: float, flows: list[Flow], cpu: dict[Resource, float]) -> None:
        """The account is the platform's from here on: flows change their ways."""
        one = _Running(task=task, began=self.now, mbit=mbit, left=mbit, flows=flows, cpu=cpu, since=self.now)
        self.account.take(cpu)
        for flow in flows:
            self.account.take(amounts(flow, self.network))
            self.sending.setdefault(flow.sender, []).append(flow)
        self.running[task.name] = one
        self.outcome.accepted += 1
        self.outcome.public_hops += sum(flow.public for flow in flows)
        self.changed = True
        self._new_rates({flow.sender for flow in flows}, {task.name})

    def _end(self) -> None:
        _, _, name, version = heapq.heappop(self.ends)
        one = self.running.get(name)
        if one is None or one.version != version:
            return
        del self.running[name]
        self.account.give_back(one.cpu)
        for flow in one.flows:
            self.account.give_back(amounts(flow, self.network))
            self.sending[flow.sender].remove(flow)
        self.outcome.deviations.append(max(0.0, 1 - one.mbit / RATE_MBPS / (self.now - one.began)))
        self.outcome.mbit += one.mbit
        self.changed = True
        self._new_rates({flow.sender for flow in one.flows}, set())

    def _learn(self) -> None:
        """Each server hears what its public paths have carried in one draw."""
        if not self.reading.method.learned:
            return
        for server, flows in sorted(self.sending.items()):
            for flow in flows:
                if flow.public:
                    part = self._factor(flow) * 2 ** self.rng.gauss(0.0, SIGMA)
                    self.agents[server].learn(flow.receiver, part)

    def _reallocate(self) -> None:
        """Every server in turn; nothing can change while no task has come or gone."""
        if not (self.reading.reallocation and self.reading.method.dedicated and self.changed):
            return
        self.changed = False
        ways = Ways(public=self.reading.method.public, hop_limit=self.reading.hop_limit)
        touched: set[int] = set()
        tasks: set[str] = set()
        for server in sorted(self.sending):
            flows = self.sending[server]
            moved = reallocate(flows, self._priority, self.account, self.network, ways)
            if moved:
                touched.add(server)
                tasks |= {flow.task for flow in moved}
        self._new_rates(touched, tasks)

    def _priority(self, flow: Flow) -> float:
        """Price per byte times the rate at which the task would be at its target after the next period."""
        one = self.running[flow.task]
        done = one.mbit - one.left + one.rate * (self.now - one.since)
        behind = RATE_MBPS * (self.now - one.began) - done
        quantiles = self.agents[flow.sender].paths.quantiles() if self.reading.method.learned else {}
        lacks = 1.0 - quantiles.get(flow.receiver, 1.0)
        return one.task.price * (RATE_MBPS * (1.0 + lacks) + behind / self.reading.period_s)

    # --- rates

    def _new_rates(self, servers: set[int], tasks: set[str]) -> None:
        """Of these tasks, and of those that share these servers' uplinks."""
        if self.reading.whole_uplink:
            tasks = tasks | {flow.task for server in servers for flow in self.sending.get(server, ()) if flow.public}
        for name in sorted(tasks & self.running.keys()):
            one = self.running[name]
            rate = RATE_MBPS * self._share(one)
            if rate == one.rate:
                continue
            one.left -= one.rate * (self.now - one.since)
            one.rate, one.since, one.version = rate, self.now, one.version + 1
            heapq.heappush(self.ends, (self.now + one.left / rate, next(self.order), name, one.version))

    def _share(self, one: _Running) -> float:
        factors = tuple(sorted(self._factor(flow) for flow in one.flows if flow.public))
        if self.reading.buffers:
            return min((1.0, *(value * MEAN_OVER_MEDIAN for value in factors)))
        return share(factors)

    def _factor(self, flow: Flow) -> float:
        """Median rate of a public hop over what the flow needs."""
        part = 1.0
        if self.reading.whole_uplink:
            used = sum(other.need for other in self.sending[flow.sender] if other.public)
            part = max(1.0, self.network.servers[flow.sender].uplink / used)
        return round(factor(self.reading.allocated, part * self._of_path(flow.sender, flow.receiver)), 3)

    def _of_path(self, sender: int, receiver: int) -> float:
        """The rate of this public path over that of one of the paper."""
        if not self.uneven:
            return 1.0
        return float(2 ** random.Random(f"{self.seed} {sender} {receiver}").gauss(0.0, self.uneven))

    # --- time

    def _next_end(self) -> float:
        while self.ends:
            at, _, name, version = self.ends[0]
            one = self.running.get(name)
            if one is not None and one.version == version:
                return at
            heapq.heappop(self.ends)
        return float("inf")

    def _advance(self, to: float) -> None:
        span = to - self.now
        cpu = sum(value for resource, value in self.account.used.items() if resource.kind == "cpu")
        links = sum(value for resource, value in self.account.used.items() if resource.kind == "link")
        self.outcome.cpu += span * cpu / self.total_cpu
        self.outcome.links += span * links / self.total_links if self.total_links else 0.0
        self.now = to


def _cpu_of(task: Task, walk: Walk, net: Network) -> dict[Resource, float]:
    return {resource: amount for resource, amount in total(walk, task, net).items() if resource.kind == "cpu"}
