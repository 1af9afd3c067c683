"""Queries that come again: periodic for so many rounds, streaming until they are ended, reported if a trigger holds.

Each round is a one-time query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

from leeward.core.fields import FieldError, check_number
from leeward.policies.dssp.agents.messages import Tally
from leeward.policies.dssp.agents.provider import Provider, Result
from leeward.policies.dssp.model.area import Area

Figure = Literal["count", "total", "least", "most", "mean"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """A round is reported if this figure of its readings is above or below a bound."""

    figure: Figure
    above: float | None = None
    below: float | None = None

    def __post_init__(self) -> None:
        if self.figure not in get_args(Figure):
            raise FieldError(
                "trigger.figure", self.figure, "is unknown", remedy=f"choose of {', '.join(get_args(Figure))}"
            )
        if self.above is None and self.below is None:
            raise FieldError("trigger", self.figure, "has no bound", remedy="give `above`, `below` or both")

    def holds(self, tally: Tally) -> bool:
        """Not for a figure that there is none of, as no node has answered."""
        value = getattr(tally, self.figure)
        if value is None:
            return False
        return (self.above is not None and value > self.above) or (self.below is not None and value < self.below)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A query that comes again. Raises FieldError for a period or a number of rounds that is not positive."""

    service: str
    areas: tuple[Area, ...]
    period_s: float
    rounds: int | None = None  #: None: streaming
    trigger: Trigger | None = None

    def __post_init__(self) -> None:
        check_number("period_s", self.period_s, positive=True)
        if self.rounds is not None:
            check_number("rounds", self.rounds, positive=True)


class Round(NamedTuple):
    """The ticket of a round."""

    ticket: Any  #: of the subscription
    number: int  #: from 0


@dataclass(slots=True)
class _Open:
    subscription: Subscription
    next_s: float
    rounds: int = 0  #: that have begun
    over: int = 0


class Subscriptions:
    """Of one provider."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._open: dict[Any, _Open] = {}

    def add(self, ticket: Any, subscription: Subscription, now: float) -> None:
        """Its first round begins at the next tick."""
        self._open[ticket] = _Open(subscription, now)

    def end(self, ticket: Any) -> None:
        """No round more; one in work is still answered, and not reported."""
        self._open.pop(ticket, None)

    def __contains__(self, ticket: Any) -> bool:
        return ticket in self._open

    def __len__(self) -> int:
        return len(self._open)

    def tick(self, now: float) -> list[Any]:
        """Rounds that are due. One whose areas have no domain now is left out; the next one is tried in its turn."""
        found: list[Any] = []
        for ticket, one in [*self._open.items()]:
            wanted = one.subscription
            if now < one.next_s or one.rounds == wanted.rounds:
                continue
            one.next_s = max(one.next_s + wanted.period_s, now)
            round_, one.rounds = Round(ticket, one.rounds), one.rounds + 1
            try:
                found += self._provider.query(round_, wanted.service, wanted.areas, now)
            except FieldError as error:
                found.append(Skipped(round_, error))
                self._close(round_)
        return found

    def report(self, result: Result) -> bool:
        """Whether the client of this round hears of it; with its last round a subscription is over."""
        one = self._open.get(result.ticket.ticket)
        if one is None:
            return False
        self._close(result.ticket)
        trigger = one.subscription.trigger
        return trigger is None or trigger.holds(result.tally)

    def _close(self, round_: Round) -> None:
        one = self._open[round_.ticket]
        one.over += 1
        if one.over == one.subscription.rounds:
            del self._open[round_.ticket]


class Skipped(NamedTuple):
    """Effect: a round could not be asked."""

    round: Round
    error: FieldError
