"""The EDRP problem: a statement that was checked (paper, section 4; symbols in `values.py`)."""

from __future__ import annotations

from dataclasses import dataclass

from leeward.policies.edrp.problem.check import check_statement
from leeward.policies.edrp.problem.values import Statement


@dataclass(frozen=True, kw_only=True)
class Problem(Statement):
    """One instance of EDRP.  Construction checks it (`FieldError`), so a Problem in hand is well formed."""

    def __post_init__(self) -> None:
        check_statement(self)
