"""A zone as one node on the way to its topic knows it: capable members, and schedulers with their applications.

The zone's topic is a key; messages to it pass a tree of nodes, and each node of the tree keeps a directory. The root's
directory has the whole zone (after M. Castro et al., *Scribe*, 2002). Nothing in it lasts longer than it is repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from leeward.policies.agiledart.overlay.ids import id_of
from leeward.policies.agiledart.overlay.messages import Candidate

#: Applications that one scheduler serves, and candidates that a node tells the next one of.
MOST, BEST = 50, 8
#: Heartbeats of silence after which no application is sent to a scheduler; they report twice a heartbeat.
SILENT = 0.8
#: Heartbeats after which a scheduler, a member and a failure are forgotten, and for which a surplus lasts.
SERVING_LASTS, MEMBER_LASTS, FAILURE_LASTS, SURPLUS_LASTS = 1.1, 2.5, 5.0, 2.0


def topic(zone: str) -> int:
    """The key of a zone."""
    return id_of(f"zone {zone}")


def wanted(applications: int) -> int:
    """Schedulers of a zone: max(1, ceil(applications / 50)) (section VI of the paper: one for every 50)."""
    return max(1, -(-applications // MOST))


@dataclass(slots=True)
class Serving:
    """A scheduler; `reported`: it has said so itself."""

    candidate: Candidate
    applications: int
    heard: float
    reported: bool


class Directory:
    """See the module; times are in heartbeats."""

    def __init__(self) -> None:
        self.root_since: float | None = None  #: this node is the root of the topic; None: it is not
        self._members: dict[int, tuple[tuple[Candidate, ...], float]] = {}  #: by the address that told of them
        self._serving: dict[int, Serving] = {}  #: by node
        self._failed: dict[int, float] = {}
        self._surplus_since: float | None = None

    # --- facts

    def members(self, sender: int, candidates: tuple[Candidate, ...], now: float) -> None:
        """A node before this one in the tree knows these."""
        self._members[sender] = candidates, now

    def report(self, candidate: Candidate, applications: int, now: float) -> None:
        """A scheduler serves so many."""
        self._serving[candidate.contact.id] = Serving(candidate, applications, now, reported=True)

    def retire(self, node: int) -> None:
        """A scheduler is none any more."""
        self._serving.pop(node, None)

    def expire(self, now: float) -> None:
        """Forget those of which nothing is heard; a scheduler among them has failed."""
        for node, one in list(self._serving.items()):
            if now - one.heard > SERVING_LASTS:
                del self._serving[node]
                self._failed[node] = now + FAILURE_LASTS
        self._members = {at: told for at, told in self._members.items() if now - told[1] <= MEMBER_LASTS}
        self._failed = {node: until for node, until in self._failed.items() if until > now}

    @property
    def empty(self) -> bool:
        """Nothing is known."""
        return not (self._members or self._serving)

    # --- decisions

    def best(self, others: Iterable[Candidate] = ()) -> tuple[Candidate, ...]:
        """The most capable members, schedulers included; of two that are alike the smaller id is first."""
        told = (one for candidates, _ in self._members.values() for one in candidates)
        unique = {one.contact.id: one for one in (*told, *others) if one.contact.id not in self._failed}
        return tuple(sorted(unique.values(), key=lambda one: (-one.capacity, one.contact.id))[:BEST])

    def open(self, avoid: Collection[int], now: float) -> Serving | None:
        """The scheduler that serves the fewest, if it has room; one more is counted there. Silent ones may be dead."""
        able = [
            one for node, one in self._serving.items()
            if node not in avoid and one.applications < MOST and now - one.heard <= SILENT
        ]  # fmt: skip
        if not able:
            return None
        least = min(able, key=lambda one: (one.applications, one.candidate.contact.id))
        least.applications += 1
        return least

    def elect(self, avoid: Collection[int], now: float) -> Serving | None:
        """The most capable member becomes a scheduler; its first report is to follow. None: none is known."""
        able = (self.elect_this(one, avoid, now) for one in self.best())
        return next((one for one in able if one is not None), None)

    def elect_this(self, candidate: Candidate, avoid: Collection[int], now: float) -> Serving | None:
        """The same for one member; None if it is to be avoided or is a scheduler."""
        node = candidate.contact.id
        if node in avoid or node in self._serving:
            return None
        serving = self._serving[node] = Serving(candidate, 0, now, reported=False)
        return serving

    def missing(self) -> bool:
        """Whether the zone needs another scheduler."""
        return len(self._serving) < wanted(self._applications())

    def surplus(self, now: float) -> list[Serving]:
        """The schedulers that are to be dismissed, as there have been too many for a while: those of the fewest."""
        reported = [one for one in self._serving.values() if one.reported]
        too_many = len(reported) - wanted(self._applications())
        if too_many <= 0:
            self._surplus_since = None
            return []
        if self._surplus_since is None:
            self._surplus_since = now
        if now - self._surplus_since < SURPLUS_LASTS:
            return []
        self._surplus_since = None
        reported.sort(key=lambda one: (one.applications, one.candidate.capacity, one.candidate.contact.id))
        return reported[:too_many]

    def _applications(self) -> int:
        return sum(one.applications for one in self._serving.values())
