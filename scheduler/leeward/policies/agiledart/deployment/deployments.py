"""Applications that a scheduler places: seats of their ends, JOINs between these, and shares along the ways.

1. Operators that may run on some nodes only are matched with rooms (`dataflow/pins`), and these are reserved.
2. A source or a sink that may run anywhere goes to the root of its name, or near it.
3. Each source's node sends a JOIN to each sink that its tuples reach.
4. The other operators are divided over the nodes that were passed, and these nodes choose the hosts.

Nothing here lasts: rooms are held for a time, and the owner begins another attempt, with another scheduler if need be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from leeward.core.errors import LeewardError
from leeward.policies.agiledart.dataflow.application import Application, Operator, Pair
from leeward.policies.agiledart.dataflow.joins import Join
from leeward.policies.agiledart.dataflow.placement import by_way, divided
from leeward.policies.agiledart.deployment.messages import (
    Deploy,
    Deployment,
    Hosted,
    Laid,
    Lay,
    Passed,
    Release,
    Status,
    Step,
    Took,
    Wanted,
)
from leeward.policies.agiledart.deployment.questions import Questions
from leeward.policies.agiledart.deployment.roots import Roots
from leeward.policies.agiledart.deployment.seats import Seats, key_of
from leeward.policies.agiledart.overlay.messages import Contact
from leeward.policies.agiledart.overlay.neighbours import Neighbours, Outbox, Times

#: Heartbeats for which an attempt may last, for which its end is remembered, and after which a JOIN is sent again.
LASTS, REMEMBERED, JOIN_AGAIN = 8.0, 10.0, 1.0


@dataclass(slots=True)
class _Attempt:
    """One attempt at one application."""

    deploy: Deploy
    owner: int  #: its address
    began: float
    status: Status = "placing"
    why: str = ""
    hosts: dict[str, Hosted] = field(default_factory=dict)
    waits: int = 0  #: answers of this step that are still to come
    joins: dict[int, Pair] = field(default_factory=dict)  #: number of a JOIN that was sent -> its ends
    ways: dict[Pair, Join] = field(default_factory=dict)
    contacts: dict[int, Contact] = field(default_factory=dict)  #: nodes that JOINs have passed
    join_at: float = 0.0
    whole: Application | None = None

    @property
    def ends(self) -> list[str]:
        """Operators without an upstream or without a downstream."""
        operators = self.deploy.operators
        read = {position for one in operators for position in one.upstream}
        return [one.name for at, one in enumerate(operators) if not one.upstream or at not in read]


class Deployments:
    """The part of one node, as a scheduler."""

    def __init__(
        self, neighbours: Neighbours, times: Times, outbox: Outbox, questions: Questions, roots: Roots,
        number: Callable[[], int],
    ) -> None:  # fmt: skip
        self._me, self._times, self._outbox, self._questions = neighbours.me, times, outbox, questions
        self._roots, self._number = roots, number
        self._seats = Seats(times, questions, roots)
        self._attempts: dict[str, _Attempt] = {}

    def deploy(self, sender: int, message: Deploy, now: float) -> None:
        """An owner wants an application to be placed, or asks how far it is."""
        held = self._attempts.get(message.application)
        if held is not None and held.deploy.attempt > message.attempt:
            return
        if held is None or held.deploy.attempt < message.attempt:
            if held is not None and held.status == "placing":
                self._end(held, "failed", "another attempt was begun", now)
            held = self._attempts[message.application] = _Attempt(message, sender, now)
            self._begin(held, now)
        self._tell(held)

    def passed(self, sender: int, message: Passed, now: float) -> None:
        """A JOIN has reached its sink."""
        self._outbox.send(sender, Took(number=message.number))
        for attempt in self._attempts.values():
            pair = attempt.joins.pop(message.join, None)
            if pair is not None and attempt.status == "placing" and pair not in attempt.ways:
                attempt.ways[pair] = Join(path=tuple(one.id for one in message.path), asked=())
                attempt.contacts |= {one.id: one for one in message.path}
                assert attempt.whole is not None
                if len(attempt.ways) == len(attempt.whole.joins):
                    self._share(attempt, now)

    def tick(self, now: float) -> None:
        """Time has passed."""
        beat = self._times.heartbeat
        for name, attempt in list(self._attempts.items()):
            if attempt.status != "placing":
                if now - attempt.began > (LASTS + REMEMBERED) * beat:
                    del self._attempts[name]
            elif now - attempt.began > LASTS * beat:
                self._end(attempt, "failed", f"it was not placed within {LASTS:g} heartbeats", now)
            elif attempt.whole is not None and now >= attempt.join_at and len(attempt.ways) < len(attempt.whole.joins):
                self._join(attempt, now)

    # --- the steps

    def _begin(self, attempt: _Attempt, now: float) -> None:
        operators = attempt.deploy.operators
        try:
            _whole(attempt.deploy, {one.name: 0 for one in operators})
        except (LeewardError, IndexError) as error:
            self._end(attempt, "refused", str(error), now)
            return

        def seated(hosts: dict[str, Hosted], why: str, now: float) -> None:
            if attempt.status == "placing":
                attempt.hosts |= hosts
                if why:
                    self._end(attempt, "refused", why, now)
                else:
                    self._roots_of_ends(attempt, now)

        self._seats.find(attempt.deploy, seated, now)

    def _roots_of_ends(self, attempt: _Attempt, now: float) -> None:
        """Sources and sinks that may run anywhere."""
        free = [name for name in attempt.ends if name not in attempt.hosts]
        attempt.waits = len(free)
        for name in free:

            def found(root: Contact | None, now: float, name: str = name) -> None:
                if attempt.status == "placing":
                    self._lay(attempt, root or self._me, (name,), self._join, now)

            self._roots.root(key_of(attempt.deploy.application, name), found, now)
        if not free:
            self._join(attempt, now)

    def _join(self, attempt: _Attempt, now: float) -> None:
        """A JOIN for each pair of ends without a way; sent again where none has come in time."""
        if attempt.whole is None:
            attempt.whole = _whole(attempt.deploy, {name: one.host.id for name, one in attempt.hosts.items()})
        attempt.join_at = now + JOIN_AGAIN * self._times.heartbeat
        for pair in attempt.whole.joins:
            if pair in attempt.ways:
                continue
            source, sink = (attempt.hosts[end].host for end in pair)
            number = self._number()
            attempt.joins[number] = pair
            step = Step(number=0, origin=self._me, join=number, sink=sink, path=())
            self._questions.ask(source, _numbered(step), lambda answer, now: None, now)

    def _share(self, attempt: _Attempt, now: float) -> None:
        """Each node of a way gets its share of the operators."""
        assert attempt.whole is not None
        shares: dict[int, list[str]] = {}
        for way, some in by_way(attempt.whole, attempt.ways).items():
            for operator, node in divided(some, way):
                shares.setdefault(node, []).append(operator.name)
        attempt.waits = len(shares)
        for node, names in shares.items():
            self._lay(attempt, attempt.contacts[node], tuple(names), self._placed, now)
        if not shares:
            self._placed(attempt, now)

    def _lay(
        self, attempt: _Attempt, decider: Contact, names: tuple[str, ...], then: Callable[[_Attempt, float], None],
        now: float,
    ) -> None:  # fmt: skip
        """One share; a decider that does not answer is replaced by this node."""

        def make(number: int) -> Lay:
            deploy = attempt.deploy
            return Lay(number=number, application=deploy.application, attempt=deploy.attempt, operators=names)

        def laid(answer: Laid | None, now: float) -> None:
            if attempt.status != "placing":
                return
            if answer is None and decider.id != self._me.id:
                self._lay(attempt, self._me, names, then, now)
                return
            attempt.hosts |= {one.operator: one for one in answer.hosts} if answer else {}
            if answer is None or answer.why:
                self._end(attempt, "refused", answer.why if answer else "no decider answers", now)
                return
            attempt.waits -= 1
            if not attempt.waits:
                then(attempt, now)

        self._questions.ask(decider, make, laid, now)

    def _placed(self, attempt: _Attempt, now: float) -> None:
        missing = [one.name for one in attempt.deploy.operators if one.name not in attempt.hosts]
        if missing:
            self._end(attempt, "failed", f"operator {missing[0]!r} got no host", now)
        else:
            self._end(attempt, "placed", "", now)

    # --- the end

    def _end(self, attempt: _Attempt, status: Status, why: str, now: float) -> None:
        attempt.status, attempt.why = status, why
        if status != "placed":
            deploy = attempt.deploy
            for at in sorted({one.host.at for one in attempt.hosts.values()}):
                names = tuple(sorted(one.operator for one in attempt.hosts.values() if one.host.at == at))
                release = Release(application=deploy.application, attempt=deploy.attempt, operators=names)
                self._outbox.send(at, release)
        self._tell(attempt)

    def _tell(self, attempt: _Attempt) -> None:
        placed = attempt.status == "placed"
        deployment = Deployment(
            application=attempt.deploy.application, attempt=attempt.deploy.attempt, status=attempt.status,
            hosts=tuple(attempt.hosts[name] for name in sorted(attempt.hosts)) if placed else (), why=attempt.why,
        )  # fmt: skip
        self._outbox.send(attempt.owner, deployment)


def _numbered(step: Step) -> Callable[[int], Step]:
    def make(number: int) -> Step:
        return Step(number=number, origin=step.origin, join=step.join, sink=step.sink, path=step.path)

    return make


def _whole(deploy: Deploy, at: dict[str, int]) -> Application:
    """As the placement's own functions take it. Raises LeewardError for one that is none (see `Application`)."""
    operators = deploy.operators

    def upstream(position: int, one: Wanted) -> tuple[str, ...]:
        if any(not 0 <= before < position for before in one.upstream):
            raise LeewardError(
                f"application {deploy.application!r}: operator {one.name!r} reads one that is not before it.",
                remedy="List the operators in topological order; a dataflow has no circle.",
            )
        return tuple(operators[before].name for before in one.upstream)

    return Application(
        deploy.application,
        (
            Operator(name=one.name, upstream=upstream(position, one), at=at.get(one.name))
            for position, one in enumerate(operators)
        ),
    )
