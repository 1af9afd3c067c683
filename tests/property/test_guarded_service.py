"""A service under random wishes of a policy and of people: nothing is carried out that a guard forbids.

The rules move time, change the policy's wish, freeze, approve, roll back, ask by hand, drain nodes and change leaders.
The referee looks at every reconfiguration at the moment at which it begins, by definitions of its own.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from leeward.control.loop import Inline
from leeward.control.presence import Presence
from leeward.control.reservations import Reservations
from leeward.control.term import Term
from leeward.core.placing import carry
from leeward.core.plan import Estimate, Placement, Plan
from leeward.core.settings import Settings
from leeward.core.table import replicas
from leeward.sim.memory import ManualClock, MemoryRequests, memory_ports
from tests.helpers.control_stage import STRUCTURE
from tests.helpers.control_twins import ID, NAME, SLOTS, Cluster

COOL_DOWN_S, SCALE_DOWN_S, NO_RETURN_S, GAIN, CAPACITY = 5.0, 4.0, 12.0, 0.02, 4
GAINS = (0.3, 0.3, 0.3, 0.019)
#: Of `work`; None: the policy wants no change.
WANTED = (None, {"n1": 1}, {"n2": 1}, {"n1": 1, "n2": 1}, {"n2": 1, "n3": 1}, {"n1": 1, "n2": 1, "n3": 1})


class Wishes:
    """A policy that wants what the test says: replicas of `work` by node, and a gain."""

    def __init__(self):
        self.wanted, self.gain = None, 1.0
        self.fewer_since = None  #: it wants fewer replicas than there are, at each plan since

    def decide(self, view, *, now, rng):
        present = len(replicas(view.tables["work"]))
        fewer = self.wanted is not None and sum(self.wanted.values()) < present
        self.fewer_since = (now if self.fewer_since is None else self.fewer_since) if fewer else None
        if self.wanted is None:
            return Plan(tables=view.tables, placement=view.assignment)
        others = {"source": {"n1": 1}, "sink": {"n3": 1}}
        estimate = Estimate(objective=0.5 - self.gain, objective_now=0.5)
        return carry(view, {**others, "work": self.wanted}, reason="wished", estimate=estimate)


class Referee:
    """EventSink that judges each reconfiguration when it begins."""

    def __init__(self, machine):
        self.machine, self.ended_at, self.events = machine, None, []
        self.left = None  #: (when, replicas of `work` before): its last change under this leader
        self.carried_out = Counter()

    def emit(self, action, fields):
        self.events.append((self.machine.clock.time, action, fields))
        if action == "reconfiguration_started":
            self.judge()
        if action == "reconfiguration_ended":
            self.ended_at, self.machine.policy.fewer_since = self.machine.clock.time, None
            if fields["result"] == "done" and fields["changes"]:
                self.left = self.ended_at, Counter(fields["changes"][0]["before"])

    def judge(self):
        machine, world = self.machine, self.machine.cluster.world
        journal, service = machine.term.coordinator.machine.journal, machine.settings
        by_hand = bool(journal.request)
        body = world.requests.get(journal.request, {})
        froze = body.get("rollback") and body["freeze"]  # it may begin after the checkpoint that was in progress
        assert froze or world.standing is None or not world.standing.frozen, "it is frozen"
        old = places(journal.old_tables, journal.new_slots | journal.old_slots)
        new = places(journal.new_tables, journal.old_slots | journal.new_slots)
        hosts = sum((Counter(counts) for counts in new.values()), Counter())
        assert all(hosts[node] <= CAPACITY for node in hosts)
        assert not world.draining.intersection(hosts), "a node that drains gets no replica, and keeps none"
        cost, before = hosts.total(), sum(counts.total() for counts in old.values())
        assert cost <= service.cost_cap or cost < before
        come = new["work"] - old["work"]
        left = sum((old["work"] - new["work"])[node] for node in world.draining)
        gone = (old["work"] - new["work"]).total() - left
        assert max(come.total() - left, gone) <= service.most_moves
        if by_hand:
            if "approve" in body:
                assert machine.offered is not None, "nothing waited"
                assert new["work"] == machine.offered[1] and journal.epoch == machine.offered[0] + 1
            self.carried_out["by approval" if "approve" in body else "by hand"] += 1
            return
        assert not service.approval, "it was not approved"
        assert self.ended_at is None or machine.clock.time >= self.ended_at + COOL_DOWN_S, "it is the cool-down"
        assert machine.policy.gain >= GAIN or world.draining
        if cost < before and not world.draining.intersection(*[old["work"]]):
            assert machine.clock.time >= machine.policy.fewer_since + SCALE_DOWN_S, "the need has not lasted"
        at, were = self.left or (-NO_RETURN_S, None)
        if cost <= before and not world.draining.intersection(*[old["work"]]):
            assert new["work"] != were or machine.clock.time >= at + NO_RETURN_S, "back and forth"
        self.carried_out["by policy"] += 1


def places(tables, slots):
    return {name: Counter(slots[task].node for task in replicas(table)) for name, table in tables.items()}


class Rounds:
    """An Event that is set after so many looks."""

    def __init__(self, number):
        self.left = number

    def is_set(self):
        self.left -= 1
        return self.left < 0

    def wait(self, timeout=None):
        return self.is_set()


class GuardedService(RuleBasedStateMachine):
    """See the module."""

    @initialize(
        approval=st.booleans(), most_moves=st.sampled_from([1, 2, 2]), cost_cap=st.sampled_from([9.0, 5.0, 4.0])
    )
    def start(self, approval, most_moves, cost_cap):
        self.settings = Settings(
            period_s=0.5, window_s=1.0, cool_down_s=COOL_DOWN_S, scale_down_s=SCALE_DOWN_S, no_return_s=NO_RETURN_S,
            minimum_gain=GAIN, eps_max=2, approval=approval, most_moves=most_moves, cost_cap=cost_cap,
            checkpoint_every_s=60.0, checkpoint_least_s=60.0,
        )  # fmt: skip
        self.cluster, self.clock, self.policy = Cluster(), ManualClock(), Wishes()
        self.cluster.world.structures[NAME] = STRUCTURE
        self.cluster.world.placement = Placement(topology_id=ID, epoch=0, slots=SLOTS)  # the first plan is over
        self.cluster.schedule()
        self.referee = Referee(self)
        self.cluster.clock, self.cluster.sink = self.clock, self.referee
        self.ports = memory_ports(
            self.cluster.world, clock=self.clock, sink=self.referee, place=self.cluster.rebalanced
        )
        self.asked, self.offered, self.term = [], None, None
        self.lead(0)

    @rule(rounds=st.sampled_from([10, 0]))
    def lead(self, rounds):
        """The leader before is dead; another one takes over."""
        mine = self.ports.open_topology(STRUCTURE)
        self.cluster.world.leader = None
        assert mine.lock.acquire(0.0)
        self.term = Term(
            structure=STRUCTURE, ports=self.ports, mine=mine, settings=self.settings, policy=self.policy, fault=None,
            executor=Inline(), presence=Presence(self.ports.nimbus, STRUCTURE, Inline()), reservations=Reservations(1),
        )  # fmt: skip
        assert self.term._take_over(Rounds(5)) is not None
        self.policy.fewer_since = self.referee.left = None  # the next leader counts anew
        self.pass_time(rounds)

    @rule(rounds=st.sampled_from([1, 10, 40]))
    def pass_time(self, rounds):
        coordinator = self.term.coordinator
        for _ in range(rounds):
            self.clock.time += 0.2
            wanted = self.cluster.world.placement
            if wanted is not None and dict(wanted.slots) != self.cluster.slots:
                self.cluster.schedule()
            self.cluster.all_act()
            self.cluster.beat()
            waiting = self.cluster.world.standing and self.cluster.world.standing.proposal
            if waiting:
                self.offered = waiting.epoch, Counter(waiting.after["work"])
            elif not any("approve" in body for body in self.cluster.world.requests.values()):
                self.offered = None
            coordinator.work()
            self.term._round(coordinator)

    @rule(
        wanted=st.sampled_from(WANTED),
        gain=st.sampled_from([0.3, 0.3, 0.3, 0.019]),
        rounds=st.sampled_from([60, 30, 8, 0]),
    )
    def wish(self, wanted, gain, rounds):
        self.policy.wanted, self.policy.gain = wanted, gain
        self.pass_time(rounds)

    @rule(on=st.sampled_from([False, False, False, True]))
    def freeze(self, on):
        self.ask({"freeze": on, "why": "a test"})

    @rule(number=st.sampled_from([0, 0, 1, 2, 9]), rounds=st.sampled_from([40, 0]))
    def approve(self, number, rounds):
        self.ask({"approve": number})
        self.pass_time(rounds)

    @rule(freeze=st.sampled_from(["", "", "", "worse"]))
    def roll_back(self, freeze):
        self.ask({"rollback": True, "freeze": freeze})

    @rule(wanted=st.sampled_from([*WANTED[1:], {"n1": 3}, {"n2": 2}, {"n9": 1}]))
    def by_hand(self, wanted):
        self.ask({"replicas": {"work": wanted}})

    @rule(wanted=st.sampled_from(WANTED[1:]))
    def approve_too_late(self, wanted):
        """The request before it changes the deployment for which the plan was made."""
        self.pass_time(30)
        self.by_hand(wanted)
        self.approve(0, 40)

    def ask(self, body):
        self.asked.append(MemoryRequests(self.cluster.world).ask(body))

    @rule(drains=st.sampled_from([True, False, False, False]))
    def drain(self, drains):
        self.ports.cluster.set_draining("n2", drains)  # source and sink are on the others, and stay

    @invariant()
    def requests_are_answered_in_order(self):
        if self.term is not None:
            answered = [MemoryRequests(self.cluster.world).answer_to(name) is not None for name in self.asked]
            assert answered == sorted(answered, reverse=True)

    @invariant()
    def it_goes_on(self):
        """A leader that is gone in the middle may cost a reset, and never leaves the topology held."""
        if self.term is not None:
            assert [e for e in self.referee.events if e[1] in ("held", "restore_failed")] == []

    def teardown(self):
        if self.term is None:
            return
        for _ in range(10 + 10 * len(self.asked)):
            if self.cluster.world.requests or not self.term.coordinator.idle:
                self.pass_time(10)
        world = self.cluster.world
        for name in self.asked:
            assert name in world.answers, "it was never answered"
        for kind in self.referee.carried_out:
            event(f"carried out {kind}")


TestGuardedService = GuardedService.TestCase
TestGuardedService.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow],
)
