"""The rooms of one node: which operators it holds, each for a time. Never more than it has, but for running ones."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from leeward.policies.agiledart.overlay.neighbours import Load


@dataclass(slots=True)
class _Room:
    attempt: int
    until: float


class Rooms:
    """See the module. `lasts`: seconds for which a room is held unless it is renewed."""

    def __init__(self, capacity: int, lasts: float) -> None:
        self.capacity, self._lasts = capacity, lasts
        self._held: dict[str, dict[str, _Room]] = {}  #: application -> operator
        self._count = 0  #: of all of them: the load is asked for after each message

    @property
    def load(self) -> Load:
        """Operators held, and how many it can hold."""
        return Load(self._count, self.capacity)

    def operators(self) -> tuple[tuple[str, str], ...]:
        """Application and operator, sorted."""
        return tuple(sorted((name, operator) for name, rooms in self._held.items() for operator in rooms))

    def holds(self, application: str, attempt: int) -> bool:
        """Some operator of this attempt of the application."""
        return any(room.attempt == attempt for room in self._held.get(application, {}).values())

    def newest(self, application: str) -> int:
        """The newest attempt of which it holds something; 0: it holds nothing."""
        return max((room.attempt for room in self._held.get(application, {}).values()), default=0)

    def reserve(self, application: str, attempt: int, operator: str, now: float) -> bool:
        """Hold a room; False: there is none, or a newer attempt of the application is known."""
        if not self._begin(application, attempt):
            return False
        rooms = self._held.get(application, {})
        if operator not in rooms and self.load.room < 1:
            return False
        self._put(self._held.setdefault(application, {}), operator, _Room(attempt, now + self._lasts))
        return True

    def renew(
        self, application: str, attempt: int, operators: Collection[str], now: float, *, running: bool
    ) -> tuple[str, ...] | None:
        """Hold rooms for these operators, and for no others of the application; those for which there is none.

        None: a newer attempt is known, so the application has another owner.
        """
        if not self._begin(application, attempt):
            return None
        rooms = self._held.setdefault(application, {})
        for other in [name for name in rooms if name not in operators]:
            self._drop(rooms, other)
        lost = []
        for operator in operators:
            if operator in rooms or running or self.load.room > 0:
                self._put(rooms, operator, _Room(attempt, now + self._lasts))
            else:
                lost.append(operator)
        self._tidy(application)
        return tuple(lost)

    def release(self, application: str, attempt: int, operators: Collection[str]) -> None:
        """Hold none for these operators of this attempt or an older one; without any, for none of the application."""
        rooms = self._held.get(application, {})
        for operator in list(operators or rooms):
            if operator in rooms and rooms[operator].attempt <= attempt:
                self._drop(rooms, operator)
        self._tidy(application)

    def tick(self, now: float) -> None:
        """Rooms that were not renewed are free."""
        for application, rooms in list(self._held.items()):
            for operator in [name for name, room in rooms.items() if room.until <= now]:
                self._drop(rooms, operator)
            self._tidy(application)

    def _begin(self, application: str, attempt: int) -> bool:
        """Rooms of older attempts are free; False if there is a newer one."""
        rooms = self._held.get(application, {})
        if self.newest(application) > attempt:
            return False
        for operator in [name for name, room in rooms.items() if room.attempt < attempt]:
            self._drop(rooms, operator)
        self._tidy(application)
        return True

    def _put(self, rooms: dict[str, _Room], operator: str, room: _Room) -> None:
        self._count += operator not in rooms
        rooms[operator] = room

    def _drop(self, rooms: dict[str, _Room], operator: str) -> None:
        del rooms[operator]
        self._count -= 1

    def _tidy(self, application: str) -> None:
        if not self._held.get(application, True):
            del self._held[application]
