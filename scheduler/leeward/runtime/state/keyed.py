"""Keyed state: a mapping that is kept by key group, so that it can move group by group."""

from __future__ import annotations

import copy
import threading
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, MutableMapping
from itertools import chain
from typing import Any

from leeward.core.errors import NotOwnedError
from leeward.core.keys import GROUPS, key_group

#: Values of these types cannot change without being set.
_UNCHANGING = frozenset({int, float, str, bytes, bool, type(None)})
_KEYS = frozenset({str, int, tuple})
#: Where the group of a tuple is not known.
NO_GROUP = -1

#: A key of state.
Key = str | int | tuple[str | int, ...]
#: The content of one key group: plain values by key.
Entries = dict[Key, Any]

_NONE: Entries = {}


class Frozen:
    """The entries by group as they were at one moment. Any thread may ask.

    A group is copied (one shallow copy) when it is about to change or is asked for, whichever comes first: copying a
    million entries at once would stop the stream for 0.2 s.
    """

    def __init__(self, groups: Mapping[int, Entries]) -> None:
        self._live = dict(groups)  # of which there is no copy yet
        self._copies: dict[int, Entries] = {}
        self._lock = threading.Lock()

    def group(self, number: int) -> Entries:
        """Its entries; empty if it was not there, or was forgotten."""
        with self._lock:
            if (live := self._live.pop(number, None)) is not None:
                self._copies[number] = dict(live)
            return self._copies.get(number, {})

    def forget(self, number: int) -> None:
        """Nobody will ask for this group again."""
        with self._lock:
            self._live.pop(number, None)
            self._copies.pop(number, None)


class _Items(ItemsView[Any, Any]):
    _mapping: KeyedState  # as ItemsView sets it

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        state = self._mapping
        if state._watched:  # the caller may change the value it gets
            return super().__iter__()
        return chain.from_iterable(entries.items() for entries in state._groups.values())


class KeyedState(MutableMapping[Any, Any]):  # any Key goes in; of what type all are is the user's to know
    """`self.state` of a stateful component: plain values by str or int keys, or by tuples of these.

    Only keys of groups that this task owns may be read or written; anything else means that tuples are routed by
    another key than state is kept by, and raises NotOwnedError.

    Look a list or dict up each time before you change it: checkpoints and handovers copy state while work goes on, and
    what is changed behind this mapping's back is copied as it was, or half done.
    """

    def __init__(self, owner: str, groups: Iterable[int] = range(GROUPS)) -> None:
        self._owner = owner
        self._groups: dict[int, Entries] = {group: {} for group in groups}
        self._marks: dict[int, set[Key]] = {}  # of groups that are being copied: keys that may have changed since
        self._frozen: list[Frozen] = []  # its content at moments that are still being written
        self._watched = False  # one of the two wants to know of changes
        #: Group of the tuple that is being processed, as its frame has it. A key that this group has is not hashed;
        #: one that it has not is, so a wrong or missing number here costs time only.
        self.here = NO_GROUP

    def _of(self, key: object) -> Entries:
        """The entries of the key's group, wherever the key is."""
        group = key_group(key)
        try:
            return self._groups[group]
        except KeyError:
            raise NotOwnedError(
                f"{self._owner} has no key group {group}, to which state key {key!r} belongs.",
                remedy="Keep state by the very key that the input is routed by: keyed('field') and state[tup.field], "
                "keyed('a', 'b') and state[tup.a, tup.b].",
            ) from None

    def __getitem__(self, key: Key) -> Any:
        entries = self._groups.get(self.here, _NONE)
        if key.__class__ not in _KEYS or key not in entries:
            entries = self._of(key)
        value = entries[key]
        if self._watched and type(value) not in _UNCHANGING:
            self._touch(key, value)
        return value

    def __setitem__(self, key: Key, value: Any) -> None:
        entries = self._groups.get(self.here, _NONE)
        if key.__class__ not in _KEYS or key not in entries:
            entries = self._of(key)
        if self._watched:
            self._touch(key, None)
        entries[key] = value

    def __delitem__(self, key: Key) -> None:
        entries = self._of(key)
        if self._watched:
            self._touch(key, None)
        del entries[key]

    def get(self, key: Key, default: Any = None) -> Any:
        """The value of `key`, or `default`."""
        entries = self._groups.get(self.here, _NONE)
        if key.__class__ not in _KEYS or key not in entries:
            entries = self._of(key)
        value = entries.get(key, default)
        if self._watched and type(value) not in _UNCHANGING:
            self._touch(key, value)
        return value

    def _touch(self, key: Key, value: object) -> None:
        """A key is about to change, or (with its value) may change in the caller's hands."""
        group = self.here if key in self._groups.get(self.here, _NONE) else key_group(key)
        marks = self._marks.get(group)
        if marks is not None:
            marks.add(key)
        for frozen in self._frozen:
            entries = frozen.group(group)
            if value is not None and entries.get(key) is value:
                entries[key] = copy.deepcopy(value)

    def __contains__(self, key: object) -> bool:
        return key in self._of(key)

    def __iter__(self) -> Iterator[Any]:
        return chain.from_iterable(self._groups.values())

    def items(self) -> ItemsView[Any, Any]:
        """As of any mapping; fast, because user code goes over all of it whenever groups come or go."""
        return _Items(self)

    def __len__(self) -> int:
        return sum(map(len, self._groups.values()))

    @property
    def groups(self) -> tuple[int, ...]:
        """The groups owned, ascending."""
        return tuple(sorted(self._groups))

    @property
    def owned(self) -> KeysView[int]:
        """The groups owned, as a set (live)."""
        return self._groups.keys()

    def group(self, number: int) -> Entries:
        """The entries of an owned group (live, not a copy)."""
        return self._groups[number]

    def track(self, group: int) -> set[Key]:
        """From now on remember which keys of an owned group may have changed; those remembered until now.

        A key counts as changed when it is set or deleted, and when a list or dict is looked up under it.
        """
        before, self._marks[group] = self._marks.get(group, set()), set()
        self._watched = True
        return before

    def marked(self, group: int) -> set[Key]:
        """The keys remembered for a tracked group (live)."""
        return self._marks[group]

    def untrack(self) -> None:
        """Remember nothing any more."""
        self._marks = {}
        self._watched = bool(self._frozen)

    def freeze(self) -> Frozen:
        """The entries by group as of now; they stay so, while the state changes, until `thaw`.

        A list or dict is copied whole when it is looked up for the first time after.
        """
        frozen = Frozen(self._groups)
        self._frozen.append(frozen)
        self._watched = True
        return frozen

    def thaw(self, frozen: Frozen) -> None:
        """The result of `freeze` is not needed any more."""
        self._frozen = [other for other in self._frozen if other is not frozen]
        self._watched = bool(self._frozen or self._marks)

    def release(self, groups: Iterable[int]) -> dict[int, Entries]:
        """Give up these groups; their entries, which the caller may change."""
        groups = tuple(groups)
        for frozen in self._frozen:
            for group in groups:
                frozen.group(group)
        return {group: self._groups.pop(group) for group in groups}

    def add(self, groups: dict[int, Entries]) -> None:
        """Own these groups too, with these entries."""
        self._groups |= groups

    def replace(self, groups: dict[int, Entries]) -> None:
        """Own exactly these groups with these entries."""
        self._groups = groups

    def begin(self, owner: str, groups: dict[int, Entries]) -> None:
        """Replace them, and forget which entries changed; `owner` is for messages. Frozen entries stay as they were."""
        self._owner = owner
        self.replace(groups)
        self.untrack()
