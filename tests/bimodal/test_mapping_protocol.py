"""Mapping and re-allocation by messages under delay, reordering, concurrent tasks and dead servers."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from leeward.policies.bimodal.mapping.agent import Agent
from leeward.policies.bimodal.mapping.messages import Map, Reserve
from leeward.policies.bimodal.mapping.rules import LeastCost, Method, cost_choice
from leeward.policies.bimodal.model.values import Link, Network, Server, Task
from tests.helpers.bimodal_bag import MOVING, ROUNDS, TIMES, Bag
from tests.helpers.bimodal_builders import SERVICES, tiny


class Mapping(RuleBasedStateMachine):
    """No server is ever over its bounds; every task is decided; what is reserved in the end is what running tasks use,
    each hop by the way that its sender has given it last.
    """

    @initialize(seed=st.integers(0, 10_000), public=st.booleans(), both=st.booleans())
    def start(self, seed: int, public: bool, both: bool) -> None:
        self.network, _ = tiny(random.Random(seed), direction="each" if both else "shared", uplinks=public)
        self.bag = Bag(self.network, Method(rule=LeastCost(), choice=cost_choice, public=public), seed, MOVING)
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

    @rule()
    def gossip(self) -> None:
        self.bag.gossip()

    @rule(seed=st.integers(0, 1000), limited=st.booleans())
    def observe(self, seed: int, limited: bool) -> None:
        """Some hop falls behind, so that another one is to make room for it."""
        rng = random.Random(seed)
        sent = [(agent, one.flow) for agent in self.bag.alive().values() for one in agent.flows]
        if sent:
            agent, flow = rng.choice(sent)
            agent.observe(flow.task, flow.hop, rng.random() * flow.need, 1.0, limited=limited)

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
        for _ in range(ROUNDS):  # servers that wait for a dead one, or for a message that was lost with it, give up
            bag.gossip()
            bag.deliver_all()
            bag.pass_time(TIMES.renewal)
        bag.deliver_all()
        running = set()
        for server, agent in bag.alive().items():
            assert not agent.computations.active(), f"{server} takes part in a computation that is over"
            for name, portal in agent.portals.items():
                assert portal.status in ("running", "refused", "over"), (name, portal.status)
                if portal.status == "running":
                    running.add(name)
                    assert portal.walk is not None
                    assert not bag.dead.intersection(visit.at for visit in portal.walk.visits)
        for server, agent in bag.alive().items():
            assert agent.reservations.tasks <= running, f"{server} holds something for a task that does not run"
            used = {resource: amount for resource, amount in agent.account.used.items() if amount > 1e-9}
            wanted = bag.wanted(server)
            assert used.keys() == wanted.keys(), (server, used, wanted)
            assert all(abs(used[resource] - wanted[resource]) < 1e-6 for resource in used), (server, used, wanted)


TestMapping = Mapping.TestCase
TestMapping.settings = settings(max_examples=150, stateful_step_count=30)


def test_a_server_joins_once_and_leaves_when_all_that_it_sent_is_acknowledged():
    network, task = tiny(random.Random(5))
    bag = Bag(network, Method(rule=LeastCost()), 1)
    bag.send(task.delivery, bag.agents[task.delivery].submit(task, 0.0))
    maps: Counter[int] = Counter()
    while bag.messages:
        maps[bag.messages[0][1]] += isinstance(bag.messages[0][2], Map)
        bag.deliver(0)
    assert maps[task.source] >= 1
    assert all(not agent.computations.active() for agent in bag.agents.values())


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


def test_a_neighbour_that_boasts_of_a_link_or_of_a_service_gains_nothing_by_it():
    """Server 1 says that its link to 0 carries 100, where it carries 1, and that it hosts a service."""

    def network(bandwidth: float, hosted: set[int]) -> Network:
        servers = [
            Server(id=0, cpu=9.0, services=frozenset({0})),
            Server(id=1, cpu=9.0, services=frozenset(hosted)),
        ]
        return Network(servers, [Link(a=0, b=1, bandwidth=bandwidth)], direction="each")

    task = Task(
        name="t", source=1, delivery=0, services=(0,), cpu=(1.0,), bandwidth=(2.0, 2.0), max_null=1,
    )  # fmt: skip
    for surveys in (True, False):
        bag = Bag(network(1.0, set()), Method(rule=LeastCost(), surveys=surveys), 1)
        boaster = Agent(1, network(100.0, {0}).around(1), method=bag.agents[1].method, times=TIMES)
        bag.agents[1] = boaster
        for _ in range(3):
            for server, agent in bag.agents.items():
                bag.send(server, agent.gossip([0, 1], bag.now, bag.rng))
            bag.deliver_all()
        bag.send(0, bag.agents[0].submit(task, bag.now))
        bag.deliver_all()
        for _ in range(ROUNDS):
            bag.pass_time(TIMES.renewal)
            bag.deliver_all()
        assert bag.agents[0].portals["t"].status == "refused"
        assert not any(agent.reservations.tasks for agent in bag.agents.values())


def test_a_survey_hears_why_it_was_refused_and_takes_another_way():
    """Two servers host the service; the nearer one is full, and gossip has not told it yet."""
    servers = [Server(id=v, cpu=1.0, services=frozenset({0} if v else ())) for v in (0, 1, 2)]
    links = [Link(a=0, b=1, bandwidth=9.0, cost=1.0), Link(a=0, b=2, bandwidth=9.0, cost=5.0)]
    bag = Bag(Network(servers, links), Method(rule=LeastCost(), surveys=True), 1)
    for _ in range(3):
        for server, agent in bag.agents.items():
            bag.send(server, agent.gossip([0, 1, 2], bag.now, bag.rng))
        bag.deliver_all()
    one = Task(name="a", source=0, delivery=0, services=(0,), cpu=(1.0,), bandwidth=(1.0, 1.0), max_null=1)
    for name, hosts in (("a", 1), ("b", 2)):
        bag.send(0, bag.agents[0].submit(replace(one, name=name), bag.now))
        bag.deliver_all()
        portal = bag.agents[0].portals[name]
        assert portal.status == "running" and portal.walk is not None
        assert [visit.at for visit in portal.walk.visits if visit.ran] == [hosts]
    assert bag.agents[0].portals["b"].attempt == 2, "the first probe was refused"


def test_tasks_that_were_refused_or_are_over_are_forgotten_in_the_end():
    network, task = tiny(random.Random(3))
    bag = Bag(network, Method(rule=LeastCost(), surveys=True), 3)
    impossible = replace(task, bandwidth=tuple(1e9 for _ in task.bandwidth))
    for number in range(20):
        name = f"{task.name}/try-{number}"
        bag.send(task.delivery, bag.agents[task.delivery].submit(replace(impossible, name=name), bag.now))
        bag.deliver_all()
    agent = bag.agents[task.delivery]
    assert len(agent.portals) == 20
    for _ in range(15):
        bag.pass_time(TIMES.lease)
        bag.deliver_all()
    assert not agent.portals


def test_a_delivery_server_that_is_started_anew_uses_no_attempt_of_the_one_before():
    network, task = tiny(random.Random(1))
    agents = [Agent(task.delivery, network.around(task.delivery), method=Method(), born=born) for born in (0, 1000)]
    for agent in agents:
        agent.submit(task, 0.0)
    before, after = (agent.portals[task.name].attempt for agent in agents)
    assert after >= 1000 > before


def test_a_probe_that_comes_again_leaves_the_ways_of_its_hop_as_they_are():
    servers = [Server(id=v, cpu=1.0, services=frozenset({0} if v else ())) for v in (0, 1)]
    bag = Bag(Network(servers, [Link(a=0, b=1, bandwidth=9.0, cost=1.0)]), Method(rule=LeastCost(), surveys=True), 1)
    for _ in range(3):
        bag.gossip()
        bag.deliver_all()
    task = Task(name="a", source=0, delivery=0, services=(0,), cpu=(1.0,), bandwidth=(1.0, 1.0), max_null=1)
    bag.send(0, bag.agents[0].submit(task, bag.now))
    probes = []
    while bag.messages:
        probes += [entry for entry in bag.messages if isinstance(entry[2], Reserve)]
        bag.deliver(0)
    assert bag.agents[0].portals["a"].status == "running" and probes
    (sent, *_) = list(bag.agents[1].flows)
    sent.way = replace(sent.way, number=7)
    for sender, to, message in probes:
        assert bag.agents[to].receive(sender, message, bag.now, bag.rng) == []
    assert next(iter(bag.agents[1].flows)).way.number == 7


def test_a_server_that_is_forgotten_does_not_come_back_by_a_neighbour_that_remembers_it():
    network, _ = tiny(random.Random(1))
    a, b, lost = (Agent(v, network.around(v), method=Method(), times=replace(TIMES, silence=9.0)) for v in (0, 1, 2))
    lost.gossip([], 0.0, random.Random(1))
    stranger = 99  # has been sent nothing yet
    facts = lost.knowledge.news(stranger)
    assert facts
    a.knowledge.take(facts, 0.0)
    b.knowledge.take(facts, 5.0)
    a.gossip([], 10.0, random.Random(1))
    a.knowledge.take(b.knowledge.news(stranger), 10.0, 1)
    assert len(a.knowledge) == 1, "only itself"
    again = Agent(2, network.around(2), method=Method(), times=TIMES, born=1000)
    again.gossip([], 11.0, random.Random(1))
    a.knowledge.take(again.knowledge.news(stranger), 11.0)
    assert len(a.knowledge) == 2, "a new process of it is heard"


def test_a_server_of_which_nothing_is_heard_is_forgotten():
    network, _ = tiny(random.Random(1))
    quiet = Agent(0, network.around(0), method=Method(surveys=True), times=replace(TIMES, silence=9.0))
    other = Agent(1, network.around(1), method=Method(surveys=True), times=replace(TIMES, silence=9.0))
    other.gossip([], 0.0, random.Random(1))
    quiet.knowledge.take(other.knowledge.news(0), 0.0, 1)
    quiet.gossip([], 8.0, random.Random(1))
    assert len(quiet.knowledge) == 2
    quiet.gossip([], 10.0, random.Random(1))
    assert len(quiet.knowledge) == 1, "only itself"
