"""Copies key groups ahead while their owner goes on changing them: a little at a time, then what changed since. Pure.

Everything runs in the task's own thread, between two tuples, so that no value changes while it is packed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import islice

import msgpack

from leeward.runtime.handover.pieces import PIECE_BYTES, Rest, pack, taken
from leeward.runtime.pacing import Pacing
from leeward.runtime.state.keyed import Entries, Key, KeyedState


class Ahead:
    """`step` until `small`; then `rest` gives, once and for all, what must still follow."""

    def __init__(self, state: KeyedState, lost: Mapping[int, int], owner: str, pacing: Pacing = Pacing()) -> None:
        """`lost`: group -> the task that is to have it."""
        self._state, self._lost, self._owner, self._pacing = state, lost, owner, pacing
        self._todo: deque[int] = deque(sorted(lost))
        self._keys: Iterator[Key] = iter(())
        self._many = 1  # entries to be packed next: about a piece
        self._group = -1
        self._round = 0
        self._unpacked = sum(len(state.group(group)) for group in lost)  # entries, as of now
        self._before = 0.0  # bytes left over after the round before
        self._packers: dict[int, msgpack.Packer] = {}
        self._packing_s = 0.0  # that `entries` have taken
        self.small = False  #: little is left over, or it does not get less
        self.bytes = self.entries = 0  #: packed so far

    def step(self, budget_s: float, clock: Callable[[], float]) -> dict[int, bytes]:
        """Pack for about `budget_s` seconds: task -> bytes to send it. Empty when nothing has changed."""
        began = clock()
        while keys := self._next_keys():
            self._pack(keys)
            if clock() >= began + budget_s:
                break
        out = {task: data for task, packer in self._packers.items() if (data := taken(packer))}
        self.bytes += sum(map(len, out.values()))
        self._packing_s += clock() - began
        return out

    def rest(self) -> dict[int, Rest]:
        """Entries that changed since they were packed, or were never packed; tracking ends."""
        out: dict[int, Rest] = {}
        never = set(self._todo) if self._round == 0 else set()
        for group in self._lost:
            entries = self._state.group(group)
            if group in never:
                out[group] = (entries.items(), ())
                continue
            keys = set(self._state.marked(group))
            if group == self._group:
                keys |= set(self._keys)
            out[group] = _split(entries, keys)
        self._state.untrack()
        return out

    @property
    def left(self) -> float:
        """About how many bytes are to be packed again."""
        marked = sum(len(self._state.marked(group)) for group in self._lost)
        return marked * self.bytes / max(1, self.entries)

    @property
    def near(self) -> bool:
        """The switch can be asked for: the rest will be little when it comes."""
        near_s = self._pacing.near_s
        return self.small or (self.entries > 0 and self._unpacked * self._packing_s <= near_s * self.entries)

    def _next_keys(self) -> list[Key]:
        """Some that are to be packed, of one group; begins the next group, or the next round. None if nothing is."""
        while not (keys := list(islice(self._keys, self._many))):
            if not self._todo:
                self._end_round()
                if not self._todo:
                    break
            self._group = self._todo.popleft()
            entries = self._state.group(self._group)
            changed = self._state.track(self._group)
            self._keys = iter(changed if self._round else list(entries))
        return keys

    def _end_round(self) -> None:
        left = self.left
        self._round += 1
        stuck = self._round >= self._pacing.rounds and left > self._pacing.shrink * self._before
        self.small = self.small or left <= self._pacing.small_bytes or stuck
        self._before = left
        self._todo.extend(group for group in sorted(self._lost) if self._state.marked(group))

    def _pack(self, keys: list[Key]) -> None:
        items, gone = _split(self._state.group(self._group), keys)
        if marks := self._state.marked(self._group):
            marks.difference_update(keys)
        target = self._lost[self._group]
        packer = self._packers.get(target)
        if packer is None:
            packer = self._packers[target] = msgpack.Packer(strict_types=True, autoreset=False)
        before = len(packer.getbuffer())
        pack(packer, self._group, items, gone, last=False, owner=self._owner)
        size = len(packer.getbuffer()) - before
        self._many = max(1, min(self._pacing.chunk, PIECE_BYTES * len(keys) // size))
        self.entries += len(keys)
        self._unpacked -= len(keys) if self._round == 0 else 0


def _split(entries: Entries, keys: Collection[Key]) -> Rest:
    """Those keys that are there, with their values, and those that are gone."""
    try:
        return list(zip(keys, map(entries.__getitem__, keys), strict=True)), ()  # nearly always: none is gone
    except KeyError:
        there = [(key, entries[key]) for key in keys if key in entries]
        return there, [key for key in keys if key not in entries]
