"""Mapping by messages under delay, reordering, concurrent tasks and dead servers."""

from __future__ import annotations

import random
from collections import Counter

from bimodal_builders import SERVICES, tiny
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from leeward.core.peers import Send
from leeward.policies.bimodal.mapping.agent import Agent, Times
from leeward.policies.bimodal.mapping.messages import Map, Message
from leeward.policies.bimodal.mapping.play import agents_of
from leeward.policies.bimodal.mapping.rules import LeastCost, Method, cost_choice
from leeward.policies.bimodal.model.values import Network, Task

TIMES = Times(mapping=10.0, probe=5.0, lease=30.0, renewal=10.0)
#: Rounds of a renewal's time in which every deadline and lease is over.
ROUNDS = 16
#: Tasks are small, so that a machine that delivers the oldest message each time ends.
ENOUGH = 20_000


class Bag:
    """Agents, and the messages between them, in any order. A dead server receives nothing."""

    def __init__(self, network: Network, method: Method, seed: int) -> None:
        self.agents: dict[int, Agent] = agents_of(network, method, TIMES)
        self.messages: list[tuple[int, int, Message]] = []
        self.dead: set[int] = set()
        self.now, self.rng = 0.0, random.Random(seed)

    def send(self, sender: int, sends: list[Send]) -> None:
        self.messages += [(sender, to, message) for to, message in sends]

    def deliver(self, position: int) -> None:
        sender, to, message = self.messages.pop(position)
        if to not in self.dead:
            self.send(to, self.agents[to].receive(sender, message, self.now, self.rng))

    def deliver_all(self) -> None:
        for _ in range(ENOUGH):
            if not self.messages:
                return
            self.deliver(self.rng.randrange(len(self.messages)))
        raise AssertionError("messages go on for ever")

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        for server, agent in self.agents.items():
            if server not in self.dead:
                self.send(server, agent.tick(self.now, self.rng))

    def alive(self) -> dict[int, Agent]:
        return {server: agent for server, agent in self.agents.items() if server not in self.dead}


class Mapping(RuleBasedStateMachine):
    """No server is ever over its bounds; without deaths every task is decided and only those that run hold anything."""

    @initialize(seed=st.integers(0, 10_000), public=st.booleans(), both=st.booleans())
    def start(self, seed: int, public: bool, both: bool) -> None:
        self.network, _ = tiny(random.Random(seed), direction="each" if both else "shared", uplinks=public)
        self.bag = Bag(self.network, Method(rule=LeastCost(), choice=cost_choice, public=public), seed)
        self.tasks: dict[str, Task] = {}

    @rule(seed=st.integers(0, 10_000))
    def submit(self, seed: int) -> None:
        rng = random.Random(seed)
        servers = sorted(self.bag.alive())
        if not servers or len(self.tasks) >= 6:
            return
        length = rng.randint(1, 3)
        task = Task(
            name=f"t{len(self.tasks)}", source=rng.choice(servers), delivery=rng.choice(servers),
            services=tuple(rng.randrange(SERVICES) for _ in range(length)),
            cpu=tuple(rng.randint(1, 3) for _ in range(length)),
            bandwidth=tuple(rng.randint(1, 4) for _ in range(length + 1)), max_null=1,
        )  # fmt: skip
        self.tasks[task.name] = task
        self.bag.send(task.delivery, self.bag.agents[task.delivery].submit(task, self.bag.now))

    @rule(part=st.floats(0, 1, exclude_max=True), count=st.integers(1, 30))
    def deliver(self, part: float, count: int) -> None:
        for _ in range(min(count, len(self.bag.messages))):
            self.bag.deliver(int(part * len(self.bag.messages)))

    @rule(seconds=st.sampled_from([1.0, 9.0, 31.0]))
    def pass_time(self, seconds: float) -> None:
        self.bag.pass_time(seconds)

    @rule(seed=st.integers(0, 100))
    def end_one(self, seed: int) -> None:
        names = [n for n, t in sorted(self.tasks.items()) if t.delivery not in self.bag.dead]
        if names:
            name = names[seed % len(names)]
            delivery = self.tasks[name].delivery
            self.bag.send(delivery, self.bag.agents[delivery].end(name))

    @rule(seed=st.integers(0, 100))
    def die(self, seed: int) -> None:
        servers = sorted(self.bag.alive())
        if len(servers) > 2 and len(self.bag.dead) < 2:
            self.bag.dead.add(servers[seed % len(servers)])

    @invariant()
    def nothing_is_over_its_bounds(self) -> None:
        if not hasattr(self, "bag"):
            return
        for agent in self.bag.agents.values():
            for resource, used in agent.account.used.items():
                assert -1e-9 <= used <= agent.account.capacity(resource) * (1 + 1e-9), (agent.me, resource, used)

    def teardown(self) -> None:
        if not hasattr(self, "bag"):
            return
        bag = self.bag
        for _ in range(ROUNDS):  # whoever waits for a dead server, or for a message that was lost with one, gives up
            bag.deliver_all()
            bag.pass_time(TIMES.renewal)
        bag.deliver_all()
        running = set()
        for server, agent in bag.alive().items():
            assert not agent.computing(), f"{server} takes part in a computation that is over"
            for name, portal in agent.portals.items():
                assert portal.status in ("running", "refused", "over"), (name, portal.status)
                if portal.status == "running":
                    running.add(name)
                    assert portal.walk is not None
                    assert not bag.dead.intersection(visit.at for visit in portal.walk.visits)
        for server, agent in bag.alive().items():
            assert agent.reservations.tasks <= running, f"{server} holds something for a task that does not run"


