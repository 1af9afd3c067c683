"""Nodes by their ids, and the roots of keys: found by messages to them, unless a node knows them already."""

from __future__ import annotations

from collections.abc import Callable

from leeward.policies.agiledart.overlay.lookups import Lookups
from leeward.policies.agiledart.overlay.messages import Contact
from leeward.policies.agiledart.overlay.neighbours import Neighbours

#: Takes the node, or None if there is none, and the time.
Then = Callable[[Contact | None, float], None]


class Roots:
    """See the module. `lookup`: begins one; its number."""

    def __init__(self, neighbours: Neighbours, lookups: Lookups, lookup: Callable[[int, float], int]) -> None:
        self._neighbours, self._lookups, self._lookup = neighbours, lookups, lookup
        self._open: dict[int, Then] = {}

    def root(self, key: int, then: Then, now: float) -> None:
        """The node that is nearest to a key; None if no message has reached it."""
        self._open[self._lookup(key, now)] = then

    def node(self, id: int, then: Then, now: float) -> None:
        """The node of an id; None if it is not in the overlay."""
        known = self._neighbours.contacts.get(id)
        if id == self._neighbours.me.id:
            then(self._neighbours.me, now)
        elif known is not None and self._neighbours.lives(id, now):
            then(known, now)
        else:
            self.root(id, lambda found, now: then(found if found and found.id == id else None, now), now)

    def advance(self, now: float) -> None:
        """Take what has been found."""
        for number in [number for number in self._open if self._over(number)]:
            answer = self._lookups.all.pop(number).answer
            self._open.pop(number)(answer.path[-1] if answer else None, now)

    def _over(self, number: int) -> bool:
        lookup = self._lookups.all[number]
        return lookup.answer is not None or lookup.given_up
