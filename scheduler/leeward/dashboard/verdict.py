"""Is what the sink wrote what it should have written? Compares the sink's stream with the reference's rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Counts of rows; all zero and equal means exact."""

    results_out: int  #: rows the sink wrote
    expected: int  #: rows of the reference
    lost: int  #: rows of the reference that the sink did not write
    duplicated: int  #: rows the sink wrote more often than the reference has them
    out_of_order: int  #: adjacent rows whose sequence numbers do not grow
    equal_to_reference: bool  #: the same rows in the same order
    first_difference: str  #: empty if equal

    @property
    def good(self) -> bool:
        """Nothing lost, doubled or out of order."""
        return self.equal_to_reference and not (self.lost or self.duplicated or self.out_of_order)


def compare(numbers: Sequence[int], rows: Sequence[str], reference: Sequence[str]) -> Verdict:
    """`numbers` are the sequence numbers of `rows`, as the sink wrote them."""
    have, want = Counter(rows), Counter(reference)
    return Verdict(
        results_out=len(rows),
        expected=len(reference),
        lost=sum((want - have).values()),
        duplicated=sum((have - want).values()),
        out_of_order=sum(after <= before for before, after in pairwise(numbers)),
        equal_to_reference=list(rows) == list(reference),
        first_difference=_first_difference(rows, reference),
    )


def _first_difference(rows: Sequence[str], reference: Sequence[str]) -> str:
    for number, (row, expected) in enumerate(zip(rows, reference, strict=False), start=1):
        if row != expected:
            return f"row {number}: wrote {row!r}, expected {expected!r}"
    if len(rows) != len(reference):
        return f"{len(rows)} rows written, {len(reference)} expected; the first {min(len(rows), len(reference))} agree"
    return ""
