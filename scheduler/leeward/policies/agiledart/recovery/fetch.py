"""Which block of which stripe is asked for next, and from whom. Events in, asks out; no clock, no bytes, no sockets.

m whole fragments take as long as the slowest of m holders. Here each holder that has answered is asked for more, so
each gives as much as its uplink carries: m blocks of every stripe come, from whichever holders are fastest. A holder
has one block of each stripe, so n holders of rates r need a time t with sum of min(r t, size / m) = size (`tuning.py`).

Stripes are asked for in order, so that they are complete in order and are decoded meanwhile. When nothing else is left
to ask for, an idle holder is asked for a block that would come later from another one. A holder that stays silent is
passed over, and other holders are asked instead. A block that fails its checksum is asked for elsewhere, too, and its
holder is asked only where no other can help.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from leeward.core.errors import SnapshotError

#: A block's part in the measured rate falls to this with each later one of its holder.
FADE = 0.8
#: Asks that a holder has at once: two, so that its uplink never waits, and as many as it answers in this time, s.
LEAST_ASKED, MOST_ASKED, AHEAD_S = 2, 16, 0.1


class Block(NamedTuple):
    """One of a stripe; the number of the fragment that it belongs to stands for its holder."""

    stripe: int
    fragment: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Seconds. A holder is silent after `silent_s`, or `times` what its next block should take; lost at `lost_s`."""

    silent_s: float = 0.5
    times: float = 4.0
    lost_s: float = 10.0


@dataclass(slots=True, kw_only=True)
class Holder:
    """One that has a fragment."""

    asked: dict[int, float] = field(default_factory=dict)  #: stripe -> when it was asked for it; in that order
    heard: float = 0.0  #: when it answered last, or was asked while it owed nothing
    size: float = 0.0  #: bytes and seconds that its rate follows from
    busy_s: float = 0.0
    silent: bool = False
    suspect: bool = False  #: a block of it was not what was encoded

    @property
    def rate(self) -> float | None:
        """Bytes/s; None before it has answered."""
        return self.size / self.busy_s if self.busy_s else None


