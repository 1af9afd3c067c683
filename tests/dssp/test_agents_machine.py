"""A provider and two domains on a network that loses, doubles and reorders messages, under any sequence of faults.

Whatever happens, a query ends once, a subtask starts once, and nothing is left once time has passed.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from leeward.core.fields import FieldError
from leeward.core.members import To, ToAll
from leeward.policies.dssp.agents.domain import Domain, DomainSettings, Node, Start
from leeward.policies.dssp.agents.messages import Tally
from leeward.policies.dssp.agents.pools import Service
from leeward.policies.dssp.agents.provider import Provider, ProviderSettings, Result
from leeward.policies.dssp.disciplines import DISCIPLINES
from leeward.policies.dssp.model.area import Area

AREAS = {"a": Area(0, 0, 1, 1), "b": Area(2, 0, 3, 1)}
BOTH, NODES, PATIENCE_S = Area(0, 0, 3, 1), 2, 1.0
RNG = Random(0)
names = st.sampled_from(sorted(AREAS))
picks = st.integers(0, 10**6)


class Network(RuleBasedStateMachine):
    """Messages on their way and executions in work are bags from which the rules take at random."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.born = 0.0, 0
        self.flying: list[tuple[str, To]] = []
        self.working: list[tuple[Domain, Start]] = []
        self.results: Counter[int] = Counter()
        self.started: Counter[tuple] = Counter()
        self.answers: dict[int, Result] = {}
        self.asked = 0

    @initialize(discipline=st.sampled_from(sorted(DISCIPLINES)))
    def begin(self, discipline) -> None:
        self.discipline = DISCIPLINES[discipline]
        self.provider = Provider("p", ProviderSettings(patience_s=PATIENCE_S, misses=2))
        self.domains = {name: self.domain(name) for name in AREAS}
        service = Service(name="s", capability="air", areas=(BOTH,), rate=0.1, percent=99.0, objective_s=1.0)
        self.take("p", self.provider.open(service, [(name, (area,)) for name, area in AREAS.items()], self.now))
        self.settle()
        assert self.provider.pools["s"].ready == ("a", "b")

    def settle(self) -> None:
        """All messages arrive in their order."""
        while self.flying:
            self.deliver(*self.flying.pop(0))

    def domain(self, name: str) -> Domain:
        made = Domain(
            name, ["air"], [Node(areas=(AREAS[name],), execution_s=0.1)] * NODES,
            DomainSettings(discipline=self.discipline, patience_s=PATIENCE_S, remembered_s=60.0, samples=50), self.now,
        )  # fmt: skip
        rng = Random(1)
        for node in range(NODES):
            for _ in range(50):
                made.measured(node, rng.uniform(0.05, 0.1))
        return made

    def take(self, name: str, outputs) -> None:
        for output in outputs:
            if isinstance(output, ToAll):
                self.flying += [(name, To(to, output.message)) for to in output.names]
            elif isinstance(output, To):
                self.flying.append((name, output))
            elif isinstance(output, Start):
                made = self.domains[name]
                self.started[id(made), output.subtask.task, output.subtask.node] += 1
                self.working.append((made, output))
            else:
                assert isinstance(output, Result)
                self.results[output.ticket] += 1
                self.answers[output.ticket] = output

    def deliver(self, sender: str, sent: To) -> None:
        member = self.provider if sent.name == "p" else self.domains.get(sent.name)
        if member is not None:
            self.take(sent.name, member.receive(sender, sent.message, self.now, RNG))

    # --- rules

    @rule(where=st.sampled_from([(), (), (), (AREAS["a"],), (AREAS["b"],)]))
    def ask(self, where) -> None:
        try:
            self.take("p", self.provider.query(self.asked, "s", where, self.now))
            self.asked += 1
        except FieldError:
            assert not set(self.provider.pools["s"].ready) >= {"a", "b"}

    @precondition(lambda self: self.flying)
    @rule(pick=picks, fate=st.sampled_from(["arrives", "arrives", "stays, too", "stays, too", "is lost"]))
    def carry(self, pick, fate) -> None:
        """One message arrives, arrives and will do so again, or does not."""
        at = pick % len(self.flying)
        message = self.flying[at] if fate == "stays, too" else self.flying.pop(at)
        if fate != "is lost":
            self.deliver(*message)

    @rule(count=st.integers(1, 8))
    def carry_on(self, count) -> None:
        """A quiet moment: messages arrive in their order, and executions end."""
        for _ in range(min(count, len(self.flying))):
            self.deliver(*self.flying.pop(0))
        for _ in range(min(count, len(self.working))):
            self.finish(0, 1.0)

    @precondition(lambda self: self.working)
    @rule(pick=picks, value=st.sampled_from([1.0, 2.0, None, float("nan")]))
    def finish(self, pick, value) -> None:
        made, start = self.working.pop(pick % len(self.working))
        if self.domains.get(made.name) is made:
            self.take(made.name, made.executed(start.subtask.node, start.subtask.task, 0.1, value, self.now))

    @rule(seconds=st.sampled_from([0.1, 0.1, 0.1, 0.2, 0.2, 0.5, 1.5, 5.0]))
    def wait(self, seconds) -> None:
        self.now += seconds
        for name, member in (("p", self.provider), *self.domains.items()):
            self.take(name, member.tick(self.now, RNG))

    @rule(name=names, change=st.sampled_from(["nothing"] * 8 + ["restarts", "dies", "leaves", "joins"]))
    def change(self, name, change) -> None:
        """Something happens to a domain."""
        if change == "dies":
            self.domains.pop(name, None)
        elif change == "leaves" and name in self.domains:
            self.take(name, self.domains[name].leave())
        elif change == "restarts":
            self.domains[name] = self.domain(name)
        elif change == "joins":
            self.domains.setdefault(name, self.domain(name))
            self.take("p", self.provider.follow("s", {one: (area,) for one, area in AREAS.items()}, self.now))

    # --- what holds

    @invariant()
    def each_query_ends_once_and_each_subtask_starts_once(self) -> None:
        assert all(count == 1 for count in self.results.values())
        assert all(count == 1 for count in self.started.values())

    @invariant()
    def an_answer_adds_up(self) -> None:
        for found in self.answers.values():
            assert found.tally.sane and found.tally.count + found.failed <= NODES * len(found.answered)
            heard = [*found.answered, *(name for name, _ in found.missing)]
            assert len(heard) == len(set(heard))
            assert found.tally == Tally() or found.answered

    def teardown(self) -> None:
        if not hasattr(self, "provider"):
            return
        for _ in range(4):
            self.wait(PATIENCE_S * 2)
            self.settle()
        assert sorted(self.results) == list(range(self.asked))
        assert self.provider.open_queries == 0 and not self.provider._alarms
        for made in self.domains.values():
            assert made.open_tasks == 0 and not any(queue.waiting for queue in made.queues)
            assert sum(queue.busy for queue in made.queues) == len(made._running)


Network.TestCase.settings = settings(max_examples=200, stateful_step_count=60)
TestNetwork = Network.TestCase
