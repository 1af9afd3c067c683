"""How much each key group of a stateful bolt gets: of every batch one tuple is looked at and stands for all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

#: From one batch's place to the next's, in batches. The golden ratio keeps step with no period of the input: a source
#: that always sends its keys in the same order would else be seen at the same key each time.
_STEP = 0.6180339887498949


class GroupLoad:
    """Counts since the start of the process."""

    def __init__(self) -> None:
        self._place = 0.0
        self.tuples: Counter[int] = Counter()  #: group -> tuples that the looked-at ones stand for
        self.looked_at = 0

    def sample(self, batch: Sequence[Any], sources: Mapping[int, Any]) -> None:
        """`batch` as `PipeSerializer.batch` gives it; `sources`: `loop.Source` by number. Costs the same for many."""
        count = len(batch) // 2
        self._place = (self._place + _STEP) % 1.0
        at = 2 * int(self._place * count)
        source = sources.get(batch[at])
        if source is not None and source.group is not None:
            self.tuples[source.group] += count
            self.looked_at += 1
