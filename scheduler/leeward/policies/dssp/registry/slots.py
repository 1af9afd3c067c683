"""Entries and their leases by number, as arrays, so that one comparison looks at thousands of leases.

A slot is never used again after its entry has left: indices may go on naming it, and see that its lease is over.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leeward.policies.dssp.registry.entries import ProviderEntry

#: The lease of a slot whose entry has left.
GONE = -np.inf


class Slots:
    """`entries[slot]`, None once it has left, and `until[slot]`, the end of its lease, s; `used` of them are taken."""

    def __init__(self) -> None:
        self.entries: npt.NDArray[Any] = np.empty(64, dtype=object)
        self.until: npt.NDArray[np.float64] = np.full(64, GONE)
        self.used = 0

    def take(self, entry: ProviderEntry, until: float) -> int:
        """The slot that is this entry's from now on."""
        if self.used == len(self.until):
            self.entries = np.concatenate([self.entries, np.empty(self.used, dtype=object)])
            self.until = np.concatenate([self.until, np.full(self.used, GONE)])
        slot, self.used = self.used, self.used + 1
        self.entries[slot], self.until[slot] = entry, until
        return slot

    def free(self, slot: int) -> None:
        """The entry has left."""
        self.entries[slot], self.until[slot] = None, GONE

    def lapsed(self, now: float) -> list[int]:
        """Slots whose lease is over and whose entry has not left yet."""
        until = self.until[: self.used]
        return np.flatnonzero((until <= now) & (until > GONE)).tolist()

    def running(self, now: float) -> int:
        """How many leases are not over."""
        return int(np.count_nonzero(self.until[: self.used] > now))