class Fetch:
    """See the module. `stripes`: stripe -> bytes of a block; `indices`: fragments that somebody holds.

    Each event is told with the time, in s, and gives the blocks to be asked for now. Raises SnapshotError when too few
    fragments are left; nothing may be told after that.
    """

    def __init__(
        self, m: int, stripes: Mapping[int, int], indices: Iterable[int], patience: Patience | None = None
    ) -> None:
        self.m, self._sizes = m, dict(stripes)
        self.holders = {index: Holder() for index in sorted(indices)}
        self._patience = patience or Patience()
        self._good: dict[int, set[int]] = {stripe: set() for stripe in self._sizes}
        self._coming: dict[int, set[int]] = {stripe: set() for stripe in self._sizes}
        self._bad: dict[int, set[int]] = {stripe: set() for stripe in self._sizes}
        self._open = dict.fromkeys(sorted(self._sizes))  # stripes that are not complete
        self._needy = sorted(self._sizes)  # of them, those for which more is to be asked

    @property
    def over(self) -> bool:
        """m blocks of every stripe have come."""
        return not self._open

    # --- events

    def begin(self, now: float) -> list[Block]:
        """The first asks."""
        self._check()
        return self._ask(now)

    def arrived(self, block: Block, good: bool, now: float) -> list[Block]:
        """A holder has answered; `good`: by its checksum the block is the one that was encoded."""
        holder = self.holders.get(block.fragment)
        if holder is None:
            return []
        self._measure(holder, block, now)
        holder.silent = False
        stripe = block.stripe
        self._coming[stripe].discard(block.fragment)
        if not good:
            holder.suspect = True
            self._bad[stripe].add(block.fragment)
            self._check()
        elif stripe in self._open:
            self._good[stripe].add(block.fragment)
            if len(self._good[stripe]) == self.m:
                del self._open[stripe]
        self._count(stripe)
        return self._ask(now)

    def gone(self, index: int, now: float) -> list[Block]:
        """This holder is dead, or has no such fragment."""
        holder = self.holders.pop(index, None)
        if holder is None:
            return []
        self._release(index, holder)
        self._check()
        return self._ask(now)

    def tick(self, now: float) -> list[Block]:
        """Time has passed: silent holders are passed over."""
        patience = self._patience
        for index, holder in list(self.holders.items()):
            quiet = now - holder.heard
            if not holder.asked:
                continue
            if quiet >= patience.lost_s:
                self.holders.pop(index)
                self._release(index, holder)
                self._check()
            elif not holder.silent and quiet >= max(patience.silent_s, patience.times * self._service(holder)):
                holder.silent = True
                self._release(index, holder)
        return self._ask(now)

    # --- knowledge of holders and stripes

    def _measure(self, holder: Holder, block: Block, now: float) -> None:
        asked = holder.asked.pop(block.stripe, None)
        if asked is not None:
            holder.size = FADE * holder.size + self._sizes[block.stripe]
            holder.busy_s = FADE * holder.busy_s + max(now - max(asked, holder.heard), 1e-6)
        holder.heard = now

    def _service(self, holder: Holder) -> float:
        """Seconds that its next block should take; 0 while nobody knows."""
        stripe = next(iter(holder.asked), None)
        return self._sizes[stripe] / holder.rate if stripe is not None and holder.rate else 0.0

    def _release(self, index: int, holder: Holder) -> None:
        """Ask elsewhere for what it owes."""
        for stripe in holder.asked:
            self._coming[stripe].discard(index)
            self._count(stripe)

    def _need(self, stripe: int) -> int:
        """Blocks that are to be asked for."""
        return self.m - len(self._good[stripe]) - len(self._coming[stripe]) if stripe in self._open else 0

    def _count(self, stripe: int) -> None:
        """Keep `_needy` as it says."""
        at = bisect_left(self._needy, stripe)
        there = self._needy[at : at + 1] == [stripe]
        if self._need(stripe) > 0 and not there:
            self._needy.insert(at, stripe)
        elif there and self._need(stripe) <= 0:
            del self._needy[at]

    def _can_give(self, stripe: int) -> list[int]:
        """Fragments whose holder is there, and whose block of the stripe nobody has found bad."""
        return [index for index in self.holders if index not in self._bad[stripe]]

    def _check(self) -> None:
        for stripe in self._open:
            there = self._good[stripe] | set(self._can_give(stripe))
            if len(there) < self.m:
                bad = sorted(self._bad[stripe])
                raise SnapshotError(
                    f"stripe {stripe} is lost: {len(there)} of its blocks can be had, {self.m} are needed; fragments "
                    f"{sorted(self.holders)} are there"
                    + (f", and those of {bad} fail their checksums." if bad else "."),
                    remedy="The coordinator falls back to the cut before it.",
                )

    # --- asking

    def _ask(self, now: float) -> list[Block]:
        """Fill the asks of every holder, one at a time in turn, so that none is far ahead."""
        asks: list[Block] = []
        more = True
        while more:
            more = False
            for index, holder in self.holders.items():
                if holder.silent or len(holder.asked) >= self._room(holder):
                    continue
                stripe = self._next(index, holder)
                if stripe is None and not holder.asked:
                    stripe = self._late(index, holder, now)
                if stripe is not None:
                    self._note(stripe, index, holder, now)
                    asks.append(Block(stripe, index))
                    more = True
        return asks

    def _room(self, holder: Holder) -> int:
        rate = holder.rate
        if rate is None or not self._open:
            return LEAST_ASKED
        return min(MOST_ASKED, max(LEAST_ASKED, math.ceil(rate * AHEAD_S / self._sizes[next(iter(self._open))])))

    def _note(self, stripe: int, index: int, holder: Holder, now: float) -> None:
        if not holder.asked:
            holder.heard = now
        holder.asked[stripe] = now
        self._coming[stripe].add(index)
        self._count(stripe)

    def _next(self, index: int, holder: Holder) -> int | None:
        """The first stripe that needs a block which this holder has not been asked for."""
        for stripe in self._needy:
            if self._untried(stripe, index) and not (holder.suspect and self._others_do(stripe)):
                return stripe
        return None

    def _untried(self, stripe: int, index: int) -> bool:
        tried = index in self._good[stripe] or index in self._coming[stripe] or index in self._bad[stripe]
        return not tried and stripe not in self.holders[index].asked

    def _others_do(self, stripe: int) -> bool:
        """Holders that nobody suspects are enough for what the stripe needs."""
        trusted = [
            index for index, holder in self.holders.items() if not (holder.suspect or holder.silent)
            and self._untried(stripe, index)
        ]  # fmt: skip
        return len(trusted) >= self._need(stripe)

    def _late(self, index: int, holder: Holder, now: float) -> int | None:
        """A stripe for which another holder's block is expected later than this one's would be."""
        if holder.rate is None:
            return None
        found, latest = None, 0.0
        for stripe in self._open:
            if not self._untried(stripe, index) or holder.suspect:
                continue
            mine = now + self._sizes[stripe] / holder.rate
            due = max((self._due(stripe, other) for other in self._coming[stripe]), default=0.0)
            if due > max(mine, latest):
                found, latest = stripe, due
        return found

    def _due(self, stripe: int, index: int) -> float:
        """When this holder's block is expected."""
        holder = self.holders[index]
        if holder.rate is None:
            return math.inf
        ahead = 0
        for asked in holder.asked:
            ahead += self._sizes[asked]
            if asked == stripe:
                break
        return holder.heard + ahead / holder.rate