TestMapping = Mapping.TestCase
TestMapping.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)


def test_a_server_joins_once_and_leaves_when_all_that_it_sent_is_acknowledged():
    network, task = tiny(random.Random(5))
    bag = Bag(network, Method(rule=LeastCost()), 1)
    bag.send(task.delivery, bag.agents[task.delivery].submit(task, 0.0))
    maps: Counter[int] = Counter()
    while bag.messages:
        maps[bag.messages[0][1]] += isinstance(bag.messages[0][2], Map)
        bag.deliver(0)
    assert maps[task.source] >= 1
    assert all(not agent.computing() for agent in bag.agents.values())


def test_no_reservation_is_left_by_a_server_that_dies_in_the_middle():
    """For every server of the chain, and every message of the reservation at which it may die."""
    looked_at = 0
    for seed in range(40):
        network, task = tiny(random.Random(seed))
        for victim in sorted(network.servers):
            for after in (5, 20, 10_000):
                bag = Bag(network, Method(rule=LeastCost()), seed)
                bag.send(task.delivery, bag.agents[task.delivery].submit(task, 0.0))
                for _ in range(after):
                    if bag.messages:
                        bag.deliver(0)
                bag.dead.add(victim)
                for _ in range(ROUNDS):
                    bag.deliver_all()
                    bag.pass_time(TIMES.renewal)
                bag.deliver_all()
                for agent in bag.alive().values():
                    for name in agent.reservations.tasks:
                        portal = bag.agents[task.delivery].portals[name]
                        assert portal.status == "running" and portal.walk is not None
                        assert victim not in [visit.at for visit in portal.walk.visits]
                looked_at += 1
    assert looked_at > 300


def test_two_tasks_at_once_do_not_share_what_only_one_can_have():
    for seed in range(200):
        network, task = tiny(random.Random(seed))
        alone = Bag(network, Method(rule=LeastCost()), seed)
        names = ("a", "b", "c")
        for name in names:
            twin = Task(**{f: getattr(task, f) for f in Task.__dataclass_fields__} | {"name": name})
            alone.send(task.delivery, alone.agents[task.delivery].submit(twin, 0.0))
        alone.deliver_all()
        portals = alone.agents[task.delivery].portals
        assert all(portals[name].status in ("running", "refused") for name in names)
        held = {name for agent in alone.agents.values() for name in agent.reservations.tasks}
        assert held == {name for name in names if portals[name].status == "running" and portals[name].walk is not None}
