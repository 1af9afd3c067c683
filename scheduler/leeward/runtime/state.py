"""Keyed state: a mapping that is kept by key group, so that it can move group by group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from itertools import chain
from typing import Any

from leeward.core.errors import ProtocolError
from leeward.core.keys import GROUPS, key_group


class KeyedState(MutableMapping):
    """`self.state` of a stateful component: str or int keys, plain values.

    Only keys of groups that this task owns may be read or written; anything else means that tuples are routed by
    another key than state is kept by, and raises ProtocolError.
    """

    def __init__(self, owner: str, groups: Iterable[int] = range(GROUPS)) -> None:
        self._owner = owner
        self._groups: dict[int, dict] = {group: {} for group in groups}

    def _of(self, key: object) -> dict:
        group = key_group(key)
        try:
            return self._groups[group]
        except KeyError:
            raise ProtocolError(
                f"{self._owner} has no key group {group}, to which state key {key!r} belongs.",
                remedy="Keep state by the very key that the input is routed by: keyed('field') and state[tup.field].",
            ) from None

    def __getitem__(self, key: object) -> Any:
        return self._of(key)[key]

    def __setitem__(self, key: object, value: Any) -> None:
        self._of(key)[key] = value

    def __delitem__(self, key: object) -> None:
        del self._of(key)[key]

    def get(self, key: object, default: Any = None) -> Any:
        """The value of `key`, or `default`."""
        return self._of(key).get(key, default)

    def __contains__(self, key: object) -> bool:
        return key in self._of(key)

    def __iter__(self) -> Iterator:
        return chain.from_iterable(self._groups.values())

    def __len__(self) -> int:
        return sum(map(len, self._groups.values()))

    @property
    def groups(self) -> tuple[int, ...]:
        """The groups owned, ascending."""
        return tuple(sorted(self._groups))

    def group(self, number: int) -> dict:
        """The entries of an owned group (live, not a copy)."""
        return self._groups[number]

    def release(self, groups: Iterable[int]) -> dict[int, dict]:
        """Give up these groups; their entries."""
        return {group: self._groups.pop(group) for group in groups}

    def add(self, groups: dict[int, dict]) -> None:
        """Own these groups too, with these entries."""
        self._groups |= groups

    def replace(self, groups: dict[int, dict]) -> None:
        """Own exactly these groups with these entries."""
        self._groups = groups
