"""Packets between sites under loss, duplication, reordering and dead nodes: each is delivered once, or reported."""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from leeward.policies.agiledart.forwarding.forwarder import Forwarder, Limits
from leeward.policies.agiledart.forwarding.messages import Packet
from leeward.policies.agiledart.paths.routers import KlRouter, NextHopRouter, ThompsonRouter

NODES, SINK = 6, 5
LIMITS = Limits(attempts=3, hops=5, queue=4, lifetime_s=30.0)
PAIRS = [(one, other) for one in range(NODES) for other in range(one + 1, NODES)]
ROUTERS = st.sampled_from([KlRouter, ThompsonRouter, NextHopRouter])


class Network(RuleBasedStateMachine):
    """A network whose links lead both ways, so that packets could circle, and a bag of messages on their way."""

    @initialize(joined=st.sets(st.sampled_from(PAIRS)), router=ROUTERS, seed=st.integers(0, 2**16))
    def build(self, joined, router, seed):
        self.rng, self.now = Random(seed), 1.0
        joined = joined | {(v, v + 1) for v in range(0, NODES - 1, 2)}
        self.hops = {v: [a + b - v for a, b in sorted(joined) if v in (a, b)] for v in range(NODES)}
        self.router, self.births = router, Counter()
        self.nodes = {v: self.started(v) for v in range(NODES)}
        self.on_way: list[tuple[int, int, object]] = []
        self.sent, self.lost_sources = {}, set()
        self.outcomes, self.deliveries = Counter(), Counter()

    def started(self, node):
        self.births[node] += 1
        return Forwarder(node, SINK, self.hops[node], self.router(), birth=self.births[node], limits=LIMITS)

    def take(self, sender, sends):
        for to, message in sends:
            assert to != sender
            if isinstance(message, Packet):
                assert to in self.hops[sender] and to not in message.path, "it circles"
                assert len(message.path) <= LIMITS.hops
            self.on_way.append((sender, to, message))
        node = self.nodes.get(sender)
        while node and node.deliveries:
            delivery = node.deliveries.popleft()
            assert delivery.body == self.sent[delivery.name]
            self.deliveries[delivery.name] += 1
        while node and node.outcomes:
            outcome = node.outcomes.popleft()
            assert outcome.name in self.sent
            self.outcomes[outcome.name] += 1
            if not outcome.why:
                assert self.deliveries[outcome.name], "confirmed, but not delivered"

    def pass_on(self, number):
        sender, to, message = self.on_way.pop(number % len(self.on_way))
        if to in self.nodes:
            self.take(to, self.nodes[to].receive(sender, message, self.now, self.rng))

    @rule(source=st.integers(0, NODES - 1))
    def submit(self, source):
        if source in self.nodes:
            body = f"{source} {len(self.sent)}".encode()
            name, sends = self.nodes[source].submit(body, self.now, self.rng)
            assert name not in self.sent
            self.sent[name] = body
            self.take(source, sends)

    @precondition(lambda self: self.on_way)
    @rule(number=st.integers(0, 99))
    def deliver(self, number):
        self.pass_on(number)

    @precondition(lambda self: self.on_way)
    @rule(number=st.integers(0, 99))
    def lose(self, number):
        self.on_way.pop(number % len(self.on_way))

    @precondition(lambda self: self.on_way)
    @rule(number=st.integers(0, 99))
    def duplicate(self, number):
        self.on_way.append(self.on_way[number % len(self.on_way)])

    @rule(seconds=st.sampled_from([0.01, 0.1, 0.6, 1.1]))
    def wait(self, seconds):
        self.now += seconds
        for node in list(self.nodes):
            self.take(node, self.nodes[node].tick(self.now, self.rng))

    @rule(node=st.integers(0, NODES - 1))
    def die(self, node):
        if self.nodes.pop(node, None):
            self.lost_sources |= {name for name in self.sent if name.source == node}

    @rule(node=st.integers(0, NODES - 2))
    def start_again(self, node):
        if node not in self.nodes:
            self.nodes[node] = self.started(node)

    @invariant()
    def nothing_comes_twice_and_queues_are_bounded(self):
        if hasattr(self, "nodes"):
            assert not self.deliveries or max(self.deliveries.values()) == 1
            assert not self.outcomes or max(self.outcomes.values()) == 1
            assert all(node.in_custody <= LIMITS.queue for node in self.nodes.values())

    def teardown(self):
        if not hasattr(self, "nodes"):
            return
        for _ in range(300):
            while self.on_way:
                self.pass_on(0)
            self.wait(0.5)
        for name in self.sent:
            if name not in self.lost_sources:
                assert self.outcomes[name] == 1, "neither delivered nor reported"
        assert not any(node.in_custody for node in self.nodes.values())
        self.nothing_comes_twice_and_queues_are_bounded()


Network.TestCase.settings = settings(max_examples=60, stateful_step_count=60)
TestNetwork = Network.TestCase
