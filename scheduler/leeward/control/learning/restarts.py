"""Restarts that are over, as facts to learn from. Pure."""

from __future__ import annotations

from leeward.core.journal import Journal, StepName
from leeward.core.learnt import Restart
from leeward.core.plan import deployment


def restart_of(journal: Journal) -> Restart | None:
    """From the journal of a restart that is closed; None for another one, or where its times are not known.

    It is closed after its last step; at the same time only where the clock of a coordinator that has taken over was
    behind (`Journal.at`): then its pause is not known.
    """
    begun = [at for name, at in journal.times.items() if name != StepName.CLOSED]
    closed = journal.times.get(StepName.CLOSED)
    if journal.kind != "restart" or journal.open or closed is None or not begun or closed <= max(begun):
        return None
    return Restart(_started(journal), closed - min(begun))


def _started(journal: Journal) -> int:
    """Most replicas of one component on one node, where a task has changed its slot; else 0: no worker restarts."""
    owners = {owner for table in journal.new_tables.values() for owner in table}
    if not journal.moves or not owners <= journal.new_slots.keys():
        return 0
    placed = deployment(journal.new_tables, journal.new_slots)
    return max((count for counts in placed.values() for count in counts.values()), default=0)
