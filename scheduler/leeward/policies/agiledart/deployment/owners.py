"""Applications of their owner: handed to the scheduler until they are placed or refused, and then kept in their rooms.

The owner alone remembers an application (ADR 49); of two owners the one that was told last stays.  With another
scheduler, after a failure, or if a host is lost, it begins another attempt; hosts forget those before it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from leeward.policies.agiledart.deployment.messages import (
    Announce,
    Deploy,
    Deployment,
    Hosted,
    Kept,
    PlacementIs,
    Release,
    Renew,
    Runs,
    Status,
    Wanted,
)
from leeward.policies.agiledart.deployment.questions import Questions
from leeward.policies.agiledart.deployment.roots import Roots
from leeward.policies.agiledart.overlay.ids import from_bytes, id_of
from leeward.policies.agiledart.overlay.messages import Contact
from leeward.policies.agiledart.overlay.neighbours import Outbox, Times
from leeward.policies.agiledart.overlay.schedulers import Schedulers

#: Attempts that may fail in a row, and that may be refused: two applications at once may take each other's room.
FAILURES, REFUSALS = 6, 2
#: Heartbeats between two renewals; of silence until a host is lost.
RENEWAL, SILENT = 1.0, 4.0


@dataclass(slots=True)
class Placement:
    """An application of this node. `running`: a client has said where it runs, and nothing is placed."""

    zone: str
    operators: tuple[Wanted, ...] = ()
    status: Status = "searching"
    why: str = ""
    hosts: tuple[Hosted, ...] = ()
    running: bool = False
    attempt: int = 0
    asked: int | None = None  #: address of the scheduler that this attempt was given to
    failures: int = 0
    refusals: int = 0
    due: float = 0.0
    kept: bool = False  #: a host has renewed a room for it
    client: int | None = None  #: address of the client that waits for the decision
    heard: dict[int, float] = field(default_factory=dict)  #: address of a host -> when it said that it has its rooms


class Owners:
    """The part of one node. `attempt`: a number greater than all before it, in every process."""

    def __init__(
        self, times: Times, outbox: Outbox, questions: Questions, roots: Roots, schedulers: Schedulers,
        attempt: Callable[[float], int],
    ) -> None:  # fmt: skip
        self.all: dict[str, Placement] = {}
        self.ended: deque[PlacementIs] = deque(maxlen=1000)  #: decisions, for the log
        self._times, self._outbox, self._questions = times, outbox, questions
        self._roots, self._schedulers, self._attempt = roots, schedulers, attempt

    # --- clients

    def announce(self, sender: int, message: Announce, now: float) -> None:
        """Own an application, and have it placed; one that is known stays, unless it was refused or has changed.

        The client is told when it is decided.
        """
        held = self.all.get(message.application)
        if held and not held.running and held.operators == message.operators and held.status != "refused":
            held.client = sender
            return
        if held is not None:
            self._release(message.application, held)
        self.all[message.application] = Placement(
            message.zone, message.operators, client=sender, attempt=held.attempt if held else 0
        )  # fmt: skip
        self._owned(message.application, message.zone, now)

    def runs(self, message: Runs, now: float) -> None:
        """Own an application that runs already, and keep its rooms where it does."""
        held = self.all.get(message.application)
        if held is None or not held.running:
            before = held.attempt if held else 0
            held = self.all[message.application] = Placement(message.zone, running=True, status="placed")
            held.attempt = max(self._attempt(now), before + 1)
            self._owned(message.application, message.zone, now)
        at: dict[int, list[str]] = {}
        for operator, node in message.hosts:
            at.setdefault(from_bytes(node), []).append(operator)
        known = {one.host.id: one for one in held.hosts}
        stays = tuple(one for one in held.hosts if one.operator in at.get(one.host.id, ()))
        for gone in sorted(known.keys() - at.keys()):
            release = Release(application=message.application, attempt=held.attempt, operators=())
            self._outbox.send(known[gone].host.at, release)
        held.hosts = stays
        placed = {one.operator for one in stays}
        for id, names in sorted(at.items()):
            missing = [name for name in names if name not in placed]
            if missing:
                self._roots.node(id, partial(self._found, held, missing), now)

    def _found(self, held: Placement, names: list[str], node: Contact | None, now: float) -> None:
        """The node where operators run that a client has named; one that is not in the overlay has no room to keep."""
        known = {one.operator for one in held.hosts}
        names = [name for name in names if name not in known]  # a client may have told it twice meanwhile
        if node is not None:
            held.hosts = (*held.hosts, *(Hosted(operator=name, host=node, machine="") for name in names))
            held.due = now

    def over(self, application: str) -> None:
        """It has ended."""
        held = self.all.pop(application, None)
        if held is not None:
            self._release(application, held)
            self._schedulers.end(application)

    def placement(self, application: str) -> PlacementIs:
        """For a client."""
        held = self.all.get(application)
        if held is None:
            return PlacementIs(application=application, status="unknown")
        again = held.status == "refused" and held.refusals < REFUSALS
        status: Status = "placing" if again else held.status
        return PlacementIs(application=application, status=status, hosts=held.hosts, why=held.why)

    # --- the scheduler

    def deployment(self, sender: int, message: Deployment, now: float) -> None:
        """A scheduler has answered."""
        held = self.all.get(message.application)
        if held is None or held.status != "placing" or (held.attempt, held.asked) != (message.attempt, sender):
            return
        match message.status:
            case "placed":
                held.status, held.hosts, held.why = "placed", message.hosts, ""
                held.failures = held.refusals = 0
                held.heard, held.due = {one.host.at: now for one in message.hosts}, now
            case "refused":
                held.status, held.why, held.refusals = "refused", message.why, held.refusals + 1
                held.due = now + (1 + id_of(message.application) % 8 / 8) * self._times.heartbeat
            case "failed":
                held.failures, held.why = held.failures + 1, message.why
                held.status = "refused" if held.failures >= FAILURES else "searching"
                held.refusals = REFUSALS if held.failures >= FAILURES else held.refusals
                held.asked = None
        if message.status == "placed" or (held.status == "refused" and held.refusals >= REFUSALS):
            told = self.placement(message.application)
            self.ended.append(told)
            if held.client is not None:
                self._outbox.send(held.client, told)
                held.client = None

    def tick(self, now: float) -> None:
        """Time has passed."""
        for application, held in self.all.items():
            if held.status in ("searching", "placing"):
                self._hand_over(application, held, now)
            elif now >= held.due and held.status == "placed":
                self._renew(application, held, now)
            elif now >= held.due and held.status == "refused" and held.refusals < REFUSALS:
                held.status, held.asked = "searching", None

    def registered(self, application: str, now: float) -> None:
        """A scheduler serves it from now on."""
        held = self.all.get(application)
        if held is not None and held.status == "searching":
            self._hand_over(application, held, now)

    def _hand_over(self, application: str, held: Placement, now: float) -> None:
        owned = self._schedulers.owned.get(application)
        if owned is None:
            self._owned(application, held.zone, now)
            return
        if not owned.served or owned.scheduler is None:
            return
        if held.asked != owned.scheduler.at:
            held.asked, held.status, held.due = owned.scheduler.at, "placing", now
            held.attempt = max(self._attempt(now), held.attempt + 1)
        if now >= held.due:
            held.due = now + self._times.ack
            deploy = Deploy(application=application, attempt=held.attempt, operators=held.operators)
            self._outbox.send(owned.scheduler.at, deploy)

    # --- hosts

    def _renew(self, application: str, held: Placement, now: float) -> None:
        held.due = now + RENEWAL * self._times.heartbeat
        lost = [at for at, heard in held.heard.items() if now - heard > SILENT * self._times.heartbeat]
        if lost and not held.running:
            self._again(held, f"{len(lost)} of its hosts do not answer")
            return
        for at in sorted({one.host.at for one in held.hosts}):
            mine = [one for one in held.hosts if one.host.at == at]
            names = tuple(sorted(one.operator for one in mine))

            def make(number: int, names: tuple[str, ...] = names) -> Renew:
                return Renew(
                    number=number, application=application, attempt=held.attempt, operators=names,
                    running=held.running,
                )  # fmt: skip

            self._questions.ask(mine[0].host, make, partial(self._kept, application, held, held.attempt, at), now)

    def _kept(
        self, application: str, held: Placement, attempt: int, at: int, answer: Kept | None, now: float
    ) -> None:  # fmt: skip
        if answer is None or held.attempt != attempt or self.all.get(application) is not held:
            return
        held.heard[at] = now
        if answer.newer and held.kept:  # a client has told another node of it since, as another scheduler leads it
            self.over(application)
        elif answer.newer:  # the clock of the owner before this one is ahead
            held.attempt, held.due = max(self._attempt(now), answer.newer + 1), now
        held.kept = held.kept or not answer.newer
        if answer.lost and held.status == "placed" and not held.running:
            self._again(held, f"operator {answer.lost[0]!r} has lost its room")

    def _again(self, held: Placement, why: str) -> None:
        held.status, held.asked, held.why, held.hosts = "searching", None, why, ()
        held.heard.clear()

    def _owned(self, application: str, zone: str, now: float) -> None:
        if application not in self._schedulers.owned:
            self._schedulers.launch(application, zone, now)

    def _release(self, application: str, held: Placement) -> None:
        for at in sorted({one.host.at for one in held.hosts}):
            self._outbox.send(at, Release(application=application, attempt=held.attempt, operators=()))
